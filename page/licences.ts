// Licences of the packages inside a bundle, each text once.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface Bundled {
  name: string;
  version: string;
  licence: string;
  text: string;
}

function packageOf(file: string): string | null {
  const at = file.replaceAll("\\", "/").lastIndexOf("/node_modules/");
  if (at < 0) return null;
  for (let folder = dirname(file); folder.length > at + 13; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    if (existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { version?: string }).version) return folder;
  }
  return null;
}

function read(folder: string): Bundled {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
  const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8").trim();
  return { name: name ?? "", version: version ?? "", licence: license ?? "unknown", text };
}

/** Packages of these files, by name. */
export function bundled(files: Iterable<string>): Bundled[] {
  const folders = new Set([...files].map((file) => packageOf(file.replace(/^\0/, "").split("?")[0] ?? "")));
  return [...folders].filter((folder): folder is string => folder !== null).map(read)
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** The texts of the licences, with the packages that each applies to. */
export function licenceTexts(packages: Bundled[]): string {
  const byText = new Map<string, Bundled[]>();
  for (const one of packages) byText.set(one.text, [...(byText.get(one.text) ?? []), one]);
  return [...byText].map(([text, those]) =>
    `${those.map((one) => `${one.name} ${one.version} (${one.licence})`).join(", ")}\n\n${text}`).join(`\n\n${"-".repeat(72)}\n\n`);
}

/** The page of the documentation. */
export function licencePage(packages: Bundled[]): string {
  return [
    "# Licences of the report page", "",
    "`make page` writes this list. The built page and the script of a chart contain these packages; their licence texts are",
    "in the page, behind *Licences* in its footer.", "",
    "| package | version | licence |", "| --- | --- | --- |",
    ...packages.map((one) => `| ${one.name} | ${one.version} | ${one.licence} |`), "",
  ].join("\n");
}
