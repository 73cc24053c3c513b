// Starts Python with our sources, in a worker or in Node; or restores the memory of one that has
// started, which is much faster.
//
// A snapshot has Python's memory, but neither its files nor msgspec's compiled module, to whose
// functions the memory points. Both are put in place before Python begins, every time in the same
// order, so that the module has the same addresses.

const SOURCES = "/lib/layerscope.zip";
const COMPILED = "/lib/layerscope";

const IMPORT = `
import gc, sys
from importlib.machinery import PathFinder

class CompiledFinder:
    """Finds msgspec's compiled module, which cannot be imported from an archive."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, ["${COMPILED}"]) if name == "msgspec._core" else None

gc.disable()
sys.meta_path.insert(0, CompiledFinder)
sys.path.insert(0, "${SOURCES}")
from layerscope.api.live import answer
gc.freeze()
gc.enable()
`;

// Imports what reads the usual texts, and what the first networks need.
const WARM = `
answer('{"what": "warm"}')
for what in ("zoo", "notations", "completions"):
    answer('{"what": "%s"}' % what)
answer('{"what": "analyze", "zoo": "resnet18", "calls": true, "conventions": ["exact", "fvcore"]}')
answer('{"what": "analyze", "zoo": "lenet5"}')
gc.collect()
gc.freeze()
`;

export async function startPython({ index, sources, compiled, snapshot }) {
  const { loadPyodide } = await import(/* @vite-ignore */ `${index}pyodide.mjs`);
  const { default: create } = await import(/* @vite-ignore */ `${index}pyodide.asm.mjs`);
  const createPyodideModule = (settings) => {
    let runtime;
    settings.preRun.push((given) => (runtime = given));
    settings.onRuntimeInitialized = () => {
      runtime.FS.mkdirTree(COMPILED);
      runtime.FS.writeFile(SOURCES, new Uint8Array(sources));
      runtime.FS.writeFile(`${COMPILED}/_core.so`, new Uint8Array(compiled));
      runtime.loadDynamicLibrary(`${COMPILED}/_core.so`, { global: false, nodelete: true }, {});
      if (snapshot) enlarge(runtime, snapshot.length);
    };
    return create(settings);
  };
  const kept = snapshot ? { _loadSnapshot: snapshot } : { _makeSnapshot: true };
  const python = await loadPyodide({ indexURL: index, checkAPIVersion: false, createPyodideModule, ...kept });
  if (!snapshot) python.runPython(IMPORT);
  return python;
}

/** The memory of a Python that has started, without the zeros at its end. */
export function snapshotOf(python) {
  python.runPython(WARM);
  const memory = python.makeMemorySnapshot();
  let end = memory.length;
  while (end > 0 && memory[end - 1] === 0) end--;
  return memory.slice(0, Math.ceil(end / 16) * 16);
}

// What is allocated here is overwritten by the snapshot, and the memory behind it has to be blank.
function enlarge(runtime, size) {
  if (runtime.HEAPU8.length < size) runtime._malloc(size);
  runtime.HEAPU8.fill(0, size);
}
