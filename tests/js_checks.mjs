/*
 * js_checks.mjs - what the package for JavaScript promises, in Node, in a page and in a worker
 *
 * Each check is a function of { bloomery, all, golden, vectors, bytes }: the package, the
 * library with all kinds, the golden files by name, the vectors that every adapter is held
 * against, and files that the command built of them. It throws if something is wrong.
 */

const assert = (ok, what) => {
  if (!ok) throw new Error(what);
};
const same = (a, b, what) => assert(JSON.stringify(a) === JSON.stringify(b), `${what}: ${JSON.stringify(a)} instead of ${JSON.stringify(b)}`);
const throws = (use, type, words) => {
  let thrown;
  try {
    use();
  } catch (error) {
    thrown = error;
  }
  assert(thrown, `nothing was thrown; wanted: ${words}`);
  assert(thrown instanceof type, `${thrown.name} instead of ${type.name}: ${thrown.message}`);
  assert(thrown.message.includes(words), `'${thrown.message}' does not say '${words}'`);
};
const equalBytes = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);
const SECRET = new TextEncoder().encode("golden secret 16");
const SMALL = ["blocked", "classic"]; // the kinds of the small module
const goldenKeys = () => Array.from({ length: 1000 }, (_, i) => `key-${i}`);
const goldenInts = () => BigUint64Array.from({ length: 1000 }, (_, i) => 0x0a0000000a000000n + (BigInt(i) << 32n) + 7n * BigInt(i));

/* Numbers of xorshift64*, the same in each run. */
function random(seed) {
  let x = BigInt(seed);
  return (below) => {
    x ^= x >> 12n;
    x = BigInt.asUintN(64, x ^ (x << 25n));
    x ^= x >> 27n;
    return Number(BigInt.asUintN(64, x * 0x2545f4914f6cdd1dn) >> 33n) % below;
  };
}

export const checks = {
  golden_files_are_read_and_written({ all, golden }) {
    let n = 0;
    for (const [name, bytes] of Object.entries(golden)) {
      const f = all.Filter.fromBytes(bytes, name.includes("-keyed") ? { secret: SECRET } : {});
      assert(equalBytes(f.toBytes(), bytes), `${name} is written otherwise`);
      const kind = all.kinds().find((k) => k.kind === f.kind);
      if (kind.can.includes("has") && !kind.likely_no && !kind.can.includes("tick")) same(f.hasMany(name.includes("-ints") ? goldenInts() : goldenKeys()).count(), 1000, name);
      f.close();
      n++;
    }
    assert(n > 30, `only ${n} files`);
  },

  vectors_answer_as_the_command_does({ all, vectors }) {
    for (const { bytes, keys, answers } of vectors) {
      const f = all.Filter.fromBytes(bytes);
      keys.forEach((key, i) => same(f.has(typeof key === "string" && key.startsWith("int:") ? BigInt(key.slice(4)) : key), answers[i], `key ${key}`));
    }
  },

  the_same_keys_make_the_same_file({ all, vectors }) {
    for (const { bytes, built, type } of vectors) {
      const f = all.Filter.build(type === "text" ? built : built.map(BigInt), { fpr: "1e-9", ...(type === "text" ? {} : { keys: "int64" }) });
      assert(all.Filter.fromBytes(bytes).equals(f), `another filter of ${type}`);
    }
  },

  both_modules_agree({ all, common }) {
    const twice = [...goldenKeys(), ...goldenKeys().slice(0, 300)], ints = BigUint64Array.from(twice, (_, i) => BigInt(i % 900) * 977n);
    for (const kind of SMALL) {
      for (const options of [{ items: 1000, fpr: 0.01 }, { items: 5, fpr: 0.3 }, { bits: 8192, fpr: 0.02 }, { items: 1000, bits: 4096, seed: 2n ** 63n, keys: "text", trimmed: true }]) {
        const [a, b] = [common, all].map(({ Filter }) => new Filter({ kind, ...options }));
        same([a.update(twice), a.add("new"), a.has("new")], [b.update(twice), b.add("new"), b.has("new")], kind);
        assert(equalBytes(a.toBytes(), b.toBytes()), `${kind}, ${JSON.stringify(options, (_, v) => `${v}`)}`);
        assert(equalBytes(common.Filter.fromBytes(b.toBytes()).toBytes(), b.toBytes()), `${kind} comes back`);
      }
      for (const [keys, options] of [[twice, {}], [ints, { fpr: 1e-4 }], [["one"], {}], [[], { keys: "text" }], [new Set(twice), { fpr: 0.001, keys: "text", noCR: true }]]) {
        const [a, b] = [common, all].map(({ Filter }) => Filter.build(keys, { kind, ...options }));
        assert(equalBytes(a.toBytes(), b.toBytes()), `${kind} of ${keys.constructor.name} of ${keys.length ?? keys.size}`);
      }
      const [a, b] = [common, all].map(({ Filter }) => Filter.build(ints, { kind }));
      const others = ints.map((k) => k + 1n);
      assert(equalBytes(a.hasMany(others).bits, b.hasMany(others).bits), `${kind} asked for integers`);
      const texts = Array.from(others, (k) => `${k}`.repeat(1 + Number(k % 9n)).slice(0, 19));
      assert(equalBytes(a.hasMany(texts).bits, b.hasMany(texts).bits), `${kind} asked for text`);
    }
  },

  what_the_small_module_leaves_out_is_refused_in_words({ all, common, golden, bloomery }) {
    const words = 'load({ kinds: "all" })', f = new common.Filter(100), g = new common.Filter(100), plain = all.Filter.build(goldenKeys());
    for (const name of ["fuse.bly", "cuckoo.bly", "blocked-coded.bly", "blocked-brief.bly", "blocked-keyed.bly"]) throws(() => common.Filter.fromBytes(golden[name]), bloomery.BloomeryError, words);
    throws(() => common.Filter.fromBytes(plain.toBytes(), { secret: SECRET }), bloomery.BloomeryError, words);
    throws(() => common.Filter.fromBytes(all.Filter.build(["X"], { keys: "text", folded: true }).toBytes()), bloomery.BloomeryError, words);
    for (const options of [{ kind: "cuckoo" }, { secret: SECRET }, { folded: true }, { items: "10M" }, { colour: "red" }]) throws(() => new common.Filter({ items: 10, ...options }), TypeError, words);
    for (const use of [() => f.merge(g), () => f.intersect(g), () => f.compare(g), () => f.equals(g), () => f.copy(), () => f.cells(), () => f.remove("x"), () => f.count("x"), () => f.get("x"), () => f.set("x", 1),
      () => f.hasRange(1, 2), () => f.tick(1), () => f.toBytes({ coded: true }), () => common.kinds(), () => common.plan({ items: 5 })])
      throws(use, bloomery.BloomeryError, words);
    throws(() => common.Filter.build(new Map([["a", 1]])), TypeError, words);
    assert(f.add("x") && f.has("x"), "it goes on");
  },

  every_kind_does_what_it_can({ all }) {
    for (const { kind, can, likely_no } of all.kinds()) {
      const keys = Array.from({ length: 200 }, (_, i) => (kind === "range" ? i * 1000 : `k${i}`));
      const valued = can.includes("build") && can.includes("get");
      const f = can.includes("add") ? new all.Filter({ kind, items: 1000, fpr: 0.01 }) : all.Filter.build(valued ? new Map(keys.map((k, i) => [k, i])) : keys, { kind });
      if (can.includes("add")) f.update(keys);
      if (can.includes("has") && !likely_no) same(f.hasMany(keys).count(), 200, `${kind} forgets`);
      if (can.includes("count")) assert(f.count(keys[5]) >= 1, `${kind} counts`);
      if (valued) same(f.get(keys[7]), 7, `${kind} gets`);
      if (can.includes("range")) assert(f.hasRange(900, 1100) && f.info().kind === "range", "range");
      if (can.includes("remove")) {
        // Some kinds know that a removal would harm others.
        try {
          f.remove(keys[0]);
        } catch (error) {
          assert(["EREFUSED", "ENOTSUP"].includes(error.status), `${kind}: ${error.message}`);
        }
      }
      if (can.includes("tick")) f.tick(5);
      assert(f.info().kind === kind && f.cells().length > 0, `${kind} has cells`);
      assert(f.copy().equals(f), `${kind} is not its copy`);
      f.close();
    }
  },

  plans_are_those_of_the_library({ all, plans }) {
    for (const theirs of plans) {
      const mine = all.plan({ kind: theirs.kind, items: 1000, fpr: 0.01 });
      same(mine.bits_per_key, theirs.bits_per_key, theirs.kind);
      // The last digits depend on how a machine computes a logarithm.
      assert(theirs.fpr === undefined || Math.abs(mine.fpr / theirs.fpr - 1) < 1e-9, `${theirs.kind}: ${mine.fpr}`);
    }
  },

  keys_of_all_types({ all }) {
    const f = new all.Filter(1000, 1e-9);
    assert(f.add("swordfish") && !f.add("swordfish"), "add says what was new");
    assert(f.has(new TextEncoder().encode("swordfish")), "text is its UTF-8 bytes");
    const ints = new all.Filter({ items: 1000, fpr: 1e-9 });
    ints.update([7, -1n, 2n ** 63n - 1n]);
    assert(ints.has(7n) && ints.has("7") && ints.has(-1) && !ints.has(8), "integers");
    same([...ints.hasMany(new BigInt64Array([7n, -1n, 8n]))], [true, true, false], "BigInt64Array");
    same([...ints.hasMany(new BigUint64Array([7n, 8n]))], [true, false], "BigUint64Array");
    const big = new Uint8Array(1 << 20).fill(7);
    f.add(big);
    assert(f.has(big) && f.has(big.buffer) && f.has(new DataView(big.buffer)), "a key of a megabyte");
    const long = "ä".repeat(400000);
    same([...f.hasMany([long, "swordfish", long])], [false, true, false], "long texts");
  },

  batches_of_any_size({ all }) {
    for (const n of [0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 16384, 16385, 50001]) {
      const keys = BigUint64Array.from({ length: n }, (_, i) => BigInt(i) * 3n);
      const f = new all.Filter({ items: Math.max(n, 1), fpr: 1e-6, keys: "uint64" });
      f.update(keys);
      const answers = f.hasMany(keys);
      same([answers.length, answers.count()], [n, n], `${n} integers`);
      same(f.hasMany(keys.map((k) => k + 1n)).count() < n / 1000 + 2, true, `${n} others`);
      same(f.hasMany([...keys].slice(0, 5000).map(String)).count(), Math.min(n, 5000), `${n} as text`);
    }
    const mixed = new all.Filter(100, 1e-9);
    mixed.update(["a", new Uint8Array([98]), "c"]);
    same([...mixed.hasMany(["a", "b", new Uint8Array([99]), "d", "a"])], [true, true, true, false, true], "mixed");
  },

  sets({ all }) {
    const make = (from, to) => {
      const f = new all.Filter({ kind: "classic", items: 2000, fpr: 0.001 });
      f.update(Array.from({ length: to - from }, (_, i) => from + i));
      return f;
    };
    const a = make(0, 1000), b = make(500, 1500), c = a.compare(b);
    assert(Math.abs(c.in_both - 500) < 60, `in both: ${c.in_both}`);
    assert(a.copy().merge(b).has(1400) && !a.has(1400), "merge");
    assert(a.copy().intersect(b).has(700), "intersect");
    assert(!a.equals(b) && a.equals(make(0, 1000)), "equals");
  },

  wrong_types_are_type_errors({ all, bloomery }) {
    const f = new all.Filter(100);
    for (const key of [undefined, null, {}, [], () => 1, Symbol("x"), true, 1.5, NaN, Infinity, 2 ** 60]) throws(() => f.has(key), TypeError, "cannot be a key");
    throws(() => f.has(2n ** 64n), RangeError, "64 bits");
    throws(() => f.has("\ud800"), TypeError, "surrogate");
    for (const keys of [undefined, null, 5, "text", {}, new Uint8Array(4)]) throws(() => f.hasMany(keys), TypeError, "keys:");
    throws(() => new all.Filter(), TypeError, "");
    throws(() => new all.Filter({ items: "many" }), TypeError, "items");
    throws(() => new all.Filter({ items: 10, colour: "red" }), TypeError, "colour");
    throws(() => new all.Filter({ items: 10, kind: "bloom" }), TypeError, "bloom");
    throws(() => new all.Filter({ items: {} }), TypeError, "items");
    throws(() => new all.Filter({ items: 10, fpr: 2 }), TypeError, "");
    throws(() => new all.Filter({ items: 10, secret: "short" }), TypeError, "16 bytes");
    throws(() => all.Filter.fromBytes("text"), TypeError, "bytes:");
    const large = new all.Filter({ items: 1e6, kind: "compressed" }), few = large.toBytes({ coded: true });
    throws(() => all.Filter.fromBytes(few, { maxBytes: 100000 }), RangeError, "limit is 100000");
    throws(() => all.Filter.fromBytes(few, { maxBytes: "many" }), TypeError, "maxBytes");
    assert(all.Filter.fromBytes(few, { maxBytes: 1e7 }).equals(large), "large enough");
    throws(() => f.merge({}), TypeError, "Filter");
    throws(() => f.merge(new all.Filter(99999)), bloomery.BloomeryError, "");
    throws(() => f.remove("x"), bloomery.BloomeryError, "");
    throws(() => all.Filter.prototype.has.call({}, "x"), TypeError, "");
    const ints = all.Filter.build([7, 8]);
    throws(() => ints.has("seven"), TypeError, "seven");
    const gone = new Uint8Array([1, 2, 3]);
    structuredClone(gone, { transfer: [gone.buffer] });
    throws(() => f.add(gone), TypeError, "");
  },

  use_after_close({ all, bloomery }) {
    const f = new all.Filter(100), g = new all.Filter(100);
    f.close();
    f.close();
    for (const use of [() => f.has("x"), () => f.add("x"), () => f.info(), () => f.toBytes(), () => g.merge(f), () => f.cells(), () => f.hasMany(["x"])]) throws(use, bloomery.BloomeryError, "closed");
  },

  iterators_that_throw_or_close({ all, bloomery }) {
    const f = new all.Filter(20000);
    throws(() => f.update((function* () {
      for (let i = 0; i < 5000; i++) yield `k${i}`;
      throw new EvalError("in the middle");
    })()), EvalError, "in the middle");
    assert(f.has("k0"), "keys before it were added");
    throws(() => f.hasMany((function* () {
      for (let i = 0; i < 9000; i++) {
        if (i === 6000) f.close();
        yield "x";
      }
    })()), bloomery.BloomeryError, "closed");
    // A filter that is asked while another one reads its keys.
    const a = new all.Filter(10000), b = new all.Filter(10000);
    a.update((function* () {
      for (let i = 0; i < 9000; i++) {
        b.add(`b${i}`);
        yield `a${i}`;
      }
    })());
    assert(a.has("a8999") && b.has("b8999") && !b.has("a1"), "each has its own");
  },

  bytes_are_read_when_they_come({ all, common }) {
    for (const { Filter } of [all, common]) {
      const same_buffer = function* () {
        const key = new Uint8Array(2);
        for (key[0] = 0; key[0] < 200; key[0]++) yield key;
      };
      const others = Array.from({ length: 200 }, (_, i) => new Uint8Array([i, 0]));
      const f = new Filter({ items: 1000, fpr: 1e-9, keys: "bytes" });
      f.update(same_buffer());
      same([f.hasMany(others).count(), f.hasMany(same_buffer()).count(), Filter.build(same_buffer()).hasMany(others).count()], [200, 200, 200], "a buffer that is filled anew");
      const moved = function* () {
        const key = new Uint8Array([7, 7]);
        yield key;
        structuredClone(key, { transfer: [key.buffer] });
      };
      f.update(moved());
      assert(f.has(new Uint8Array([7, 7])) && !f.has(new Uint8Array(0)), "a buffer that is transferred behind it");
    }
  },

  views_of_nothing_are_type_errors({ all, common }) {
    for (const { Filter } of [all, common]) {
      const f = new Filter(100);
      for (const View of [Uint8Array, BigUint64Array, BigInt64Array, DataView]) {
        if (!("resize" in ArrayBuffer.prototype)) break;
        const buffer = new ArrayBuffer(32, { maxByteLength: 32 }), view = new View(buffer, 16, 1);
        buffer.resize(8);
        for (const use of [() => f.add(view), () => f.has(view), () => Filter.fromBytes(view), () => f.hasMany([view]), () => f.hasMany(view), () => f.update(view)]) throws(use, TypeError, "");
      }
      for (const key of [new BigUint64Array(1), new BigInt64Array(1), { [Symbol.toStringTag]: "ArrayBuffer", length: 3 }]) throws(() => f.has(key), TypeError, "cannot be a key");
      same(f.hasMany({ length: -100, *[Symbol.iterator]() { yield "x"; } }).length, 1, "an iterable that lies about its length");
    }
  },

  arguments_that_close_the_filter({ all, bloomery }) {
    // What runs while an argument is looked at must not find the filter's memory released behind it.
    for (const method of ["add", "has", "remove", "count", "get", "hash", "set", "hasRange"]) {
      const f = new all.Filter({ kind: "counting", items: 100 }), key = new Uint8Array([1]);
      Object.defineProperty(key, "byteLength", { get: () => (f.close(), 1) });
      throws(() => f[method](key, method === "hasRange" ? key : 1), bloomery.BloomeryError, "closed");
    }
    const f = new all.Filter({ kind: "aging", items: 100 });
    for (const now of [{ valueOf: () => (f.close(), 5) }, "5", Infinity, -1, NaN, 5n]) throws(() => f.tick(now), TypeError, "seconds");
    f.tick(5);
  },

  options_within_options_are_checked_too({ all }) {
    throws(() => new all.Filter({ items: 9, options: { k: "4\0items=5" } }), TypeError, "NUL");
    for (const options of [5, "text", null]) throws(() => new all.Filter({ items: 9, options }), TypeError, "an object is wanted");
    throws(() => new all.Filter({ items: 9, options: { k: {} } }), TypeError, "k: a number or text");
    same(new all.Filter({ items: 9, kind: "classic", options: { k: 4 } }).info().params.k, 4, "k");
  },

  a_full_stack_leaves_the_library_usable({ all, common }) {
    for (const { Filter, raw } of [all, common]) {
      const f = new Filter(100), deeper = () => {
        f.toBytes();
        deeper();
      };
      f.add("x");
      const before = raw.c.__stack_pointer.value;
      for (let i = 0; i < 2; i++) throws(deeper, RangeError, "");
      same([raw.c.__stack_pointer.value, f.has("x"), f.add("y"), f.has("z")], [before, true, true, false], "after that");
    }
  },

  async what_load_cannot_load({ bloomery }) {
    for (const wasm of [5, {}, new Uint8Array(5)]) {
      let thrown;
      await bloomery.load({ wasm }).catch((error) => (thrown = error));
      assert(thrown && !/undefined/.test(thrown.message), `${wasm}: ${thrown}`);
    }
  },

  async text_in_a_memory_of_more_than_2_gb({ bloomery }) {
    const { Filter, raw } = await bloomery.load(), f = new Filter(1000, 1e-9);
    try {
      for (let i = 0; i < 9; i++) raw.take(2 ** 28);
    } catch {
      return; // this machine has less
    }
    f.update(goldenKeys());
    f.add("one");
    f.add("\u00e4 \u{1f600}");
    assert(goldenKeys().every((key) => f.has(key)) && f.has("one") && f.has("\u00e4 \u{1f600}") && !f.has("") && !f.has("two"), "texts are what was added");
    same(Filter.build(goldenKeys()).hasMany(goldenKeys()).count(), 1000, "built");
  },

  out_of_memory_is_a_range_error({ all }) {
    for (const items of ["3G", "10G", "1e15"]) throws(() => new all.Filter({ kind: "classic", items, fpr: 0.0001 }), RangeError, "");
    const before = new all.Filter(100);
    assert(before.add("still here") && before.has("still here"), "it goes on");
  },

  damaged_files_are_refused({ all, common, golden, bloomery }) {
    const next = random(7);
    for (const name of ["blocked-small.bly", "classic.bly", "counting-coded.bly", "scalable.bly", "cuckoo.bly", "spectral-compact.bly", "ribbon.bly"]) {
      const whole = golden[name];
      for (let i = 0; i < 60; i++) {
        const bad = whole.slice(0, i % 2 ? whole.length : next(whole.length));
        if (i % 2) bad[next(bad.length)] ^= 1 << next(8);
        try {
          (next(2) ? all : common).Filter.fromBytes(bad).hasMany(goldenKeys());
        } catch (error) {
          assert(error instanceof bloomery.BloomeryError || error instanceof RangeError || error instanceof TypeError, `${name}: ${error}`);
        }
      }
    }
    throws(() => all.Filter.fromBytes(new Uint8Array(0)), bloomery.BloomeryError, "");
    throws(() => all.Filter.fromBytes(golden["blocked-keyed.bly"]), bloomery.BloomeryError, "key");
  },

  memory_does_not_leak({ all, common }) {
    for (const { Filter, raw, kind } of [{ ...all, kind: "fuse" }, { ...common, kind: "classic" }]) {
      const round = () => {
        for (let i = 0; i < 50; i++) {
          const f = new Filter({ items: 100000 });
          f.update(["a", "b"]);
          const g = Filter.fromBytes(f.toBytes());
          try {
            Filter.fromBytes(f.toBytes().fill(1, 9000));
          } catch {}
          try {
            f.has({});
          } catch {}
          Filter.build(goldenKeys(), { kind }).close();
          f.close();
          g.close();
        }
      };
      round();
      const before = raw.u8().length;
      for (let i = 0; i < 6; i++) round();
      same(raw.u8().length, before, "bytes of memory");
    }
  },

  blocks_of_memory_stay_apart({ all }) {
    const next = random(5), blocks = [], { c, u8, take } = all.raw;
    const give = ([at, n, mark]) => {
      assert(u8().subarray(at, at + n).every((byte) => byte === mark), `a block of ${n} bytes was written to by another`);
      c.give(at);
    };
    const round = () => {
      for (let i = 0; i < 3000; i++) {
        if (blocks.length > next(200)) give(blocks.splice(next(blocks.length), 1)[0]);
        const n = next(8) ? next(500) : next(200000), at = take(n), mark = i & 255;
        assert(at % 16 === 0, `${at} is not aligned`);
        u8().fill(mark, at, at + n);
        blocks.push([at, n, mark]);
      }
      blocks.splice(0).forEach(give);
    };
    round();
    const before = u8().length;
    for (let i = 0; i < 5; i++) round();
    // Freed neighbours become one: as much again needs next to nothing more.
    assert(u8().length <= 1.25 * before, `${before} bytes of memory became ${u8().length}`);
  },

  reals_in_messages_are_as_in_c({ all }) {
    for (const [fpr, text] of [[2, "2"], [1.5, "1.5"], [1e6, "1e+06"], [1.00000049, "1"], [123.45678, "123.457"], [123456, "123456"], [1234567, "1.23457e+06"]])
      throws(() => new all.Filter({ items: 10, fpr }), Error, `not ${text}`);
  },

  random_calls({ all, bloomery, calls = 4000 }) {
    callAtRandom(all, all.kinds().map((k) => k.kind), bloomery, calls);
  },

  random_calls_of_the_small_module({ common, bloomery, calls = 4000 }) {
    callAtRandom(common, SMALL, bloomery, calls);
  },
};

/* Calls with any arguments, of which each returns or throws what is promised. */
function callAtRandom({ Filter }, kinds, bloomery, calls) {
  const next = random(11);
  const values = [0, 1, -1, 7n, -(2n ** 63n), 2n ** 64n, 1.5, NaN, "", "x", "ä\u{1f600}", "\udc00", null, undefined, {}, [], [1, "2"], new Uint8Array(3), new BigUint64Array(70), new BigInt64Array(2), new Float64Array(2), new Map([["a", 1]]), true, Symbol("s"), "1%", "10M", { items: 9 }, new Set(["q"])];
  const value = () => (next(4) ? values[next(values.length)] : filters[next(filters.length)]);
  const filters = [new Filter(64)];
  const methods = Object.getOwnPropertyNames(Filter.prototype).filter((m) => m !== "constructor" && m !== "kind" && m !== "byteLength");
  for (let i = 0; i < calls; i++) {
    try {
      if (next(12) === 0) {
        const options = { kind: kinds[next(kinds.length)], items: 1 + next(300), fpr: [0.5, 0.01, 1e-6][next(3)] };
        filters.push(next(2) ? new Filter(options) : Filter.build(next(3) ? goldenKeys().slice(0, next(50)) : value(), options));
      } else if (next(12) === 0) {
        filters.push(Filter.fromBytes(next(2) ? filters[next(filters.length)].toBytes({ coded: next(2), compact: next(2) }) : value()));
      } else {
        const f = filters[next(filters.length)];
        const result = f[methods[next(methods.length)]](value(), value());
        if (result instanceof Filter) filters.push(result);
      }
    } catch (error) {
      const known = [TypeError, RangeError, bloomery.BloomeryError].some((type) => error instanceof type);
      if (!known || error instanceof WebAssembly.RuntimeError) throw error;
    }
    if (filters.length > 20) filters.splice(next(20), 1)[0].close();
  }
}

/* Run all, or those named; the failures by name. */
export async function run(env, names = Object.keys(checks)) {
  const result = {};
  for (const name of names) {
    try {
      await checks[name](env);
      result[name] = "";
    } catch (error) {
      result[name] = String(error?.stack ?? error) || "failed";
    }
  }
  return result;
}
