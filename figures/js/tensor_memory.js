// Who reaches what in tensor memory: the model of figures/blackwell.py, tensor_reach.
const explorer = {
  controls: () => [
    { id: "columns", label: "columns of a set of sums", options: [32, 48, 64, 96, 128, 192, 256] },
    { id: "sets", label: "sets of sums", min: 1, max: 4 },
    { id: "warp", label: "warp of the block", min: 0, max: 7 },
  ],
  play: "warp",
  model: (p) => {
    const taken = p.columns * p.sets;
    const lane = (p.warp % 4) * 32;
    const allocated = Math.max(32, 2 ** Math.ceil(Math.log2(taken)));
    return {
      lane,
      taken,
      allocated: allocated <= 512 ? allocated : 0,
      addresses: range(p.sets).map((one) => lane * 65536 + p.columns * one),
    };
  },
  draw: (p) => {
    const m = explorer.model(p);
    const top = 22,
      left = 40,
      tall = 34,
      wide = 700 / 512;
    let body = "";
    for (const quarter of range(4)) {
      const y = top + quarter * tall;
      const here = 32 * quarter === m.lane;
      body +=
        svg.text(left - 6, y + tall / 2, 32 * quarter, { anchor: "end", size: 10, fill: "var(--gl-muted)" }) +
        svg.rect(left, y + 0.5, 512 * wide, tall - 1, "var(--gl-soft)");
      if (m.allocated) body += svg.rect(left, y + 0.5, m.allocated * wide, tall - 1, STYLE.grey, 'opacity="0.35"');
      for (const set of range(p.sets)) {
        const room = Math.min(p.columns, 512 - set * p.columns);
        if (room <= 0) continue;
        const color = STYLE.wavefronts[set];
        const x = left + set * p.columns * wide;
        body += svg.rect(x + 0.5, y + 0.5, room * wide - 1, tall - 1, color, here ? "" : 'opacity="0.3"');
        if (here)
          body += svg.text(x + (room * wide) / 2, y + tall / 2, room < 64 ? set : `set ${set}`, {
            fill: textOn(color),
          });
      }
    }
    for (const column of [0, 128, 256, 384, 511])
      body += svg.text(left + column * wide, 10, column, { size: 10, fill: "var(--gl-muted)" });
    const need = m.allocated
      ? `an allocation of ${plural(m.allocated, "column")}`
      : '<span class="bad">more than the 512 columns there are</span>';
    return {
      finding: `Warp ${p.warp} reaches lanes ${m.lane} to ${m.lane + 31}; the sums take ${plural(m.taken, "column")}: ${need}`,
      note:
        `Addresses of its part: ${m.addresses.map((a) => `0x${a.toString(16).padStart(8, "0")}`).join(", ")} ` +
        "behind that of the allocation (lane in the upper 16 bits, column in the lower). Grey: allocated. Pale: lanes of other warps.",
      picture: svg.page(752, top + 4 * tall + 4, body, `Warp ${p.warp} reaches lanes ${m.lane} to ${m.lane + 31}`, 560),
    };
  },
};
