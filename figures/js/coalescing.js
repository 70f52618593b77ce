// A warp's global access: element size, stride and offset, or an access recorded from a kernel.
const explorer = {
  controls: (data) => [
    ...(Object.keys(data.cases).length
      ? [{ id: "source", label: "access", words: true, options: ["by hand", ...Object.keys(data.cases)] }]
      : []),
    { id: "width", label: "bytes an element", options: [2, 4, 8, 16] },
    { id: "stride", label: "elements from lane to lane:", min: 0, max: 32 },
    { id: "offset", label: "elements before lane 0:", min: 0, max: 16 },
  ],
  play: "stride",
  adapt: (controls) => {
    const fixed = controls.values.source && controls.values.source !== "by hand";
    for (const id of ["width", "stride", "offset"]) controls.hide(id, fixed);
  },
  model: (p, data) => {
    const recorded = p.source && p.source !== "by hand";
    const addresses = recorded
      ? data.cases[p.source].addresses
      : range(32).map((lane) => (p.offset + lane * p.stride) * p.width);
    const width = recorded ? data.cases[p.source].width : p.width;
    const active = range(32).filter((lane) => addresses[lane] >= 0);
    const sectors = [...new Set(active.map((lane) => Math.floor(addresses[lane] / 32)))].sort((a, b) => a - b);
    const used = new Set(active.map((lane) => addresses[lane])).size * width;
    return { addresses, width, active, sectors, used, ideal: Math.ceil((active.length * width) / 32) };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const step = 23,
      left = 4,
      yLanes = 2,
      ySectors = 96;
    let body = "";
    for (const lane of range(32)) {
      const on = m.addresses[lane] >= 0;
      const color = on ? STYLE.lanes[lane] : "var(--gl-soft)";
      body += `<g data-lane="${lane}">${svg.rect(left + lane * step + 1, yLanes, step - 2, 22, color)}`;
      body += `${svg.text(left + (lane + 0.5) * step, yLanes + 11, lane, {
        size: 10.5,
        fill: on ? textOn(color) : "var(--gl-muted)",
      })}</g>`;
    }
    const lines = [...new Set(m.sectors.map((s) => Math.floor(s / 4)))];
    const gap = lines.length > 1 ? 6 : 0;
    const pitch = Math.min((32 * step - gap * (lines.length - 1)) / m.sectors.length, 150);
    let x = left + (32 * step - pitch * m.sectors.length - gap * (lines.length - 1)) / 2;
    const where = new Map();
    let free = -1;
    for (const line of lines) {
      const from = x;
      for (const sector of m.sectors.filter((s) => Math.floor(s / 4) === line)) {
        where.set(sector, x);
        body += svg.rect(
          x + 0.5,
          ySectors,
          pitch - 1,
          26,
          "var(--gl-soft)",
          `stroke="var(--gl-line)" stroke-width="0.8" data-lane="${m.active.filter((lane) => Math.floor(m.addresses[lane] / 32) === sector).join(" ")}"`,
        );
        x += pitch;
      }
      body += svg.line(from + 1, ySectors + 30, x - 1, ySectors + 30, "var(--gl-muted)", 1.4);
      const label = `+${count((line - lines[0]) * 128)} B`;
      if (from >= free && from + label.length * 6.6 < 744) {
        body += svg.text(from + 1, ySectors + 42, label, { size: 10.5, anchor: "start", fill: "var(--gl-muted)" });
        free = from + label.length * 6.6 + 10;
      }
      x += gap;
    }
    for (const lane of m.active) {
      const sector = Math.floor(m.addresses[lane] / 32);
      const scale = (pitch - 1) / 32;
      const x0 = where.get(sector) + 0.5 + (m.addresses[lane] - sector * 32) * scale;
      const w = m.width * scale;
      body += svg.line(
        left + (lane + 0.5) * step,
        yLanes + 23,
        x0 + w / 2,
        ySectors - 1,
        "var(--gl-muted)",
        0.9,
        `data-lane="${lane}"`,
      );
      body += svg.rect(
        x0 + (w > 5 ? 0.4 : 0),
        ySectors + 1,
        w > 5 ? w - 0.8 : w,
        24,
        STYLE.lanes[lane],
        `data-lane="${lane}"`,
      );
    }
    const n = m.sectors.length;
    const extra = n > m.ideal;
    const finding =
      `<span class="${extra ? "bad" : "good"}">${plural(n, "sector")}</span>` +
      (extra ? `, where ${m.ideal} would do` : ": as few as can be");
    const note =
      `${count(n * 32)} bytes are moved, ${count(m.used)} are used (${percent(m.used / (n * 32))}).` +
      " Grey parts of a sector are moved for nobody; the line beneath joins the sectors of one 128-byte line.";
    return {
      finding,
      note,
      picture: svg.page(744, ySectors + 52, body, `${plural(n, "sector")}; ideal ${m.ideal}`, 600),
    };
  },
};
