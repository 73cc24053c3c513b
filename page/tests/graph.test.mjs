// What is visible in the graph, and where: nothing overlaps, every edge ends at its boxes, and opening
// a module leaves the others as they are.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { branched, chain, modules, networkNames, random, reportOf, reports, scattered } from "./graph/support.mjs";

const { buildModel, buildParts, edgeWidth, FIRST_BOXES, firstOpen, layout, LEVEL_BOXES, OUTSIDE, sceneOf, shapeLabel, shownPart, specOf, visibleLevels } = await modules();

const FAMILIES = [
  "alexnet", "vgg16", "resnet18", "resnet50", "resnet152", "densenet121", "googlenet", "inception_v3", "inception_v4-slim", "squeezenet1_1",
  "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "shufflenet_v2_x1_0", "regnet_y_400mf", "convnext_tiny", "unet", "vit_b_16",
  "swin_t", "bert_base", "gpt2", "t5-small", "llama-7b", "mtcnn-onet", "lenet5", "nin", "mnasnet1_0",
];
const known = new Set(networkNames());
const NAMES = process.env.GRAPH_NETWORKS === "all" ? [...known] : FAMILIES.filter((name) => known.has(name));
const HEADER = 24;

function drawn(report, open, direction = "down") {
  const parts = buildParts(buildModel(report));
  const opened = open(parts);
  const visible = visibleLevels(parts, opened);
  const placed = layout(specOf(visible.root, report), direction);
  return { parts, opened, visible, placed, scene: sceneOf(visible, placed, direction) };
}

const nothing = () => new Set();
const first = (parts) => firstOpen(parts, (item) => item.layers.length);
const everything = (parts) => new Set(parts.byId.keys());

function checkBoxes({ visible, placed }) {
  const work = [[visible.root, placed, false]];
  for (const [level, own, nested] of work) {
    const boxes = level.boxes.map((box, at) => ({ id: box.id, x: own.x[at], y: own.y[at], w: own.frames[at][0], h: own.frames[at][1] }));
    for (const box of boxes) {
      assert.ok(box.x >= 0 && box.x + box.w <= own.w + 0.01 && box.y + box.h <= own.h + 0.01, `${box.id} is inside ${level.part.id}`);
      assert.ok(box.y >= (nested ? HEADER : 0), `${box.id} is below the header of ${level.part.id}`);
    }
    const sorted = [...boxes].sort((a, b) => a.y - b.y);
    const active = [];
    for (const box of sorted) {
      for (let at = active.length - 1; at >= 0; at--) if (active[at].y + active[at].h <= box.y) active.splice(at, 1);
      for (const other of active) assert.ok(box.x + box.w <= other.x || other.x + other.w <= box.x, `${box.id} and ${other.id} overlap`);
      active.push(box);
    }
    level.boxes.forEach((box, at) => { if (box.level !== null) work.push([box.level, own.inner[at], true]); });
  }
}

function checkEdges({ visible, placed }, direction) {
  let through = 0;
  const work = [[visible.root, placed]];
  const [along, across] = direction === "down" ? [1, 0] : [0, 1];
  for (const [level, own] of work) {
    const lows = [own.x, own.y];
    const seen = new Set();
    for (const route of own.routes) {
      const net = level.nets[route.net];
      seen.add(`${route.net}>${route.target}`);
      const points = [];
      for (let at = 0; at < route.points.length; at += 2) points.push([route.points[at], route.points[at + 1]]);
      for (let at = 1; at < points.length; at++) {
        assert.ok(points[at][0] === points[at - 1][0] || points[at][1] === points[at - 1][1], "edges have right angles");
      }
      const start = points[0];
      const stop = points.at(-1);
      const side = direction === "down" ? 1 : 0;
      if (net.source === OUTSIDE) assert.equal(start[along], direction === "down" ? HEADER : 0, "comes from the header");
      else {
        assert.ok(Math.abs(start[along] - (lows[along][net.source] + own.frames[net.source][side])) < 0.01, "starts at its source");
        assert.ok(start[across] > lows[across][net.source] && start[across] < lows[across][net.source] + own.frames[net.source][1 - side]);
      }
      if (route.target === OUTSIDE) assert.ok(Math.abs(stop[along] - [own.w, own.h][along]) < 0.01, "leaves at the lower border");
      else {
        assert.ok(Math.abs(stop[along] - lows[along][route.target]) < 0.01, "ends at its target");
        assert.ok(stop[across] > lows[across][route.target] && stop[across] < lows[across][route.target] + own.frames[route.target][1 - side]);
      }
      through += crossings(points, own, [net.source, route.target]);
    }
    level.nets.forEach((net, at) => {
      for (const target of net.targets) assert.ok(seen.has(`${at}>${target}`), "every net reaches every target");
    });
    level.boxes.forEach((box, at) => { if (box.level !== null) work.push([box.level, own.inner[at]]); });
  }
  return through;
}

// How many boxes a route passes through, other than those at its ends.
function crossings(points, own, ends) {
  let count = 0;
  own.x.forEach((x, node) => {
    if (ends.includes(node)) return;
    const y = own.y[node];
    const [w, h] = own.frames[node];
    for (let at = 1; at < points.length; at++) {
      const [ax, ay] = points[at - 1];
      const [bx, by] = points[at];
      if (Math.max(ax, bx) > x + 1 && Math.min(ax, bx) < x + w - 1 && Math.max(ay, by) > y + 1 && Math.min(ay, by) < y + h - 1) {
        count++;
        return;
      }
    }
  });
  return count;
}

// Labels lie on no box, header or other label; a figure is about 6 px wide.
function checkLabels({ scene }) {
  const spots = scene.boxes.map((own) => ({ what: own.id, x: own.x, y: own.y, w: own.w, h: own.box.kind === "frame" ? HEADER : own.h }));
  const labels = scene.edges.flatMap((edge) => edge.labels.map((label) => {
    const w = 6 * label.text.length;
    return { what: label.text, x: label.anchor === "start" ? label.x : label.x - w / 2, y: label.y - 9, w, h: 10 };
  }));
  labels.forEach((label, at) => {
    for (const other of [...spots, ...labels.slice(at + 1)]) {
      const apart = label.x + label.w <= other.x || other.x + other.w <= label.x || label.y + label.h <= other.y || other.y + other.h <= label.y;
      assert.ok(apart, `${label.what} lies on ${other.what}`);
    }
  });
}

function checkTensors({ parts, visible }) {
  const nets = new Map();
  for (const level of visible.levels) for (const net of level.nets) for (const tensor of net.tensors) nets.set(`${level.part.id} ${tensor} ${net.source}`, net);
  parts.tensors.forEach((tensor, index) => {
    const from = tensor.producer === null ? parts.byId.get(`i${index}`) : parts.ofLayer[tensor.producer];
    const source = visible.at.get(shownPart(from, visible.at));
    if (source === undefined) return;
    for (const reader of tensor.consumers) {
      const target = visible.at.get(shownPart(parts.ofLayer[reader], visible.at));
      if (target === undefined || target.level !== source.level || target.index === source.index) continue;
      const net = nets.get(`${source.level.part.id} ${index} ${source.index}`);
      assert.ok(net?.targets.includes(target.index), `an edge for ${tensor.name}`);
    }
  });
}

describe("the graph of a network", () => {
  for (const [at, report] of reports(NAMES).entries()) {
    it(NAMES[at], () => {
      const modular = report.tree.children.some((child) => typeof child !== "number");
      for (const open of [nothing, first, everything]) {
        for (const direction of ["down", "right"]) {
          const graph = drawn(report, open, direction);
          checkBoxes(graph);
          assert.equal(checkEdges(graph, direction), 0, "no edge passes through a box");
          checkTensors(graph);
          checkLabels(graph);
          if (modular && open !== everything) assert.ok(graph.scene.boxes.length <= FIRST_BOXES);
        }
      }
      const [one, two] = [drawn(report, everything), drawn(report, everything)];
      assert.deepEqual(one.placed, two.placed);
      const boxed = new Set(one.scene.boxes.flatMap((own) => [own.id, ...own.box.part.hangs.map((hung) => hung.id)]));
      one.parts.ofLayer.forEach((part) => assert.ok(boxed.has(part.id), `${part.name} is shown where everything is open`));
    });
  }
});

describe("opening a module", () => {
  for (const [at, report] of reports(["resnet50", "densenet121", "inception_v3", "vit_b_16", "t5-small"].filter((name) => known.has(name))).entries()) {
    it(`leaves other frames as they are: ${at}`, () => {
      const before = drawn(report, first);
      const inside = (graph) => new Map(graph.visible.levels.map((level) => {
        const frame = graph.scene.byId.get(level.part.id) ?? { x: 0, y: 0 };
        return [level.part, level.boxes.map((box) => { const own = graph.scene.byId.get(box.id); return [box.id, own.x - frame.x, own.y - frame.y, own.w, own.h].join(); })];
      }));
      const was = new Map([...inside(before)].map(([part, boxes]) => [part.id, boxes]));
      for (const box of before.scene.boxes.filter((own) => own.box.kind === "module")) {
        const after = drawn(report, () => new Set([...before.opened, box.id]));
        const around = new Set();
        for (let part = after.parts.byId.get(box.id).parent; part !== null; part = part.parent) around.add(part.id);
        for (const [part, boxes] of inside(after)) {
          if (part.id !== box.id && !around.has(part.id)) assert.deepEqual(boxes, was.get(part.id), `${part.id} after opening ${box.id}`);
        }
        assert.equal(after.scene.byId.get(box.id).box.kind, "frame");
      }
    });
  }
});

describe("graphs of any form", () => {
  it("scattered, branched and with modules that depend on each other", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const next = random(seed);
      const count = 2 + Math.floor(next() * 70);
      const sources = seed % 2 === 0 ? scattered(count, seed) : branched(count, seed);
      const groups = 1 + Math.floor(next() * 6);
      const names = sources.map(() => (next() < 0.3 ? [] : [`m${Math.floor(next() * groups)}`, ...(next() < 0.4 ? [`n${Math.floor(next() * 3)}`] : [])]));
      const report = reportOf(sources, (node) => (seed % 3 === 0 ? [] : names[node]));
      for (const open of [nothing, first, everything]) {
        for (const direction of ["down", "right"]) {
          const graph = drawn(report, open, direction);
          checkBoxes(graph);
          checkEdges(graph, direction);
          checkTensors(graph);
        }
      }
    }
  });

  it("5,000 nodes, in one piece", () => {
    for (const sources of [chain(LEVEL_BOXES), branched(LEVEL_BOXES, 1), scattered(LEVEL_BOXES, 1)]) {
      const graph = drawn(reportOf(sources), nothing);
      checkBoxes(graph);
      assert.ok(graph.scene.boxes.length >= LEVEL_BOXES);
    }
  });

  it("more, in runs that open", () => {
    const report = reportOf(branched(12000, 2));
    const folded = drawn(report, nothing);
    assert.ok(folded.scene.boxes.length <= 300);
    const run = folded.scene.boxes.find((own) => own.box.part.kind === "run");
    const opened = drawn(report, () => new Set([run.id]));
    assert.equal(opened.scene.boxes.length, folded.scene.boxes.length + run.box.part.parts.filter((part) => part.host === null).length);
    checkBoxes(opened);
    checkTensors(opened);
    const layers = folded.scene.boxes.flatMap((own) => own.box.part.layers);
    assert.deepEqual([...layers].sort((a, b) => a - b), report.layers.map((_, index) => index));
  });

  it("a level of a network with modules, too: at most 300 boxes", () => {
    const report = reportOf(chain(2000), (node) => (node >= 1990 ? ["head"] : []));
    assert.ok(drawn(report, nothing).scene.boxes.length <= FIRST_BOXES);
    assert.ok(drawn(report, first).scene.boxes.length <= FIRST_BOXES);
  });
});

describe("repeats", () => {
  it("show one repetition, whose result leaves the frame", () => {
    const [report] = reports(["vit_b_16"]);
    const graph = drawn(report, everything);
    const frame = graph.scene.boxes.find((own) => own.box.part.repeat === 12);
    const level = frame.box.level;
    assert.ok(level.nets.some((net) => net.source === OUTSIDE) && level.nets.some((net) => net.targets.includes(OUTSIDE)));
    for (const net of level.nets) assert.ok(net.targets.every((target) => target === OUTSIDE || target > net.source), "nothing runs back");
  });
});

describe("labels and widths", () => {
  it("shapes without the batch", () => {
    assert.equal(shapeLabel([1, 64, 56, 56]), "64×56×56");
    assert.equal(shapeLabel(["N", 10]), "10");
    assert.equal(shapeLabel([7]), "7");
    assert.equal(shapeLabel(null), "?");
  });

  it("edges of 1 to 3.4 px", () => {
    assert.equal(edgeWidth(null), 1);
    assert.equal(edgeWidth(10), 1);
    assert.equal(edgeWidth(2 ** 40), 3.4);
    assert.ok(edgeWidth(3e6) > edgeWidth(8e5));
  });
});
