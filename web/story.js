/*
 * story.js - what a filter does step by step, told in words and cells
 *
 * A story is a list of steps, [op, key] with op "+", "?" or "-", done from an empty filter on.
 * Told are { parts, lit, keys, steps, info }: the cells after the last step, those that belong
 * to its key, how often each key was added, and for every step whether the answer was right,
 * with a sentence. The cells of a key are those that change when it alone is added to an empty
 * filter of the same shape: the library does it, and nothing here knows how a kind chooses them.
 */
import { cellsOf } from "./draw.js";

const OPS = { "+": 0, "-": 1, "?": 2 };
const TWO_64 = 1n << 64n;
export const MOST_STEPS = 300, MOST_KEYS = 10000; // of a filter to look at

/** Steps as a link has them: +ant,?bee; a comma or % in a key is written as %2C or %25. */
export function readSteps(text) {
  const steps = [];
  for (const step of text.split(",")) {
    const op = step[0] === " " ? "+" : step[0]; // a blank was a plus before the address was decoded
    let key = step.slice(1);
    try {
      key = decodeURIComponent(key);
    } catch {
      /* typed by hand, with a % that means itself */
    }
    if (key && op in OPS) steps.push([op, key]);
  }
  return steps.slice(0, MOST_STEPS);
}
export const writeSteps = (steps) => steps.map(([op, key]) => op + encodeURIComponent(key)).join(",");

/* What is remembered on the way, the same for both: who is in, and what each step said. */
class Teller {
  constructor(page) {
    this.page = page;
    this.keys = new Map();
    this.steps = [];
  }
  has(key) {
    return this.keys.has(key);
  }
  step(op, key, tone, text, more = "") {
    const { escape } = this.page;
    this.steps.push({ op, key, tone, text, more, html: `<span class="${tone}">${escape(text)}</span>${more ? ` ${escape(more)}` : ""}` });
  }
  added(key, text, more) {
    this.keys.set(key, (this.keys.get(key) ?? 0) + 1);
    this.step("+", key, "", text, more);
  }
  removed(key, maybe) {
    const { t } = this.page, n = this.keys.get(key) ?? 0;
    if (maybe) n > 1 ? this.keys.set(key, n - 1) : this.keys.delete(key);
    this.step("-", key, maybe && !n ? "wrong" : "", t(!maybe ? "removedNot" : n ? "removed" : "harm", key));
  }
  /* `whose` says why, where the answer is wrong; `empty` is a cell that shows that the key is not there. */
  asked(key, maybe, empty, whose) {
    const { t } = this.page;
    if (!maybe && this.has(key)) this.step("?", key, "wrong", t("askLost", key));
    else if (!maybe) this.step("?", key, "no", empty === undefined ? t("askNoPlain", key) : t("askNo", key, empty));
    else if (this.has(key)) this.step("?", key, "maybe", t("askYes", key));
    else this.step("?", key, "wrong", t("askWrong", key), whose());
  }
}

/** On an array with hash functions of one's own, as bloomery explain does it, by the same code. */
export function boardStory(page, { m, hashes, counting }, steps) {
  const { c, check, told, withText } = page.lib.raw, { t } = page, teller = new Teller(page), owners = new Map();
  const n = Number(m);
  if (!(Number.isInteger(n) && n >= 1 && n <= 1000)) throw new RangeError(t("badSize"));
  const functions = hashes.split(";").map((h) => h.trim()).filter(Boolean);
  if (!functions.length || functions.length > 16) throw new RangeError(t("badFunctions"));
  withText(`${functions.join("\0")}\0`, (at) => check(c.explain_begin(n, counting ? 1 : 0, at)));
  let last = { cells: Array(n).fill(0), touched: [] };
  for (const [op, key] of steps) {
    if (!/^\d+$/.test(key)) throw new TypeError(t("badWhole", key));
    if (BigInt(key) >= TWO_64) throw new RangeError(t("badLarge", key));
    const before = last.cells;
    check(c.explain_do(OPS[op], BigInt(key)));
    last = told();
    const mark = [...new Set(last.touched)];
    if (op === "+") {
      for (const cell of mark) owners.set(cell, new Set([...(owners.get(cell) ?? []), key]));
      teller.added(key, ...freshly(page, key, mark, mark.filter((cell) => !before[cell]).length));
    } else if (op === "-") teller.removed(key, last.maybe);
    else teller.asked(key, last.maybe, mark.find((cell) => !last.cells[cell]), () => mark.filter((cell) => owners.get(cell)?.size).map((cell) => t("owners", cell, [...owners.get(cell)].join(", "))).join(" "));
  }
  const cellsOfKey = (key) => [...owners].filter(([, who]) => who.has(key)).map(([cell]) => [0, cell]);
  return { parts: [{ width: 1, values: last.cells }], lit: last.touched.map((cell) => [0, cell]), keys: teller.keys, steps: teller.steps, footprint: cellsOfKey };
}

/* "uses cells 3, 5; 1 of them was empty" */
function freshly({ t }, key, cells, fresh) {
  const text = t("added", key, cells.slice(0, 16).join(", ") || "–");
  return [text, fresh > 0 ? t(fresh === 1 ? "addedOne" : "addedNew", fresh) : fresh === 0 ? t("changedNothing") : ""];
}

/** On a filter of the library: spec is what its constructor takes. */
export function filterStory(page, spec, steps) {
  const { Filter } = page.lib, { t } = page, { can } = page.kinds.find((k) => k.kind === spec.kind), adds = can.includes("add"), made = [];
  if (page.lib.plan({ ...spec, options: undefined }).items > MOST_KEYS) throw new RangeError(t("tooMany", page.count(Number(spec.items)), page.count(MOST_KEYS)));
  const make = (keys) => {
    const f = adds ? new Filter(spec) : Filter.build(can.includes("get") ? new Map(keys.map((k, i) => [k, i])) : keys, { ...spec, items: undefined });
    made.push(f);
    if (adds) for (const key of keys) f.add(key);
    return f;
  };
  const flat = (f) => cellsOf(f).flatMap((part, i) => part.values.map((v, j) => [i, j, v]));
  try {
    const empty = adds ? flat(make([])) : [], marks = new Map(), teller = new Teller(page);
    const footprint = (key) => {
      if (!adds) return [];
      if (!marks.has(key)) {
        const f = make([key]);
        marks.set(key, flat(f).filter(([, , v], i) => v !== (empty[i]?.[2] ?? 0)));
        made.pop().close();
      }
      return marks.get(key);
    };
    let f = adds ? make([]) : null, lit = [];
    // Bits and counters are in use or empty; fingerprints share cells.
    const plain = can.includes("raw") || "counters" in (f?.info({ quick: true }).params ?? {});
    for (const [op, key] of steps) {
      const mark = footprint(key), numbers = mark.map(([, j]) => j);
      lit = mark;
      if (op === "+" && adds) {
        const before = plain ? cellsOf(f) : null;
        f.add(key);
        teller.added(key, ...freshly(page, key, numbers, before ? mark.filter(([i, j]) => !before[i]?.values[j]).length : -1));
      } else if (op === "+") {
        teller.added(key, t("builtWith", key, teller.keys.size + (teller.has(key) ? 0 : 1)));
        f = make([...teller.keys.keys()]);
      } else if (op === "-") teller.removed(key, Boolean(f?.remove(key)));
      else {
        const now = f && plain ? cellsOf(f) : [], empty = mark.find(([i, j]) => now[i] && !now[i].values[j]);
        teller.asked(key, f ? f.has(key) : false, empty?.[1], () => {
          if (plain) return mark.map(([i, j]) => t("owners", j, [...teller.keys.keys()].filter((k) => footprint(k).some(([a, b]) => a === i && b === j)).join(", "))).join(" ");
          const same = JSON.stringify(mark), twin = adds && [...teller.keys.keys()].find((k) => JSON.stringify(footprint(k)) === same);
          return twin ? t("samePrint", twin) : t("mixPrint");
        });
      }
    }
    const last = steps.at(-1)?.[1], marked = new Map([...teller.keys.keys()].map((key) => [key, footprint(key)]));
    return {
      parts: f ? cellsOf(f) : [], lit, keys: teller.keys, steps: teller.steps, footprint: (key) => marked.get(key) ?? [], adds, info: f?.info(),
      hash: f && last !== undefined ? `0x${f.hash(last).toString(16).padStart(16, "0")}` : null,
    };
  } finally {
    for (const f of made) f.close();
  }
}
