// Layout of flat graphs in Node: CPU seconds, the median of five.

import { branched, chain, modules, reportOf, scattered } from "../tests/graph/support.mjs";

const { buildModel, buildParts, layout, sceneOf, specOf, visibleLevels } = await modules();

function seconds(run) {
  const times = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  });
  return times.sort((a, b) => a - b)[2].toFixed(2);
}

for (const [form, make] of [["branched", branched], ["scattered", scattered], ["chain", chain]]) {
  for (const count of [1000, 3000, 5000]) {
    const report = reportOf(make(count, 1));
    const visible = visibleLevels(buildParts(buildModel(report)), new Set());
    const spec = specOf(visible.root, report);
    const alone = seconds(() => layout(spec, "down"));
    const all = seconds(() => {
      const shown = visibleLevels(buildParts(buildModel(report)), new Set());
      sceneOf(shown, layout(specOf(shown.root, report), "down"), "down");
    });
    console.log(`${form.padEnd(9)} ${String(count).padStart(5)} nodes: layout ${alone} s, from report to picture ${all} s`);
  }
}
