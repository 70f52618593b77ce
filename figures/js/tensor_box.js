// One copy by TMA: the model of figures/tensor_box.py. Everything in 16-byte chunks; addresses in bytes.
const swizzled = (byte, swizzle) => byte ^ ((Math.floor(byte / 128) % Math.max(swizzle / 16, 1)) * 16);

const explorer = {
  controls: () => [
    { id: "rows", label: "matrix: rows", min: 1, max: 16 },
    { id: "columns", label: "matrix: chunks per row", min: 1, max: 12 },
    { id: "boxRows", label: "box: rows", min: 1, max: 16 },
    { id: "boxChunks", label: "box: chunks per row", options: [1, 2, 4, 8] },
    { id: "y", label: "copy: first row", min: -4, max: 16 },
    { id: "x", label: "copy: first chunk", min: -4, max: 12 },
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
  play: "x",
  model: (p) => {
    const row = 16 * p.boxChunks;
    if (p.swizzle && row > p.swizzle)
      return { error: `a box's row has ${row} bytes: at most the swizzle's span, ${p.swizzle}` };
    const chunks = range(p.boxRows).flatMap((r) =>
      range(p.boxChunks).map((c) => ({
        row: r,
        chunk: c,
        byte: swizzled((r * p.boxChunks + c) * 16, p.swizzle),
        inside: p.y + r >= 0 && p.y + r < p.rows && p.x + c >= 0 && p.x + c < p.columns,
      })),
    );
    // How many wavefronts ldmatrix takes to read a column of the box's first eight rows, at worst.
    const waves = range(p.boxChunks).map((c) =>
      worst(
        chunks.filter((one) => one.chunk === c && one.row < 8).map((one) => one.byte / 16),
        8,
      ),
    );
    return {
      chunks,
      bytes: 16 * chunks.length,
      inside: chunks.filter((one) => one.inside).length,
      waves: Math.max(...waves),
    };
  },
  draw: (p) => {
    const m = explorer.model(p);
    if (m.error)
      return {
        finding: `<span class="bad">The driver refuses this tensor map: ${escape(m.error)}</span>`,
        note: "",
        picture: svg.page(752, 300, "", m.error),
      };
    const low = { x: Math.min(0, p.x), y: Math.min(0, p.y) };
    const across = Math.max(p.columns, p.x + p.boxChunks) - low.x;
    const down = Math.max(p.rows, p.y + p.boxRows) - low.y;
    const lines = Math.ceil(m.bytes / 128);
    const top = 26,
      right = 456,
      cell = Math.min(30, 400 / across),
      tall = Math.min(20, 330 / Math.max(down, lines)),
      wide = 36;
    let body =
      svg.text(2, 10, "the matrix in global memory", { anchor: "start", bold: true, size: 12 }) +
      svg.text(right, 10, "the box in shared memory", { anchor: "start", bold: true, size: 12 });
    for (const r of range(p.rows))
      for (const c of range(p.columns))
        body += svg.rect(
          2 + (c - low.x) * cell + 0.5,
          top + (r - low.y) * tall + 0.5,
          cell - 1,
          tall - 1,
          "var(--gl-soft)",
        );
    const place = (one, x, y, w) => {
      const color = one.inside ? STYLE.banks[4 * one.chunk] : STYLE.grey;
      return (
        svg.rect(x + 0.5, y + 0.5, w - 1, tall - 1, color) +
        svg.text(x + w / 2, y + tall / 2, one.inside ? one.row : 0, { size: 10, fill: textOn(color) })
      );
    };
    for (const one of m.chunks) {
      body += place(one, 2 + (p.x + one.chunk - low.x) * cell, top + (p.y + one.row - low.y) * tall, cell);
      body += place(one, right + ((one.byte % 128) / 16) * wide, top + Math.floor(one.byte / 128) * tall, wide);
    }
    body += svg.rect(
      2 + (p.x - low.x) * cell,
      top + (p.y - low.y) * tall,
      p.boxChunks * cell,
      p.boxRows * tall,
      "none",
      'stroke="var(--gl-ink)" stroke-width="2"',
    );
    for (const line of range(lines))
      body += svg.text(right - 6, top + (line + 0.5) * tall, 128 * line, {
        anchor: "end",
        size: 10,
        fill: "var(--gl-muted)",
      });
    const zeros = m.chunks.length - m.inside;
    return {
      finding:
        `One copy brings ${count(m.bytes)} bytes: ${plural(m.inside, "chunk")} of the matrix` +
        (zeros ? ` and ${count(zeros)} of zeros` : ""),
      note:
        `A number is the row of the box, a colour the chunk's place in its row. The mbarrier counts all ${count(m.bytes)} bytes, zeros too. ` +
        `To read one chunk from each of the first ${Math.min(8, p.boxRows)} rows takes <b class="${m.waves > 1 ? "bad" : "good"}">${plural(m.waves, "wavefront")}</b>.`,
      picture: svg.page(752, top + Math.max(down, lines) * tall + 4, body, `One copy brings ${m.bytes} bytes`, 560),
    };
  },
};
