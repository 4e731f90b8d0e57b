/** A key: text, a whole number of 64 bits, or bytes. */
export type Key = string | number | bigint | ArrayBufferView | ArrayBufferLike;
/** Keys: an array or another iterable, or integers in a typed array, which is the fast path. */
export type Keys = Iterable<Key> | BigUint64Array | BigInt64Array;

/** What a filter is to be. Numbers may be text, as the command takes them: "10M", "1%". */
export interface Wanted {
  kind?: string;
  items?: number | bigint | string;
  fpr?: number | string;
  bits?: number | bigint | string;
  seed?: number | bigint | string;
  /** 16 bytes; never stored. */
  secret?: Uint8Array;
  keys?: "text" | "bytes" | "int64" | "uint64";
  folded?: boolean;
  trimmed?: boolean;
  noCR?: boolean;
  maxBytes?: number | bigint | string;
  /** Options of the kind whose names are taken above. */
  options?: Record<string, number | string>;
  /** Other options of the kind. */
  [option: string]: unknown;
}

/** What the library refused. TypeError and RangeError have `status` too. */
export class BloomeryError extends Error {
  constructor(status: string, message: string);
  status: string;
}

/** The answers to a batch, one bit per key. */
export class Answers implements Iterable<boolean> {
  constructor(bits: Uint8Array, length: number);
  readonly bits: Uint8Array;
  readonly length: number;
  at(index: number): boolean | undefined;
  /** How many are true. */
  count(): number;
  toJSON(): boolean[];
  [Symbol.iterator](): IterableIterator<boolean>;
}

export interface Likeness {
  a: number;
  b: number;
  in_either: number;
  in_either_sd: number;
  in_both: number;
  in_both_sd: number;
  jaccard: number;
  containment: number;
}

export interface Info {
  kind: string;
  keys?: string;
  folded: boolean;
  trimmed: boolean;
  no_cr: boolean;
  capacity: number;
  items_added: number;
  items_estimate: number;
  items_sd: number;
  fill: number;
  fpr_now: number;
  fpr_at_capacity: number;
  bits: number;
  bytes: number;
  file_bytes: number;
  seed: number | bigint;
  layers: number;
  keyed: boolean;
  coded: boolean;
  compact: boolean;
  params: Record<string, number | bigint | string>;
  note?: string;
  meta: [string, string][];
}

export interface Plan {
  kind: string;
  items: number;
  /** NaN if the kind has no such rate. */
  fpr: number;
  bits: number;
  bytes: number;
  bits_per_key: number;
  params: Record<string, number | bigint | string>;
}

export interface Kind {
  kind: string;
  summary: string;
  likely_no: boolean;
  can: string[];
  options: { name: string; help: string; default?: number; min: number; max: number; choices?: string[] }[];
}

export interface Filter {
  /** Was the key new, as far as it can tell? */
  add(key: Key): boolean;
  /** False is certain, true is "maybe". */
  has(key: Key): boolean;
  /** Add all keys; how many were new, as far as it can tell. */
  update(keys: Keys): number;
  hasMany(keys: Keys): Answers;
  /** Remove a key that was added before; false if it is not in the filter. */
  remove(key: Key): boolean;
  count(key: Key): number;
  get(key: Key): number | undefined;
  set(key: Key, value: number | bigint): void;
  /** May there be a key from a to b, both included? */
  hasRange(a: Key, b: Key): boolean;
  /** Tell a filter that forgets the time, in seconds. */
  tick(now: number): void;
  /** The 64 bits that the filter makes of a key. */
  hash(key: Key): bigint;
  merge(other: Filter): this;
  intersect(other: Filter): this;
  compare(other: Filter): Likeness;
  equals(other: Filter): boolean;
  copy(): Filter;
  info(how?: { quick?: boolean }): Info;
  /** The bytes of its .bly file. */
  toBytes(how?: { coded?: boolean; compact?: boolean }): Uint8Array;
  /** A copy of its cells, or of those of each layer; `info` describes the filter or the layer, without reading its contents. */
  cells(): (Uint8Array & { info: Info })[];
  readonly kind: string;
  /** Bytes of memory. */
  readonly byteLength: number;
  /** Release its memory now. */
  close(): void;
  /** What `info({ quick: true })` tells: its bytes are `toBytes()`. */
  toJSON(): Info | { closed: true };
}

export interface FilterConstructor {
  new (wanted: Wanted): Filter;
  new (items: number | bigint | string, fpr?: number | string, more?: Wanted): Filter;
  /** Of all these keys; a Map or an object gives values, for kinds that have them. */
  build(keys: Keys | Map<Key, number | bigint> | Record<string, number | bigint>, wanted?: Wanted): Filter;
  fromBytes(bytes: ArrayBufferView | ArrayBufferLike, how?: { secret?: Uint8Array; maxBytes?: number | bigint }): Filter;
}

export interface Bloomery {
  Filter: FilterConstructor;
  version: string;
  kinds(): Kind[];
  plan(wanted: Wanted): Plan;
}

export function load(how?: {
  kinds?: "common" | "all";
  simd?: boolean;
  wasm?: string | URL | Response | Promise<Response> | BufferSource | WebAssembly.Module;
}): Promise<Bloomery>;
export function instantiate(module: WebAssembly.Module): Bloomery;
export function hasSimd(): boolean;
