// An mbarrier over time: the model of figures/barriers.py.
const COPY = 1024;
const EVENTS = { a: "arrive", e: "arrive, expect 1,024 bytes", c: "a copy lands, 1,024 bytes" };

const barrierSteps = (count, events) => {
  let arrivals = count,
    pending = 0,
    phase = 0;
  const moment = (event) => ({ event, arrivals, bytes: pending, phase, waits: [phase % 2 === 1, phase % 2 === 0] });
  const moments = [moment("")];
  for (const event of events.replace(/ /g, "")) {
    if (!(event in EVENTS)) return { moments, error: `'${event}' is no event: use ${Object.keys(EVENTS).join(", ")}` };
    if (event !== "c") {
      if (arrivals === 0)
        return { moments, error: "one arrival too many: the phase has all of its own, and waits for bytes" };
      arrivals -= 1;
    }
    pending += { a: 0, e: COPY, c: -COPY }[event];
    if (arrivals === 0 && pending === 0) {
      arrivals = count;
      phase += 1;
    }
    moments.push(moment(event));
  }
  return { moments };
};

const explorer = {
  controls: () => [
    { id: "count", label: "arrivals that a phase needs:", min: 1, max: 4 },
    { id: "events", label: "events: a = arrive, e = arrive and expect, c = copy lands", text: true, words: true },
  ],
  model: (p) => barrierSteps(p.count, p.events),
  draw: (p) => {
    const m = explorer.model(p);
    const shown = m.moments.slice(-14);
    const columns = [
      [0, "event"],
      [236, "arrivals missing"],
      [362, "bytes missing"],
      [468, "phase"],
      [542, "wait(0)"],
      [650, "wait(1)"],
    ];
    const tall = 22,
      top = 26;
    let body = "";
    for (const [x, words] of columns)
      body += svg.text(x + 4, 11, words, { anchor: "start", bold: true, size: 12, fill: "var(--gl-muted)" });
    shown.forEach((one, index) => {
      const y = top + index * tall;
      const turned = index > 0 && one.phase !== shown[index - 1].phase;
      body += svg.rect(0, y + 1, 752, tall - 2, turned ? STYLE.kinds.compute : "var(--gl-soft)");
      const ink = turned ? textOn(STYLE.kinds.compute) : "var(--gl-ink)";
      const said = [
        one.event ? EVENTS[one.event] : "initialised",
        one.arrivals,
        count(one.bytes),
        one.phase,
        one.waits[0] ? "returns" : "waits",
        one.waits[1] ? "returns" : "waits",
      ];
      columns.forEach(([x], i) => {
        body += svg.text(x + 4, y + tall / 2, said[i], { anchor: "start", size: 12, fill: ink });
      });
    });
    const last = m.moments[m.moments.length - 1];
    const now = last.waits[0] ? 0 : 1;
    return {
      finding: m.error
        ? `<span class="bad">Stopped: ${escape(m.error)}</span>`
        : `Phase ${last.phase}: a wait for parity ${now} returns, a wait for parity ${1 - now} waits`,
      note: "A coloured line ends a phase. A wait for parity p returns when the phase with that parity is over, that is, when the current phase has the other parity.",
      picture: svg.page(752, top + shown.length * tall + 2, body, `Phase ${last.phase}`, 620),
    };
  },
};
