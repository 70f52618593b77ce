// A kernel's accesses at each setting of its macros: sectors and wavefronts, as they were counted.
const sum = (rows, at) => rows.reduce((total, row) => total + row[at], 0);

const explorer = {
  controls: (data) => data.choices.map(([id, options]) => ({ id, label: id, options })),
  model: (p, data) => {
    const rows = data.counts[data.choices.map(([id]) => p[id]).join(",")];
    if (typeof rows === "string") return { error: rows };
    return { rows, sectors: sum(rows, 2), wavefronts: sum(rows, 3), extra: sum(rows, 3) - sum(rows, 4) };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const first = data.counts[data.first];
    const known = Object.values(data.counts).filter((rows) => typeof rows !== "string");
    const left = 118,
      wide = 420,
      tall = 34;
    const scale = (unit) => wide / Math.max(1, ...known.flat().map((row) => row[unit]));
    const scales = { 2: scale(2), 3: scale(3) };
    const rows = m.error ? first : m.rows;
    let body = "";
    rows.forEach(([name, requests, ...counts], i) => {
      const unit = counts[0] ? 2 : 3;
      const total = counts[unit - 2];
      const y = 4 + i * tall;
      body += svg.text(left - 10, y + 13, name, { anchor: "end", size: 13 });
      body += svg.rect(left, y + 2, wide, 22, "var(--gl-soft)");
      if (m.error) return;
      const color = unit === 2 ? STYLE.kinds.load : STYLE.good;
      const fine = unit === 2 ? total : counts[2];
      body += svg.rect(left, y + 2, fine * scales[unit], 22, color);
      if (total > fine)
        body += svg.rect(left + fine * scales[unit], y + 2, (total - fine) * scales[unit], 22, STYLE.bad);
      const before = first.find((row) => row[0] === name);
      if (before && before[unit] !== total) {
        const x = left + before[unit] * scales[unit];
        body += svg.line(x, y - 1, x, y + 27, "var(--gl-ink)", 2);
      }
      const each = Number((total / requests).toPrecision(3));
      body += svg.text(
        left + wide + 10,
        y + 13,
        `${plural(total, unit === 2 ? "sector" : "wavefront")}, ${each} each`,
        {
          anchor: "start",
          size: 12.5,
        },
      );
    });
    const at = data.choices.map(([id]) => p[id]).join(",");
    const taken = data.blocks?.[at];
    const reported = data.reports?.[at];
    const picture = (label) => svg.page(760, 8 + rows.length * tall, body, label, 600);
    if (m.error) return { finding: `<span class="bad">${escape(m.error)}</span>`, note: "", picture: picture(m.error) };
    const finding =
      `${plural(m.sectors, "sector")} of global memory` +
      (m.wavefronts ? `, ${plural(m.wavefronts, "wavefront")} of shared memory` : "") +
      (m.extra ? `, <span class="bad">${count(m.extra)} of them conflicts</span>` : "") +
      (reported ? `; the emulator reports <span class="bad">${escape(reported)}</span>` : "");
    return {
      finding,
      note:
        (taken ? `${escape(taken)} ` : "") +
        "All requests of the launch, counted by the emulator. The dark line is the setting that was shown first; red is what conflicts add.",
      picture: picture(finding.replace(/<[^>]*>/g, "")),
    };
  },
};
