// The reader's Python: Pyodide in a worker. The page (`run.js`) sends its cells as they are now, and what to run: {index} one cell,
// {call, values} a form's function, neither all cells. The answers are messages {what: ...}.

let python, page, called;
const told = (message) => self.postMessage(message);

// Counts what arrives, and unpacks the WebAssembly, which the site carries compressed.
const real = self.fetch.bind(self);
let mark = "";
let bytes = 0;
self.fetch = async (asked, options) => {
  const url = String(asked.url ?? asked);
  const packed = url.endsWith("pyodide.asm.wasm");
  const answer = await real(`${packed ? `${url}.packed` : url}?v=${mark}`, options);
  if (!answer.ok || !answer.body) return answer;
  const count = new TransformStream({
    transform(chunk, out) {
      bytes += chunk.length;
      told({ what: "loads", bytes });
      out.enqueue(chunk);
    },
  });
  let body = answer.body.pipeThrough(count);
  if (packed) body = body.pipeThrough(new DecompressionStream("gzip"));
  const type = packed ? "application/wasm" : answer.headers.get("content-type");
  return new Response(body, { status: answer.status, headers: type ? { "content-type": type } : {} });
};

const content = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${answer.status} for ${url}`);
  return answer.arrayBuffer();
};

// For builds of another page, which a cell asks for while it runs.
const contentNow = (url) => {
  const asked = new XMLHttpRequest();
  asked.open("GET", `${url}?v=${mark}`, false);
  asked.responseType = "arraybuffer";
  asked.send();
  if (asked.status !== 200) throw new Error(`${asked.status} for ${url}`);
  return new Uint8Array(asked.response);
};

const start = async ({ base, name, cells }) => {
  importScripts(`${base}pyodide.js?v=${mark}`);
  const builds = (of) => `${base}pages/${of}.builds.packed`;
  const [py, numpy, book, own, at] = await Promise.all([
    loadPyodide({ indexURL: base }),
    ...[`${base}numpy.zip`, `${base}book.zip`, builds(name), `${base}builds.json`].map(content),
  ]);
  python = py;
  // Both into a folder that Python is told of: without one it would be the working directory.
  python.unpackArchive(numpy, "zip", { extractDir: "/gemm" });
  python.unpackArchive(book, "zip", { extractDir: "/gemm" });
  python.FS.mkdirTree("/gemm/results/builds");
  python.FS.writeFile(`/gemm/results/builds/${name}.json.gz`, new Uint8Array(own));
  python.globals.set("AT", new TextDecoder().decode(at));
  python.globals.set("CELLS", JSON.stringify(cells));
  python.globals.set("fetched", (of) => contentNow(builds(of)));
  python.globals.set("tell", (message) => told(JSON.parse(message)));
  page = python.runPython(`
import sys
sys.path.insert(0, "/gemm")
from book import page_cells
PAGE = page_cells.in_browser(CELLS, AT, lambda page: fetched(page).to_bytes(), tell)
PAGE
`);
  called = python.runPython(
    "import json; lambda page, number, values: json.dumps(page.call(number, json.loads(values)))",
  );
};

self.addEventListener("message", async ({ data }) => {
  try {
    mark = data.mark;
    if (!page) {
      await start(data);
      told({ what: "ready" });
    }
    for (const cell of data.cells) page.change(cell.index, cell.source);
    let well = true;
    if (data.call !== undefined) {
      const outputs = JSON.parse(called(page, data.call, JSON.stringify(data.values)));
      told({ what: "called", outputs });
    } else well = data.index === undefined ? page.run_all() : page.run(data.index);
    told({ what: "finished", well, memory: python._module.HEAPU8.length });
  } catch (error) {
    const lines = String(error.message ?? error)
      .trim()
      .split("\n");
    told({ what: "broke", why: lines.findLast((line) => /^\w*Error/.test(line)) ?? lines.at(-1) });
  }
});
