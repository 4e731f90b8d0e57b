/*
 * see.js - See it work: a story that plays, and keys of one's own
 *
 * Without anything in the address, seven words go into a small filter one by one, and then
 * three are asked for. Whoever types a key stops the story and goes on from its end.
 */
import { cellsIn } from "./draw.js";
import { Player } from "./player.js";
import { boardStory, filterStory, MOST_STEPS, readSteps, writeSteps } from "./story.js";

const BOARD = { toy: 1, m: "10", h: "x+3;3x+1;x^2+2" };
const EXAMPLES = [
  ["exSeven", {}],
  ["exUsual", { ...BOARD, ops: "+2,+4,+9,?4,?7,?12" }],
  ["exOther", { ...BOARD, h: "x;2x+3;3x+7", ops: "+2,+4,+9,?5,?12" }],
  ["exCount", { ...BOARD, counting: 1, ops: "+2,+4,-2,?2,?4" }],
  ["exFalse", { kind: "classic", items: 4, fpr: 0.3, ops: "+ant,+bee,+cat,+dog,+eel,+fox,?ant,?gnu,?hen,?ibis,?jay,?koi,?lynx" }],
  ["exCuckoo", { kind: "cuckoo", items: 20, fpr: 0.05, ops: "+ant,+bee,+cat,-bee,?bee,?cat" }],
  ["exScalable", { kind: "scalable", layer: "classic", items: 3, fpr: 0.2, ops: "+ant,+bee,+cat,+dog,+eel,+fox,+gnu,+hen,?ant" }],
  ["exCountMin", { kind: "counting", items: 6, fpr: 0.1, ops: "+the,+cat,+the,+hat,+the,-hat,?hat,?the" }],
];

export function see(page, root) {
  const { t, escape } = page, seven = !page.state.get("ops") && !page.state.get("kind") && page.state.get("toy") !== "1";
  const state = seven ? { kind: "classic", items: "7", fpr: "0.1" } : Object.fromEntries(page.state);
  const toy = state.toy === "1";
  const kind = page.kinds.find((k) => k.kind === state.kind) ?? page.kinds.find((k) => k.kind === "classic") ?? page.kinds[0];
  const ops = seven ? page.words.seven.slice() : readSteps(state.ops ?? "");
  const removes = toy ? state.counting : kind.can.includes("remove");
  let shown = null; // a key whose cells are lit

  root.innerHTML = `
    <p class="lead">${t("seeLead")} <a href="#tour${page.lang === "en" ? "" : `?lang=${page.lang}`}">${t("toTour")}</a></p>
    <div class="card ask">
      <form class="row" id="form">
        <label>${t("key")}<input id="key" autocomplete="off" placeholder="${toy ? t("whole") : t("someKey")}" required></label>
        <button class="first" name="op" value="+">${t("add")}</button>
        <button name="op" value="?">${t("ask")}</button>
        ${removes ? `<button name="op" value="-">${t("remove")}</button>` : ""}
        <button type="button" id="clear">${t("clear")}</button>
      </form>
      <p id="answer" class="answer" role="status"></p>
    </div>
    <div class="card"><div class="head"><h2>${t("cells")}</h2><div id="player"></div></div><div id="cells"></div></div>
    <div class="two"><div class="card"><h2>${t("keysIn")}</h2><ul class="chips" id="keys"></ul><p class="note">${t("keysHint")}</p><p class="note" id="hash"></p></div>
    <div class="card"><h2>${t("steps")}</h2><ol class="steps" id="steps" tabindex="0" aria-label="${t("steps")}"></ol></div></div>
    <div class="card"><h2>${t("another")}</h2>
      <div class="row">
        <label>${t("kind")}<select id="kind"><option value="">${t("blackboard")}</option>${page.kindOptions(toy ? "" : kind.kind, (k) => k.can.includes("has"))}</select></label>
        ${toy
          ? `<label>${t("size")}<input id="m" type="number" min="1" max="1000" value="${escape(state.m || BOARD.m)}"></label>
             <label>${t("functions")}<input id="h" value="${escape(state.h || BOARD.h)}"></label>
             <label class="inline"><input id="counting" type="checkbox"${state.counting ? " checked" : ""}> ${t("counters")}</label>`
          : `<label>${t("items")}<input id="items" value="${escape(page.shown(state.items || "8"))}" size="6" inputmode="decimal"></label><label>${t("rate")}<input id="fpr" value="${escape(page.shown(state.fpr || "0.1"))}" size="6" inputmode="decimal"></label>`}
      </div>
      <p class="note" id="summary" lang="${page.summary(kind) === kind.summary ? "en" : page.lang}">${toy ? "" : escape(page.summary(kind))}</p>
      <div class="row" role="group" aria-label="${t("examples")}"><span class="beside">${t("examples")}:</span> ${EXAMPLES.map(([name], i) => `<button type="button" data-example="${i}">${t(name)}</button>`).join("")}</div>
    </div>`;
  const $ = (id) => root.querySelector(`#${id}`);

  const typed = () => ({ items: page.typedCount($("items").value), fpr: page.typedRate($("fpr").value) });
  const current = () => (toy ? { toy: 1, m: $("m").value, h: $("h").value, counting: $("counting").checked ? 1 : "", ops: writeSteps(ops) } : { kind: kind.kind, layer: state.layer, ...typed(), ops: writeSteps(ops) });
  const keep = () => page.keep(current());
  const tell = () => {
    const steps = ops.slice(0, player.at);
    return toy ? boardStory(page, { m: $("m").value, hashes: $("h").value, counting: $("counting").checked }, steps) : filterStory(page, { kind: kind.kind, ...typed(), options: state.layer ? { layer: state.layer } : undefined }, steps);
  };
  const update = () => page.attempt(() => {
    const { parts, lit, keys, steps, footprint, adds = true, hash } = tell();
    const last = steps.at(-1), hits = shown === null ? lit : footprint(shown);
    $("cells").innerHTML = cellsIn(page, parts, hits);
    $("keys").innerHTML = [...keys].map(([key, n]) => `<li><button type="button" data-key="${escape(key)}" aria-pressed="${key === shown}">${escape(key)}${n > 1 ? ` ×${n}` : ""}</button></li>`).join("") || `<li class="note">${t("noKeys")}</li>`;
    $("steps").innerHTML = steps.map(({ html }) => `<li>${html}</li>`).join("") + (adds ? "" : `<li class="note">${t("buildNote")}</li>`);
    $("steps").scrollTop = 1e6;
    $("answer").innerHTML = last?.html ?? t("answerHere");
    $("hash").textContent = hash ? t("hashOf", hash) : "";
    return true;
  });
  const player = new Player(page, $("player"), ops.length, () => {
    shown = null;
    update();
  });

  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = $("key").value, op = event.submitter?.value ?? "+";
    if (ops.length >= MOST_STEPS) ops.shift();
    ops.push([op, key]);
    shown = null;
    player.end(ops.length);
    // A step that fails is taken back: the page says why.
    if (update()) $("key").value = "";
    else {
      const why = page.said();
      ops.pop();
      player.end(ops.length);
      update();
      page.say(why, true);
    }
    keep();
    $("key").focus();
  });
  $("clear").addEventListener("click", () => {
    ops.length = 0;
    shown = null;
    player.end(0);
    keep();
    update();
    $("key").focus();
  });
  $("kind").addEventListener("change", ({ target }) => page.go("see", target.value ? { kind: target.value, ops: toy ? "" : writeSteps(ops) } : { ...BOARD, ops: EXAMPLES[1][1].ops }));
  for (const id of ["m", "h", "counting", "items", "fpr"]) $(id)?.addEventListener("change", () => {
    player.end(ops.length);
    if (id === "counting") return page.go("see", current());
    keep();
    update();
  });
  $("keys").addEventListener("click", (event) => {
    const key = event.target.closest("button")?.dataset.key;
    if (key === undefined) return;
    player.pause();
    shown = shown === key ? null : key;
    update();
    root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  });
  root.addEventListener("click", examples);
  function examples(event) {
    const i = event.target.dataset?.example;
    if (i !== undefined) page.go("see", EXAMPLES[i][1], true);
  }
  // A link shows what it says at once; an example plays.
  if (seven || page.plays) player.play();
  else player.end(ops.length);
  update();
  return () => {
    player.pause();
    root.removeEventListener("click", examples);
  };
}
