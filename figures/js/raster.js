// The order in which blocks take the tiles of C: tile_position of wgmma_persistent, as figures/raster_order.py has it.
const position = (tile, rows, cols, group) => {
  const number = Math.floor(tile / (group * cols)),
    at = tile % (group * cols);
  const deep = Math.min(rows - number * group, group);
  const across = Math.floor(at / deep);
  return [number * group + (at % deep), number % 2 ? cols - 1 - across : across];
};
const distinct = (tiles, axis) => new Set(tiles.map((tile) => tile[axis]));

const explorer = {
  controls: (data) => [
    { id: "size", label: "M = N = K", options: [4096, 8192] },
    { id: "blocks", label: "blocks", options: [128, 132] },
    { id: "group", label: "GROUP", options: data.groups },
    { id: "at", label: "round", min: 0, max: 15 },
  ],
  model: (p, data) => {
    const rows = p.size / data.bm,
      cols = p.size / data.bn,
      tiles = rows * cols;
    const order = range(tiles).map((tile) => position(tile, rows, cols, p.group));
    const rounds = Math.ceil(tiles / p.blocks);
    const at = Math.min(p.at, rounds - 1);
    const round = (n) => order.slice(n * p.blocks, (n + 1) * p.blocks);
    const strips = (n) => [distinct(round(n), 0).size, distinct(round(n), 1).size];
    const bytes = ([a, b]) => (a * data.bm + b * data.bn) * p.size * 2;
    const total = range(rounds).reduce((sum, n) => sum + bytes(strips(n)), 0);
    return { rows, cols, order, rounds, at, strips: strips(at), bytes: bytes(strips(at)), total };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const cell = 288 / m.rows,
      wide = (cell * data.bn) / data.bm,
      x0 = 380,
      y0 = 6;
    const when = new Map(m.order.map(([row, col], tile) => [row * m.cols + col, Math.floor(tile / p.blocks)]));
    let body = "";
    for (const row of range(m.rows))
      for (const col of range(m.cols)) {
        const n = when.get(row * m.cols + col);
        const color = n === m.at ? STYLE.kinds.compute : n === m.at - 1 ? STYLE.kinds.load : "var(--gl-soft)";
        body += svg.rect(x0 + col * wide + 0.4, y0 + row * cell + 0.4, wide - 0.8, cell - 0.8, color);
      }
    const lines = [
      ["rows of tiles of A in this round", m.strips[0]],
      ["columns of tiles of B", m.strips[1]],
      ["bytes of A and B, each once", `${(m.bytes / 1e6).toFixed(1)} MB`],
      ["the same, all rounds added up", `${(m.total / 1e9).toFixed(2)} GB`],
    ];
    lines.forEach(([name, value], i) => {
      body += svg.text(4, 24 + 34 * i, name, { anchor: "start", size: 12.5, fill: "var(--gl-muted)" });
      body += svg.text(350, 24 + 34 * i, value, { anchor: "end", size: 14, bold: true });
    });
    [
      [STYLE.kinds.compute, "tiles of this round"],
      [STYLE.kinds.load, "tiles of the round before"],
    ].forEach(([color, words], i) => {
      body += svg.rect(4, 180 + 26 * i, 14, 14, color);
      body += svg.text(26, 187 + 26 * i, words, { anchor: "start", size: 12.5, fill: "var(--gl-muted)" });
    });
    const finding = `Round ${m.at} of ${m.rounds} reads ${m.strips[0]} rows and ${m.strips[1]} columns of tiles: ${(m.bytes / 1e6).toFixed(1)} MB`;
    return {
      finding,
      note: "Each rectangle is a tile of C, 128 x 256. A row of tiles needs 128 rows of A, a column 256 columns of B, two bytes per number.",
      picture: svg.page(752, 302, body, finding, 560),
    };
  },
};
