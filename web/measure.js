/*
 * measure.js - Measure: rate against theory, live, as a filter fills
 */
import { chart, roundEnd } from "./draw.js";
import { Helper } from "./helper.js";

export function measure(page, root) {
  const { t, escape } = page, state = Object.fromEntries(page.state), helper = new Helper(page);
  root.innerHTML = `
    <p class="lead">${t("measureLead")}</p>
    <form class="row" id="form">
      <label>${t("kind")}<select id="kind">${page.kindOptions(state.kind || "blocked", (k) => k.can.includes("has"))}</select></label>
      <label>${t("items")}<input id="items" value="${escape(page.shown(state.items || "20000"))}" size="8"></label>
      <label>${t("rate")}<input id="fpr" value="${escape(page.shown(state.fpr || "0.01"))}" size="8"></label>
      <button class="first" id="start">${t("start")}</button> <button type="button" id="stop" disabled>${t("stop")}</button>
    </form>
    <div class="two"><div class="card"><h2>${t("rate")}</h2><div id="rates"></div><p class="note" id="legend"><b style="color:var(--warm)">●</b> ${t("measured")} · <b style="color:var(--main)">—</b> ${t("predicted")} · <b>┄</b> ${t("promised")}</p></div>
    <div class="card"><h2>${t("filled")}</h2><div id="fill"></div><p class="note"><b style="color:var(--main)">—</b> ${t("filled")} · <b style="color:var(--good)">┄</b> ${t("remembered")} · <span id="layers"></span></p></div></div>`;
  const $ = (id) => root.querySelector(`#${id}`);
  const draw = (points, items, fpr) => {
    const x = { from: 0, to: 2, label: t("share"), show: (v) => `${page.number(100 * v)} %` };
    const at = (name) => points.map((p) => [p.n / items, p[name]]);
    const top = Math.min(1, roundEnd(1.1 * Math.max(2.5 * fpr, ...points.map((p) => Math.max(p.rate, Number.isFinite(p.now) ? p.now : 0)))));
    $("rates").innerHTML = chart({ label: t("measuring"), x, y: { from: 0, to: top, label: t("rate"), show: (v) => `${page.number(100 * v)} %` }, series: [{ points: [[0, fpr], [2, fpr]], colour: "currentColor", dash: true }, { points: at("now"), colour: "var(--main)" }, { points: at("rate"), colour: "var(--warm)", dots: true }] });
    $("fill").innerHTML = chart({ label: t("filled"), x, y: { from: 0, to: 1, label: "", show: (v) => `${page.number(100 * v)} %` }, series: [{ points: at("fill"), colour: "var(--main)" }, { points: at("known"), colour: "var(--good)", dash: true }] });
    const last = points.at(-1);
    $("layers").textContent = last ? `${t("layersNow")}: ${last.layers || 1} · ${t("memory")}: ${page.bytes(last.bytes)}` : "";
  };
  async function run() {
    const kind = $("kind").value, points = [], typed = { items: page.typedCount($("items").value), fpr: page.typedRate($("fpr").value) };
    const wanted = page.attempt(() => page.lib.plan({ kind, ...typed }));
    if (!wanted) return;
    const { items } = wanted, fpr = Number(typed.fpr) || wanted.fpr;
    page.keep({ kind, ...typed });
    if (items > 5e6) return page.say(t("tooMany", page.count(items), page.count(5e6)), true);
    helper.end(t("stopped"));
    $("stop").disabled = false;
    page.say(t("running"));
    try {
      const { n, asked } = await helper.ask("measure", { kind, items, fpr }, (part) => {
        points.push(part);
        draw(points, items, fpr);
      });
      const full = points.find((p) => p.full);
      page.say(full ? t("fullAt", page.count(full.n), page.reason(full.full)) : t("done", page.count(n), page.count(asked)));
    } catch (error) {
      page.say(page.reason(error), true);
    }
    $("stop") && ($("stop").disabled = true);
  }
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  $("stop").addEventListener("click", () => helper.end(t("stopped")));
  draw([], 1, Number(page.typedRate($("fpr").value)) || 0.01);
  run();
  return () => helper.end("");
}
