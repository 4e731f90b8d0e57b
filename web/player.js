/*
 * player.js - buttons that walk through steps: to the beginning, back, play, on, to the end
 *
 * Whoever wants no motion gets the last step at once, and the same buttons.
 */
const PACE = 900; // ms per step
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Player {
  /** `show` is called whenever `at`, the number of steps done, has changed. */
  constructor(page, root, n, show) {
    Object.assign(this, { page, root, n, show, at: 0, timer: null });
    const button = (id, sign, text) => `<button type="button" id="play-${id}" title="${page.t(text)}" aria-label="${page.t(text)}"><span aria-hidden="true">${sign}</span></button>`;
    root.className = "player";
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", page.t("player"));
    root.innerHTML = `${button("first", "«", "toFirst")}${button("back", "‹", "back")}<button type="button" id="play"></button>${button("next", "›", "next")}${button("last", "»", "toLast")} <span id="where" class="note"></span>`;
    root.addEventListener("click", ({ target }) => {
      const id = target.closest("button")?.id;
      if (id === "play") this.timer ? this.pause() : this.play();
      else if (id) this.move({ "play-first": 0, "play-back": this.at - 1, "play-next": this.at + 1, "play-last": this.n }[id]);
    });
    this.draw();
  }
  draw() {
    const $ = (id) => this.root.querySelector(`#${id}`);
    $("play").innerHTML = `<span aria-hidden="true">${this.timer ? "‖" : "▶"}</span> ${this.page.t(this.timer ? "pause" : "play")}`;
    $("play").disabled = !this.n;
    for (const id of ["play-first", "play-back"]) $(id).disabled = !this.at;
    for (const id of ["play-next", "play-last"]) $(id).disabled = this.at >= this.n;
    $("where").textContent = this.page.t("stepOf", this.at, this.n);
  }
  set(at) {
    this.at = Math.max(0, Math.min(this.n, at));
    this.draw();
  }
  move(at) {
    this.pause();
    this.set(at);
    this.show();
  }
  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.draw();
  }
  /** There are n steps now, and all are done; the caller shows them. */
  end(n) {
    this.n = n;
    this.pause();
    this.set(n);
  }
  play() {
    if (!this.n) return;
    if (calm()) return this.move(this.n);
    this.set(this.at < this.n ? this.at : 0);
    this.show();
    this.timer = setInterval(() => {
      this.set(this.at + 1);
      if (this.at >= this.n) this.pause();
      this.show();
    }, PACE);
    this.draw();
  }
}
