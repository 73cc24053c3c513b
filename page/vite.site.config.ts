import { writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { bundled, licenceTexts } from "./licences";

// The layout worker is a file of the site, whose policy allows no worker from a Blob.
function ownWorkers(): Plugin {
  return {
    name: "layerscope-own-workers",
    enforce: "pre",
    async resolveId(source, importer) {
      if (!source.endsWith("?worker&inline")) return null;
      return this.resolve(source.replace("?worker&inline", "?worker"), importer, { skipSelf: true });
    },
    generateBundle(_options, bundle) {
      const files = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? Object.keys(file.modules) : []));
      writeFileSync(new URL("../build/site-licences.txt", import.meta.url), licenceTexts(bundled(files)));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [ownWorkers()],
  worker: { format: "es" },
  build: {
    outDir: "../build/site",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 4000,
    rollupOptions: { input: "site.html" },
  },
});
