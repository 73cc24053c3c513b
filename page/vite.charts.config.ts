import { defineConfig } from "vite";

// The script of a page with one chart, which `layerscope plot -o chart.html` puts into it.
export default defineConfig({
  build: {
    outDir: "../src/layerscope/web",
    emptyOutDir: false,
    target: "es2022",
    reportCompressedSize: false,
    lib: { entry: "src/charts-entry.ts", formats: ["iife"], name: "layerscopeChart", fileName: () => "charts.js" },
  },
});
