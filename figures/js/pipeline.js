// A software pipeline, by a model small enough to check by hand.
const schedule = (stages, load, compute, tiles) => {
  const slots = [];
  for (const tile of range(tiles)) {
    const free = tile >= stages ? slots[tile - stages].computeEnd : 0;
    const ready = free + load;
    const start = Math.max(ready, tile ? slots[tile - 1].computeEnd : 0);
    slots.push({
      tile,
      stage: tile % stages,
      loadStart: free,
      loadEnd: ready,
      computeStart: start,
      computeEnd: start + compute,
    });
  }
  return slots;
};

const explorer = {
  controls: () => [
    { id: "stages", label: "stages:", min: 1, max: 8 },
    { id: "load", label: "a load takes", min: 0, max: 12, step: 0.5 },
    { id: "compute", label: "a computation takes", min: 0.5, max: 6, step: 0.5 },
    { id: "tiles", label: "tiles:", min: 4, max: 24 },
  ],
  play: "stages",
  model: (p) => {
    const slots = schedule(p.stages, p.load, p.compute, p.tiles);
    const time = slots[slots.length - 1].computeEnd;
    return {
      slots,
      time,
      busy: (p.tiles * p.compute) / time,
      steady: Math.max(p.compute, (p.load + p.compute) / p.stages),
      enough: Math.ceil((p.load + p.compute) / p.compute),
    };
  },
  draw: (p) => {
    const m = explorer.model(p);
    const alone = schedule(1, p.load, p.compute, p.tiles)[p.tiles - 1].computeEnd;
    const left = 84,
      row = 26,
      top = 26,
      scale = 660 / alone;
    let body = "";
    const box = (from, to, y, color, words) => {
      const w = (to - from) * scale;
      if (w <= 0) return;
      body += svg.rect(left + from * scale + 0.75, top + y + 2, Math.max(w - 1.5, 0.5), row - 4, color);
      if (w > 14 && words !== "")
        body += svg.text(left + ((from + to) / 2) * scale, top + y + row / 2, words, {
          size: 10.5,
          fill: textOn(color),
        });
    };
    for (const at of range(p.stages + 1)) {
      body += svg.text(left - 9, top + at * row + row / 2, at < p.stages ? `stage ${at}` : "math units", {
        anchor: "end",
        fill: "var(--gl-muted)",
      });
      body += svg.rect(left, top + at * row + 2, 660, row - 4, "var(--gl-soft)");
    }
    for (const slot of m.slots) {
      const y = slot.stage * row;
      box(slot.loadStart, slot.loadEnd, y, STYLE.kinds.load, slot.tile);
      box(slot.loadEnd, slot.computeStart, y, STYLE.kinds.wait, "");
      box(slot.computeStart, slot.computeEnd, y, STYLE.kinds.compute, slot.tile);
      box(slot.computeStart, slot.computeEnd, p.stages * row, STYLE.kinds.compute, slot.tile);
    }
    const key = [
      [STYLE.kinds.load, "load under way"],
      [STYLE.kinds.wait, "loaded, waiting"],
      [STYLE.kinds.compute, "compute"],
    ];
    key.forEach(([color, words], i) => {
      body +=
        svg.rect(left + 150 * i, 4, 12, 12, color) +
        svg.text(left + 150 * i + 18, 10, words, { anchor: "start", size: 12, fill: "var(--gl-muted)" });
    });
    return {
      finding: `${percent(m.busy)} of the time computing: ${plural(p.tiles, "tile")} in ${m.time} instead of ${alone} with one stage`,
      note:
        `A model, not a measurement. In the steady state a tile takes max(compute, (load + compute) / stages) = ${Number(m.steady.toFixed(2))};` +
        ` ${plural(m.enough, "stage")} ${m.enough === 1 ? "is" : "are"} enough to keep the math units busy.`,
      picture: svg.page(
        752,
        top + (Math.max(p.stages, 3) + 1) * row + 2,
        body,
        `Computing ${percent(m.busy)} of the time`,
        560,
      ),
    };
  },
};
