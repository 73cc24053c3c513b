// Pyodide against CPython without the onnx package: the JSON of networks is the same to the byte.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { snapshotOf, startPython } from "../src/site/start.mjs";
import { PYTHON, ROOT, SHARED, SITE } from "./helpers.mjs";

const PRESETS = join(SHARED, "truth", "netscope");
const CACHE = join(ROOT, "page", ".cache");
const FOLDER = "/files";

function cpython(code, ...args) {
  return execFileSync(PYTHON, ["-c", code, ...args], { encoding: "utf8", maxBuffer: 1 << 30, cwd: ROOT, env: { ...process.env, PYTHONPATH: join(ROOT, "src") } });
}

const ANSWERS = `
import json, sys
sys.modules["onnx"] = None
from layerscope.api.live import answer
for line in sys.stdin.read().splitlines():
    print(answer(line))
`;

// Answers of CPython, one for each request.
function answers(requests) {
  const text = requests.map((request) => JSON.stringify(request)).join("\n");
  return execFileSync(PYTHON, ["-c", ANSWERS], { input: text, encoding: "utf8", maxBuffer: 1 << 30, env: { ...process.env, PYTHONPATH: join(ROOT, "src") } }).trim().split("\n");
}

describe("Pyodide", () => {
  // Restored from a snapshot, as on every visit but the first.
  let python;
  let started;
  const asked = (own, request) => own.globals.get("answer")(JSON.stringify(request));
  const ask = (request) => asked(python, request);
  before(async () => {
    const files = { index: `${join(SITE, "pyodide")}/`, sources: readFileSync(join(SITE, "python.zip")), compiled: readFileSync(join(SITE, "msgspec.so")) };
    started = await startPython(files);
    python = await startPython({ ...files, snapshot: snapshotOf(started) });
  });

  // Compares the answers to some requests, and returns them.
  const compared = (requests, name = (request) => request.zoo ?? "text", own = python) => {
    const wanted = answers(requests);
    assert.equal(wanted.length, requests.length);
    requests.forEach((request, at) => assert.equal(asked(own, request), wanted[at], `${name(request)} differs`));
    return wanted.map((answer) => JSON.parse(answer));
  };
  // How many of them are networks and no errors.
  const same = (...args) => compared(...args).filter((answer) => answer.error === undefined).length;

  it("has the JSON of every zoo network", (t) => {
    const names = JSON.parse(ask({ what: "zoo" })).names.map(([name]) => name);
    assert.ok(names.length > 90);
    assert.equal(same(names.map((zoo) => ({ what: "analyze", zoo, conventions: ["exact", "thop"] }))), names.length);
    t.diagnostic(`${names.length} networks of the zoo are identical`);
  });

  it("has the JSON of zoo networks before it is restored", () => {
    const names = ["lenet5", "alexnet", "resnet50", "vit_b_16", "efficientnet_b0"];
    assert.equal(same(names.map((zoo) => ({ what: "analyze", zoo, calls: true, conventions: ["exact"] })), undefined, started), names.length);
  });

  it("has the JSON of every Caffe preset", { skip: existsSync(PRESETS) ? false : `${PRESETS} is missing` }, (t) => {
    const files = readdirSync(PRESETS, { recursive: true }).filter((name) => name.endsWith(".prototxt")).sort();
    assert.ok(files.length >= 30);
    const requests = files.map((name) => ({ what: "analyze", text: readFileSync(join(PRESETS, name), "utf8"), conventions: ["exact", "netscope"] }));
    const name = (request) => files[requests.findIndex(({ text }) => text === request.text)];
    const found = compared(requests, name);
    const inputs = requests.map((request, at) => ({ ...request, options: { phase: found[at].phase ?? "" } })).filter(({ options }) => options.phase !== "");
    assert.equal(inputs.length, 6);
    compared(inputs, name).forEach(({ error }) => assert.equal(error, undefined)); // they have inputs in the train phase only
    const refused = found.filter(({ error, phase }) => error !== undefined && phase === undefined).map(({ error }) => error.text);
    assert.equal(refused.length, 1);
    assert.match(refused[0], /reads 'score-pool4c', which no layer before it produces; did you mean 'score-pool44c'/);
    t.diagnostic(`${files.length} presets are identical, ${files.length - refused.length} of them networks`);
  });

  it("has the JSON of all conventions and charts of a network", () => assert.equal(same([{ what: "analyze", zoo: "lenet5" }]), 1));

  it("has the JSON of prototxts, prints and tables", (t) => {
    const texts = JSON.parse(cpython(TEXTS));
    assert.ok(texts.length >= 10);
    const read = same(texts.map((text) => ({ what: "analyze", text, conventions: ["exact"] })));
    assert.ok(read >= 10);
    t.diagnostic(`${texts.length} texts are identical, ${read} of them networks`);
  });

  it("has the JSON of ten ONNX files", (t) => {
    mkdirSync(CACHE, { recursive: true });
    const paths = JSON.parse(cpython(MODELS, CACHE));
    assert.equal(paths.length, 10);
    python.FS.mkdirTree(FOLDER);
    for (const path of paths) python.FS.writeFile(join(FOLDER, path), readFileSync(join(CACHE, path)));
    const wanted = answers(paths.map((path) => ({ what: "analyze", path: join(CACHE, path), conventions: ["exact"] })));
    paths.forEach((path, at) => assert.equal(ask({ what: "analyze", path: join(FOLDER, path), conventions: ["exact"] }), wanted[at].replaceAll(CACHE, FOLDER), `${path} differs`));
    assert.ok(wanted.every((answer) => answer.includes('"page"')));
    t.diagnostic(`${paths.length} ONNX files are identical`);
  });
});

const TEXTS = `
import json
from layerscope.api.live import SAMPLES
from layerscope.api.networks import analyze
from layerscope.notations import NOTATIONS, write
from tests.formats.caffe.test_caffemodel import LENET
texts = [*SAMPLES, LENET]
report = analyze("alexnet")
texts += [write(report, name) for name in ("netscope", "keras", "torchsummary", "matconvnet", "cs231n.md", "backbone") if name in NOTATIONS]
print(json.dumps(texts))
`;

const MODELS = `
import json, sys
from layerscope.cli import run
names = ("lenet5", "alexnet", "squeezenet1_0", "squeezenet1_1", "resnet18", "googlenet", "mobilenet_v2", "shufflenet_v2_x1_0", "mnasnet1_0", "nin")
for name in names:
    assert run(["export", name, "--zero-weights", "-o", f"{sys.argv[1]}/{name}.onnx"]) == 0
print(json.dumps([f"{name}.onnx" for name in names]))
`;
