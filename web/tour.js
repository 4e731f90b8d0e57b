/*
 * tour.js - the guided tour: fourteen scenes, five minutes, made to be projected
 *
 * Every scene is a story on a real filter (story.js), and the numbers in its text are that
 * filter's. Arrow keys turn the page, and so do the keys of a presenter's remote control.
 */
import { cellsIn } from "./draw.js";
import { filterStory, writeSteps } from "./story.js";

const SMALL = { kind: "classic", items: "7", fpr: "0.1" };
const COUNTING = { kind: "counting", items: "7", fpr: "0.1" };
const GROWING = { kind: "scalable", items: "7", fpr: "0.1", options: { layer: "classic" } };
const PACE = 700;

/* A scene: its filter, its steps, how many of them are already done when it begins, and a key whose cells are lit. */
function scenes({ days, absent, wrong, more }) {
  const add = (keys) => keys.map((key) => ["+", key]), week = add(days), crowd = add([...days, ...more]);
  return [
    { spec: SMALL, steps: [] },
    { spec: SMALL, steps: week.slice(0, 1) },
    { spec: SMALL, steps: week, done: 1 },
    { spec: SMALL, steps: [...week, ["?", days[2]]] },
    { spec: SMALL, steps: [...week, ["?", absent]] },
    { spec: SMALL, steps: week, light: wrong },
    { spec: SMALL, steps: [...week, ["?", wrong]] },
    { spec: SMALL, steps: week, light: null },
    { spec: SMALL, steps: week, light: days[0] },
    { spec: COUNTING, steps: week, done: 0 },
    { spec: COUNTING, steps: [...week, ["-", days[0]], ["?", days[0]]], done: 7 },
    { spec: SMALL, steps: crowd, done: 7, light: null },
    { spec: GROWING, steps: crowd, done: 7, light: null },
    { spec: SMALL, steps: week, light: null },
  ];
}

/* The numbers that texts name: of the filter, and of cells that two keys share. */
function numbersOf(page, spec, { days }, all) {
  const { parts, info, footprint, keys } = all, values = parts[0].values;
  const cells = (key) => footprint(key).map(([, j]) => j);
  const pair = days.flatMap((a, i) => days.slice(i + 1).map((b) => [a, b, cells(a).find((c) => cells(b).includes(c))])).find(([a, , c]) => a === days[0] && c !== undefined) ?? [days[0], days[1], 0];
  return {
    m: page.count(values.length), set: page.count(values.filter(Boolean).length), k: info.params.k, n: keys.size, rate: page.rate(info.fpr_now), planned: page.rate(Number(spec.fpr)),
    layers: parts.length, a: pair[0], b: pair[1], cell: pair[2], per: page.number(page.lib.plan({ kind: "classic", items: 1000000, fpr: 0.01 }).bits_per_key, 2),
  };
}

export function tour(page, root) {
  const { t, escape } = page, { words } = page, all = scenes(words.tourWords);
  let at = Math.max(0, Math.min(all.length, Math.round(Number(page.state.get("at")) || 1)) - 1), timer = null;

  root.innerHTML = `
    <section class="tour" aria-labelledby="scene">
      <div class="head"><p class="note" id="place"></p><button type="button" id="full">${t("fullScreen")}</button></div>
      <h2 id="scene" tabindex="-1"></h2>
      <p id="say"></p>
      <div class="card" id="cells"></div>
      <p id="answer" class="answer" role="status"></p>
      <div class="row turn"><button type="button" id="back">◀ ${t("back")}</button><button type="button" class="first" id="next">${t("next")} ▶</button><button type="button" id="try">${t("tryIt")}</button></div>
      <progress id="far" max="${all.length}" aria-label="${t("tour")}"></progress>
    </section>`;
  const $ = (id) => root.querySelector(`#${id}`);

  function draw(done) {
    const { spec, steps, light } = all[at];
    const now = filterStory(page, spec, steps.slice(0, done));
    const lit = light === null ? [] : light ? cellsOfAbsent(spec, light) : now.lit;
    $("cells").innerHTML = cellsIn(page, now.parts, lit, innerWidth < 640 ? 64 : 160);
    $("answer").innerHTML = light === undefined ? (now.steps.at(-1)?.html ?? "") : "";
  }
  // The cells of a key, whether it was added or not.
  const cellsOfAbsent = (spec, key) => filterStory(page, spec, [["+", key]]).footprint(key);

  const show = () => page.attempt(() => {
    const { spec, steps, done = steps.length } = all[at], [title, text] = words.scenes[at];
    const told = filterStory(page, spec, steps), numbers = numbersOf(page, spec, words.tourWords, told);
    clearInterval(timer);
    timer = null;
    $("place").textContent = t("placeOf", at + 1, all.length);
    $("scene").textContent = title;
    $("say").innerHTML = escape(text).replace(/\{(\w+)\}/g, (_, name) => `<b>${escape(numbers[name] ?? words.tourWords[name] ?? "")}</b>`);
    $("far").value = at + 1;
    $("back").disabled = at === 0;
    $("next").innerHTML = at + 1 < all.length ? `${t("next")} ▶` : t("again");
    page.keep({ at: at ? at + 1 : "" });
    let so_far = matchMedia("(prefers-reduced-motion: reduce)").matches ? steps.length : done;
    draw(so_far);
    if (so_far < steps.length)
      timer = setInterval(() => {
        draw(++so_far);
        if (so_far >= steps.length) clearInterval(timer);
      }, steps.length - done > 10 ? PACE / 2 : PACE);
    return true;
  });
  const turn = (to) => {
    at = to >= all.length ? 0 : Math.max(0, to);
    show();
    $("scene").focus({ preventScroll: true });
  };
  const keys = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest?.("[role=tablist], input, select, textarea")) return;
    const to = { ArrowRight: at + 1, PageDown: at + 1, ArrowLeft: at - 1, PageUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || to >= all.length) return;
    event.preventDefault();
    turn(to);
  };
  $("back").addEventListener("click", () => turn(at - 1));
  $("next").addEventListener("click", () => turn(at + 1));
  $("full").addEventListener("click", () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen?.()));
  $("full").hidden = !document.fullscreenEnabled;
  $("try").addEventListener("click", () => {
    const { spec, steps } = all[at];
    page.go("see", { kind: spec.kind, layer: spec.options?.layer, items: spec.items, fpr: spec.fpr, ops: writeSteps(steps) });
  });
  document.addEventListener("keydown", keys);
  show();
  return () => {
    clearInterval(timer);
    document.removeEventListener("keydown", keys);
    if (document.fullscreenElement) document.exitFullscreen();
  };
}
