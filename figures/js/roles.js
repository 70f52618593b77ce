// Producer and consumers over time: the model of figures/roles.py.
const GAP = 80;
const STEPS = 12;

const roleSchedule = (p) => {
  const turns = [];
  const released = range(p.consumers).map(() => Array(STEPS).fill(0));
  let asked = 0,
    landed = 0,
    tensor = 0;
  for (const step of range(STEPS)) {
    if (step >= p.stages) asked = Math.max(asked, ...released.map((of) => of[step - p.stages]));
    landed = Math.max(landed, asked + p.latency) + p.transfer;
    const products = [];
    for (const c of range(p.consumers)) {
      let begin = landed;
      const known = step - 1 - p.running;
      if (known >= 0) begin = Math.max(begin, turns[known].products[c][1] + GAP);
      if (p.running && step) released[c][step - 1] = Math.max(turns[step - 1].products[c][1], begin);
      begin = Math.max(begin, tensor);
      tensor = begin + p.multiply;
      products.push([begin, tensor]);
      if (!p.running) released[c][step] = tensor;
    }
    turns.push({ step, stage: step % p.stages, asked, landed, products });
  }
  return turns;
};

const explorer = {
  controls: () => [
    { id: "stages", label: "stages:", min: 1, max: 8 },
    { id: "consumers", label: "consumers:", min: 1, max: 3 },
    { id: "latency", label: "clocks until data come:", min: 0, max: 2000, step: 50 },
    { id: "transfer", label: "clocks for them to come:", min: 0, max: 2000, step: 64 },
    { id: "multiply", label: "clocks of a consumer's product:", min: 64, max: 1024, step: 64 },
    {
      id: "running",
      label: "a consumer waits for",
      options: [
        [1, "the product before"],
        [0, "the product just started"],
      ],
    },
  ],
  play: "stages",
  model: (p) => {
    if (p.running && p.stages === 1)
      return {
        error: "Deadlock: the only stage is released after the next product has begun, and that product needs it",
      };
    const turns = roleSchedule(p);
    const time = turns[STEPS - 1].products[p.consumers - 1][1];
    return { turns, time, busy: (STEPS * p.consumers * p.multiply) / time };
  },
  draw: (p) => {
    const m = explorer.model(p);
    if (m.error)
      return { finding: `<span class="bad">${m.error}</span>`, note: "", picture: svg.page(752, 200, "", m.error) };
    const left = 96,
      row = 24,
      top = 24,
      scale = 650 / m.time;
    const rows = [
      ...range(p.stages).map((at) => `stage ${at}`),
      ...range(p.consumers).map((c) => `consumer ${c}`),
      "tensor core",
    ];
    let body = "";
    rows.forEach((words, at) => {
      body += svg.text(left - 8, top + (at + 0.5) * row, words, { anchor: "end", fill: "var(--gl-muted)" });
      body += svg.rect(left, top + at * row + 2, 650, row - 4, "var(--gl-soft)");
    });
    const box = (from, to, at, color, words) => {
      const wide = (to - from) * scale;
      body += svg.rect(left + from * scale + 0.5, top + at * row + 2, Math.max(wide - 1, 0.5), row - 4, color);
      if (wide > 12 && words !== "")
        body += svg.text(left + ((from + to) / 2) * scale, top + (at + 0.5) * row, words, {
          size: 10,
          fill: textOn(color),
        });
    };
    for (const turn of m.turns) {
      box(turn.asked, turn.landed, turn.stage, STYLE.kinds.load, turn.step);
      turn.products.forEach(([from, to], c) => {
        box(from, to, p.stages + c, STYLE.kinds.compute, turn.step);
        box(from, to, p.stages + p.consumers, STYLE.kinds.compute, "");
      });
    }
    const key = [
      [STYLE.kinds.load, "copy under way"],
      [STYLE.kinds.compute, "wgmma"],
    ];
    key.forEach(([color, words], i) => {
      body +=
        svg.rect(left + 150 * i, 4, 12, 12, color) +
        svg.text(left + 150 * i + 18, 10, words, { anchor: "start", size: 12, fill: "var(--gl-muted)" });
    });
    return {
      finding: `The tensor core works ${percent(m.busy)} of the time: ${count(m.time)} clocks for ${STEPS} k-steps`,
      note: `A model, not a measurement. Numbers on bars are k-steps. After a wait a consumer needs ${GAP} clocks to start its next product.`,
      picture: svg.page(752, top + rows.length * row + 2, body, `The tensor core works ${percent(m.busy)}`, 560),
    };
  },
};
