// Compiles the Python files that the site starts with, with Pyodide's own Python, so that a browser
// need not. Others stay source, which is smaller. The compiled module of msgspec becomes a file of
// its own, as it cannot be imported from an archive.

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { startPython } from "./src/site/start.mjs";

const site = resolve(process.argv[2] ?? "build/site");
const python = await startPython({
  index: `${site}/pyodide/`, sources: readFileSync(`${site}/python.zip`), compiled: readFileSync(`${site}/msgspec.so`),
});
python.runPython(`
import importlib.util, marshal, sys, zipfile

SOURCES = sys.path[0]
answer('{"what": "warm"}')
answer('{"what": "analyze", "zoo": "resnet18", "calls": true, "conventions": ["exact", "fvcore"]}')
used = {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
# An unchecked file: its source is not looked for.
STAMP = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
with zipfile.ZipFile(SOURCES) as old, zipfile.ZipFile("/compiled.zip", "w") as new:
    for name in sorted(old.namelist()):
        data = old.read(name)
        if f"{SOURCES}/{name}" in used and name.endswith(".py"):
            data = STAMP + marshal.dumps(compile(data, f"{SOURCES}/{name}", "exec", dont_inherit=True))
            name += "c"
        new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
`);
writeFileSync(`${site}/python.zip`, python.FS.readFile("/compiled.zip"));
