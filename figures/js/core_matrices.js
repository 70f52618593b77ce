// A descriptor of wgmma and the chunks that it walks: the model of figures/core_matrices.py. All in bytes.
const descriptorChunks = ({ major, start, stride, leading, swizzle }) => {
  const span = swizzle || 16;
  const panel = span / 16;
  const pieces = [];
  if (major === "N")
    for (const q of range(16))
      for (const k of range(16)) {
        const eight = Math.floor(k / 8);
        const byte = swizzle
          ? (q % panel) * 16 + Math.floor(q / panel) * leading + eight * stride
          : q * stride + eight * leading;
        pieces.push({ matrix: 2 * q + eight, row: k % 8, byte: byte + (k % 8) * span });
      }
  else
    for (const row of range(32))
      for (const c of range(2)) {
        const eight = Math.floor(row / 8);
        pieces.push({
          matrix: 2 * eight + c,
          row: row % 8,
          byte: (row % 8) * span + eight * stride + c * (swizzle ? 16 : leading),
        });
      }
  const mask = Math.max(swizzle / 16, 1);
  return pieces.map((one) => {
    const place = one.byte + start;
    return { ...one, byte: place ^ ((Math.floor(place / 128) % mask) * 16) };
  });
};

const descriptorBits = ({ start, stride, leading, swizzle }) => {
  const code = BigInt({ 0: 0, 128: 1, 64: 2, 32: 3 }[swizzle]);
  const bits = (code << 62n) | (BigInt(stride / 16) << 32n) | (BigInt(leading / 16) << 16n) | BigInt(start / 16);
  return `0x${bits.toString(16).padStart(16, "0")}`;
};

const explorer = {
  controls: () => [
    {
      id: "major",
      label: "operand",
      words: true,
      options: [
        ["K", "K-major, as our A"],
        ["N", "N-major, as our B"],
      ],
    },
    { id: "start", label: "start", options: [0, 32, 64, 96, 128, 1024, 2048, 4096] },
    { id: "stride", label: "stride offset", options: [128, 256, 512, 1024, 2048] },
    { id: "leading", label: "leading offset", options: [16, 128, 1024, 4096, 8192] },
    {
      id: "swizzle",
      label: "swizzle",
      options: [
        [0, "none"],
        [32, "32 bytes"],
        [64, "64 bytes"],
        [128, "128 bytes"],
      ],
    },
  ],
  model: (p) => {
    const chunks = descriptorChunks(p);
    return { chunks, bits: descriptorBits(p), distinct: new Set(chunks.map((one) => one.byte)).size };
  },
  draw: (p) => {
    const m = explorer.model(p);
    const lines = [...new Set(m.chunks.map((one) => Math.floor(one.byte / 128)))].sort((a, b) => a - b);
    const half = Math.ceil(lines.length / 2);
    const top = 22,
      tall = 17,
      cell = 36;
    const side = (index) => (index < half ? 56 : 440);
    const row = (index) => (index < half ? index : index - half);
    let body = svg.text(2, 9, "byte", { anchor: "start", fill: "var(--gl-muted)" });
    lines.forEach((line, index) => {
      body += svg.text(side(index) - 6, top + (row(index) + 0.5) * tall, 128 * line, {
        anchor: "end",
        size: 10,
        fill: "var(--gl-muted)",
      });
      for (const place of range(8))
        body += svg.rect(
          side(index) + place * cell + 0.5,
          top + row(index) * tall + 0.5,
          cell - 1,
          tall - 1,
          "var(--gl-soft)",
        );
    });
    for (const one of m.chunks) {
      const index = lines.indexOf(Math.floor(one.byte / 128));
      const x = side(index) + ((one.byte % 128) / 16) * cell;
      const y = top + row(index) * tall;
      const color = STYLE.wavefronts[one.matrix % STYLE.wavefronts.length];
      body +=
        svg.rect(x + 0.5, y + 0.5, cell - 1, tall - 1, color) +
        svg.text(x + cell / 2, y + tall / 2, one.row, { size: 10, fill: textOn(color) });
    }
    const twice = m.chunks.length - m.distinct;
    const what = p.major === "K" ? "32 of the operand's rows" : "128 of the operand's columns";
    return {
      finding:
        `Descriptor ${m.bits}: ` +
        (twice
          ? `<span class="bad">${plural(twice, "chunk")} of ${count(m.chunks.length)} read where another one stands</span>`
          : `${plural(m.chunks.length, "chunk")} of 16 bytes, in ${plural(lines.length, "line")} of 128 bytes`),
      note: `Shown are ${what}, with 16 elements along k. A number is a row within a core matrix, a colour a core matrix.`,
      picture: svg.page(752, top + Math.max(half, 4) * tall + 4, body, `Descriptor ${m.bits}`, 560),
    };
  },
};
