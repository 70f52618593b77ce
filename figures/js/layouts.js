// Any layout as a grid: what it maps each coordinate to, how one of them is computed, and which banks are meant.
// {swizzle: [B, M, S] or null, shape, stride} from "shape:stride" or "Swizzle(B,M,S) o shape:stride"; throws what is wrong.
const parse = (text) => {
  let rest = text.replace(/\s+/g, "");
  const found = rest.match(/^\(?Swizzle[(<](\d+),(\d+),(\d+)[)>]\)?o/);
  if (found) rest = rest.slice(found[0].length);
  if (/^\(.*:.*\)$/.test(rest) && closing(rest) === rest.length - 1) rest = rest.slice(1, -1);
  const [shape, stride, ...more] = rest.split(":").map(tree);
  if (more.length) throw Error("a layout has one colon: shape:stride");
  return { swizzle: found ? found.slice(1).map(Number) : null, shape, stride: stride ?? strides(shape, 1)[0] };
};
const closing = (text) => {
  let depth = 0;
  return [...text].findIndex((c) => (depth += (c === "(") - (c === ")")) === 0);
};
const tree = (text) => {
  if (!/^[\d(),]+$/.test(text)) throw Error("write shape:stride, for example (4,8):(8,1)");
  try {
    return JSON.parse(text.replace(/\(/g, "[").replace(/,?\)/g, "]"));
  } catch {
    throw Error("the parentheses or commas do not fit");
  }
};
// Column-major strides: leftmost fastest.
const strides = (shape, from) => {
  if (!Array.isArray(shape)) return [from, from * shape];
  const list = [];
  for (const part of shape) {
    const [stride, next] = strides(part, from);
    list.push(stride);
    from = next;
  }
  return [list, from];
};
const sizeOf = (shape) => (Array.isArray(shape) ? shape.reduce((n, part) => n * sizeOf(part), 1) : shape);
const sameTree = (a, b) =>
  Array.isArray(a) === Array.isArray(b) &&
  (!Array.isArray(a) || (a.length === b.length && a.every((x, i) => sameTree(x, b[i]))));
// [[coordinate, stride] ...] of number `i` in a nested shape, leftmost fastest.
const steps = (i, shape, stride) => {
  if (!Array.isArray(shape)) return [[i % shape, stride]];
  return shape.flatMap((part, at) => {
    const found = steps(i % sizeOf(part), part, stride[at]);
    i = Math.floor(i / sizeOf(part));
    return found;
  });
};
const nested = (i, shape) => {
  if (!Array.isArray(shape)) return String(i % shape);
  return `(${shape
    .map((part) => {
      const words = nested(i % sizeOf(part), part);
      i = Math.floor(i / sizeOf(part));
      return words;
    })
    .join(",")})`;
};

const explorer = {
  css: ".controls label:nth-child(2){flex:2 1 230px;max-width:420px}",
  controls: (data) => [
    { id: "case", label: "begin with", words: true, options: Object.keys(data.layouts) },
    { id: "layout", label: "layout (type your own)", words: true, text: true },
    {
      id: "color",
      label: "colour",
      words: true,
      options: [
        ["index", "order"],
        ["bank 4", "bank, 4-byte elements"],
        ["bank 2", "bank, 2-byte elements"],
      ],
    },
    { id: "i", label: "coordinate", min: 0, max: 127 },
  ],
  adapt: (controls, data) => {
    if (controls.chosen === controls.values.case) return;
    const first = controls.chosen === undefined;
    controls.chosen = controls.values.case;
    if (!first) controls.set("layout", data.layouts[controls.chosen]);
  },
  play: "i",
  model: (p) => {
    let layout;
    try {
      layout = parse(p.layout);
    } catch (problem) {
      return { error: problem.message };
    }
    const { shape, stride, swizzle } = layout;
    if (!sameTree(shape, stride)) return { error: "shape and stride must be nested alike: one stride for each extent" };
    const size = sizeOf(shape);
    if (!(size > 0)) return { error: "every extent is at least 1" };
    const two = Array.isArray(shape) && shape.length === 2;
    if (Array.isArray(shape) && shape.length > 2)
      return { error: "a picture has two modes: group the others, ((2,8),2) for (2,8,2)" };
    const rows = two ? sizeOf(shape[0]) : 1,
      columns = size / rows;
    if (rows > 64 || columns > 64) return { error: `${rows} x ${columns} cells: at most 64 on a side can be drawn` };
    const place = (i) => {
      const at = steps(i, shape, stride).reduce((sum, [c, d]) => sum + c * d, 0);
      return swizzle ? at ^ (((at >> (swizzle[1] + swizzle[2])) & ((1 << swizzle[0]) - 1)) << swizzle[1]) : at;
    };
    const values = range(size).map(place);
    const distinct = new Set(values).size,
      most = Math.max(...values);
    return { rows, columns, values, size, distinct, cosize: most + 1, shape, stride, swizzle };
  },
  draw: (p) => {
    const m = explorer.model(p);
    if (m.error)
      return {
        finding: `<span class="bad">${escape(m.error)}</span>`,
        note: "",
        picture: svg.page(752, 60, "", m.error),
      };
    const i = p.i % m.size;
    const left = 30,
      top = 20,
      cell = Math.min(46, 716 / m.columns),
      tall = Math.min(cell, 28);
    let body = "";
    for (const column of range(m.columns))
      body += svg.text(left + (column + 0.5) * cell, 9, column, {
        size: cell < 18 ? cell * 0.5 : 10,
        fill: "var(--gl-muted)",
      });
    for (const row of range(m.rows)) {
      body += svg.text(left - 6, top + (row + 0.5) * tall, row, {
        size: Math.min(10, tall * 0.7),
        anchor: "end",
        fill: "var(--gl-muted)",
      });
      for (const column of range(m.columns)) {
        const value = m.values[row + column * m.rows];
        const bank = Math.floor((value * Number(p.color.slice(-1))) / 4) % 32;
        const color =
          p.color === "index"
            ? STYLE.banks[m.cosize > 1 ? Math.round((31 * value) / (m.cosize - 1)) : 0]
            : STYLE.banks[bank];
        const x = left + column * cell,
          y = top + row * tall;
        body += svg.rect(x + 0.5, y + 0.5, cell - 1, tall - 1, color);
        if (cell > 17)
          body += svg.text(x + cell / 2, y + tall / 2, value, {
            size: Math.min(11, (cell - 3) / (0.66 * String(m.cosize).length)),
            fill: textOn(color),
          });
      }
    }
    const x = left + Math.floor(i / m.rows) * cell,
      y = top + (i % m.rows) * tall;
    body += `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${cell.toFixed(1)}" height="${tall.toFixed(1)}" fill="none" stroke="${STYLE.bad}" stroke-width="3"/>`;
    const sum = steps(i, m.shape, m.stride)
      .map(([c, d]) => `${c} &middot; ${d}`)
      .join(" + ");
    const plain = steps(i, m.shape, m.stride).reduce((s, [c, d]) => s + c * d, 0);
    const kind =
      m.distinct < m.size
        ? `${plural(m.size, "coordinate")} share ${plural(m.distinct, "place")}: a broadcast`
        : m.cosize === m.size
          ? `${plural(m.size, "coordinate")} fill ${plural(m.size, "place")}, each once: compact`
          : `${plural(m.size, "coordinate")}, as many places, in a stretch of ${count(m.cosize)}: with gaps`;
    return {
      finding: kind,
      note:
        `Coordinate ${i} is ${nested(i, m.shape)}, and ${sum} = ${plain}` +
        (m.swizzle ? `, which the swizzle turns into ${m.values[i]}.` : "."),
      picture: svg.page(752, top + m.rows * tall + 6, body, `${m.rows} x ${m.columns} cells. ${kind}`, 460),
    };
  },
};
