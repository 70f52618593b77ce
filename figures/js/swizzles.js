// Swizzle<B, M, S> on a shared tile: which banks each 16-byte chunk falls in.
const swizzle = (index, b, m, s) => index ^ (((index >> (m + s)) & ((1 << b) - 1)) << m);

// Where the elements of each chunk would go.
const pieces = (p, m) => {
  const cell = Math.min(80, 690 / p.chunks),
    slice = (cell - 2) / (16 / p.element);
  let body = svg.text(44, 12, "row", { anchor: "end", fill: "var(--gl-muted)" });
  m.torn.forEach((line, row) => {
    body += svg.text(44, 26 + (row + 0.5) * 30, row, { anchor: "end", fill: "var(--gl-muted)" });
    line.forEach((chunk, at) =>
      chunk.forEach((byte, e) => {
        body += svg.rect(
          52 + at * cell + 1 + e * slice,
          27 + row * 30,
          slice,
          28,
          STYLE.banks[Math.floor(byte / 4) % 32],
        );
      }),
    );
  });
  body += svg.text(52, 292, "no wavefronts: ldmatrix reads 16 bytes that lie together", {
    anchor: "start",
    fill: STYLE.bad,
  });
  return svg.page(752, 330, body, m.error, 480);
};
// Which bits of an index would be changed, and by which.
const bits = (p, m) => {
  const all = 12,
    cell = 56;
  let body = "";
  for (const bit of range(all)) {
    const x = 40 + (all - 1 - bit) * cell;
    const changed = bit >= p.m && bit < p.m + p.b;
    const read = bit >= p.m + p.s && bit < p.m + p.s + p.b;
    const color =
      changed && read ? STYLE.bad : changed ? STYLE.kinds.compute : read ? STYLE.kinds.load : "var(--gl-soft)";
    body += svg.rect(x + 1, 110, cell - 2, 44, color);
    body += svg.text(x + cell / 2, 132, bit, { size: 13, fill: changed || read ? textOn(color) : "var(--gl-muted)" });
  }
  [
    [STYLE.kinds.load, "read"],
    [STYLE.kinds.compute, "changed"],
    [STYLE.bad, "read and changed"],
  ].forEach(([color, words], i) => {
    body += svg.rect(42 + 130 * i, 184, 14, 14, color);
    body += svg.text(62 + 130 * i, 191, words, { anchor: "start", size: 13 });
  });
  body += svg.text(42, 90, "bits of the index", { anchor: "start", size: 13, fill: "var(--gl-muted)" });
  return svg.page(752, 330, body, m.error, 480);
};

const explorer = {
  controls: () => [
    { id: "b", label: "B =", min: 0, max: 4 },
    { id: "m", label: "M =", min: 0, max: 5 },
    { id: "s", label: "S =", min: 0, max: 6 },
    { id: "chunks", label: "row length in 16-byte chunks", options: [2, 4, 8, 16] },
    { id: "pad", label: "padding in 16-byte chunks:", min: 0, max: 2 },
    { id: "element", label: "bytes an element", options: [2, 4] },
  ],
  play: "b",
  model: (p) => {
    if (p.s < p.b)
      return {
        overlap: true,
        error: `Swizzle<${p.b}, ${p.m}, ${p.s}> is none: the bits it reads would overlap those it changes (S must be at least B)`,
      };
    const pitch = (p.chunks + p.pad) * 16;
    const move = (at) => swizzle(at / p.element, p.b, p.m, p.s) * p.element;
    const rows = range(8).map((row) => range(p.chunks).map((chunk) => move(row * pitch + chunk * 16)));
    const whole = rows.every((line, row) =>
      line.every(
        (at, chunk) =>
          at % 16 === 0 &&
          range(16 / p.element).every((e) => move(row * pitch + chunk * 16 + e * p.element) === at + e * p.element),
      ),
    );
    if (!whole)
      return {
        torn: range(8).map((row) =>
          range(p.chunks).map((chunk) =>
            range(16 / p.element).map((e) => move(row * pitch + chunk * 16 + e * p.element)),
          ),
        ),
        error: `With M = ${p.m} a chunk of ${16 / p.element} elements is torn apart: 16-byte accesses are no longer possible`,
      };
    const waves = range(p.chunks).map((chunk) =>
      worst(
        rows.map((line) => line[chunk] / 16),
        8,
      ),
    );
    return { rows, waves, outside: p.b > 0 && rows.flat().some((at) => at >= 8 * pitch) };
  },
  draw: (p) => {
    const m = explorer.model(p);
    if (m.error)
      return {
        finding: `<span class="bad">${escape(m.error)}</span>`,
        note: m.torn
          ? `Each cell is a chunk; its ${16 / p.element} elements are coloured by the bank they would go to. A chunk of one colour run stays whole: raise M, so that more low bits are left alone.`
          : "A row of boxes is the index of an element, lowest bit to the right. Swizzling changes B bits by those S places above them.",
        picture: m.torn ? pieces(p, m) : bits(p, m),
      };
    const left = 52,
      top = 26,
      tall = 30,
      cell = Math.min(80, 690 / p.chunks);
    let body = svg.text(left - 8, 12, "row", { anchor: "end", fill: "var(--gl-muted)" });
    for (const chunk of range(p.chunks))
      body += svg.text(left + (chunk + 0.5) * cell, 12, chunk, { fill: "var(--gl-muted)" });
    m.rows.forEach((line, row) => {
      body += svg.text(left - 8, top + (row + 0.5) * tall, row, { anchor: "end", fill: "var(--gl-muted)" });
      line.forEach((at, chunk) => {
        const group = (at / 16) % 8,
          color = STYLE.banks[4 * group];
        const banks = range(4).map((n) => 4 * group + n);
        body += `<g data-bank="${banks.join(" ")}">${svg.rect(left + chunk * cell + 1, top + row * tall + 1, cell - 2, tall - 2, color)}`;
        body += `${svg.text(
          left + (chunk + 0.5) * cell,
          top + (row + 0.5) * tall,
          cell > 44 ? `${4 * group}-${4 * group + 3}` : 4 * group,
          { size: 11, fill: textOn(color) },
        )}</g>`;
      });
    });
    const y = top + 8 * tall + 18;
    m.waves.forEach((n, chunk) => {
      const color = n > 1 ? STYLE.bad : STYLE.good;
      body +=
        svg.rect(left + chunk * cell + 2, y - 12, cell - 4, 24, color) +
        svg.text(left + (chunk + 0.5) * cell, y, n, { size: 12, bold: true, fill: textOn(color) });
    });
    body += svg.text(left, y + 26, "wavefronts to read the 8 rows of a column (one matrix of ldmatrix)", {
      anchor: "start",
      fill: "var(--gl-muted)",
    });
    const most = Math.max(...m.waves);
    const name = p.b ? `Swizzle&lt;${p.b}, ${p.m}, ${p.s}&gt;` : "No swizzle";
    const bytes = 8 * (p.chunks + p.pad) * 16;
    return {
      finding: `${name}${p.pad ? `, padded by ${p.pad * 16} bytes` : ""}: <span class="${most > 1 ? "bad" : "good"}">${plural(most, "wavefront")} a column</span>`,
      note:
        `The number in a cell is the banks that the 16-byte chunk falls in. Eight rows take ${bytes} bytes.` +
        (m.outside ? " <b>Some chunks land outside these eight rows</b>: swizzle and padding do not go together." : ""),
      picture: svg.page(752, 330, body, `${most} wavefronts per column`, 480),
    };
  },
};
