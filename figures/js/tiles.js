// Tile sizes: bytes and operations of one step along K, and what fits on a multiprocessor.
const explorer = {
  controls: (data) => [
    { id: "bm", label: "BM", options: [16, 32, 64, 128, 256] },
    { id: "bn", label: "BN", options: [16, 32, 64, 128, 256] },
    { id: "bk", label: "BK", options: [4, 8, 16, 32, 64, 128] },
    { id: "threads", label: "threads a block", options: [64, 128, 256, 512, 1024] },
    { id: "stages", label: "stages:", min: 1, max: 6 },
    {
      id: "bytes",
      label: "inputs",
      options: [
        [4, "FP32"],
        [2, "FP16"],
      ],
    },
    { id: "gpu", label: "multiprocessor", words: true, options: Object.keys(data.gpus) },
  ],
  model: (p, data) => {
    const gpu = data.gpus[p.gpu];
    const step = (p.bm + p.bn) * p.bk * p.bytes;
    const shared = p.stages * step;
    const operations = 2 * p.bm * p.bn * p.bk;
    const taken = Math.ceil((shared + gpu.system) / gpu.unit) * gpu.unit;
    const byShared = shared > gpu.sharedBlock ? 0 : Math.floor(gpu.shared / taken);
    const byThreads = Math.floor(gpu.warps / Math.ceil(p.threads / 32));
    const blocks = Math.min(gpu.blocks, byShared, byThreads);
    const limit = blocks === byShared ? "shared memory" : blocks === byThreads ? "warps" : "blocks";
    return {
      step,
      shared,
      operations,
      intensity: operations / step,
      outputs: (p.bm * p.bn) / p.threads,
      blocks,
      limit,
      capacity: gpu.shared,
      most: gpu.sharedBlock,
    };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    const s = Math.min(2, 270 / (Math.max(p.bm, p.bn) + p.bk + 8)),
      blue = STYLE.kinds.load,
      orange = STYLE.kinds.compute;
    const bk = p.bk * s,
      bm = p.bm * s,
      bn = p.bn * s,
      x0 = 440 + bk + 8,
      y0 = 10 + bk + 8;
    let body =
      svg.rect(x0, y0, bn, bm, orange) +
      svg.rect(x0 - 8 - bk, y0, bk, bm, blue) +
      svg.rect(x0, y0 - 8 - bk, bn, bk, blue);
    body += svg.text(x0 + bn / 2, y0 + bm / 2, "C", { bold: true, size: 13, fill: textOn(orange) });
    if (bk >= 12) body += svg.text(x0 - 8 - bk / 2, y0 + bm / 2, "A", { bold: true, size: 13, fill: textOn(blue) });
    if (bk >= 12) body += svg.text(x0 + bn / 2, y0 - 8 - bk / 2, "B", { bold: true, size: 13, fill: textOn(blue) });
    const rows = [
      ["bytes of A and B a step", count(m.step)],
      ["operations per step", count(m.operations)],
      ["operations per byte", m.intensity.toFixed(1)],
      ["outputs per thread", m.outputs >= 1 ? String(m.outputs) : m.outputs.toFixed(2)],
      ["shared memory per block", `${(m.shared / 1024).toFixed(1)} KiB`],
      ["blocks per multiprocessor", m.blocks ? `${m.blocks} (${m.limit})` : "none"],
    ];
    rows.forEach(([name, value], i) => {
      body += svg.text(4, 20 + 30 * i, name, { anchor: "start", size: 13, fill: "var(--gl-muted)" });
      body += svg.text(344, 20 + 30 * i, value, { anchor: "end", size: 14, bold: true });
    });
    const wide = 340,
      unit = wide / m.capacity;
    body += svg.text(4, 222, `shared memory: ${(m.capacity / 1024).toFixed(0)} KiB`, {
      anchor: "start",
      size: 13,
      fill: "var(--gl-muted)",
    });
    body += svg.rect(4, 236, wide, 26, "var(--gl-soft)");
    if (m.blocks)
      for (const block of range(m.blocks))
        for (const stage of range(p.stages))
          body += svg.rect(
            4 + (block * m.shared + stage * m.step) * unit,
            236,
            m.step * unit - 1,
            26,
            blue,
            `opacity="${stage % 2 ? 0.65 : 1}"`,
          );
    else body += svg.rect(4, 236, wide, 26, STYLE.bad);
    const fits = m.blocks > 0;
    const finding = fits
      ? `${m.intensity.toFixed(1)} operations per byte of global traffic, ${plural(m.blocks, "block")} per multiprocessor`
      : `<span class="bad">Does not fit: ${(m.shared / 1024).toFixed(0)} KiB per block, at most ${(m.most / 1024).toFixed(0)} KiB</span>`;
    const note =
      m.outputs > 128
        ? "More than 128 outputs per thread: their registers would spill."
        : m.outputs < 1
          ? "More threads than outputs."
          : "Registers limit the number of blocks too: see the occupancy explorer.";
    return { finding, note, picture: svg.page(752, 296, body, finding.replace(/<[^>]*>/g, ""), 600) };
  },
};
