/*
 * see.js - See it work: add, ask, remove, and whose cells were it
 *
 * The cells of a key are those that change when it alone is added to an empty filter of the
 * same shape: the library does it, and nothing here knows how a kind chooses them. Arrays
 * from the blackboard are those of bloomery explain, by the same code.
 */
import { boxes, cellsOf } from "./draw.js";

const EXAMPLES = [
  ["exUsual", "toy=1&m=10&h=x%2B3;3x%2B1;x%5E2%2B2&ops=%2B2,%2B4,%2B9,?4,?7,?12"],
  ["exOther", "toy=1&m=10&h=x;2x%2B3;3x%2B7&ops=%2B2,%2B4,%2B9,?5,?12"],
  ["exCount", "toy=1&m=10&counting=1&h=x%2B3;3x%2B1;x%5E2%2B2&ops=%2B2,%2B4,-2,?2,?4"],
  ["exFalse", "kind=classic&items=4&fpr=0.3&ops=%2Bant,%2Bbee,%2Bcat,%2Bdog,%2Beel,%2Bfox,?ant,?gnu,?hen,?ibis,?jay,?koi,?lynx"],
  ["exCuckoo", "kind=cuckoo&items=20&fpr=0.05&ops=%2Bant,%2Bbee,%2Bcat,-bee,?bee,?cat"],
  ["exScalable", "kind=scalable&items=3&fpr=0.2&ops=%2Bant,%2Bbee,%2Bcat,%2Bdog,%2Beel,%2Bfox,%2Bgnu,%2Bhen,?ant"],
  ["exCountMin", "kind=counting&items=6&fpr=0.1&ops=%2Bthe,%2Bcat,%2Bthe,%2Bhat,%2Bthe,-hat,?hat,?the"],
];
const OPS = { "+": 0, "-": 1, "?": 2 };

export function see(page, root) {
  const { t, escape } = page, state = Object.fromEntries(page.state);
  const toy = state.toy === "1";
  const kind = page.kinds.find((k) => k.kind === state.kind) ?? page.kinds.find((k) => k.kind === "classic") ?? page.kinds[0];
  const spec = { kind: kind.kind, items: state.items || "8", fpr: state.fpr || "0.1" };
  const ops = (state.ops ?? "").split(",").filter((op) => op.length > 1 && op[0] in OPS).map((op) => [op[0], decodeURIComponent(op.slice(1))]);
  let shown = null; // a key whose cells are lit

  root.innerHTML = `
    <p class="lead">${t("seeLead")}</p>
    <div class="row">
      <label>${t("kind")}<select id="kind"><option value="">${t("blackboard")}</option>${page.kindOptions(toy ? "" : kind.kind, (k) => k.can.includes("has"))}</select></label>
      ${toy
        ? `<label>${t("size")}<input id="m" type="number" min="1" max="1000" value="${escape(state.m || 10)}"></label>
           <label>${t("functions")}<input id="h" value="${escape(state.h || "x+3;3x+1;x^2+2")}"></label>
           <label class="inline"><input id="counting" type="checkbox"${state.counting ? " checked" : ""}> ${t("counters")}</label>`
        : `<label>${t("items")}<input id="items" value="${escape(spec.items)}" size="6"></label><label>${t("rate")}<input id="fpr" value="${escape(spec.fpr)}" size="6"></label>`}
    </div>
    <p class="note" id="summary" lang="${page.summary(kind) === kind.summary ? "en" : page.lang}">${toy ? "" : escape(page.summary(kind))}</p>
    <form class="row" id="form">
      <label>${t("key")}<input id="key" autocomplete="off" placeholder="${toy ? t("whole") : "swordfish"}" required></label>
      <button class="first" name="op" value="+">${t("add")}</button>
      <button name="op" value="?">${t("ask")}</button>
      ${toy ? (state.counting ? `<button name="op" value="-">${t("remove")}</button>` : "") : kind.can.includes("remove") ? `<button name="op" value="-">${t("remove")}</button>` : ""}
      <button type="button" id="clear">${t("clear")}</button>
    </form>
    <div class="row" role="group" aria-label="${t("examples")}"><span class="beside">${t("examples")}:</span> ${EXAMPLES.map(([name], i) => `<button type="button" data-example="${i}">${t(name)}</button>`).join("")}</div>
    <div class="card"><h2>${t("cells")}</h2><div id="cells"></div></div>
    <div class="two"><div class="card"><h2>${t("keysIn")}</h2><ul class="chips" id="keys"></ul><p class="note" id="hash"></p></div>
    <div class="card"><h2>${t("steps")}</h2><ol class="steps" id="steps" aria-live="polite"></ol></div></div>`;
  const $ = (id) => root.querySelector(`#${id}`);

  const typed = () => ({ items: page.typedCount($("items").value), fpr: page.typedRate($("fpr").value) });
  const keep = () => {
    const kept = ops.map(([op, key]) => op + encodeURIComponent(key)).join(",");
    page.keep(toy ? { toy: 1, m: $("m").value, h: $("h").value, counting: $("counting").checked ? 1 : "", ops: kept } : { kind: kind.kind, ...typed(), ops: kept });
  };
  const draw = (parts, hits, keys, lines) => {
    $("cells").innerHTML = parts.map((part, i) => {
      const used = part.values.filter(Boolean).length;
      const label = (parts.length > 1 ? t("layerN", i + 1) : "") + (part.width > 1 ? t("cellsN", part.values.length, part.width, used) : t("bitsN", part.values.length, used));
      return `<p class="note">${label}</p>${boxes(part.values, hits[i] ?? new Set(), label)}`;
    }).join("");
    $("keys").innerHTML = [...keys].map(([key, n]) => `<li><button type="button" data-key="${escape(key)}" aria-pressed="${key === shown}">${escape(key)}${n > 1 ? ` ×${n}` : ""}</button></li>`).join("");
    $("steps").innerHTML = lines.map((line) => `<li>${line}</li>`).join("");
    $("steps").scrollTop = 1e6;
  };

  /* Arrays from the blackboard. */
  function toyShow() {
    const { c, check, told, withText } = page.lib.raw;
    withText(`${$("h").value.split(";").map((h) => h.trim()).filter(Boolean).join("\0")}\0`, (at) => check(c.explain_begin(Number($("m").value), $("counting").checked ? 1 : 0, at)));
    const keys = new Map(), owners = new Map(), lines = [];
    let last = { cells: Array(Number($("m").value) || 1).fill(0), touched: [] };
    for (const [op, key] of ops) {
      if (!/^\d+$/.test(key)) throw new TypeError(`'${key}': ${t("whole")}`);
      check(c.explain_do(OPS[op], BigInt(key)));
      last = told();
      const where = last.touched.join(", ");
      if (op === "+") {
        keys.set(key, (keys.get(key) ?? 0) + 1);
        for (const cell of last.touched) owners.set(cell, new Set([...(owners.get(cell) ?? []), key]));
        lines.push(t("added", escape(key), where));
      } else if (op === "-") {
        if (last.maybe && last.there) {
          keys.set(key, keys.get(key) - 1);
          if (!keys.get(key)) keys.delete(key);
        }
        lines.push(!last.maybe ? t("removedNot", escape(key)) : last.there ? t("removed", escape(key)) : `<span class="wrong">${t("harm", escape(key))}</span>`);
      } else lines.push(answer(key, last.maybe, last.there, last.touched, last.cells, owners));
      if (shown === key) last.lit = last.touched;
    }
    const lit = new Set(shown === null ? last.touched : [...owners].filter(([, who]) => who.has(shown)).map(([cell]) => cell));
    draw([{ width: $("counting").checked ? 8 : 1, values: last.cells }], [lit], keys, lines);
  }
  function answer(key, maybe, there, cells, values, owners) {
    if (!maybe) {
      const empty = cells.find((cell) => !values[cell]);
      return `<span class="no">${empty === undefined ? t("askNoPlain", escape(key)) : t("askNo", escape(key), empty)}</span>`;
    }
    if (there) return `<span class="maybe">${t("askYes", escape(key))}</span>`;
    const whose = [...new Set(cells)].filter((cell) => owners.get(cell)?.size).map((cell) => t("owners", cell, [...owners.get(cell)].map(escape).join(", ")));
    return `<span class="wrong">${t("askWrong", escape(key))}</span> ${whose.join(" ")}`;
  }

  /* Filters of the library. */
  function filterShow() {
    const { Filter } = page.lib, adds = kind.can.includes("add"), made = [];
    const make = (keys) => {
      const own = { ...spec, ...typed() };
      const f = adds ? new Filter(own) : Filter.build(kind.can.includes("get") ? new Map(keys.map((k, i) => [k, i])) : keys, { ...own, items: undefined });
      made.push(f);
      if (adds) for (const key of keys) f.add(key);
      return f;
    };
    const flat = (f) => cellsOf(f).flatMap((part, i) => part.values.map((v, j) => [i, j, v]));
    try {
      const empty = adds ? flat(make([])) : [];
      const marks = new Map();
      const footprint = (key) => {
        if (!adds) return [];
        if (!marks.has(key)) marks.set(key, flat(make([key])).filter(([, , v], i) => v !== (empty[i]?.[2] ?? 0)));
        return marks.get(key);
      };
      const keys = new Map(), lines = [];
      let f = adds ? make([]) : null, lit = [], lastKey = null;
      // Bits and counters are in use or empty; fingerprints share cells.
      const plain = kind.can.includes("raw") || "counters" in (f?.info({ quick: true }).params ?? {});
      for (const [op, key] of ops) {
        const mark = footprint(key);
        lit = mark;
        lastKey = key;
        if (op === "+") {
          keys.set(key, (keys.get(key) ?? 0) + 1);
          if (adds) {
            const before = plain ? cellsOf(f) : null;
            f.add(key);
            const fresh = before ? mark.filter(([i, j]) => !before[i]?.values[j]).length : -1;
            lines.push(t("added", `<b>${escape(key)}</b>`, mark.slice(0, 16).map(([, j]) => j).join(", ") || "–") + (fresh > 0 ? `; ${t("addedNew", fresh)}` : fresh === 0 ? `; ${t("changedNothing")}` : ""));
          } else {
            f = make([...keys.keys()]);
            lines.push(`+ <b>${escape(key)}</b>: ${t("built", keys.size)}`);
          }
        } else if (op === "-") {
          const was = keys.has(key);
          if (f?.remove(key)) {
            lines.push(was ? t("removed", escape(key)) : `<span class="wrong">${t("harm", escape(key))}</span>`);
            if (was && keys.get(key) > 1) keys.set(key, keys.get(key) - 1);
            else keys.delete(key);
          } else lines.push(t("removedNot", escape(key)));
        } else {
          const maybe = f ? f.has(key) : false, there = keys.has(key), now = f && plain ? cellsOf(f) : [];
          const empties = mark.find(([i, j]) => now[i] && !now[i].values[j]);
          if (!maybe) lines.push(`<span class="no">${empties ? t("askNo", escape(key), empties[1]) : t("askNoPlain", escape(key))}</span>`);
          else if (there) lines.push(`<span class="maybe">${t("askYes", escape(key))}</span>`);
          else {
            const same = JSON.stringify(mark), twin = adds && [...keys.keys()].find((k) => JSON.stringify(footprint(k)) === same);
            const whose = plain ? mark.map(([i, j]) => t("owners", j, [...keys.keys()].filter((k) => footprint(k).some(([a, b]) => a === i && b === j)).map(escape).join(", "))) : [twin ? t("samePrint", escape(twin)) : t("mixPrint")];
            lines.push(`<span class="wrong">${t("askWrong", escape(key))}</span> ${whose.join(" ")}`);
          }
        }
      }
      const parts = f ? cellsOf(f) : [], hits = [];
      for (const [i, j] of shown === null ? lit : footprint(shown)) (hits[i] ??= new Set()).add(j);
      draw(parts, hits, keys, adds ? lines : [...lines, `<span class="note">${t("buildNote")}</span>`]);
      $("hash").textContent = f && lastKey !== null ? t("hashOf", `0x${f.hash(lastKey).toString(16).padStart(16, "0")}`) : "";
    } finally {
      for (const f of made) f.close();
    }
  }
  const update = () => page.attempt(() => (toy ? toyShow() : filterShow()));

  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = $("key").value, op = event.submitter?.value ?? "+";
    if (ops.length >= 300) ops.shift();
    ops.push([op, key]);
    shown = null;
    // A step that fails is taken back: the page says why.
    if (update() === undefined && root.ownerDocument.getElementById("status").classList.contains("bad")) {
      const why = root.ownerDocument.getElementById("status").textContent;
      ops.pop();
      update();
      page.say(why, true);
    } else $("key").value = "";
    keep();
    $("key").focus();
  });
  $("clear").addEventListener("click", () => {
    ops.length = 0;
    shown = null;
    keep();
    update();
  });
  $("kind").addEventListener("change", (event) => page.go("see", event.target.value ? { kind: event.target.value, ops: toy ? "" : ops.map(([op, key]) => op + encodeURIComponent(key)).join(",") } : "toy=1&m=10&h=x%2B3;3x%2B1;x%5E2%2B2"));
  for (const id of ["m", "h", "counting", "items", "fpr"]) $(id)?.addEventListener("change", () => {
    keep();
    if (id === "counting") page.go("see", page.state.toString());
    update();
  });
  $("keys").addEventListener("click", (event) => {
    const key = event.target.closest("button")?.dataset.key;
    if (key === undefined) return;
    shown = shown === key ? null : key;
    update();
    root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  });
  root.addEventListener("click", examples);
  function examples(event) {
    const i = event.target.dataset?.example;
    if (i !== undefined) page.go("see", EXAMPLES[i][1]);
  }
  update();
  return () => root.removeEventListener("click", examples);
}
