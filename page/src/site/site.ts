// The site: editor, options and the panes of the network. Text that cannot be read leaves the last
// network, with a line that says so.

import type { PageData } from "../data";
import { h, icon } from "../dom";
import { itemOfLayer, type Item } from "../model";
import type { Pane } from "../store";
import { EXACT, Store } from "../store";
import { firstTheme, followTheme } from "../theme";
import { readAddress, writeAddress, type Address } from "./address";
import { Bar } from "./bar";
import { Client, TookTooLong } from "./client";
import { Editor } from "./editor";
import { Loading } from "./loading";
import { panes } from "./panes";
import type { Answer, Mark, Request } from "./protocol";

const LIMIT = 2000;
const TYPING = 220;
const FIRST = "resnet18";
const EXAMPLES = ["lenet5", "resnet50", "mobilenet_v2"];
const WARNING = "M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.8v.01";

export class Site {
  private readonly client = new Client();
  private readonly bar: Bar;
  private readonly editor: Editor;
  private readonly shown = h("div", { class: "shown" });
  private readonly stale = h("div", { class: "stale", role: "status", hidden: true });
  private readonly starting = new Loading();
  private readonly drawn = h("div", { class: "shown" });
  private readonly status = h("div", { class: "status" });
  private readonly heading = h("h2", {}, "");
  private readonly numbers = h("select", { class: "ctl sm", "aria-label": "network of the document", hidden: true });
  private words: [string, string][] = [];
  private store: Store | null = null;
  private pane: Pane | null = null;
  /** The zoo network whose calls the editor has, unchanged. */
  private zoo = "";
  private file: File | null = null;
  /** Of the network in a document that has several; 0 for the first. */
  private number = 0;
  /** The line with the error, or 0. */
  private wrong = 0;
  private asked = 0;
  private timer = 0;
  private moving = false;
  private running = false;
  private pending = false;

  constructor(root: HTMLElement) {
    const top = h("header", { class: "top-bar site-bar" });
    const code = h("div", { class: "code" });
    const edit = h("section", { class: "panel edit", "aria-label": "editor" }, h("div", { class: "bar" }, this.heading, this.numbers), code, this.status);
    this.shown.append(this.stale, this.starting.element, this.drawn);
    root.replaceChildren(top, h("main", { class: "site" }, edit, this.shown));
    this.bar = new Bar(top, {
      options: () => void this.refresh(0),
      zoo: (name) => void this.openZoo(name),
      file: (file) => void this.openFile(file),
      write: (form) => this.write(form),
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
      moved: (line) => this.caret(line),
      words: () => this.words,
    });
    this.numbers.addEventListener("change", () => {
      this.number = this.numbers.selectedIndex + 1;
      void this.refresh(0);
    });
    this.dropping(root);
    addEventListener("hashchange", () => void this.follow());
  }

  async start(): Promise<void> {
    await this.client.ready.catch((error: unknown) => {
      this.starting.end();
      throw error;
    });
    await this.follow();
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
    let broken = "";
    try {
      address = await readAddress(location.hash);
    } catch (error) {
      broken = error instanceof Error ? error.message : String(error);
      address = await readAddress("");
    }
    this.bar.set(address);
    if (address.text !== "") {
      this.zoo = "";
      this.file = null;
      this.number = /^[1-9]\d{0,5}$/.test(address.network) ? Number(address.network) : 0;
      this.editor.text = address.text;
      await this.refresh(0, address.convention);
      this.editor.show(this.wrong);
    } else {
      await this.openZoo(address.zoo || FIRST, address.convention);
    }
    if (address.node !== "") this.reveal(address.node);
    if (broken !== "") this.notice(`The text of this link cannot be read: ${broken}. This is ${this.zoo}.`);
  }

  private async openZoo(name: string, convention = ""): Promise<void> {
    this.client.stop(LIMIT);
    await this.refresh(0, convention, name);
  }

  private opened(zoo: string, calls: string): void {
    this.zoo = zoo;
    this.file = null;
    this.number = 0;
    this.bar.showZoo(zoo);
    this.editor.text = calls;
  }

  private async openFile(file: File): Promise<void> {
    const text = file.size < 1 << 20 ? await readable(file) : null;
    this.zoo = "";
    this.bar.showZoo("");
    this.bar.set({ input: "", batch: "", dtype: "", phase: "" });
    this.file = text === null ? file : null;
    this.number = 0;
    this.editor.text = text ?? `# ${file.name}, ${file.size.toLocaleString("en")} bytes, is read where it lies.\n# Typing here begins another network.\n`;
    await this.refresh(0);
    this.editor.show(this.wrong);
  }

  private source(): Pick<Request, "zoo" | "text" | "number" | "options"> {
    const options = this.bar.options();
    if (this.file !== null) return { options };
    return this.zoo === "" ? { text: this.editor.text, number: this.number, options } : { zoo: this.zoo, options };
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.typed(), TYPING) as unknown as number;
  }

  // One analysis at a time: of what is typed meanwhile, only the last text is analyzed.
  private async typed(): Promise<void> {
    this.pending = true;
    this.client.stop(LIMIT);
    if (this.running) return;
    this.running = true;
    while (this.pending) {
      this.pending = false;
      await this.refresh(LIMIT);
    }
    this.running = false;
  }

  /**
   * Analyzes what the editor has, or another zoo network, whose calls the editor then has; `limit`
   * in ms is for a text that is being typed.
   */
  private async refresh(limit: number, wanted = "", zoo = ""): Promise<void> {
    const id = ++this.asked;
    if (zoo === "" && this.zoo === "" && this.file === null && this.editor.text.trim() === "") return this.empty();
    const batch = this.bar.wrongBatch();
    if (batch !== "") return this.refuse(blank(`batch ${batch}, expected a whole number`), zoo);
    if (limit === 0) this.client.stop(LIMIT);
    const convention = wanted || this.store?.state.convention || EXACT;
    const conventions = [...new Set([EXACT, convention, "fvcore"])];
    const source = zoo === "" ? this.source() : { zoo, options: this.bar.options() };
    const request: Request = { what: "analyze", ...source, conventions, ...(source.zoo && { calls: true }) };
    let answer: Answer;
    try {
      answer = await this.client.ask(request, limit, zoo === "" ? (this.file ?? undefined) : undefined);
    } catch (error) {
      if (id !== this.asked) return;
      if (!(error instanceof TookTooLong)) return this.complain(blank(String(error)));
      if (this.pending) return;
      this.wait();
      return this.refresh(0, wanted, zoo);
    }
    if (id !== this.asked) return;
    if (answer.error !== undefined) return this.refuse(answer.error, zoo, answer);
    if (zoo !== "") this.opened(zoo, answer.text ?? "");
    if (answer.page !== undefined) this.show(answer.page, answer, convention);
    void this.complete(id, request);
  }

  // Options may be wrong while the zoo network is there: the editor has its calls.
  private async refuse(mark: Mark, zoo: string, answer: Answer = {}): Promise<void> {
    const calls = zoo === "" ? undefined : (await this.client.ask({ what: "builder", zoo })).text;
    if (calls !== undefined) this.opened(zoo, calls);
    if (answer.format) this.bar.suit(answer.format);
    this.complain(mark, answer.phase);
  }

  // All conventions, findings and charts, computed by the other worker while the page is used.
  private async complete(id: number, request: Request): Promise<void> {
    await new Promise((done) => setTimeout(done, 400));
    if (id !== this.asked) return;
    const { conventions: _, calls: __, ...full } = request;
    const answer = await this.client.later(full, this.file ?? undefined).catch(() => null);
    const report = answer?.page?.reports[0];
    if (id !== this.asked || this.store === null || answer?.page === undefined || report === undefined || report.kind === "refused") return;
    Object.assign(this.store.report.conventions, report.conventions);
    Object.assign(this.store.report, { exports: report.exports, findings: report.findings });
    Object.assign(this.store.data, { charts: answer.page.charts, chart_themes: answer.page.chart_themes });
    this.store.refresh();
    document.documentElement.dataset["complete"] = String(id);
  }

  private show(page: PageData, answer: Answer, convention: string): void {
    const before = this.store?.state;
    const store = new Store(page, before?.theme ?? firstTheme());
    this.editor.place(answer.lines ?? [], answer.format === "caffe");
    this.list(answer.starts ?? []);
    this.pane?.destroy();
    if (convention in store.report.conventions) store.set({ convention });
    if (before !== undefined) {
      const open = new Set([...before.open].filter((id) => store.model.byId.has(id)));
      const selection = before.selection !== null && store.model.byId.has(before.selection) ? before.selection : null;
      store.set({ open, selection, heat: before.heat, flat: before.flat, columns: before.columns, direction: before.direction, query: before.query });
    }
    this.store = store;
    followTheme(store);
    this.starting.end();
    this.pane = panes(this.drawn, store);
    this.bar.follow(store, this.file !== null);
    this.bar.suit(answer.format ?? "");
    document.title = `${store.report.network} · layerscope`;
    this.stale.hidden = true;
    this.wrong = 0;
    const marks = answer.marks ?? [];
    this.editor.mark(marks);
    this.say(marks, answer.format ?? "");
    store.on(["selection"], () => this.light(!this.moving));
    store.on(["selection", "convention"], () => void this.address());
    this.light(!this.moving);
    void this.address();
    document.documentElement.dataset["shown"] = String(this.asked);
  }

  private async write(form: string): Promise<Answer> {
    const answer = await this.client.later({ what: "write", form, ...this.source() }, this.file ?? undefined);
    if (answer.error !== undefined) this.notice(`${form} cannot be written: ${answer.error.text}`);
    return answer;
  }

  private list(starts: number[]): void {
    this.numbers.hidden = starts.length === 0;
    this.numbers.replaceChildren(...starts.map((line, at) => h("option", {}, `${at + 1} of ${starts.length}, line ${line}`)));
    this.numbers.selectedIndex = Math.max(0, this.number - 1);
    if (starts.length === 0) this.number = 0;
  }

  private complain(mark: Mark, phase = ""): void {
    const item = this.layerAt(mark.line);
    this.wrong = mark.line;
    this.editor.mark([mark]);
    this.say([mark], "");
    this.store?.set({ fault: item?.id ?? null });
    const kept = this.store === null ? "" : "Graph and figures are of the last text that could be read. ";
    const where = mark.line > 0 ? `Line ${mark.line}: ` : "";
    const link = item === undefined ? null : h("button", { class: "link", type: "button" }, item.full);
    link?.addEventListener("click", () => {
      this.store?.reveal(item?.id ?? "");
      this.editor.show(mark.line);
    });
    const other = phase === "" ? null : h("button", { class: "link", type: "button" }, `Read phase ${phase}`);
    other?.addEventListener("click", () => {
      this.bar.setPhase(phase === "test" ? "" : phase);
      void this.refresh(0);
    });
    this.notice(kept, ...(link === null ? [where, mark.text] : [link, ` has the error, at line ${mark.line}.`]), ...(other === null ? [] : [". ", other, "."]));
    this.light(false);
    if (this.zoo !== "" || this.editor.text !== "") void this.address();
    document.documentElement.dataset["shown"] = String(this.asked);
  }

  private empty(): void {
    this.editor.mark([]);
    this.say([], "");
    const links = EXAMPLES.map((name) => {
      const link = h("button", { class: "link", type: "button" }, name);
      link.addEventListener("click", () => void this.openZoo(name));
      return link;
    });
    const [first = "", second = "", third = ""] = links;
    this.notice("There is no text. Type or paste a network, drop a file, or begin with ", first, ", ", second, " or ", third, ".");
    document.documentElement.dataset["shown"] = String(this.asked);
  }

  /** A long analysis goes on, and ends when something is typed. */
  private wait(): void {
    this.notice(this.store === null ? "" : "Graph and figures are of the last text. ", "The analysis takes more than 2 s; it goes on while nothing is typed.");
    document.documentElement.dataset["waiting"] = String(this.asked);
  }

  private notice(...children: (Node | string)[]): void {
    this.starting.end();
    this.stale.hidden = false;
    this.stale.replaceChildren(icon(WARNING, 15), h("span", {}, ...children));
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

  private layerAt(line: number): Item | undefined {
    const layer = this.store === null || line < 1 ? -1 : this.editor.layerAt(line);
    return layer < 0 || this.store === null ? undefined : itemOfLayer(this.store.model, layer);
  }

  private caret(line: number): void {
    const item = this.moving ? undefined : this.layerAt(line);
    if (item === undefined || item.id === this.store?.state.selection) return;
    this.moving = true;
    this.store?.reveal(item.id);
    this.moving = false;
  }

  private light(scroll: boolean): void {
    this.editor.light(this.store?.item(this.store.state.selection)?.layers[0], scroll);
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
    const { input = "", batch, dtype = "", phase = "" } = this.bar.options();
    const node = this.store?.item(this.store.state.selection)?.full ?? "";
    const convention = this.store?.state.convention ?? EXACT;
    const text = this.zoo === "" && this.file === null ? this.editor.text : "";
    return { zoo: this.zoo, text, network: this.number > 1 ? String(this.number) : "", input, batch: batch ? String(batch) : "", dtype, phase, convention: convention === EXACT ? "" : convention, node };
  }

  private async address(): Promise<void> {
    if (this.file !== null) return history.replaceState(null, "", location.pathname + location.search);
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
