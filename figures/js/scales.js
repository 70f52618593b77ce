// Which scale belongs to an element, and where it lies: the model of figures/blackwell.py, scale_place.
const explorer = {
  controls: () => [
    {
      id: "block",
      label: "elements that share a scale",
      options: [
        [32, "32 (mxf8)"],
        [16, "16 (nvfp4)"],
      ],
    },
    { id: "row", label: "row", min: 0, max: 127 },
    { id: "k", label: "element k", min: 0, max: 127 },
  ],
  play: "row",
  model: (p) => {
    const scale = Math.floor(p.k / p.block);
    return {
      scale,
      group: Math.floor(scale / 4),
      byte: (p.row % 32) * 16 + Math.floor(p.row / 32) * 4 + (scale % 4),
      lane: p.row % 32,
      column: Math.floor(p.row / 32),
      part: scale % 4,
    };
  },
  draw: (p) => {
    const m = explorer.model(p);
    const blocks = 128 / p.block,
      left = 8,
      wide = 330 / blocks,
      right = 420,
      byte = 19,
      tall = 8,
      top = 26;
    let body =
      svg.text(left, 10, `row ${p.row}: 128 elements along k`, { anchor: "start", size: 11, bold: true }) +
      svg.text(right, 10, `group ${m.group}: 32 lanes, four columns of four bytes`, {
        anchor: "start",
        size: 11,
        bold: true,
      });
    for (const one of range(blocks)) {
      const color = STYLE.wavefronts[one % 8];
      body +=
        svg.rect(left + one * wide + 0.5, 60, wide - 1, 34, color, one === m.scale ? "" : 'opacity="0.35"') +
        svg.text(left + (one + 0.5) * wide, 77, one, { fill: one === m.scale ? textOn(color) : "var(--gl-ink)" });
    }
    const at = left + ((p.k + 0.5) * 330) / 128;
    body +=
      svg.line(at, 34, at, 60, "var(--gl-ink)", 2) +
      svg.text(Math.max(at, left + 20), 26, `k = ${p.k}`) +
      svg.text(left, 112, "a number is the scale of its block", { anchor: "start", size: 10, fill: "var(--gl-muted)" });
    for (const lane of range(32))
      for (const column of range(4))
        for (const part of range(4)) {
          const here = lane === m.lane && column === m.column && part === m.part;
          const mine = lane === m.lane && column === m.column;
          const color = here ? STYLE.bad : mine ? STYLE.wavefronts[(4 * m.group + part) % 8] : "var(--gl-soft)";
          body += svg.rect(
            right + (4 * column + part) * byte + 0.5,
            top + lane * tall + 0.5,
            byte - 1 - (part === 3) * 2,
            tall - 1,
            color,
          );
        }
    for (const lane of [0, 8, 16, 24])
      body += svg.text(right - 4, top + (lane + 0.5) * tall, lane, {
        anchor: "end",
        size: 10,
        fill: "var(--gl-muted)",
      });
    return {
      finding: `Scale ${m.scale} of row ${p.row}: lane ${m.lane}, column ${m.column}, byte ${m.part} of group ${m.group}`,
      note: `In shared memory it is byte ${m.byte} of the 512 bytes of that group. The picture stands four times in tensor memory: in lanes 0, 32, 64 and 96 and those that follow.`,
      picture: svg.page(752, top + 32 * tall + 6, body, `Scale ${m.scale} of row ${p.row}`, 640),
    };
  },
};
