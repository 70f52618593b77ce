// Two blocks alone or as a pair, per k-step of 64 float16 elements: the model of figures/blackwell.py, pair_loads.
const explorer = {
  controls: () => [
    {
      id: "pair",
      label: "the two blocks",
      words: true,
      options: [
        ["no", "each alone"],
        ["yes", "a pair"],
      ],
    },
    { id: "n", label: "columns of C", options: [64, 128, 192, 256] },
  ],
  model: (p) => {
    const a = 128 * 128;
    const b = (p.n * 128) / (p.pair === "yes" ? 2 : 1);
    return {
      a,
      b,
      stages: Math.floor((227 * 1024) / (a + b)),
      perByte: (2 * 128 * p.n * 64) / (a + b),
      reads: (a + b) / 128,
      clocks: (2 * 128 * p.n * 64) / 8192,
    };
  },
  draw: (p) => {
    const m = explorer.model(p);
    const pair = p.pair === "yes";
    const colors = [STYLE.wavefronts[0], STYLE.wavefronts[1]];
    const side = 300,
      tall = 74,
      deep = 40;
    let body = "";
    for (const block of [0, 1]) {
      const x = 60 + block * 376,
        color = colors[block],
        width = (side * p.n) / 256;
      const own = pair ? width / 2 : width;
      body +=
        svg.text(x, 10, `block ${block}`, { anchor: "start", bold: true, size: 12 }) +
        svg.rect(x, 24, own - 1, deep, color) +
        svg.text(x + own / 2, 24 + deep / 2, pair ? `its half of B` : "all of B", { fill: textOn(color) });
      if (pair)
        body +=
          svg.rect(
            x + own,
            24,
            own - 1,
            deep,
            "none",
            `stroke="${colors[1 - block]}" stroke-width="2" stroke-dasharray="4 3"`,
          ) + svg.text(x + 1.5 * own, 24 + deep / 2, "in the other's", { size: 10 });
      body +=
        svg.rect(x - 50, 76, 40, tall, color) +
        svg.text(x - 30, 76 + tall / 2, "A", { fill: textOn(color) }) +
        svg.rect(x, 76, width - 1, tall, color, 'opacity="0.45"') +
        svg.text(x + width / 2, 76 + tall / 2, `rows ${128 * block} to ${128 * block + 127} of C`);
    }
    return {
      finding: `Each block loads ${count((m.a + m.b) / 1024)} KiB per k-step: ${count(m.perByte)} operations per byte, ${plural(m.stages, "stage")} fit`,
      note:
        `Solid: what a block loads into its own shared memory (A ${count(m.a / 1024)} KiB, B ${count(m.b / 1024)} KiB). Pale: its sums in its own tensor memory. ` +
        `Its products read ${plural(m.reads, "wavefront")} of its shared memory while its tensor cores need ${count(m.clocks)} clocks, at 8,192 operations per clock.`,
      picture: svg.page(752, 76 + tall + 6, body, `Two blocks, ${pair ? "a pair" : "each alone"}`, 560),
    };
  },
};
