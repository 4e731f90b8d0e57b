/* js_types.ts - what bloomery.d.ts allows and what it does not, for tsc; test_javascript.py adds the names that are really there */
import { load, instantiate, hasSimd, Answers, BloomeryError } from "bloomery";
import type { Bloomery, Filter, Info, Key, Kind, Likeness, Plan, Wanted } from "bloomery";

export async function allowed(response: Response, module: WebAssembly.Module): Promise<void> {
  const small: Bloomery = await load();
  const { Filter, kinds, plan, version }: Bloomery = await load({ kinds: "all", simd: hasSimd(), wasm: response });
  instantiate(module);
  const wanted: Wanted = { items: "10M", fpr: 0.01, kind: "cuckoo", bucket: 4, options: { bits: 16 }, secret: new Uint8Array(16) };
  const f: Filter = new Filter(wanted), g: Filter = new Filter(1000n, "1%", { seed: 7 });
  const key: Key = "swordfish";
  const fresh: boolean = f.add(key), maybe: boolean = f.has(7n), n: number = f.update(new Set([1, "a", new Uint8Array(2)]));
  const answers: Answers = f.hasMany(new BigUint64Array(3));
  const each: boolean[] = [...answers], one: boolean | undefined = answers.at(-1), hits: number = answers.count();
  const bytes: Uint8Array = f.toBytes({ coded: true });
  const built: Filter = Filter.build(new Map([["a", 1]]), { kind: "bloomier" });
  Filter.build({ a: 1n });
  Filter.build(["a"]);
  Filter.fromBytes(bytes.buffer, { secret: new Uint8Array(16) }).close();
  const value: number | undefined = built.get("a"), hash: bigint = f.hash("a"), same: boolean = f.merge(g).intersect(g).equals(f.copy());
  const info: Info = f.info({ quick: true }), likeness: Likeness = f.compare(g), cells: Uint8Array[] = f.cells();
  const table: Kind[] = kinds(), planned: Plan = plan({ items: 5 });
  const error = new BloomeryError("EFORMAT", "damaged");
  const status: string = error.status;
  console.log(small, version, fresh, maybe, n, each, one, hits, value, hash, same, info.folded, likeness.jaccard, cells, table, planned, status);
}

export function refused({ Filter }: Bloomery): void {
  const f = new Filter(100);
  // @ts-expect-error a key is text, an integer or bytes
  f.has(null);
  // @ts-expect-error
  f.add({});
  // @ts-expect-error nor is one key a batch
  f.hasMany(7);
  // @ts-expect-error another filter is wanted
  f.merge("other");
  // @ts-expect-error two names there are
  load({ kinds: "few" });
  // @ts-expect-error 16 bytes, not text
  Filter.fromBytes(new Uint8Array(1), { secret: "text" });
  // @ts-expect-error it cannot be set
  f.kind = "classic";
}
