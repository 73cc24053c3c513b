// Python in a worker: loads Pyodide and our sources from the site, then answers requests. A dropped
// file is mounted, so that readers seek in it and it is not copied.

import { dropSnapshots, snapshotName, storedSnapshot, storeSnapshot } from "./snapshots";
import { snapshotOf, startPython, type Python } from "./start.mjs";

interface Started {
  python: Python;
  restored: boolean;
  /** Under which its memory is stored; null where nothing can be. */
  name: string | null;
}

const ROOT = new URL("../", self.location.href);
const INDEX = new URL("pyodide/", ROOT).href;
const DROPPED = "/dropped";

async function bytes(name: string): Promise<ArrayBuffer> {
  const response = await fetch(new URL(name, ROOT));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

async function start(): Promise<Started> {
  const [sources, compiled] = await Promise.all([bytes("python.zip"), bytes("msgspec.so")]);
  const files = { index: INDEX, sources, compiled };
  const name = await snapshotName(sources, compiled);
  const snapshot = name === null ? null : await storedSnapshot(name).catch(() => null);
  if (snapshot !== null) {
    try {
      return { python: await startPython({ ...files, snapshot }), restored: true, name };
    } catch {
      await dropSnapshots(); // of another version of Pyodide
    }
  }
  return { python: await startPython(files), restored: false, name };
}

const ready = start();
ready.then(({ restored }) => self.postMessage({ ready: true, restored }), (error: unknown) => self.postMessage({ failed: String(error) }));

// The next visit starts from this memory.
async function keep({ python, restored, name }: Started): Promise<boolean> {
  if (restored || name === null) return restored;
  return storeSnapshot(name, snapshotOf(python)).then(() => true, () => dropSnapshots().then(() => false));
}

let mounted = 0;

self.addEventListener("message", (event: MessageEvent<{ id: number; request: Record<string, unknown>; file?: File; keep?: true }>) => {
  const { id, request, file } = event.data;
  void ready.then((started) => {
    const { python } = started;
    if (event.data.keep) return void keep(started).then((kept) => self.postMessage({ id, kept, answer: "{}" }));
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
