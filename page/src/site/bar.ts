// The bar of the site: presets, options, convention, downloads, link and theme.

import { conventionMenu } from "../conventions";
import { h, icon } from "../dom";
import { saveBlob, saveText } from "../files";
import { logo } from "../header";
import { menu, type Entry } from "../menu";
import type { Pane, Store } from "../store";
import { chooseTheme } from "../theme";
import type { Answer, Options } from "./protocol";

const DTYPES = ["", "fp32", "fp16", "bf16", "fp8", "int8", "int4"];
const PHASES = ["test", "train"];
const CAFFE = ["caffe", "caffemodel"];
const SUFFIXES: Record<string, string> = { json: "json", markdown: "md", latex: "tex", html: "html", text: "txt", dot: "dot", svg: "svg", zigzag: "yaml", timeloop: "yaml", builder: "builder", scalesim: "csv", "scalesim.gemm": "csv", "model-explorer": "json" };
const OWN = "own";
const DOWN = "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11";
const THEME = "M8 2a6 6 0 1 0 0 12V2z";

export interface BarEvents {
  options(): void;
  zoo(name: string): void;
  file(file: File): void;
  write(form: string): Promise<Answer>;
  share(): Promise<string>;
  store(): Store | null;
  pane(): Pane | null;
}

export class Bar {
  private readonly zoo = h("select", { "aria-label": "network of the zoo" }, h("option", { value: "" }, "own text"));
  private readonly input = h("input", { "aria-label": "input shape", placeholder: OWN, spellcheck: "false", autocomplete: "off" });
  private readonly batch = h("input", { "aria-label": "batch size", class: "number", placeholder: OWN, inputmode: "numeric", autocomplete: "off" });
  private readonly dtype = h("select", { "aria-label": "dtype" }, ...DTYPES.map((name) => h("option", { value: name }, name === "" ? OWN : name)));
  private readonly phase = h("select", { "aria-label": "phase" }, ...PHASES.map((name) => h("option", { value: name === "test" ? "" : name }, name)));
  private readonly phaseField = h("label", { class: "field", hidden: true }, h("span", {}, "phase"), this.phase);
  private readonly convention = h("div", {});
  private readonly share = h("button", { class: "ctl", type: "button" }, "Share link");
  private forms: [string, string][] = [];

  constructor(host: HTMLElement, private readonly events: BarEvents) {
    const field = (label: string, control: HTMLElement, kind = "field"): HTMLElement => h("label", { class: kind }, h("span", {}, label), control);
    const file = h("input", { type: "file", hidden: true, "aria-label": "open a file" });
    const open = h("button", { class: "ctl", type: "button" }, "Open");
    const theme = h("button", { class: "ctl icon", type: "button", "aria-label": "light or dark", title: "light or dark (t)" }, icon(THEME, 15));
    const save = menu([icon(DOWN), h("span", {}, "Download")], "download", () => this.entries(), { kind: "tall" });
    open.addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      if (file.files?.[0] !== undefined) events.file(file.files[0]);
      file.value = "";
    });
    this.share.addEventListener("click", () => void events.share().then(async (address) => {
      const done = await navigator.clipboard.writeText(address).then(() => "Link copied", () => "Copy the address");
      this.share.textContent = done;
      setTimeout(() => (this.share.textContent = "Share link"), 1500);
    }));
    theme.addEventListener("click", () => {
      const store = events.store();
      if (store !== null) chooseTheme(store, store.state.theme === "light" ? "dark" : "light");
    });
    this.zoo.addEventListener("change", () => {
      if (this.zoo.value === "") return;
      this.set({ input: "", batch: "", dtype: this.dtype.value, phase: "" });
      events.zoo(this.zoo.value);
    });
    for (const control of [this.input, this.batch, this.dtype, this.phase]) control.addEventListener("change", () => events.options());
    host.replaceChildren(
      h("div", { class: "brand" }, logo(), h("span", {}, "layerscope")), field("zoo", this.zoo, "field zoo"), field("input", this.input), field("batch", this.batch), field("dtype", this.dtype), this.phaseField,
      h("div", { class: "grow" }), this.convention, open, file, save.element, this.share, theme);
  }

  options(): Options {
    const batch = this.batch.value.trim();
    return { input: this.input.value.trim().replaceAll("×", "x"), batch: /^\d{1,18}$/.test(batch) ? Number(batch) : null, dtype: this.dtype.value, phase: this.phase.value };
  }

  set(values: { input: string; batch: string; dtype: string; phase: string }): void {
    this.input.value = values.input;
    this.batch.value = values.batch;
    choose(this.dtype, values.dtype);
    this.setPhase(values.phase === "test" ? "" : values.phase);
  }

  setPhase(phase: string): void {
    choose(this.phase, phase);
    if (phase !== "") this.phaseField.hidden = false;
  }

  /** Shows what applies to a format: networks of Caffe have phases. */
  suit(format: string): void {
    this.phaseField.hidden = !CAFFE.includes(format);
    if (this.phaseField.hidden) this.phase.value = "";
  }

  fill(what: "zoo" | "notations", names: [string, string][]): void {
    if (what === "notations") this.forms = names;
    else this.zoo.append(...names.map(([name, says]) => h("option", { value: name, title: says }, name)));
  }

  showZoo(name: string): void {
    this.zoo.value = name;
  }

  /** The text of the batch size if it is no whole number, else "". */
  wrongBatch(): string {
    const batch = this.batch.value.trim();
    return batch === "" || /^\d{1,18}$/.test(batch) ? "" : batch.slice(0, 40);
  }

  /** Shows the conventions and the own sizes of another network; a file has no link. */
  follow(store: Store, file: boolean): void {
    this.convention.replaceChildren(conventionMenu(store));
    const { inputs, stamp } = store.report;
    const shape = inputs.length === 1 ? (inputs[0]?.shape ?? null) : null;
    this.input.placeholder = shape === null ? OWN : shape.slice(1).join("×") || OWN;
    this.batch.placeholder = String(stamp["batch"] ?? OWN);
    const own = this.dtype.options[0];
    if (own !== undefined && this.dtype.value === "") own.textContent = String(stamp["dtype"] ?? OWN);
    this.share.disabled = file;
    this.share.title = file ? "a file stays on this machine: no link can show it" : "";
  }

  private entries(): Entry[] {
    const name = this.events.store()?.report.network ?? "network";
    const pane = this.events.pane();
    const pictures: Entry[] = pane?.png ? [{ label: "graph as PNG", run: () => void pane.png?.().then((blob) => saveBlob(blob, `${name}.png`)) }] : [];
    return [...pictures, ...this.forms.map(([form]): Entry => ({
      label: form,
      run: () => void this.events.write(form).then((answer) => {
        if (answer.text !== undefined) saveText(answer.text, `${name}.${SUFFIXES[form] ?? (/csv$/.test(form) ? "csv" : /latex$/.test(form) ? "tex" : "txt")}`, "text/plain");
      }),
    }))];
  }
}

// A value that is no option becomes one, and is refused by name.
function choose(control: HTMLSelectElement, value: string): void {
  if (![...control.options].some((one) => one.value === value)) control.append(h("option", { value }, value));
  control.value = value;
}
