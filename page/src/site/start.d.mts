/** What the site uses of Pyodide. */
export interface Python {
  FS: {
    mkdirTree(path: string): void;
    mount(type: unknown, options: { files: File[] }, path: string): void;
    unmount(path: string): void;
    filesystems: { WORKERFS: unknown };
    writeFile(path: string, data: Uint8Array): void;
    readFile(path: string): Uint8Array;
  };
  runPython(code: string): unknown;
  globals: { get(name: string): (request: string) => string };
}

export interface Start {
  /** Address of the folder with Pyodide's files, or in Node its path, with a slash. */
  index: string;
  /** Archive with the modules of layerscope and msgspec. */
  sources: ArrayBuffer | Uint8Array;
  /** The compiled module of msgspec. */
  compiled: ArrayBuffer | Uint8Array;
  /** The memory to restore; without it Python starts. */
  snapshot?: Uint8Array | null;
}

export function startPython(start: Start): Promise<Python>;
export function snapshotOf(python: Python): Uint8Array<ArrayBuffer>;
