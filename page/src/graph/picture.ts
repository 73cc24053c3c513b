// The graph as a picture outside the page: SVG with text as text and colours of the theme, or PNG.

import { s } from "../dom";
import { edgeShapes, type Look } from "./look";
import type { Scene } from "./scene";
import { FONT, type Token } from "./shapes";
import { element } from "./svg";

const SIDE = 16000;
const AREA = 120e6;

/** A standalone SVG of the whole graph. */
export function svgText(scene: Scene, look: Look, host: Element): string {
  const style = getComputedStyle(host);
  const colour = (token: Token | null): string => (token === null ? "none" : style.getPropertyValue(`--${token}`).trim());
  const [w, h] = [Math.ceil(scene.w), Math.ceil(scene.h)];
  const svg = s("svg", {
    xmlns: "http://www.w3.org/2000/svg", width: w, height: h, viewBox: `0 0 ${w} ${h}`,
    "font-family": FONT, style: "font-variant-numeric:tabular-nums lining-nums",
  });
  svg.append(s("rect", { width: w, height: h, fill: colour("surface") }));
  const boxes: SVGElement[] = [];
  for (const own of scene.boxes) {
    const group = s("g", { transform: `translate(${own.x} ${own.y})` }, s("title", {}, own.box.part.item?.full ?? own.box.name));
    group.append(...look.box(own).map((shape) => element(shape, colour)));
    if (own.box.kind === "frame") svg.append(group);
    else boxes.push(group);
  }
  const labels: SVGElement[] = [];
  for (const edge of scene.edges) {
    const shapes = edgeShapes(edge, false);
    svg.append(element(shapes.line, colour), element(shapes.arrows, colour));
    for (const label of shapes.labels) {
      const own = element(label, colour);
      own.setAttribute("style", `${own.getAttribute("style") ?? ""};paint-order:stroke;stroke:${colour("surface")};stroke-width:4px;stroke-linejoin:round`);
      labels.push(own);
    }
  }
  svg.append(...boxes, ...labels);
  return new XMLSerializer().serializeToString(svg);
}

/** The picture at twice its size, or as large as a canvas may be. */
export async function pngBlob(svg: string, size: { w: number; h: number }): Promise<Blob> {
  const scale = Math.min(2, SIDE / size.w, SIDE / size.h, Math.sqrt(AREA / (size.w * size.h)));
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(size.w * scale));
    canvas.height = Math.max(1, Math.round(size.h * scale));
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob === null ? reject(new Error("the picture is too large")) : resolve(blob)), "image/png");
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}
