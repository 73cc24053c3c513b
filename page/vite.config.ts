import { writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { bundled, licencePage, licenceTexts } from "./licences";

// Puts the one script and the one style sheet into page.html. The script is a classic one, because
// a browser refuses modules in a page that is opened from disk.
function inline(): Plugin {
  return {
    name: "layerscope-inline",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["page.html"];
      if (page?.type !== "asset") throw new Error("page.html is not part of the bundle");
      let html = String(page.source);
      const files = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? Object.keys(file.modules) : []));
      const packages = bundled(files);
      if (packages.length === 0 || packages.some((one) => one.text === "")) throw new Error("a bundled package has no licence text");
      writeFileSync(new URL("../docs/licences.md", import.meta.url), licencePage(packages));
      const texts = licenceTexts(packages).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
      html = html.replace("<!-- licences -->", () => `<template id="licences">${texts}</template>`);
      for (const [name, file] of Object.entries(bundle)) {
        if (name === "page.html") continue;
        const text = file.type === "chunk" ? file.code : String(file.source);
        if (name.endsWith(".js")) {
          const code = text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
          html = html.replace(/<script type="module"[^>]*><\/script>/, "");
          html = html.replace("</body>", () => `<script>${code}</script>\n</body>`);
        } else if (name.endsWith(".css")) {
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${text}</style>`);
        } else {
          throw new Error(`no way to put ${name} into the page`);
        }
        delete bundle[name];
      }
      const frame = html.replace(/<script>[^]*?<\/script>/g, "");
      if (/<(script|link)[^>]+(src|href)="(?!data:)/.test(frame)) throw new Error("the page loads another file");
      page.source = html;
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [inline()],
  build: {
    outDir: "../src/layerscope/web",
    emptyOutDir: false,
    target: "es2022",
    assetsInlineLimit: 1 << 30,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      input: "page.html",
      output: { format: "iife", codeSplitting: false },
    },
  },
});
