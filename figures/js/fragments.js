// Who holds what in an MMA: point at an element or pick a lane.
const explorer = {
  controls: (data) => [
    { id: "atom", label: "instruction", words: true, options: Object.keys(data.atoms) },
    { id: "lane", label: "lane", min: 0, max: 31 },
  ],
  play: "lane",
  model: (p, data) => {
    const held = {};
    for (const [operand, matrix] of Object.entries(data.atoms[p.atom].operands))
      held[operand] = matrix.cells
        .map(([lane, value], i) => ({ lane, value, row: Math.floor(i / matrix.columns), column: i % matrix.columns }))
        .filter((cell) => cell.lane === p.lane)
        .sort((a, b) => a.value - b.value);
    return held;
  },
  css: "rect[data-lane]{cursor:pointer}rect[data-lane]:hover{stroke:var(--gl-ink);stroke-width:2;opacity:1}",
  draw: (p, data) => {
    const atom = data.atoms[p.atom];
    const { A, B, C } = atom.operands;
    const all = A.columns + B.columns + C.columns;
    const cell = Math.min(29, 650 / all),
      tall = 22,
      head = 34,
      side = 34;
    const xB = side + A.columns * cell + side,
      xC = xB + B.columns * cell + side;
    const panel = (name, matrix, x0, y0) => {
      let body = svg.text(x0, y0 + 7, name, { anchor: "start", bold: true, size: 13 });
      for (const column of range(matrix.columns))
        body += svg.text(x0 + (column + 0.5) * cell, y0 + 25, column, { size: 10, fill: "var(--gl-muted)" });
      for (const row of range(matrix.rows))
        body += svg.text(x0 - 5, y0 + head + (row + 0.5) * tall, row, {
          size: 10,
          anchor: "end",
          fill: "var(--gl-muted)",
        });
      matrix.cells.forEach(([lane, value], i) => {
        const x = x0 + (i % matrix.columns) * cell,
          y = y0 + head + Math.floor(i / matrix.columns) * tall;
        const mine = lane === p.lane;
        body += svg.rect(
          x + 0.5,
          y + 0.5,
          cell - 1,
          tall - 1,
          STYLE.lanes[lane],
          `data-lane="${lane}" opacity="${mine ? 1 : 0.22}"`,
        );
        const words = mine ? `${name.toLowerCase()}${value}` : `T${lane}`;
        const fill = mine ? textOn(STYLE.lanes[lane]) : "var(--gl-muted)";
        body += svg
          .text(x + cell / 2, y + tall / 2, words, { size: mine ? 11 : 10, bold: mine, fill })
          .replace("<text", '<text pointer-events="none"');
      });
      return body;
    };
    const body = panel("A", A, side, 0) + panel("B", B, xB, 0) + panel("C", C, xC, 0);
    const held = explorer.model(p, data);
    const some = Object.values(held).some((cells) => cells.length);
    const list = Object.entries(held)
      .map(
        ([operand, cells]) =>
          `<b>${operand}</b> ` +
          cells.map((c) => `${operand.toLowerCase()}${c.value}&nbsp;(${c.row},&nbsp;${c.column})`).join(" "),
      )
      .join("<br>");
    return {
      finding: some
        ? `Lane ${p.lane} holds ${Object.entries(held)
            .map(([o, cells]) => `${cells.length} of ${o}`)
            .join(", ")}`
        : `Lane ${p.lane} takes no part in this instruction's first quarter`,
      note: some
        ? `${list}<br>Click an element to see what else its lane holds.`
        : "Choose lanes 0-3 or 16-19: one quad pair computes one 8 x 8 product.",
      picture: svg.page(
        xC + C.columns * cell + 6,
        head + Math.max(A.rows, B.rows) * tall + 4,
        body,
        `The elements of lane ${p.lane}`,
        Math.min(20 * all, 660),
      ),
    };
  },
  wire: (root, controls) => {
    for (const rect of root.querySelectorAll("rect[data-lane]"))
      rect.addEventListener("click", () => controls.set("lane", rect.dataset.lane));
  },
};
