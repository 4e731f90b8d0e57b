/*
 * javascript.mjs PACKAGE [NPM-FOLDER] - asks per second in Node, beside the most used packages for Bloom filters
 *
 *     make js && npm install --prefix /tmp/peers bloom-filters bloomfilter
 *     node bench/javascript.mjs build/js /tmp/peers
 *
 * A million keys of 64 bits at 1 %, half of the questions absent. Rounds take turns; the best of each counts, by
 * processor time, since other programs may be running. The peers take text, so they get the keys as decimal text,
 * made before the clock starts; bloomery is asked with text too.
 */
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, npm] = process.argv.slice(2).map((p) => resolve(p));
const { load } = await import(pathToFileURL(`${folder}/bloomery.js`));
const N = 1e6, ASKED = 1e5;
const keys = BigUint64Array.from({ length: N }, (_, i) => BigInt.asUintN(64, BigInt(i) * 0x9e3779b97f4a7c15n));
const asked = keys.map((k, i) => (i % 2 ? k : k ^ 0x5555555555555555n));
const texts = Array.from(asked.subarray(0, ASKED), String), added = Array.from(keys, String);
const runs = [];
for (const simd of [true, false]) {
  const { Filter } = await load({ simd });
  const word = simd ? "SIMD" : "plain";
  for (const items of [1e5, N]) {
    const f = new Filter({ items, fpr: 0.01 });
    f.update(keys.subarray(0, items));
    runs.push([`bloomery, ${word}, batches of integers, ${items} keys`, asked.length, () => f.hasMany(asked).count()]);
    if (items === N && simd) runs.push(["bloomery, integers one by one", ASKED, () => { let n = 0; for (let i = 0; i < ASKED; i++) n += f.has(asked[i]); return n; }]);
  }
  if (!simd) continue;
  const t = new Filter({ items: N, fpr: 0.01 });
  t.update(added);
  runs.push(["bloomery, batches of text", ASKED, () => t.hasMany(texts).count()], ["bloomery, text one by one", ASKED, () => { let n = 0; for (const k of texts) n += t.has(k); return n; }]);
}
if (npm) {
  const require = createRequire(`${npm}/package.json`);
  const { BloomFilter } = require("bloom-filters");
  const a = BloomFilter.create(N, 0.01);
  for (const k of added.slice(0, 2e5)) a.add(k);
  runs.push(["bloom-filters", ASKED / 10, () => { let n = 0; for (let i = 0; i < ASKED / 10; i++) n += a.has(texts[i]); return n; }]);
  const other = await import(pathToFileURL(require.resolve("bloomfilter"))).catch(() => require("bloomfilter"));
  const Other = other.BloomFilter ?? other.default.BloomFilter;
  const b = new Other(Math.ceil(9.585 * N), 7);
  for (const k of added) b.add(k);
  runs.push(["bloomfilter", ASKED, () => { let n = 0; for (const k of texts) n += b.test(k); return n; }]);
}
const best = runs.map(() => 0);
for (let round = 0; round < 9; round++)
  runs.forEach(([, n, run], i) => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    best[i] = Math.max(best[i], n / (user + system));
  });
runs.forEach(([name], i) => console.log(`${best[i].toFixed(2).padStart(8)} million asks per second  ${name}`));
