/*
 * plan.js - Plan: keys, rate, memory; every kind's own prediction (bly_plan)
 *
 * A few kinds have a colour, a dash and their name in the chart; the others are grey. The table
 * says all of them, and its boxes choose.
 */
import { chart } from "./draw.js";

const RATES = Array.from({ length: 13 }, (_, i) => 10 ** (-0.5 - i * 0.5));
const USUAL = ["blocked", "classic", "cuckoo", "fuse", "ribbon"];
// Told apart by brightness and dash too, and by the name at their end.
const LOOKS = [["var(--c1)", ""], ["var(--c2)", "10 3"], ["var(--c3)", "2 3"], ["var(--c4)", "12 3 2 3"], ["var(--c5)", "5 3"], ["var(--c6)", "1 5"], ["var(--c1)", "3 6"], ["var(--c2)", "14 4 2 4 2 4"]];
const MOST = LOOKS.length;

export function plan(page, root) {
  const { t, escape } = page, state = Object.fromEntries(page.state);
  let compared = (state.show ?? state.only ?? "").split(",").filter((k) => page.kinds.some(({ kind }) => kind === k)).slice(0, MOST);
  if (!compared.length) compared = USUAL.slice();
  root.innerHTML = `
    <p class="lead">${t("planLead")}</p>
    <div class="row">
      <label for="n">${t("nkeys")}: <output id="n-out"></output><input type="range" id="n" min="2" max="10" step="0.1" value="${escape(state.n || 6)}"></label>
      <label>${t("by")}<select id="by"><option value="rate">${t("byRate")}</option><option value="memory"${state.by === "memory" ? " selected" : ""}>${t("byMemory")}</option></select></label>
      <label for="p" id="p-row">${t("rate")}: <output id="p-out"></output><input type="range" id="p" min="0.5" max="6" step="0.1" value="${escape(state.p || 2)}"></label>
      <label for="b" id="b-row">${t("bitsPerKey")}: <output id="b-out"></output><input type="range" id="b" min="2" max="40" step="0.5" value="${escape(state.b || 10)}"></label>
    </div>
    <div class="card"><h2>${t("curves")}</h2><div id="chart"></div></div>
    <div class="card"><table class="stack"><thead><tr><th scope="col" class="text">${t("kind")}</th><th scope="col">${t("bitsPerKey")}</th><th scope="col">${t("rate")}</th><th scope="col" id="for-n"></th><th scope="col">${t("perMillion")}</th><th scope="col">${t("perBillion")}</th><th scope="col" class="text">${t("can")}</th></tr></thead><tbody id="rows"></tbody></table></div>`;
  const $ = (id) => root.querySelector(`#${id}`);
  const planned = (options) => {
    try {
      return page.lib.plan(options);
    } catch {
      return null; // out of this kind's range
    }
  };
  const power = (v) => (v > 0.009 ? `${page.number(100 * v)} %` : `10${String(Math.round(Math.log10(v))).replace(/./g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d] ?? "⁻")}`);
  function update() {
    const n = Math.round(10 ** $("n").value), p = 10 ** -$("p").value, b = Number($("b").value), memory = $("by").value === "memory";
    $("n-out").textContent = page.count(n);
    $("p-out").textContent = page.rate(p);
    $("b-out").textContent = page.number(b);
    $("p-row").style.display = memory ? "none" : "";
    $("b-row").style.display = memory ? "" : "none";
    $("for-n").textContent = t("forN", page.number(n));
    const curve = (kind) => RATES.map((rate) => [rate, planned({ kind, items: n, fpr: rate })?.bits_per_key ?? NaN]);
    const grey = page.kinds.filter(({ kind }) => !compared.includes(kind)).map(({ kind }) => ({ points: curve(kind), colour: "var(--soft)", dim: true, name: kind }));
    const named = compared.map((kind, i) => ({ points: curve(kind), colour: LOOKS[i][0], dash: LOOKS[i][1], name: kind, end: kind }));
    const bound = { points: RATES.map((rate) => [rate, -Math.log2(rate)]), colour: "currentColor", dash: true, name: t("bound"), end: t("bound") };
    $("chart").innerHTML = chart({
      label: `${t("curves")}: ${compared.join(", ")}, ${t("bound")}`, series: [...grey, ...named, bound],
      x: { from: 10 ** -0.5, to: 10 ** -6.5, log: true, label: t("strict"), show: power },
      y: { from: 0, to: 60, label: t("bitsPerKey"), show: (v) => page.number(v) },
    });
    const size = (items) => (memory ? { items, bits: Math.round(b * items) } : { items, fpr: p });
    // One unit in the column: that of the first kind.
    const percent = page.inPercent(planned({ kind: page.kinds[0].kind, ...size(n) })?.fpr ?? p);
    const cell = (label, text, more = "") => `<td data-label="${escape(label)}"${more}>${text}</td>`, wide = ' class="wide"';
    $("rows").innerHTML = page.kinds.map(({ kind, can }) => {
      const here = planned({ kind, ...size(n) }), i = compared.indexOf(kind);
      const cost = (items) => {
        const other = planned({ kind, ...size(items) });
        return other ? page.bytes(other.bytes) : "–";
      };
      const line = i < 0 ? "" : `<svg viewBox="0 0 28 8" width="28" height="8" aria-hidden="true"><line x1="0" x2="28" y1="4" y2="4" stroke="${LOOKS[i][0]}" stroke-width="3" stroke-dasharray="${LOOKS[i][1]}"/></svg>`;
      return `<tr><th scope="row" class="text"><label class="inline"><input type="checkbox" data-kind="${kind}"${i < 0 ? (compared.length >= MOST ? " disabled" : "") : " checked"} title="${t("compared")}"> ${kind}</label> ${line}</th>${cell(t("bitsPerKey"), here ? page.number(here.bits_per_key) : "–")}${cell(t("rate"), here ? page.rate(here.fpr, percent) : "–")}${cell(t("forN", page.number(n)), here ? page.bytes(here.bytes) : "–")}${cell(t("perMillion"), cost(1e6), wide)}${cell(t("perBillion"), cost(1e9), wide)}<td class="text" data-label="${t("can")}">${escape(can.map((word) => page.words.abilities[word] ?? word).join(", "))}</td></tr>`;
    }).join("");
    page.keep({ n: $("n").value, p: $("p").value, b: $("b").value, by: memory ? "memory" : "", show: compared.join() === USUAL.join() ? "" : compared.join(",") });
  }
  for (const id of ["n", "p", "b", "by"]) $(id).addEventListener("input", () => page.attempt(update));
  $("rows").addEventListener("change", ({ target }) => {
    const { kind } = target.dataset;
    compared = target.checked ? [...compared, kind] : compared.filter((k) => k !== kind);
    page.attempt(update);
    root.querySelector(`[data-kind="${kind}"]`)?.focus();
  });
  page.attempt(update);
}
