/*
 * worker.js - the long jobs, beside the page: measuring, files
 *
 * The page sends { id, job, ...}, and gets { id, part } for what is known so far, and then
 * { id, done } or { id, failed }. It may end this worker at any moment.
 */
import { instantiate } from "./bloomery.js";

let lib, last = Promise.resolve(), opened = null, foreign = null;

/* Keys that were added are even, the others odd. */
const some = (from, n, odd) => BigInt64Array.from({ length: n }, (_, i) => BigInt.asIntN(64, BigInt(2 * (from + i) + odd) * 0x9e3779b97f4a7c15n));

const jobs = {
  /* The lock stays ours until this worker is gone, however it ends: that is how the page knows. */
  async start({ module, lock }) {
    await new Promise((held) => (navigator.locks ? navigator.locks.request(lock, () => (held(), new Promise(() => {}))) : held()));
    lib = instantiate(module);
  },

  /* Fill a filter to twice its capacity; after each step, ask for keys that are not in it. */
  measure({ kind, items, fpr, steps = 40, trials = 20000 }, part) {
    const { can } = lib.kinds().find((k) => k.kind === kind);
    // A kind of values gets small ones.
    const built = (keys) => (can.includes("get") ? new Map(Array.from(keys, (key, i) => [key, i % 256])) : keys);
    const adds = can.includes("add"), first = some(0, Math.min(items, 1000), 0), step = Math.max(1, Math.round((2 * items) / steps));
    const f = adds ? new lib.Filter({ kind, items, fpr }) : null;
    let asked = 0, n = 0;
    try {
      for (let i = 1; i <= steps; i++) {
        let full = null, g = f;
        try {
          if (adds) f.update(some(n, step, 0));
          else g = lib.Filter.build(built(some(0, n + step, 0)), { kind, fpr });
        } catch (error) {
          full = { message: error.message, status: error.status };
        }
        if (full && !adds) throw Object.assign(new Error(full.message), full);
        n += step;
        // Wide apart, so that a kind of ranges is asked for points.
        const hits = g.hasMany(some(0, trials, 1)).count(), info = g.info();
        asked += trials;
        part({ n, rate: hits / trials, now: info.fpr_now, fill: info.fill, layers: info.layers, known: g.hasMany(first.subarray(0, Math.min(first.length, n))).count() / Math.min(first.length, n), bytes: info.bytes, full });
        if (!adds) g.close();
        if (full) break;
      }
    } finally {
      f?.close();
    }
    return { n, asked };
  },

  async open({ file }) {
    opened?.close();
    opened = null;
    const bytes = new Uint8Array(await file.arrayBuffer());
    try {
      opened = lib.Filter.fromBytes(bytes);
      closeForeign();
      return { info: opened.info(), picture: picture(opened.cells()) };
    } catch (error) {
      if (error.status !== "EFORMAT") throw error;
      return openForeign(bytes, error);
    }
  },

  ask({ key }) {
    if (opened) return { maybe: opened.has(key) };
    if (!foreign) return null;
    const { c, withText } = lib.raw;
    const maybe = withText(key, (at) => c.foreign_has(foreign.f, at, new TextEncoder().encode(key).length));
    if (maybe < 0) throw Object.assign(new Error(lib.raw.line(c.message())), { status: "ENOTSUP" });
    return { maybe: maybe === 1 };
  },

  /* A filter of the lines of a text. */
  async build({ file, kind, fpr }) {
    const lines = (await file.text()).split("\n");
    if (lines.at(-1) === "") lines.pop();
    opened?.close();
    closeForeign();
    const { can } = lib.kinds().find((k) => k.kind === kind);
    opened = lib.Filter.build(can.includes("get") && can.includes("build") ? new Map(lines.map((line, i) => [line, i])) : lines, { kind, fpr, keys: "text" });
    return { info: opened.info(), picture: picture(opened.cells()), bytes: opened.toBytes() };
  },
};

function closeForeign() {
  if (!foreign) return;
  lib.raw.c.foreign_drop(foreign.f);
  lib.raw.c.give(foreign.at);
  foreign = null;
}

function openForeign(bytes, error) {
  const { c, check, told, take, u8, line } = lib.raw;
  closeForeign();
  const at = take(bytes.length);
  u8().set(bytes, at);
  const f = c.foreign_open(at, bytes.length) >>> 0;
  if (!f) {
    const why = line(c.message());
    c.give(at);
    throw Object.assign(new Error(`${error.message}; ${why}`), { status: error.status });
  }
  foreign = { f, at };
  check(c.foreign_info(f));
  return { info: told(), foreign: true, picture: picture([bytes]) };
}

/* Shares of ones in 256 by 64 places at most. */
function picture(parts) {
  const total = parts.reduce((n, part) => n + part.length, 0), n = Math.min(256 * 64, Math.max(1, total));
  const shares = new Float32Array(n), whole = new Uint32Array(n);
  let at = 0;
  for (const part of parts)
    for (let byte of part) {
      const i = Math.floor((at++ * n) / total);
      whole[i] += 8;
      for (; byte; byte &= byte - 1) shares[i]++;
    }
  return shares.map((x, i) => (whole[i] ? x / whole[i] : 0));
}

onmessage = async ({ data: { id, job, ...rest } }) => {
  const run = () => jobs[job](rest, (part) => postMessage({ id, part }));
  try {
    // One after another, whatever became of the one before.
    last = last.then(run, run);
    postMessage({ id, done: (await last) ?? {} });
  } catch (error) {
    postMessage({ id, failed: error.message || "out of memory", status: error.status });
  }
};
