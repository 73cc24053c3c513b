// Compiles the Python files that the site starts with, with Pyodide's own Python, so that a browser
// need not. Others stay source, which is smaller.

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const site = resolve(process.argv[2] ?? "build/site");
const { loadPyodide } = await import(pathToFileURL(`${site}/pyodide/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${site}/pyodide/` });
python.FS.writeFile("/sources.zip", readFileSync(`${site}/python.zip`));
python.runPython(`
import importlib.util, marshal, sys, zipfile

zipfile.ZipFile("/sources.zip").extractall("/lib/site")
sys.path.insert(0, "/lib/site")
from layerscope.api.live import answer
answer('{"what": "warm"}')
answer('{"what": "analyze", "zoo": "resnet18", "conventions": ["exact", "fvcore"]}')
used = {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
# An unchecked file: its source is not looked for.
STAMP = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
with zipfile.ZipFile("/sources.zip") as old, zipfile.ZipFile("/compiled.zip", "w") as new:
    for name in sorted(old.namelist()):
        data = old.read(name)
        if f"/lib/site/{name}" in used and name.endswith(".py"):
            data = STAMP + marshal.dumps(compile(data, f"/lib/{name}", "exec", dont_inherit=True))
            name += "c"
        new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
`);
writeFileSync(`${site}/python.zip`, python.FS.readFile("/compiled.zip"));
