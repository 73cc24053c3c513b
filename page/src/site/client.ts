// Two workers with Python: one answers while a network is typed, the other computes what may take
// longer and takes over where the first has to be ended, as Python in a browser cannot be interrupted.

import type { Answer, Request } from "./protocol";

export interface Python {
  ask(request: Request, file?: File): Promise<Answer>;
}

export class TookTooLong extends Error {}

class PythonWorker implements Python {
  private readonly worker = new Worker(new URL("./python.worker.ts", import.meta.url), { type: "module" });
  private readonly waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  private count = 0;
  private since = 0;
  readonly ready: Promise<void>;

  constructor() {
    this.ready = new Promise((resolve, reject) => {
      this.worker.addEventListener("message", (event: MessageEvent<{ ready?: true; failed?: string; id?: number; answer?: string }>) => {
        const { ready, failed, id, answer } = event.data;
        if (ready) resolve();
        if (failed !== undefined) reject(new Error(failed));
        if (id === undefined || answer === undefined) return;
        this.waiting.get(id)?.resolve(JSON.parse(answer) as Answer);
        this.waiting.delete(id);
      });
      this.worker.addEventListener("error", (event) => {
        reject(new Error(event.message));
        this.end(new Error(event.message));
      });
    });
    this.ready.catch(() => undefined);
  }

  /** For how long it has been busy, in ms. */
  get busy(): number {
    return this.waiting.size > 0 ? performance.now() - this.since : 0;
  }

  async ask(request: Request, file?: File): Promise<Answer> {
    await this.ready;
    const id = ++this.count;
    if (this.waiting.size === 0) this.since = performance.now();
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage(file === undefined ? { id, request } : { id, request, file });
    });
  }

  end(why: Error): void {
    this.worker.terminate();
    this.waiting.forEach((one) => one.reject(why));
    this.waiting.clear();
  }
}

export class Client {
  private live = new PythonWorker();
  private spare: PythonWorker | null = null;

  get ready(): Promise<void> {
    return this.live.ready;
  }

  /** Starts the second worker. */
  prepare(): void {
    if (this.spare !== null) return;
    this.spare = new PythonWorker();
    void this.spare.ask({ what: "warm" }).catch(() => undefined);
  }

  /** Asks the first worker, and ends it if the answer takes longer than a limit. */
  async ask(request: Request, limit = 0, file?: File): Promise<Answer> {
    const worker = this.live;
    await worker.ready;
    const asked = worker.ask(request, file);
    if (limit === 0) return asked;
    const timer = setTimeout(() => this.replace(worker), limit);
    return asked.finally(() => clearTimeout(timer));
  }

  /** Asks the second worker, for what nobody waits for. */
  async later(request: Request, file?: File): Promise<Answer> {
    this.prepare();
    return (this.spare ?? this.live).ask(request, file);
  }

  /** Ends what the first worker does, if that takes longer than a limit. */
  stop(limit: number): void {
    if (this.live.busy > limit) this.replace(this.live);
  }

  private replace(worker: PythonWorker): void {
    if (worker !== this.live) return;
    this.live = this.spare ?? new PythonWorker();
    this.spare = null;
    worker.end(new TookTooLong("took more than 2 s"));
    this.prepare();
  }
}
