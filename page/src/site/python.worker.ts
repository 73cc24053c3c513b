// Python in a worker: loads Pyodide and our sources from the site, then answers requests. A dropped
// file is mounted, so that readers seek in it and it is not copied.

interface Pyodide {
  FS: {
    mkdirTree(path: string): void;
    mount(type: unknown, options: { files: File[] }, path: string): void;
    unmount(path: string): void;
    filesystems: { WORKERFS: unknown };
  };
  unpackArchive(data: ArrayBuffer, format: string, options: { extractDir: string }): void;
  runPython(code: string): unknown;
  globals: { get(name: string): (request: string) => string };
}

const ROOT = new URL("../", self.location.href);
const LIBRARY = "/lib/layerscope-site";
const DROPPED = "/dropped";

async function bytes(name: string): Promise<ArrayBuffer> {
  const response = await fetch(new URL(name, ROOT));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

async function start(): Promise<Pyodide> {
  const index = new URL("pyodide/", ROOT).href;
  const loading = import(/* @vite-ignore */ `${index}pyodide.mjs`) as Promise<{ loadPyodide(options: object): Promise<Pyodide> }>;
  const sources = bytes("python.zip");
  const { loadPyodide } = await loading;
  const python = await loadPyodide({ indexURL: index, checkAPIVersion: false });
  python.FS.mkdirTree(LIBRARY);
  python.unpackArchive(await sources, "zip", { extractDir: LIBRARY });
  python.runPython(`import sys; sys.path.insert(0, "${LIBRARY}"); from layerscope.api.live import answer`);
  return python;
}

const ready = start();
ready.then(() => self.postMessage({ ready: true }), (error: unknown) => self.postMessage({ failed: String(error) }));

let mounted = 0;

self.addEventListener("message", (event: MessageEvent<{ id: number; request: Record<string, unknown>; file?: File }>) => {
  const { id, request, file } = event.data;
  void ready.then((python) => {
    let path = "";
    try {
      if (file !== undefined) {
        path = `${DROPPED}/${++mounted}`;
        python.FS.mkdirTree(path);
        python.FS.mount(python.FS.filesystems.WORKERFS, { files: [file] }, path);
        request["path"] = `${path}/${file.name}`;
      }
      const answer = python.globals.get("answer")(JSON.stringify(request));
      self.postMessage({ id, answer: path === "" ? answer : answer.replaceAll(`${path}/`, "") });
    } catch (error) {
      const text = String(error).trim().split("\n").pop() ?? "";
      self.postMessage({ id, answer: JSON.stringify({ error: { severity: "error", text, line: 0, column: 0, length: 0, fix: null } }) });
    } finally {
      if (path !== "") python.FS.unmount(path);
    }
  });
});
