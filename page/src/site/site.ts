// The site: editor, options and the panes of the network. Text that cannot be read leaves the last
// network, with a line that says so.

import type { PageData } from "../data";
import { h } from "../dom";
import { itemOfLayer } from "../model";
import type { Pane } from "../store";
import { EXACT, Store } from "../store";
import { firstTheme, followTheme } from "../theme";
import { readAddress, writeAddress, type Address } from "./address";
import { Bar } from "./bar";
import { Client, TookTooLong } from "./client";
import { Editor } from "./editor";
import { panes } from "./panes";
import type { Answer, Mark, Request } from "./protocol";

const LIMIT = 2000;
const TYPING = 220;
const FIRST = "resnet18";

export class Site {
  private readonly client = new Client();
  private readonly bar: Bar;
  private readonly editor: Editor;
  private readonly shown = h("div", { class: "shown" });
  private readonly stale = h("div", { class: "stale", role: "status", hidden: true });
  private readonly starting = h("p", { class: "panel starting" }, "Starting Python, once …");
  private readonly drawn = h("div", { class: "shown" });
  private readonly status = h("div", { class: "status" });
  private readonly heading = h("h2", {}, "");
  private words: [string, string][] = [];
  private store: Store | null = null;
  private pane: Pane | null = null;
  private lines: number[] = [];
  /** The zoo network whose calls the editor has, unchanged. */
  private zoo = "";
  private file: File | null = null;
  private asked = 0;
  private timer = 0;
  private moving = false;
  private running = false;
  private pending = false;

  constructor(root: HTMLElement) {
    const top = h("header", { class: "top-bar" });
    const code = h("div", { class: "code" });
    const edit = h("section", { class: "panel edit", "aria-label": "editor" }, h("div", { class: "bar" }, this.heading), code, this.status);
    this.shown.append(this.stale, this.starting, this.drawn);
    root.replaceChildren(top, h("main", { class: "site" }, edit, this.shown));
    this.bar = new Bar(top, {
      options: () => void this.refresh(0),
      zoo: (name) => void this.openZoo(name),
      file: (file) => void this.openFile(file),
      write: (form) => this.client.later({ what: "write", form, ...this.source() }, this.file ?? undefined),
      share: () => this.share(),
      store: () => this.store,
      pane: () => this.pane,
    });
    this.editor = new Editor(code, {
      changed: () => {
        this.zoo = "";
        this.file = null;
        this.bar.showZoo("");
        this.later();
      },
      moved: (line) => this.select(line),
      words: () => this.words,
    });
    this.dropping(root);
    addEventListener("hashchange", () => void this.follow());
  }

  async start(): Promise<void> {
    const started = performance.now();
    const tick = setInterval(() => {
      this.starting.textContent = `Starting Python, ${((performance.now() - started) / 1000).toFixed(0)} s, once …`;
    }, 500);
    try {
      await this.client.ready;
    } finally {
      clearInterval(tick);
    }
    await this.follow();
    this.starting.remove();
    for (const what of ["zoo", "notations", "completions"] as const) {
      const names = (await this.client.ask({ what })).names ?? [];
      if (what === "completions") this.words = names;
      else this.bar.fill(what, names);
    }
    this.bar.showZoo(this.zoo);
    await this.client.ask({ what: "warm" });
    this.client.prepare();
  }

  // -- what is shown

  private async follow(): Promise<void> {
    let address: Address;
    try {
      address = await readAddress(location.hash);
    } catch (error) {
      this.complain(blank(`This link cannot be read: ${String(error)}`));
      address = await readAddress("");
    }
    this.bar.set(address);
    if (address.text !== "") {
      this.zoo = "";
      this.file = null;
      this.editor.text = address.text;
      await this.refresh(0, address.convention);
    } else {
      await this.openZoo(address.zoo || FIRST, address.convention);
    }
    if (address.node !== "") this.reveal(address.node);
  }

  private async openZoo(name: string, convention = ""): Promise<void> {
    const answer = await this.client.ask({ what: "builder", zoo: name });
    if (answer.error !== undefined) return this.complain(answer.error);
    this.zoo = name;
    this.file = null;
    this.bar.showZoo(name);
    this.editor.text = answer.text ?? "";
    await this.refresh(0, convention);
  }

  private async openFile(file: File): Promise<void> {
    const text = file.size < 1 << 20 ? await readable(file) : null;
    this.zoo = "";
    this.bar.showZoo("");
    this.bar.set({ input: "", batch: "", dtype: "" });
    this.file = text === null ? file : null;
    this.editor.text = text ?? `# ${file.name}, ${file.size.toLocaleString("en")} bytes, is read where it lies.\n# Typing here begins another network.\n`;
    await this.refresh(0);
  }

  private source(): Pick<Request, "zoo" | "text" | "options"> {
    const options = this.bar.options();
    if (this.file !== null) return { options };
    return this.zoo === "" ? { text: this.editor.text, options } : { zoo: this.zoo, options };
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.typed(), TYPING) as unknown as number;
  }

  // One analysis at a time: of what is typed meanwhile, only the last text is analyzed.
  private async typed(): Promise<void> {
    this.pending = true;
    if (this.running) return this.client.stop(LIMIT);
    this.running = true;
    while (this.pending) {
      this.pending = false;
      await this.refresh(LIMIT);
    }
    this.running = false;
  }

  /** Analyzes what the editor has; `limit` in ms is for a text that is being typed. */
  private async refresh(limit: number, wanted = ""): Promise<void> {
    const id = ++this.asked;
    const convention = wanted || this.store?.state.convention || EXACT;
    const conventions = [...new Set([EXACT, convention, "fvcore"])];
    const request: Request = { what: "analyze", ...this.source(), conventions };
    if (this.zoo !== "") request.text = this.editor.text;
    let answer: Answer;
    try {
      answer = await this.client.ask(request, limit, this.file ?? undefined);
    } catch (error) {
      if (id !== this.asked) return;
      if (!(error instanceof TookTooLong)) return this.complain(blank(String(error)));
      if (limit === 0 || this.pending) return;
      this.complain(blank("The analysis takes more than 2 s; it goes on while nothing is typed."));
      return this.refresh(0, wanted);
    }
    if (id !== this.asked) return;
    if (answer.error !== undefined) return this.complain(answer.error);
    if (answer.page !== undefined) this.show(answer.page, answer, convention);
    void this.complete(id, request);
  }

  // All conventions and charts, computed by the other worker while the page is used.
  private async complete(id: number, request: Request): Promise<void> {
    await new Promise((done) => setTimeout(done, 400));
    if (id !== this.asked) return;
    const { conventions: _, ...full } = request;
    const answer = await this.client.later(full, this.file ?? undefined).catch(() => null);
    const report = answer?.page?.reports[0];
    if (id !== this.asked || this.store === null || answer?.page === undefined || report === undefined || report.kind === "refused") return;
    Object.assign(this.store.report.conventions, report.conventions);
    Object.assign(this.store.report, { exports: report.exports });
    Object.assign(this.store.data, { charts: answer.page.charts, chart_themes: answer.page.chart_themes });
    this.store.refresh();
    document.documentElement.dataset["complete"] = String(id);
  }

  private show(page: PageData, answer: Answer, convention: string): void {
    const before = this.store?.state;
    const store = new Store(page, before?.theme ?? firstTheme());
    this.lines = answer.lines ?? [];
    this.pane?.destroy();
    if (convention in store.report.conventions) store.set({ convention });
    if (before !== undefined) {
      const open = new Set([...before.open].filter((id) => store.model.byId.has(id)));
      const selection = before.selection !== null && store.model.byId.has(before.selection) ? before.selection : null;
      store.set({ open, selection, heat: before.heat, flat: before.flat, columns: before.columns, direction: before.direction, query: before.query });
    }
    this.store = store;
    followTheme(store);
    this.pane = panes(this.drawn, store);
    this.bar.follow(store);
    this.stale.hidden = true;
    const marks = answer.marks ?? [];
    this.editor.mark(marks);
    this.say(marks, answer.format ?? "");
    store.on(["selection"], () => this.selected());
    store.on(["selection", "convention"], () => void this.address());
    this.selected();
    void this.address();
    document.documentElement.dataset["shown"] = String(this.asked);
  }

  private complain(mark: Mark): void {
    this.editor.mark([mark]);
    this.say([mark], "");
    this.stale.hidden = false;
    const where = mark.line > 0 ? `Line ${mark.line}: ` : "";
    const kept = this.store === null ? "" : "Graph and figures are of the last text that could be read. ";
    this.stale.textContent = `${kept}${where}${mark.text}`;
    document.documentElement.dataset["shown"] = String(this.asked);
  }

  private say(marks: Mark[], format: string): void {
    const errors = marks.filter((mark) => mark.severity === "error").length;
    const first = marks[0];
    const counted = errors > 0 ? `${errors} error` : marks.length > 0 ? `${marks.length} ${marks.length === 1 ? "remark" : "remarks"}` : format;
    this.status.replaceChildren(
      h(errors > 0 ? "b" : "span", {}, counted), first !== undefined && first.line > 0 ? h("span", {}, `line ${first.line}, column ${first.column}`) : "",
      h("span", { class: "none" }, "nothing leaves this machine"));
    this.heading.textContent = this.zoo || this.file?.name || "text";
  }

  // -- selection

  private select(line: number): void {
    if (this.store === null || this.moving) return;
    let best = -1;
    this.lines.forEach((own, layer) => {
      if (own > 0 && own <= line && (best < 0 || own > (this.lines[best] ?? 0))) best = layer;
    });
    const item = best < 0 ? undefined : itemOfLayer(this.store.model, best);
    if (item === undefined || item.id === this.store.state.selection) return;
    this.moving = true;
    this.store.reveal(item.id);
    this.moving = false;
  }

  private selected(): void {
    const item = this.store?.item(this.store.state.selection);
    const layer = item?.layers[0];
    const from = layer === undefined ? 0 : (this.lines[layer] ?? 0);
    const next = Math.min(...this.lines.filter((line) => line > from), this.editor.view.state.doc.lines + 1);
    const builder = this.editor.view.state.doc.lines >= from && from > 0 && /^\s*[\w, ]+ = \w+\(/.test(this.editor.view.state.doc.line(from).text);
    this.editor.light(from, item?.kind === "layer" ? (builder ? from : next - 1) : from, !this.moving);
  }

  private reveal(name: string): void {
    const { store } = this;
    if (store === null) return;
    const index = store.report.layers.findIndex((layer) => layer.name === name);
    const item = index >= 0 ? itemOfLayer(store.model, index) : store.model.items.find((one) => one.full === name);
    if (item !== undefined) store.reveal(item.id);
  }

  // -- addresses and files

  private current(): Address {
    const { input = "", batch, dtype = "" } = this.bar.options();
    const node = this.store?.item(this.store.state.selection)?.full ?? "";
    const convention = this.store?.state.convention ?? EXACT;
    const text = this.zoo === "" && this.file === null ? this.editor.text : "";
    return { zoo: this.zoo, text, input, batch: batch ? String(batch) : "", dtype, convention: convention === EXACT ? "" : convention, node };
  }

  private async address(): Promise<void> {
    if (this.file !== null) return;
    history.replaceState(null, "", await writeAddress(this.current()));
  }

  private async share(): Promise<string> {
    await this.address();
    return location.href;
  }

  private dropping(root: HTMLElement): void {
    root.addEventListener("dragover", (event) => {
      event.preventDefault();
      root.classList.add("dropping");
    });
    root.addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) root.classList.remove("dropping");
    });
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      root.classList.remove("dropping");
      const file = event.dataTransfer?.files[0];
      if (file !== undefined) void this.openFile(file);
    });
  }
}

function blank(text: string): Mark {
  return { severity: "error", text, line: 0, column: 0, length: 0, fix: null };
}

// The text of a file, or null if it is binary.
async function readable(file: File): Promise<string | null> {
  const data = new Uint8Array(await file.arrayBuffer());
  if (data.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}
