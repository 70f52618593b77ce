// How tiles are dealt out to multiprocessors: the model of figures/waves.py.
const shares = (units, blocks) =>
  range(blocks + 1).map((b) => b * Math.floor(units / blocks) + Math.min(b, units % blocks));

const split = (p, parts) => {
  const pieces = [];
  const free = Array(p.sms).fill(0);
  for (const piece of range(p.tiles * parts)) {
    const part = piece % parts,
      sm = piece % p.sms;
    const length = Math.floor((p.steps * (part + 1)) / parts) - Math.floor((p.steps * part) / parts);
    const end = free[sm] + length;
    pieces.push([sm, free[sm], end, Math.floor(piece / parts)]);
    free[sm] = end;
    if (parts > 1 && p.cost) {
      pieces.push([sm, end, end + p.cost, -1]);
      free[sm] = end + p.cost;
    }
  }
  return pieces;
};

const stream = (p) => {
  const pieces = [];
  const blocks = Math.min(p.sms, p.tiles * p.steps);
  const begins = shares(p.tiles * p.steps, blocks);
  for (const block of range(blocks)) {
    let at = begins[block],
      now = 0,
      shared = false;
    while (at < begins[block + 1]) {
      const tile = Math.floor(at / p.steps);
      const stop = Math.min(begins[block + 1], (tile + 1) * p.steps);
      pieces.push([block, now, now + stop - at, tile]);
      shared = shared || stop - at < p.steps;
      now += stop - at;
      at = stop;
    }
    if (shared && p.cost) pieces.push([block, now, now + p.cost, -1]);
  }
  return pieces;
};

const explorer = {
  controls: (data) => [
    { id: "way", label: "dealt out as", words: true, options: data.ways },
    { id: "tiles", label: "tiles:", min: 1, max: 300 },
    { id: "sms", label: "multiprocessors", options: [4, 8, 16, 108, 132] },
    { id: "steps", label: "k-steps per tile:", min: 1, max: 64 },
    { id: "cost", label: "adding up takes, in k-steps:", min: 0, max: 8 },
  ],
  model: (p) => {
    const parts = { "whole tiles": 1, "split in 2": 2, "split in 4": 4 }[p.way];
    const pieces = parts ? split(p, parts) : stream(p);
    const time = pieces.reduce((most, piece) => Math.max(most, piece[2]), 0);
    return { pieces, time, busy: (p.tiles * p.steps) / (p.sms * time) };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const whole = explorer.model({ ...p, way: "whole tiles" }, data).time;
    const left = 64,
      wide = 680,
      tall = 264,
      row = tall / p.sms,
      scale = wide / Math.max(m.time, whole);
    let body = svg.rect(left, 4, wide, tall, "var(--gl-soft)");
    for (const [sm, begin, end, tile] of m.pieces) {
      const color = tile < 0 ? STYLE.bad : STYLE.wavefronts[tile % STYLE.wavefronts.length];
      const w = (end - begin) * scale;
      const gap = row > 6 ? 1 : 0;
      body += svg.rect(left + begin * scale, 4 + sm * row + gap / 2, Math.max(w - gap, 0.6), row - gap, color);
      if (row > 13 && w > 18 && tile >= 0)
        body += svg.text(left + ((begin + end) / 2) * scale, 4 + (sm + 0.5) * row, tile, { fill: textOn(color) });
    }
    const names = p.sms <= 16 ? range(p.sms) : [0, p.sms - 1];
    for (const sm of names)
      body += svg.text(left - 6, 4 + (sm + 0.5) * row, `SM ${sm}`, {
        anchor: "end",
        size: 10.5,
        fill: "var(--gl-muted)",
      });
    body += svg.line(left + m.time * scale, 2, left + m.time * scale, tall + 8, "var(--gl-ink)", 1.5);
    body += svg.text(left + m.time * scale, tall + 16, `${Number(m.time.toFixed(1))} k-steps`, {
      anchor: m.time * scale > wide - 60 ? "end" : "middle",
      size: 11.5,
    });
    const finding = `${percent(m.busy)} of the time at work: ${plural(m.time, "k-step")}, whole tiles take ${count(whole)}`;
    return {
      finding,
      note: "A model, not a measurement: a k-step takes one unit of time everywhere. Numbers are tiles; red is the adding up of parts.",
      picture: svg.page(752, tall + 28, body, finding, 560),
    };
  },
};
