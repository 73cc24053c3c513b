// The parts of the graph pane that need no browser.

export { buildModel } from "../../src/model";
export { layout } from "../../src/graph/layout";
export { OUTSIDE, shapeLabel, shownPart, visibleLevels } from "../../src/graph/levels";
export { buildParts, FIRST_BOXES, firstOpen, LEVEL_BOXES } from "../../src/graph/parts";
export { edgeWidth, sceneOf, specOf } from "../../src/graph/scene";
