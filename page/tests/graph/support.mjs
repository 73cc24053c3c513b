// Graphs for tests and benchmarks: the data of networks, and reports of graphs made up here.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PAGE = join(HERE, "..", "..");
const ROOT = join(PAGE, "..");
const CACHE = join(PAGE, ".cache", "graph");
const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

mkdirSync(CACHE, { recursive: true });

/** The modules of the graph, built for Node. */
export async function modules() {
  await build({
    configFile: false, logLevel: "error", root: PAGE,
    build: { ssr: join(HERE, "modules.ts"), outDir: CACHE, emptyOutDir: false, rollupOptions: { output: { entryFileNames: "modules.mjs" } } },
  });
  return import(pathToFileURL(join(CACHE, "modules.mjs")).href);
}

const WRITE = `
import sys
import msgspec
from pathlib import Path
from layerscope.api.reporting import page_data
for name in sys.argv[2:]:
    (Path(sys.argv[1]) / f"{name}.json").write_bytes(msgspec.json.encode(page_data([name])))
`;

/** The reports of networks, as the page has them. */
export function reports(names) {
  const missing = names.filter((name) => !existsSync(join(CACHE, `${name}.json`)));
  if (missing.length > 0) {
    execFileSync(PYTHON, ["-c", WRITE, CACHE, ...missing], { env: { ...process.env, PYTHONPATH: join(ROOT, "src") } });
  }
  return names.map((name) => JSON.parse(readFileSync(join(CACHE, `${name}.json`), "utf8")).reports[0]);
}

export function networkNames() {
  const names = execFileSync(PYTHON, ["-c", "import layerscope.zoo; print(*layerscope.zoo.NAMES)"], {
    encoding: "utf8", env: { ...process.env, PYTHONPATH: join(ROOT, "src") },
  });
  return names.trim().split(/\s+/);
}

/** Numbers from 0 to 1 that are the same in every run. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Sources of each node: blocks of parallel branches, as in Inception. */
export function branched(count, seed) {
  const next = random(seed);
  const sources = [[]];
  let last = 0;
  while (sources.length < count) {
    const branches = [1, 1, 2, 3, 4][Math.floor(next() * 5)];
    if (branches === 1) {
      last = sources.push([last]) - 1;
      continue;
    }
    const ends = [];
    for (let branch = 0; branch < branches; branch++) {
      let at = last;
      for (let length = 1 + Math.floor(next() * 4); length > 0 && sources.length < count - 1; length--) at = sources.push([at]) - 1;
      ends.push(at);
    }
    last = sources.push([...new Set(ends)]) - 1;
  }
  return sources.slice(0, count);
}

/** Sources of each node: one or two of the nodes shortly before it, none now and then. */
export function scattered(count, seed) {
  const next = random(seed);
  return Array.from({ length: count }, (_, node) => {
    if (node === 0 || next() < 0.03) return [];
    const reads = next() < 0.6 ? 1 : 2;
    return [...new Set(Array.from({ length: reads }, () => Math.max(0, node - 1 - Math.floor(-4 * Math.log(1 - next())))))];
  });
}

export function chain(count) {
  return Array.from({ length: count }, (_, node) => (node === 0 ? [] : [node - 1]));
}

/** A report of layers with these sources; `scope` gives the module path of a layer. */
export function reportOf(sources, scope = () => []) {
  const count = sources.length;
  const consumers = Array.from({ length: count + 1 }, () => []);
  sources.forEach((own, node) => (own.length > 0 ? own : [-1]).forEach((source) => consumers[source + 1].push(node)));
  const root = { row: 0, name: "", type: "", path: "", layers: [], children: [] };
  const groups = new Map([["", root]]);
  sources.forEach((_, node) => {
    let path = "";
    let group = root;
    group.layers.push(node);
    for (const name of scope(node)) {
      path = path === "" ? name : `${path}.${name}`;
      let inner = groups.get(path);
      if (inner === undefined) {
        inner = { row: count + groups.size - 1, name, type: "Block", path, layers: [], children: [] };
        groups.set(path, inner);
        group.children.push(inner);
      }
      inner.layers.push(node);
      group = inner;
    }
    group.children.push(node);
  });
  return {
    network: "made up", columns: [], conventions: {}, inputs: [], outputs: [], findings: [], tree: root,
    layers: sources.map((own, node) => ({ name: `node_${node}`, type: own.length > 1 ? "concat" : "conv", window: own.length > 1 ? "" : "3x3", inputs: own, outputs: [node + 1] })),
    tensors: consumers.map((readers, tensor) => ({
      name: `t${tensor}`, shape: [1, 64, 56, 56], dtype: "fp32", bytes: 802816, producer: tensor === 0 ? null : tensor - 1, consumers: readers, first: 0, last: 0,
    })),
    cells: { name: { texts: sources.map((_, node) => `node_${node}`) }, flops: { values: sources.map((_, node) => (node * 7919) % 13) } },
  };
}

/** The report of such a graph with all that the page needs, from the report of a network. */
export function pageReport(base, sources) {
  const own = reportOf(sources);
  const count = sources.length;
  const flops = own.cells.flops.values;
  const total = flops.reduce((sum, one) => sum + one, 0);
  const cells = {};
  for (const { name, kind } of base.columns) {
    if (kind === "text") cells[name] = { texts: [...own.layers.map((layer) => ({ name: layer.name, type: layer.type })[name] ?? ""), "total"] };
    else if (kind === "percent") cells[name] = { values: [...flops.map((one) => one / total), 1], texts: [...flops.map(() => ""), "100.0"] };
    else cells[name] = { values: [...flops, total] };
  }
  own.tree.row = count;
  return {
    ...base, network: "made up", layers: own.layers, tensors: own.tensors, tree: own.tree, cells, conventions: {}, findings: [],
    memory: { ...base.memory, timeline: [] },
  };
}
