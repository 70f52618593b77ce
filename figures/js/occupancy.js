// How many blocks one multiprocessor holds, and what stops the next: the rules of CUDA's cuda_occupancy.h.
const explorer = {
  controls: (data) => [
    { id: "gpu", label: "multiprocessor", words: true, options: Object.keys(data.gpus) },
    { id: "threads", label: "threads a block:", min: 32, max: 1024, step: 32 },
    { id: "registers", label: "registers per thread:", min: 16, max: 255 },
    { id: "shared", label: "shared memory per block:", min: 0, max: 227, show: (v) => `${v} KiB` },
  ],
  play: "registers",
  model: (p, data) => {
    const gpu = data.gpus[p.gpu];
    const up = (n, unit) => Math.ceil(n / unit) * unit;
    const warps = Math.ceil(p.threads / 32);
    const perWarp = up(p.registers * 32, 256);
    const byRegisters = Math.floor(65536 / 4 / perWarp) * 4; // each of the four partitions has its own registers
    const shared = up(p.shared * 1024 + gpu.system, gpu.unit);
    const by = {
      blocks: gpu.blocks,
      warps: Math.floor(gpu.warps / warps),
      registers: perWarp * up(warps, 4) > 65536 ? 0 : Math.floor(byRegisters / warps),
      "shared memory": p.shared * 1024 > gpu.sharedBlock ? 0 : shared ? Math.floor(gpu.shared / shared) : gpu.blocks,
    };
    const limited = Object.keys(by).reduce((a, b) => (by[b] < by[a] ? b : a));
    return { by, limited, blocks: by[limited], warps: by[limited] * warps, most: gpu.warps, perBlock: warps };
  },
  draw: (p, data) => {
    const m = explorer.model(p, data);
    let body = "";
    const top = Math.max(...Object.values(m.by), 1);
    Object.entries(m.by).forEach(([name, blocks], i) => {
      const y = 8 + 32 * i,
        color = name === m.limited ? STYLE.bad : STYLE.kinds.load;
      body += svg.text(4, y + 11, `${name} allow`, { anchor: "start", size: 12.5, fill: "var(--gl-muted)" });
      body +=
        svg.rect(164, y, 500, 22, "var(--gl-soft)") + svg.rect(164, y, Math.max((500 * blocks) / top, 2), 22, color);
      body += svg.text(674, y + 11, blocks, { anchor: "start", size: 13, bold: name === m.limited });
    });
    const cell = 21,
      per = 32;
    body += svg.text(4, 156, "warps", { anchor: "start", size: 12.5, fill: "var(--gl-muted)" });
    for (const warp of range(m.most)) {
      const x = 64 + (warp % per) * cell,
        y = 146 + Math.floor(warp / per) * cell;
      const block = Math.floor(warp / m.perBlock);
      const on = warp < m.warps;
      const color = on ? STYLE.wavefronts[block % STYLE.wavefronts.length] : "var(--gl-soft)";
      body += svg.rect(x + 1, y + 1, cell - 2, cell - 2, color);
      if (on) body += svg.text(x + cell / 2, y + cell / 2, block, { size: 10, fill: textOn(color) });
    }
    const finding = m.blocks
      ? `${plural(m.blocks, "block")} of ${plural(m.perBlock, "warp")}: ${m.warps} of ${m.most} warps (${percent(m.warps / m.most)}), limited by ${m.limited}`
      : `<span class="bad">No block fits: ${m.limited} ${m.limited === "shared memory" ? "is" : "are"} too small</span>`;
    return {
      finding,
      note: "Each square is a warp's place; the number is its block.",
      picture: svg.page(752, 196, body, finding.replace(/<[^>]*>/g, ""), 560),
    };
  },
};
