// A warp's shared access: width, row length and padding, or an access recorded from a kernel.
const addressesOf = (p, data) => {
  if (p.source && p.source !== "by hand") return data.cases[p.source];
  const pitch = 4 * (p.row + p.pad);
  const address = p.pattern === "column" ? (lane) => lane * pitch : (lane) => lane * p.width;
  return { addresses: range(32).map(address), width: p.width, load: true, lanes: 32 };
};

const explorer = {
  controls: (data) => [
    ...(Object.keys(data.cases).length
      ? [{ id: "source", label: "access", words: true, options: ["by hand", ...Object.keys(data.cases)] }]
      : []),
    {
      id: "pattern",
      label: "the lanes go",
      words: true,
      options: [
        ["column", "down a column"],
        ["row", "along a row"],
      ],
    },
    { id: "width", label: "bytes per lane", options: [4, 8, 16] },
    { id: "row", label: "row length in 4-byte words:", min: 1, max: 64 },
    { id: "pad", label: "padding in 4-byte words:", min: 0, max: 8 },
    { id: "wave", label: "wavefront:", min: 0, max: 32, value: 0, show: (n) => n || "all" },
  ],
  play: "wave",
  first: 1,
  last: (p, data) => explorer.model(p, data).total ?? 1,
  adapt: (controls) => {
    const fixed = controls.values.source && controls.values.source !== "by hand";
    for (const id of ["pattern", "width"]) controls.hide(id, fixed);
    for (const id of ["row", "pad"]) controls.hide(id, fixed || controls.values.pattern === "row");
  },
  model: (p, data) => {
    const access = addressesOf(p, data);
    const stray = access.addresses.findIndex((at) => at >= 0 && at % access.width);
    if (stray >= 0) return { ...access, stray };
    return { ...access, ...wavefronts(access.addresses, access.width, access.load) };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const left = 44,
      cell = 22,
      row = 13,
      top = 24;
    let body = svg.text(left - 7, 10, "bank", { anchor: "end", fill: "var(--gl-muted)", size: 10.5 });
    for (const bank of range(32))
      body += svg.text(left + (bank + 0.5) * cell, 10, bank, { size: 10, fill: "var(--gl-muted)" });
    for (const lane of range(32)) {
      const y = top + lane * row;
      body += `</g><g data-lane="${lane}">${svg.rect(left, y, 32 * cell, row - 2, "var(--gl-soft)")}`;
      if (lane % 4 === 0 || lane === 31)
        body += svg.text(left - 7, y + row / 2 - 1, lane ? lane : "lane 0", {
          anchor: "end",
          size: 10,
          fill: "var(--gl-muted)",
        });
      const at = m.addresses[lane];
      if (at < 0) continue;
      const bank = Math.floor(at / 4) % 32;
      const wide = Math.max(m.width / 4, 1);
      const bad = m.stray !== undefined;
      const color = bad
        ? at % m.width
          ? STYLE.bad
          : STYLE.grey
        : STYLE.wavefronts[m.served[lane] % STYLE.wavefronts.length];
      const inside = Math.min(wide, 32 - bank);
      const now = !p.wave || bad || p.wave > m.total || m.served[lane] + 1 === p.wave;
      const faded = now ? "" : 'opacity="0.18"';
      body += svg.rect(left + bank * cell + 0.5, y, inside * cell - 1, row - 2, color, faded);
      if (inside < wide) body += svg.rect(left + 0.5, y, (wide - inside) * cell - 1, row - 2, color, faded);
      if (!bad && now)
        body += svg.text(left + (bank + wide / 2) * cell, y + row / 2 - 1, m.served[lane] + 1, {
          size: 10,
          fill: textOn(color),
        });
    }
    body = `<g>${body}</g>`;
    let finding, note;
    if (m.stray !== undefined) {
      finding = `<span class="bad">Misaligned: lane ${m.stray} would access ${m.width} bytes at address ${m.addresses[m.stray]}. A GPU faults.</span>`;
      note = `An access of ${m.width} bytes needs an address that is a multiple of ${m.width}.`;
    } else {
      const extra = m.total > m.ideal;
      finding =
        `<span class="${extra ? "bad" : "good"}">${plural(m.total, "wavefront")}</span>` +
        (extra ? `, where ${m.ideal} would do` : ": no conflict");
      note =
        p.wave && p.wave <= m.total
          ? `Wavefront ${p.wave} of ${m.total} serves ${plural(m.served.filter((n) => n === p.wave - 1).length, "lane")}: in each bank, one word.`
          : "One row per lane, one column per bank; the number is the wavefront that serves the lane.";
    }
    return { finding, note, picture: svg.page(752, top + 32 * row + 2, body, finding.replace(/<[^>]*>/g, ""), 620) };
  },
};
