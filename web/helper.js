/*
 * helper.js - the page's side of worker.js
 */

/** A worker that is started when it is first needed, and again after it ended. */
export class Helper {
  constructor(page) {
    this.page = page;
    this.next = 0;
    this.waiting = new Map();
  }
  #start() {
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.onmessage = ({ data }) => {
      const call = this.waiting.get(data.id);
      if (!call) return;
      if ("part" in data) return call.part?.(data.part);
      this.waiting.delete(data.id);
      if ("failed" in data) call.refuse(Object.assign(new Error(data.failed), { status: data.status }));
      else call.settle(data.done);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.end(this.page.t("workerLost", event.message || "?"));
    };
    this.#watch(this.worker, `bloomery-${crypto.randomUUID()}`);
  }
  /* A worker that is gone sends nothing. But it holds a lock from its start on, and whoever gets it next knows. */
  async #watch(worker, lock) {
    try {
      await this.ask("start", { module: this.page.module, lock });
      await navigator.locks?.request(lock, () => this.worker === worker && this.end(this.page.t("workerLost", "?")));
    } catch {
      /* ended before it had begun: who asked it is told */
    }
  }
  /** Do a job; `part` gets what is known on the way. */
  ask(job, rest, part) {
    if (!this.worker) this.#start();
    return new Promise((settle, refuse) => {
      const id = this.next++;
      this.waiting.set(id, { settle, refuse, part });
      this.worker.postMessage({ id, job, ...rest });
    });
  }
  /** End the worker, whatever it does; who waits is told why. */
  end(why) {
    this.worker?.terminate();
    this.worker = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { refuse } of waiting) refuse(new Error(why));
  }
}
