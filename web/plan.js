/*
 * plan.js - Plan: keys, rate, memory; every kind's own prediction (bly_plan)
 */
import { chart, colour } from "./draw.js";

const RATES = Array.from({ length: 13 }, (_, i) => 10 ** (-0.5 - i * 0.5));

export function plan(page, root) {
  const { t, escape } = page, state = Object.fromEntries(page.state);
  root.innerHTML = `
    <p class="lead">${t("planLead")}</p>
    <div class="row">
      <label for="n">${t("nkeys")}: <output id="n-out"></output><input type="range" id="n" min="2" max="10" step="0.1" value="${escape(state.n || 6)}"></label>
      <label>${t("by")}<select id="by"><option value="rate">${t("byRate")}</option><option value="memory"${state.by === "memory" ? " selected" : ""}>${t("byMemory")}</option></select></label>
      <label for="p" id="p-row">${t("rate")}: <output id="p-out"></output><input type="range" id="p" min="0.5" max="6" step="0.1" value="${escape(state.p || 2)}"></label>
      <label for="b" id="b-row">${t("bitsPerKey")}: <output id="b-out"></output><input type="range" id="b" min="2" max="40" step="0.5" value="${escape(state.b || 10)}"></label>
      <label>${t("choose")}<select id="only"><option value="">${t("allKinds")}</option>${page.kindOptions(state.only)}</select></label>
    </div>
    <div class="card"><h2>${t("curves")}</h2><div id="chart"></div></div>
    <div class="card"><table><thead><tr><th scope="col">${t("kind")}</th><th scope="col">${t("bitsPerKey")}</th><th scope="col">${t("rate")}</th><th scope="col" id="for-n"></th><th scope="col">${t("perMillion")}</th><th scope="col">${t("perBillion")}</th><th scope="col" class="text">${t("can")}</th></tr></thead><tbody id="rows"></tbody></table></div>`;
  const $ = (id) => root.querySelector(`#${id}`);
  const planned = (options) => {
    try {
      return page.lib.plan(options);
    } catch {
      return null; // out of this kind's range
    }
  };
  function update() {
    const n = Math.round(10 ** $("n").value), p = 10 ** -$("p").value, b = Number($("b").value), memory = $("by").value === "memory", only = $("only").value;
    $("n-out").textContent = page.count(n);
    $("p-out").textContent = page.rate(p);
    $("b-out").textContent = page.number(b);
    $("p-row").hidden = memory;
    $("b-row").hidden = !memory;
    $("p-row").style.display = memory ? "none" : "";
    $("b-row").style.display = memory ? "" : "none";
    $("for-n").textContent = t("forN", page.number(n));
    const series = [];
    page.kinds.forEach((k, i) => {
      if (only && only !== k.kind) return;
      const points = RATES.map((rate) => [rate, planned({ kind: k.kind, items: n, fpr: rate })?.bits_per_key ?? NaN]);
      series.push({ points, colour: colour(i), name: k.kind });
    });
    series.push({ points: RATES.map((rate) => [rate, -Math.log2(rate)]), colour: "currentColor", dash: true, name: t("bound") });
    $("chart").innerHTML = chart({
      label: t("curves"), series,
      x: { from: 10 ** -6.5, to: 10 ** -0.5, log: true, label: t("rate"), show: (v) => (v > 0.009 ? `${page.number(100 * v)} %` : `10${String(Math.round(Math.log10(v))).replace(/./g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d] ?? "⁻")}`) },
      y: { from: 0, to: 60, label: t("bitsPerKey"), show: (v) => page.number(v) },
    });
    const size = (items) => (memory ? { items, bits: Math.round(b * items) } : { items, fpr: p });
    $("rows").innerHTML = page.kinds.map((k, i) => {
      const here = planned({ kind: k.kind, ...size(n) });
      const cost = (items) => {
        const other = planned({ kind: k.kind, ...size(items) });
        return other ? page.bytes(other.bytes) : "–";
      };
      return `<tr${only && only !== k.kind ? " hidden" : ""}><td><span aria-hidden="true" style="color:${colour(i)}">●</span> ${k.kind}</td><td>${here ? page.number(here.bits_per_key) : "–"}</td><td>${here ? page.rate(here.fpr) : "–"}</td><td>${here ? page.bytes(here.bytes) : "–"}</td><td>${cost(1e6)}</td><td>${cost(1e9)}</td><td class="text">${escape(k.can.join(", "))}</td></tr>`;
    }).join("");
    page.keep({ n: $("n").value, p: $("p").value, b: $("b").value, by: memory ? "memory" : "", only });
  }
  for (const id of ["n", "p", "b", "by", "only"]) $(id).addEventListener("input", () => page.attempt(update));
  page.attempt(update);
}
