// Runs Python in the Pyodide of a built site, without a browser:
//   node in_node.mjs CORE SITE SCRIPT EXPRESSION
// CORE: the folder of Pyodide's package; SITE: the site's `_static/run`; SCRIPT: Python that is run first; EXPRESSION: what is printed
// then, a text. Python sees this machine's files below /here.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

const [core, site, script, expression] = process.argv.slice(2);
const { loadPyodide } = createRequire(`${core}/`)(core);
const bytes = (path) => new Uint8Array(readFileSync(path));
process.on("uncaughtException", (error) => {
  console.error(String(error.message ?? error)); // a whole trace quotes the one line of Pyodide's source
  process.exit(1);
});

const python = await loadPyodide();
for (const name of ["numpy", "book"])
  python.unpackArchive(bytes(`${site}/${name}.zip`), "zip", { extractDir: "/gemm" });
python.FS.mkdirTree("/gemm/results/builds");
for (const name of readdirSync(`${site}/pages`).filter((one) => one.endsWith(".builds.packed"))) {
  const stored = name.replace(".builds.packed", ".json.gz");
  python.FS.writeFile(`/gemm/results/builds/${stored}`, bytes(`${site}/pages/${name}`));
}
python.FS.mkdirTree("/here");
python.mountNodeFS("/here", "/");
python.globals.set("memory", () => python._module.HEAPU8.length);
python.runPython("import sys; sys.path.insert(0, '/gemm')");
python.runPython(readFileSync(script, "utf-8"));
console.log(python.runPython(expression));
