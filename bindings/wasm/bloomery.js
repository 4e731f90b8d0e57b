/*
 * bloomery.js - the Bloom-filter family in JavaScript: the same C, as WebAssembly
 *
 *     import { load } from "bloomery";
 *     const { Filter } = await load();
 *     const seen = Filter.build(["swordfish", "sesame"]);
 *     seen.has("swordfish");                  // true: maybe; false would be certain
 *     fs.writeFileSync("seen.bly", seen.toBytes());
 *
 * This file checks types and copies keys; what a filter is and does is the
 * library's. Text, bytes and integers are keys; nothing else is, so that no
 * key is ever hashed as "[object Object]". Code of the caller's (iterators,
 * getters, proxies) may do anything while its keys are read, so a filter is
 * looked up after that, and bytes are copied as they come. None of it runs
 * between copying keys and the call that uses them, nor inside of a call.
 */

const TEXT = 1, BYTES = 2, INT64 = 3, UINT64 = 4; // bly_key_type
const BATCH = 16384; // keys per call: 128 KiB of integers, which stay in the cache
const ROOM = 1 << 18; // bytes of text per call
const TWO_63 = 2n ** 63n;

// What consoles call. The names of classes are given, so that they stay when this text is made shorter.
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** What the library refused: `status` is its name there, such as "EFORMAT". */
export class BloomeryError extends Error {
  static name = "BloomeryError";
  constructor(status, message) {
    super(message);
    this.name = "BloomeryError";
    this.status = status;
  }
}

const STATUS = "OK EINVAL ENOMEM ERANGE EFORMAT EUNFIT ENOTSUP EFULL EABSENT EREFUSED EREADONLY ESECRET EIO EBUSY".split(" ");
// What only the module with all kinds exports.
const LARGE = "remove count get set range tick merge intersect compare equal clone set_coded layer cells plan kinds".split(" ");
const MORE_IN_ALL = 'load({ kinds: "all" })';
const BUILT_IN = { EINVAL: TypeError, ENOMEM: RangeError, ERANGE: RangeError };

// One function with an addition of vectors: does this engine have SIMD?
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
export const hasSimd = () => WebAssembly.validate(new Uint8Array(SIMD));

const ONES = new Uint8Array(256);
for (let i = 1; i < 256; i++) ONES[i] = ONES[i >> 1] + (i & 1);

/** The answers to a batch: bit i % 8 of byte i / 8 for key i. */
export class Answers {
  static name = "Answers";
  constructor(bits, length) {
    this.bits = bits;
    this.length = length;
  }
  at(i) {
    if (i < 0) i += this.length;
    return i >= 0 && i < this.length ? ((this.bits[(i / 8) | 0] >> (i & 7)) & 1) === 1 : undefined;
  }
  count() {
    let n = 0;
    for (const byte of this.bits) n += ONES[byte];
    return n;
  }
  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }
  /** JSON has the answers: [true, false, ...]. */
  toJSON() {
    return [...this];
  }
  [INSPECT]() {
    return `Answers { length: ${this.length}, true: ${this.count()} }`;
  }
}

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/* Bytes of whatever holds them; undefined if it is something else. */
function bytesOf(value) {
  if (ArrayBuffer.isView(value)) {
    value.keys?.(); // throws if its buffer was transferred, or has become too short
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  try {
    return new Uint8Array(new DataView(value).buffer); // of any page's or frame's
  } catch {
    return undefined;
  }
}

const isLongs = (keys) => keys instanceof BigUint64Array || keys instanceof BigInt64Array;

/* A real as C's %g and %f print it, for messages. */
function real(value, precision, fixed) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (fixed) return value.toFixed(precision);
  const last = Math.max(precision, 1) - 1, [digits, power] = value.toExponential(last).split("e");
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power <= last) return short(value.toFixed(last - power));
  return `${short(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/* A key as [type, string, bytes or bigint]. */
function keyOf(key) {
  if (typeof key === "string") return [TEXT, key];
  if (typeof key === "number") {
    if (!Number.isSafeInteger(key)) throw new TypeError(`${key} cannot be a key; expected a whole number up to 2^53 - 1, or a BigInt`);
    key = BigInt(key);
  }
  if (typeof key === "bigint") {
    if (key >= 2n * TWO_63 || key < -TWO_63) throw new RangeError(`${key} has more than 64 bits`);
    return [key < TWO_63 ? INT64 : UINT64, key]; // the hash is the same in both
  }
  const bytes = bytesOf(key);
  if (bytes && !isLongs(key)) return [BYTES, bytes];
  throw new TypeError(`${key === null ? "null" : typeof key} cannot be a key; expected a string, a number, a BigInt or a Uint8Array`);
}

/* The same for later: an iterator may fill its buffer anew for each key. */
function keptKey(key) {
  const one = keyOf(key);
  if (one[0] === BYTES) one[1] = one[1].slice();
  return one;
}

function valueOf(value) {
  const [type, number] = keyOf(value);
  if (type < INT64 || number < 0n) throw new TypeError("value: a whole number from 0 on is wanted");
  return number;
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  const bytes = bytesOf(source);
  if (bytes) return WebAssembly.compile(bytes);
  if (source instanceof URL && source.protocol === "file:") {
    // In Node. A bundler for browsers must not look for this module: its name is no constant.
    const name = ["node:fs", "promises"].join("/");
    const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ name);
    return WebAssembly.compile(await readFile(source));
  }
  const answer = await (source instanceof URL || typeof source === "string" ? fetch(source) : source);
  if (!answer?.ok) throw new TypeError(`wasm: ${answer?.url ?? answer} ${answer?.status ?? "is no module"}`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

// Written out: bundlers (webpack, Vite, Rollup's plugins) find files by such URLs, and copy them.
const beside = (kinds, simd) =>
  kinds === "all"
    ? simd ? new URL("./all.wasm", import.meta.url) : new URL("./all-plain.wasm", import.meta.url)
    : simd ? new URL("./common.wasm", import.meta.url) : new URL("./common-plain.wasm", import.meta.url);

/**
 * Load the library. `kinds: "all"` takes the larger module; `wasm` is where it
 * comes from, if not from beside this file.
 */
export async function load({ kinds = "common", simd = hasSimd(), wasm } = {}) {
  if (kinds !== "common" && kinds !== "all") throw new TypeError(`kinds: '${kinds}'; expected "common" or "all"`);
  const module = await compile(wasm ?? beside(kinds, simd));
  return instantiate(module);
}

/** The same from a compiled module, at once: for workers. */
export function instantiate(module) {
  const transfer = { pull: null, push: null };
  const { exp, expm1, log, log1p, log2, pow } = Math;
  const imports = {
    js: {
      exp, expm1, log, log1p, log2, pow,
      real: (value, precision, fixed, to) => encoder.encodeInto(real(value, precision, fixed), u8().subarray(to >>> 0, (to >>> 0) + 32)).written,
      pull: (at, n) => transfer.pull(at, n),
      push: (at, n) => transfer.push(at, n),
      number: (at) => Number(line(at) || NaN),
    },
  };
  // What belongs to files and processes is never called here; 8 is EBADF.
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] ??= () => 8;
  const c = { ...new WebAssembly.Instance(module, imports).exports };
  // A call that the engine cuts off, since its own stack is full, leaves C's where it was.
  const stack = c.__stack_pointer, top = stack.value;
  for (const [name, call] of Object.entries(c))
    if (typeof call === "function")
      c[name] = (a, b, c, d, e, f, g, h) => {
        try {
          return call(a, b, c, d, e, f, g, h);
        } catch (error) {
          stack.value = top;
          throw error;
        }
      };
  const lean = !c.kinds;
  for (const name of LARGE)
    c[name] ??= () => {
      throw new BloomeryError("ENOTSUP", `${name}: ${MORE_IN_ALL} has it`);
    };
  c._initialize?.();
  const encoder = new TextEncoder(), decoder = new TextDecoder();

  let whole = new Uint8Array(c.memory.buffer), words = new BigUint64Array(c.memory.buffer), fours = new Int32Array(c.memory.buffer);
  // Memory that grows has a new buffer, and the old one is empty.
  const u8 = () => (whole.length ? whole : (whole = new Uint8Array(c.memory.buffer)));
  const i32 = () => (fours.length ? fours : (fours = new Int32Array(c.memory.buffer)));
  const u64 = () => (words.length ? words : (words = new BigUint64Array(c.memory.buffer)));

  const line = (at) => {
    const m = u8();
    return decoder.decode(m.subarray(at >>> 0, m.indexOf(0, at >>> 0)));
  };
  const failure = () => {
    const status = STATUS[c.failure()] ?? "EINVAL", text = line(c.message()) + (lean ? `; ${MORE_IN_ALL} says more` : "");
    const type = BUILT_IN[status], error = type ? new type(text) : new BloomeryError(status, text);
    error.status = status;
    return error;
  };
  const check = (status) => {
    if (status) throw failure();
  };
  const take = (nbytes) => {
    const at = c.take(nbytes) >>> 0;
    if (!at) throw new RangeError(`out of memory: ${nbytes} bytes`);
    return at;
  };
  const putText = (text) => {
    const bytes = encoder.encode(text), at = take(bytes.length + 2);
    u8().set(bytes, at);
    u8().fill(0, at + bytes.length, at + bytes.length + 2);
    return at;
  };
  const withText = (text, use) => {
    const at = putText(text);
    try {
      return use(at);
    } finally {
      c.give(at);
    }
  };

  /* What the module told, as objects (tell.c). */
  function told() {
    const from = c.told() >>> 0, bytes = u8().slice(from, from + c.told_bytes());
    const view = new DataView(bytes.buffer);
    let at = 0;
    const value = () => {
      const type = bytes[at++], end = bytes.indexOf(0, at), name = decoder.decode(bytes.subarray(at, end));
      at = end + 1;
      const skip = (n) => (at += n) - n;
      switch (String.fromCharCode(type)) {
        case "t": {
          const n = view.getUint32(skip(4), true);
          return [name, decoder.decode(bytes.subarray(skip(n), at))];
        }
        case "n":
          return [name, view.getFloat64(skip(8), true)];
        case "u": {
          const n = view.getBigUint64(skip(8), true);
          return [name, n <= Number.MAX_SAFE_INTEGER ? Number(n) : n];
        }
        case "b":
          return [name, bytes[skip(1)] === 1];
        default: {
          const all = [];
          while (bytes[at] !== 125) all.push(value());
          at++;
          return [name, type === 91 ? all.map((pair) => pair[1]) : Object.fromEntries(all)];
        }
      }
    };
    return value()[1];
  }
  /* What a filter, or a layer of one, says of itself; `whole`: by its contents, too. */
  const facts = (at, whole) => (check(c.info(at, whole)), told());

  /* Options as the module reads them (wanted.c). */
  function wanted(options, prefix = "") {
    if (typeof options !== "object" || options === null) throw new TypeError("options: an object is wanted, such as { items: 1000 }");
    let text = "";
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined) continue;
      if (name === "options") {
        text += wanted(value, "options.");
        continue;
      }
      let word = value;
      if (name === "secret") {
        const bytes = bytesOf(value);
        if (bytes?.length !== 16) throw new TypeError("secret: 16 bytes are wanted");
        word = hex(bytes);
      } else if (!["string", "number", "bigint", "boolean"].includes(typeof value)) {
        throw new TypeError(`${name}: a number or text is wanted, not ${value === null ? "null" : typeof value}`);
      }
      if (`${name}${word}`.includes("\0")) throw new TypeError(`${name}: a NUL cannot be part of it`);
      text += `${prefix}${name}=${word}\0`;
    }
    return text;
  }

  // Where keys and answers lie during a call.
  const KEYS = take(ROOM + 8 * BATCH + 64), OUT = take(8 * BATCH + 64), MORE = take(8 * BATCH + 64);

  /* A short text of ASCII, which most keys are, by four characters; -1 if it is none. */
  function putAscii(text) {
    const n = text.length, to = i32();
    if (n > 64) return -1;
    let i = 0, at = KEYS >> 2, all = 0;
    for (; i + 3 < n; i += 4) {
      const a = text.charCodeAt(i), b = text.charCodeAt(i + 1), c = text.charCodeAt(i + 2), d = text.charCodeAt(i + 3);
      all |= a | b | c | d;
      to[at++] = a | (b << 8) | (c << 16) | (d << 24);
    }
    let rest = 0;
    for (let shift = 0; i < n; i++, shift += 8) {
      const code = text.charCodeAt(i);
      all |= code;
      rest |= code << shift;
    }
    to[at] = rest;
    return all > 127 ? -1 : n;
  }
  /* Copy integers, or text and bytes with their offsets, to KEYS. */
  function putInts(keys, from, n) {
    u64().set(keys.subarray(from, from + n), KEYS / 8);
  }
  /* A run of keys of one type from the front of a list; how many there were room for. */
  function putRun(list, start, at = KEYS) {
    const type = list[start][0];
    let n = 0;
    while (start + n < list.length && n < BATCH && list[start + n][0] === type) n++;
    if (type >= INT64) {
      const to = u64();
      for (let i = 0; i < n; i++) to[at / 8 + i] = BigInt.asUintN(64, list[start + i][1]);
      return { type, n, at, free: false };
    }
    let used = 0, fit = 0;
    for (; fit < n; fit++) {
      const key = list[start + fit][1];
      const size = type === TEXT ? 3 * key.length : key.length;
      if (fit && used + size > ROOM) break;
      used += size;
    }
    // One key that is longer than the room gets its own.
    const own_room = used > ROOM;
    const base = own_room ? take(used + 4 * (fit + 1)) : at;
    try {
      putTexts(type, list.slice(start, start + fit).map((key) => key[1]), base);
    } catch (error) {
      if (own_room) c.give(base);
      throw error;
    }
    return { type, n: fit, at: base, free: own_room };
  }
  // Node writes nothing to a view of 2 GiB and more, so it gets no more than the text can take.
  const encode = (text, at) => encoder.encodeInto(text, u8().subarray(at, at + 3 * text.length)).written;
  /* Their offsets, and the bytes behind them. */
  function putTexts(type, keys, at) {
    const n = keys.length, bytes = u8(), data = at + 4 * (n + 1);
    const offsets = new Uint32Array(bytes.buffer, at, n + 1);
    let end = 0;
    for (let i = 0; i < n; i++) offsets[i + 1] = end += keys[i].length;
    offsets[0] = 0;
    if (type === TEXT) {
      // All at once; they are ASCII if that takes as many bytes as they have characters.
      if (encode(keys.join(""), data) === end) return;
      end = 0;
    }
    for (let i = 0; i < n; i++) {
      const key = keys[i];
      if (type === TEXT) {
        if (/\p{Surrogate}/u.test(key)) throw new TypeError("a key has half of a surrogate pair; expected text that UTF-8 can hold, or bytes");
        offsets[i + 1] = end += encode(key, data + end);
      } else bytes.set(key, data + offsets[i]);
    }
  }
  /* Call use(run) for runs of keys; lists are read to their end before the first call. */
  function eachRun(keys, use) {
    if (isLongs(keys)) {
      keys.keys();
      const type = keys instanceof BigUint64Array ? UINT64 : INT64, all = new BigUint64Array(keys.buffer, keys.byteOffset, keys.length);
      for (let from = 0; from < all.length; from += BATCH) {
        const n = Math.min(BATCH, all.length - from);
        putInts(all, from, n);
        use({ type, n, at: KEYS });
      }
      return all.length;
    }
    if (keys === null || typeof keys === "string" || typeof keys?.[Symbol.iterator] !== "function" || (ArrayBuffer.isView(keys) && keys.BYTES_PER_ELEMENT < 2))
      throw new TypeError("keys: an array, another iterable, a BigUint64Array or a BigInt64Array is wanted");
    let total = 0, texts = [];
    // Texts in a row, which need no type each.
    const flushTexts = () => {
      for (let start = 0; start < texts.length; ) {
        let end = start, used = 0;
        while (end < texts.length && (used += 3 * texts[end].length) <= ROOM) end++;
        if (end === start) flush([[TEXT, texts[end++]]]);
        else {
          const n = end - start;
          putTexts(TEXT, n === texts.length ? texts : texts.slice(start, end), KEYS);
          use({ type: TEXT, n, at: KEYS });
          total += n;
        }
        start = end;
      }
      texts = [];
    };
    const flush = (list) => {
      for (let start = 0; start < list.length; ) {
        const run = putRun(list, start);
        try {
          use(run);
        } finally {
          if (run.free) c.give(run.at);
        }
        start += run.n;
      }
      total += list.length;
    };
    let list = [];
    for (const key of keys) {
      if (typeof key === "string" && !list.length) texts.push(key);
      else list.push(keptKey(key));
      if (texts.length + list.length === 4096) {
        flushTexts();
        flush(list);
        list = [];
      }
    }
    flushTexts();
    flush(list);
    return total;
  }
  function withKey(key, use) {
    const run = putRun([keyOf(key)], 0);
    try {
      return use(run);
    } finally {
      if (run.free) c.give(run.at);
    }
  }

  const lost = new FinalizationRegistry((at) => c.drop(at));
  const MAKE = Symbol("make");

  class Filter {
    static name = "Filter";
    #at;
    constructor(options, fpr, more) {
      if (options === MAKE) {
        this.#at = fpr;
      } else {
        const all = typeof options === "object" && options !== null ? options : { items: options, fpr, ...more };
        this.#at = withText(wanted(all), (text) => c.make(text));
      }
      this.#at >>>= 0;
      if (!this.#at) throw failure();
      lost.register(this, this.#at, this);
    }
    get #c() {
      if (!this.#at) throw new BloomeryError("EINVAL", "the filter was closed");
      return this.#at;
    }
    static #of(value) {
      if (!(typeof value === "object" && value !== null && #at in value)) throw new TypeError("a Filter is wanted");
      return value.#c;
    }

    /** A filter of all these keys, sized by how many different ones there are. */
    static build(keys, options = {}) {
      const text = wanted(options);
      const pairs = keys instanceof Map || (keys?.constructor === Object);
      const given = { text: TEXT, bytes: BYTES, int64: INT64, uint64: UINT64 }[options.keys] ?? 0;
      const forms = (options.folded ? 1 : 0) | (options.trimmed ? 2 : 0) | (options.noCR ? 4 : 0);
      let type = given, b = 0, at = 0;
      // The hash depends on whether keys are integers, and the first key says so unless the options do.
      const begin = () => {
        const word = given || forms ? "" : type === INT64 ? "keys=int64\0" : type === UINT64 ? "keys=uint64\0" : "";
        at = putText(text + word); // it stays where it is as long as the builder may read it
        b = c.builder(at) >>> 0;
        if (!b) throw failure();
      };
      const add = (run, values) => {
        type ||= run.type;
        if (!b) begin();
        check(c.builder_add(b, type, forms, run.type, run.at, run.n, OUT, values));
      };
      try {
        if (pairs) {
          const list = [];
          for (const [key, value] of keys instanceof Map ? keys : Object.entries(keys)) {
            list.push([...keptKey(key), valueOf(value)]);
          }
          for (let start = 0; start < list.length; ) {
            const run = putRun(list, start);
            try {
              for (let i = 0; i < run.n; i++) u64()[MORE / 8 + i] = list[start + i][2];
              add(run, MORE);
            } finally {
              if (run.free) c.give(run.at);
            }
            start += run.n;
          }
        } else eachRun(keys, (run) => add(run, 0));
        if (!b) begin();
        const f = c.builder_finish(b, type, type === TEXT ? forms : 0);
        if (c.failure()) {
          c.drop(f);
          throw failure();
        }
        return new Filter(MAKE, f);
      } finally {
        c.builder_drop(b);
        if (at) c.give(at);
      }
    }
    /** A filter from the bytes of a .bly file. A coded file takes up to a thousand times its bytes: maxBytes refuses what takes more. */
    static fromBytes(bytes, { secret, maxBytes } = {}) {
      if (maxBytes !== undefined && !(Number(maxBytes) >= 1 && Number(maxBytes) < 2 ** 63)) throw new TypeError("maxBytes: a number from 1 on is wanted");
      const all = bytesOf(bytes), key = secret === undefined ? undefined : bytesOf(secret);
      if (!all) throw new TypeError("bytes: a Uint8Array or an ArrayBuffer is wanted");
      if (secret !== undefined && key?.length !== 16) throw new TypeError("secret: 16 bytes are wanted");
      const room = key ? take(16) : 0;
      if (key) u8().set(key, room);
      let from = 0;
      transfer.pull = (at, n) => {
        const part = all.subarray(from, from + (n >>> 0));
        u8().set(part, at >>> 0);
        from += part.length;
        return part.length;
      };
      try {
        return new Filter(MAKE, c.open(room, Math.floor(Number(maxBytes ?? 0))));
      } finally {
        transfer.pull = null;
        if (room) {
          u8().fill(0, room, room + 16);
          c.give(room);
        }
      }
    }
    /** The bytes of its .bly file. */
    toBytes({ coded, compact } = {}) {
      const at = this.#c;
      if (coded !== undefined || compact !== undefined) c.set_coded(at, coded ? 1 : 0, compact ? 1 : 0);
      const out = new Uint8Array(c.written_bytes(at));
      let n = 0;
      transfer.push = (from, len) => {
        out.set(u8().subarray(from >>> 0, (from >>> 0) + (len >>> 0)), n);
        n += len >>> 0;
      };
      try {
        check(c.save(at));
      } finally {
        transfer.push = null;
      }
      return out;
    }
    /** Was the key new, as far as it can tell? */
    add(key) {
      return withKey(key, (run) => {
        check(c.add(this.#c, run.type, run.at, 1, OUT));
        return (u8()[OUT] & 1) === 1;
      });
    }
    /** False is certain. */
    has(key) {
      const n = typeof key === "string" ? putAscii(key) : -1;
      if (n >= 0) {
        const answer = c.has_text(this.#c, KEYS, n);
        if (answer > 1) throw failure();
        return answer === 1;
      }
      return withKey(key, (run) => {
        check(c.has(this.#c, run.type, run.at, 1, OUT));
        return (u8()[OUT] & 1) === 1;
      });
    }
    /** Add all keys; how many were new, as far as it can tell. */
    update(keys) {
      let fresh = 0;
      eachRun(keys, (run) => {
        check(c.add(this.#c, run.type, run.at, run.n, OUT));
        fresh += new Answers(u8().subarray(OUT, OUT + ((run.n + 7) >> 3)), run.n).count();
      });
      return fresh;
    }
    hasMany(keys) {
      let n = 0, bits = new Uint8Array(isLongs(keys) ? (keys.length + 7) / 8 : 512);
      eachRun(keys, (run) => {
        check(c.has(this.#c, run.type, run.at, run.n, OUT));
        const need = (n + run.n + 7) / 8 | 0;
        if (need > bits.length) {
          const more = new Uint8Array(2 * need);
          more.set(bits);
          bits = more;
        }
        const from = u8().subarray(OUT, OUT + ((run.n + 7) >> 3));
        if (n % 8 === 0) bits.set(from, n / 8);
        else for (let i = 0; i < run.n; i++) bits[((n + i) / 8) | 0] |= ((from[i >> 3] >> (i & 7)) & 1) << ((n + i) & 7);
        n += run.n;
      });
      return new Answers(bits.subarray(0, (n + 7) / 8), n);
    }
    #hash(key) {
      let at;
      withKey(key, (run) => check(c.hash((at = this.#c), run.type, run.at, 1, MORE)));
      return at;
    }
    /** The 64 bits that the filter makes of a key. */
    hash(key) {
      this.#hash(key);
      return u64()[MORE / 8];
    }
    /** Remove a key that was added; false if it is not in the filter. */
    remove(key) {
      const at = this.#hash(key);
      if (c.remove(at, MORE, 1) === 8) return false;
      if (c.failure()) throw failure();
      return true;
    }
    count(key) {
      const at = this.#hash(key);
      check(c.count(at, MORE, 1, OUT));
      return Number(u64()[OUT / 8]);
    }
    /** The value of a key; undefined if there is none. */
    get(key) {
      const at = this.#hash(key);
      check(c.get(at, MORE, 1, OUT, OUT + 8));
      return u8()[OUT + 8] & 1 ? Number(u64()[OUT / 8]) : undefined;
    }
    set(key, value) {
      const number = valueOf(value), at = this.#hash(key);
      check(c.set(at, u64()[MORE / 8], number));
    }
    /** May there be a key from a to b? */
    hasRange(a, b) {
      const from = keyOf(a), to = keyOf(b), at = this.#c;
      const type = Math.max(from[0], to[0]);
      if (type >= INT64 ? Math.min(from[0], to[0]) < INT64 : from[0] !== to[0]) throw new TypeError("the ends of a range are of two types");
      const one = putRun([[type, from[1]]], 0);
      try {
        const two = putRun([[type, to[1]]], 0, MORE);
        try {
          check(c.range(at, type, one.at, two.at, OUT));
          return (u8()[OUT] & 1) === 1;
        } finally {
          if (two.free) c.give(two.at);
        }
      } finally {
        if (one.free) c.give(one.at);
      }
    }
    /** Tell a filter that forgets the time, in seconds. */
    tick(now) {
      if (!(typeof now === "number" && now >= 0 && now <= Number.MAX_SAFE_INTEGER)) throw new TypeError("now: seconds are wanted");
      check(c.tick(this.#c, now));
    }
    merge(other) {
      check(c.merge(this.#c, Filter.#of(other)));
      return this;
    }
    intersect(other) {
      check(c.intersect(this.#c, Filter.#of(other)));
      return this;
    }
    compare(other) {
      check(c.compare(this.#c, Filter.#of(other)));
      return told();
    }
    equals(other) {
      return c.equal(this.#c, Filter.#of(other)) === 1;
    }
    copy() {
      return new Filter(MAKE, c.clone(this.#c));
    }
    /** What it knows of itself, by the names of `bloomery info --json`; `quick` without reading its contents. */
    info({ quick = false } = {}) {
      return facts(this.#c, quick ? 0 : 1);
    }
    get kind() {
      return this.info({ quick: true }).kind;
    }
    get byteLength() {
      return this.info({ quick: true }).bytes;
    }
    /** Its cells, copied: an array for the filter, or one for each of its layers, with the info() of what it belongs to. */
    cells() {
      const f = this.#c, parts = [];
      const copy = (at) => {
        const from = c.cells(at) >>> 0, n = c.cell_bytes(at);
        if (n) parts.push(Object.assign(u8().slice(from, from + n), { info: facts(at, 0) }));
        for (let i = 0, inner; (inner = c.layer(at, i)); i++) copy(inner);
      };
      copy(f);
      return parts;
    }
    /** Release its memory now. A filter that is forgotten is released some day. */
    close() {
      if (!this.#at) return;
      lost.unregister(this);
      c.drop(this.#at);
      this.#at = 0;
    }
    [Symbol.dispose ?? Symbol("dispose")]() {
      this.close();
    }
    /** JSON describes the filter, without reading its contents; its bytes are `toBytes()`. */
    toJSON() {
      return this.#at ? this.info({ quick: true }) : { closed: true };
    }
    [INSPECT]() {
      const { kind, capacity, bytes } = this.toJSON();
      return `Filter { ${kind ? `kind: "${kind}", capacity: ${capacity}, bytes: ${bytes}` : "closed"} }`;
    }
  }

  return {
    Filter,
    version: line(c.version()),
    /** The table of kinds, as `bloomery kinds --json` has it. */
    kinds() {
      check(c.kinds());
      return told().kinds;
    },
    /** What a filter would take, without making it. */
    plan(options) {
      withText(wanted(options), (at) => check(c.plan(at)));
      return told();
    },
    /** For programs that add exports of their own to the module, as the playground does. */
    raw: { c, check, take, told, withText, u8, line },
  };
}
