// The descriptors of tcgen05, bit by bit: the model of figures/blackwell.py, instruction_bits and matrix_bits.
const instructionFields = ({ m, n, pair, types, major }) => {
  const known = pair === "yes" ? [128, 256] : [64, 128];
  if (!known.includes(m))
    return { error: `m = ${m}: ${pair === "yes" ? "128 or 256 for a pair" : "64 or 128 for a block"}` };
  const step = { 64: 8, 128: pair === "yes" ? 32 : 16, 256: 16 }[m];
  if (n % step) return { error: `n = ${n}: a multiple of ${step} up to 256, for m = ${m}` };
  const bf16 = types === "bf16" ? 1 : 0;
  return {
    fields: [
      { name: "sums", low: 4, bits: 2, value: types === "f16 to f16" ? 0 : 1 },
      { name: "A", low: 7, bits: 3, value: bf16 },
      { name: "B", low: 10, bits: 3, value: bf16 },
      { name: "A MN-major", low: 15, bits: 1, value: 0 },
      { name: "B MN-major", low: 16, bits: 1, value: major === "N" ? 1 : 0 },
      { name: "N / 8", low: 17, bits: 6, value: n / 8 },
      { name: "M / 16", low: 24, bits: 5, value: m / 16 },
    ],
  };
};
const matrixFields = ({ start, leading, stride, swizzle }) => ({
  fields: [
    { name: "start / 16", low: 0, bits: 14, value: start / 16 },
    { name: "leading / 16", low: 16, bits: 14, value: leading / 16 },
    { name: "stride / 16", low: 32, bits: 14, value: stride / 16 },
    { name: "001", low: 46, bits: 3, value: 1 },
    { name: "swizzle", low: 61, bits: 3, value: { 0: 0, 128: 2, 64: 4, 32: 6 }[swizzle] },
  ],
});

const OF = { instruction: ["m", "n", "pair", "types", "major"], matrix: ["start", "leading", "stride", "swizzle"] };

const explorer = {
  controls: () => [
    { id: "which", label: "descriptor", words: true, options: ["instruction", "matrix"] },
    { id: "m", label: "M", options: [64, 128, 256] },
    { id: "n", label: "N", options: [8, 16, 32, 48, 64, 96, 128, 192, 256] },
    {
      id: "pair",
      label: "blocks",
      words: true,
      options: [
        ["no", "one"],
        ["yes", "a pair"],
      ],
    },
    {
      id: "types",
      label: "A, B and sums",
      words: true,
      options: [
        ["f16", "f16, f32 sums"],
        ["f16 to f16", "f16, f16 sums"],
        ["bf16", "bf16, f32 sums"],
      ],
    },
    {
      id: "major",
      label: "B",
      words: true,
      options: [
        ["N", "N-major, as ours"],
        ["K", "K-major"],
      ],
    },
    { id: "start", label: "start", options: [0, 32, 64, 96, 2048, 16384] },
    { id: "leading", label: "leading offset", options: [16, 128, 1024, 8192, 16384] },
    { id: "stride", label: "stride offset", options: [16, 128, 1024, 8192, 16384] },
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
  adapt: (controls) => {
    for (const [which, ids] of Object.entries(OF))
      for (const id of ids) controls.hide(id, controls.values.which !== which);
  },
  model: (p) => {
    const wide = p.which === "matrix" ? 64 : 32;
    const found = p.which === "matrix" ? matrixFields(p) : instructionFields(p);
    if (found.error) return found;
    const bits = found.fields.reduce((sum, one) => sum | (BigInt(one.value) << BigInt(one.low)), 0n);
    return { ...found, wide, bits: `0x${bits.toString(16).padStart(wide / 4, "0")}` };
  },
  draw: (p) => {
    const m = explorer.model(p);
    if (m.error)
      return {
        finding: `<span class="bad">No such product: ${escape(m.error)}</span>`,
        note: "",
        picture: svg.page(752, 120, "", m.error),
      };
    const cell = 23,
      tall = 24,
      row = 62;
    const place = (bit) => ({
      x: 8 + (31 - (bit % 32)) * cell,
      y: 6 + (Math.ceil(m.wide / 32) - 1 - Math.floor(bit / 32)) * row,
    });
    let body = "";
    for (const bit of range(m.wide)) {
      const { x, y } = place(bit);
      body += svg.rect(x + 0.5, y, cell - 1, tall, "var(--gl-soft)");
      if (bit % 8 === 0) body += svg.text(x + cell / 2, y + tall + 8, bit, { size: 10, fill: "var(--gl-muted)" });
    }
    m.fields.forEach((field, index) => {
      const color = STYLE.wavefronts[index % STYLE.wavefronts.length];
      for (const bit of range(field.bits)) {
        const { x, y } = place(field.low + bit);
        body +=
          svg.rect(x + 0.5, y, cell - 1, tall, color) +
          svg.text(x + cell / 2, y + tall / 2, Math.floor(field.value / 2 ** bit) % 2, { fill: textOn(color) });
      }
      const left = place(field.low + field.bits - 1);
      const low = field.bits === 1 && index % 2 ? 34 : 22;
      body += svg.text(left.x + (field.bits * cell) / 2, left.y + tall + low - 4, field.name, { size: 10 });
    });
    const said = m.fields.map((one) => `${one.name} = ${one.value}`).join(", ");
    return {
      finding: `The ${p.which} descriptor is ${m.bits}`,
      note: `${said}. The highest bit is at the left.`,
      picture: svg.page(752, m.wide === 64 ? 128 : 66, body, `The descriptor ${m.bits}: ${said}`, 640),
    };
  },
};
