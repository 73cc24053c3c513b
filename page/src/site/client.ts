// Two workers with Python: one answers while a network is typed, the other computes what may take
// longer and takes over where the first has to be ended, as Python in a browser cannot be interrupted.

import type { Answer, Request } from "./protocol";

/** Timers may run early. */
const MARGIN = 20;

export class TookTooLong extends Error {}

/** A request that had not begun when its worker was ended. */
class NotBegun extends Error {}

interface Waiting {
  what: Request["what"];
  /** Of the answer, in ms; 0 for none. */
  limit: number;
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

class PythonWorker {
  private readonly worker = new Worker(new URL("./python.worker.ts", import.meta.url), { type: "module" });
  /** In the order in which they are answered: the first is being answered. */
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private since = 0;
  private timer = 0;
  readonly ready: Promise<void>;

  constructor(private readonly late: (worker: PythonWorker) => void) {
    this.ready = new Promise((resolve, reject) => {
      this.worker.addEventListener("message", (event: MessageEvent<{ ready?: true; restored?: boolean; kept?: boolean; failed?: string; id?: number; answer?: string }>) => {
        const { ready, restored, kept, failed, id, answer } = event.data;
        if (ready) {
          document.documentElement.dataset["python"] ??= restored ? "restored" : "started";
          resolve();
        }
        if (kept) document.documentElement.dataset["kept"] = "yes";
        if (failed !== undefined) reject(new Error(failed));
        if (id === undefined || answer === undefined) return;
        const found = this.waiting.get(id);
        this.waiting.delete(id);
        this.begin();
        found?.resolve(JSON.parse(answer) as Answer);
      });
      this.worker.addEventListener("error", (event) => {
        reject(new Error(event.message));
        this.end(new Error(event.message));
      });
    });
    this.ready.catch(() => undefined);
  }

  /** For how long it has been answering a request, in ms. */
  get busy(): number {
    return this.waiting.size > 0 ? performance.now() - this.since : 0;
  }

  /** What it is answering. */
  get what(): Request["what"] | null {
    return this.waiting.values().next().value?.what ?? null;
  }

  /** `keep`: its memory for the next visit, if none is kept. */
  async ask(request: Request, limit: number, file?: File, keep?: true): Promise<Answer> {
    await this.ready;
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { what: request.what, limit, resolve, reject });
      if (this.waiting.size === 1) this.begin();
      this.worker.postMessage({ id, request, ...(file && { file }), ...(keep && { keep }) });
    });
  }

  // The time of a request runs from when the worker begins with it.
  private begin(): void {
    this.since = performance.now();
    clearTimeout(this.timer);
    const limit = this.waiting.values().next().value?.limit ?? 0;
    if (limit > 0) this.timer = window.setTimeout(() => this.late(this), limit);
  }

  /** Ends the worker; `why` is for the request that it was answering. */
  end(why: Error): void {
    this.worker.terminate();
    clearTimeout(this.timer);
    const [first, ...rest] = this.waiting.values();
    this.waiting.clear();
    first?.reject(why);
    rest.forEach((one) => one.reject(new NotBegun()));
  }
}

export class Client {
  private live = this.started();
  private spare: PythonWorker | null = null;

  get ready(): Promise<void> {
    return this.live.ready;
  }

  /** Starts the second worker. */
  prepare(): void {
    if (this.spare !== null) return;
    this.spare = this.started();
    void this.spare.ask({ what: "warm" }, 0, undefined, true).catch(() => undefined);
  }

  /** Asks the first worker, and ends it if the answer takes longer than a limit in ms. */
  async ask(request: Request, limit = 0, file?: File): Promise<Answer> {
    return this.live.ask(request, limit, file).catch((error: unknown) => {
      if (error instanceof NotBegun) return this.ask(request, limit, file);
      throw error;
    });
  }

  /** Asks the second worker, for what nobody waits for. */
  async later(request: Request, file?: File): Promise<Answer> {
    this.prepare();
    return (this.spare ?? this.live).ask(request, 0, file).catch((error: unknown) => {
      if (error instanceof NotBegun) return this.later(request, file);
      throw error;
    });
  }

  /** Ends analyses of texts that have changed since, once they have taken a limit in ms. */
  stop(limit: number): void {
    for (const worker of [this.spare, this.live]) {
      if (worker === null || worker.what === null) continue;
      setTimeout(() => {
        if (worker.what === "analyze" && worker.busy >= limit) this.replace(worker);
      }, Math.max(0, limit - worker.busy) + MARGIN);
    }
  }

  private started(): PythonWorker {
    return new PythonWorker((worker) => this.replace(worker));
  }

  // Where both are ended at once, the spare one first, so that it takes over fresh.
  private replace(worker: PythonWorker): void {
    if (worker === this.spare) this.spare = null;
    else if (worker === this.live) {
      this.live = this.spare ?? this.started();
      this.spare = null;
    } else return;
    worker.end(new TookTooLong("took more than 2 s"));
    this.prepare();
  }
}
