"""What RedisBloom's and valkey-bloom's filters do, in plain Python.

Written from the description of their geometry and hashing; slow, and meant to
be compared with the module, command by command and byte by byte.
"""
import math
import struct

M64 = (1 << 64) - 1
M32 = (1 << 32) - 1


def murmur64a(data, seed):
    m = 0xc6a4a7935bd1e995
    h = (seed ^ (len(data) * m)) & M64
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):
        k = int.from_bytes(data[i:i + 8], "little") * m & M64
        k ^= k >> 47
        k = k * m & M64
        h = (h ^ k) * m & M64
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & M64
    h = (h ^ (h >> 47)) * m & M64
    return h ^ (h >> 47)


def murmur2(data, seed):
    m = 0x5bd1e995
    h = (seed ^ len(data)) & M32
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & M32
        k ^= k >> 24
        k = k * m & M32
        h = h * m & M32 ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & M32
    h = (h ^ (h >> 13)) * m & M32
    return h ^ (h >> 15)


def siphash13(key, data):
    def rotl(x, n):
        return (x << n | x >> (64 - n)) & M64

    def round_(v):
        v[0] = (v[0] + v[1]) & M64
        v[1] = rotl(v[1], 13) ^ v[0]
        v[0] = rotl(v[0], 32)
        v[2] = (v[2] + v[3]) & M64
        v[3] = rotl(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & M64
        v[3] = rotl(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & M64
        v[1] = rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)

    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
         k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]
    tail = data[len(data) // 8 * 8:]
    words = list(struct.unpack(f"<{len(data) // 8}Q",
                               data[:len(data) // 8 * 8]))
    words.append(int.from_bytes(tail, "little") | (len(data) & 255) << 56)
    for w in words:
        v[3] ^= w
        round_(v)
        v[0] ^= w
    v[2] ^= 255
    for _ in range(3):
        round_(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Bloom:
    """RedisBloom's."""

    def __init__(self, rate, capacity, expansion):
        self.expansion = expansion
        self.links = []
        self.items = 0
        self.push(rate / 2 if expansion else rate, capacity)

    def push(self, error, capacity):
        p = abs(math.log(error)) / 0.480453013918201
        bits = max(int(capacity * p), 1)
        bits = (bits + 63) // 64 * 64
        self.links.append(dict(
            error=error, capacity=capacity, p=p, bits=bits, items=0,
            hashes=math.ceil(0.693147180559945 * p),
            data=bytearray(bits // 8)))

    def probes(self, link, item):
        a = murmur64a(item, 0xc6a4a7935bd1e995)
        b = murmur64a(item, a)
        return [((a + i * b) & M64) % link["bits"]
                for i in range(link["hashes"])]

    def has(self, item):
        return any(all(link["data"][x // 8] >> x % 8 & 1
                       for x in self.probes(link, item))
                   for link in self.links)

    def add(self, item):
        """1, 0, or None for a filter that is full."""
        if self.has(item):
            return 0
        last = self.links[-1]
        if last["items"] >= last["capacity"]:
            if not self.expansion:
                return None
            self.push(last["error"] / 2, last["capacity"] * self.expansion)
            last = self.links[-1]
        for x in self.probes(last, item):
            last["data"][x // 8] |= 1 << x % 8
        last["items"] += 1
        self.items += 1
        return 1

    def header(self):
        out = struct.pack("<QIII", self.items, len(self.links),
                          5 if self.expansion else 13, self.expansion or 2)
        for link in self.links:
            out += struct.pack(
                "<QQQddIQB", len(link["data"]), link["bits"], link["items"],
                link["error"], link["p"], link["hashes"], link["capacity"], 0)
        return out

    def stream(self):
        return b"".join(bytes(link["data"]) for link in self.links)


class ValkeyBloom:
    def __init__(self, rate, capacity, expansion, tightening, seed):
        self.rate, self.expansion = rate, expansion
        self.tightening, self.seed = tightening, seed
        self.links = []
        self.push(rate, capacity)

    def push(self, error, capacity):
        size = math.ceil(capacity * math.log(error) /
                         (-8 * math.log(2) ** 2))
        hashes = max(1, round(8 * size / capacity * math.log(2)))
        self.links.append(dict(capacity=capacity, items=0, hashes=hashes,
                               error=error, data=bytearray(size)))

    def probes(self, link, item):
        message = struct.pack("<Q", len(item)) + item
        a = siphash13(self.seed[:16], message)
        b = siphash13(self.seed[16:], message)
        bits = 8 * len(link["data"])
        for i in range(link["hashes"]):
            h = a if i == 0 else b if i == 1 else \
                ((a + i * b) & M64) % ((1 << 64) - 59)
            yield h % bits

    def has(self, item):
        return any(all(link["data"][x // 8] >> x % 8 & 1
                       for x in self.probes(link, item))
                   for link in self.links)

    def add(self, item):
        if self.has(item):
            return 0
        last = self.links[-1]
        if last["items"] >= last["capacity"]:
            if not self.expansion:
                return None
            self.push(last["error"] * self.tightening,
                      last["capacity"] * self.expansion)
            last = self.links[-1]
        for x in self.probes(last, item):
            last["data"][x // 8] |= 1 << x % 8
        last["items"] += 1
        return 1

    def load(self):
        """What BF.LOAD takes."""
        out = struct.pack("<BIddBQ", 1, self.expansion, self.rate,
                          self.tightening, 1, len(self.links))
        for link in self.links:
            blob = struct.pack("<BQI", 1, len(link["data"]), link["hashes"])
            blob += self.seed + bytes(link["data"])
            out += struct.pack("<Q", len(blob)) + blob
            out += struct.pack("<qq", link["items"], link["capacity"])
        return out


class Cuckoo:
    MIX = 0x5bd1e995

    def __init__(self, capacity, size, iterations, expansion):
        self.size, self.iterations = size, iterations
        self.expansion = 0
        if expansion:
            self.expansion = 1 << (expansion - 1).bit_length()
        self.buckets = 1
        while self.buckets < capacity // size:
            self.buckets *= 2
        self.tables = []
        self.items = self.deletes = 0
        self.grow()

    def grow(self):
        n = self.buckets * self.expansion ** len(self.tables)
        if not self.tables:
            n = self.buckets
        self.tables.append(bytearray(n * self.size))

    def places(self, table, h, f):
        n = len(table) // self.size
        for hash_ in (h, h ^ (f * self.MIX) & M64):
            start = hash_ % n * self.size
            yield from range(start, start + self.size)

    def find(self, item_hash, f, what, tables):
        for table in tables:
            for at in self.places(table, item_hash, f):
                if table[at] == what:
                    return table, at
        return None

    def hash(self, item):
        h = murmur64a(item, 0)
        return h, h % 255 + 1

    def has(self, item):
        h, f = self.hash(item)
        return self.find(h, f, f, self.tables) is not None

    def count(self, item):
        h, f = self.hash(item)
        return sum(table[at] == f for table in self.tables
                   for at in self.places(table, h, f))

    def kick(self, h, f):
        table = self.tables[-1]
        n = len(table) // self.size
        saved = bytes(table)
        i, victim = h % n, 0
        for _ in range(self.iterations):
            at = i * self.size + victim
            f, table[at] = table[at], f
            i = (i ^ (f * self.MIX)) % n
            for at in range(i * self.size, (i + 1) * self.size):
                if table[at] == 0:
                    table[at] = f
                    return True
            victim = (victim + 1) % self.size
        table[:] = saved
        return False

    def add(self, item, unique=False):
        if unique and self.has(item):
            return 0
        h, f = self.hash(item)
        while True:
            found = self.find(h, f, 0, self.tables[::-1])
            if found:
                found[0][found[1]] = f
            if found or self.kick(h, f):
                self.items += 1
                return 1
            if not self.expansion:
                return -1
            self.grow()

    def remove(self, item):
        h, f = self.hash(item)
        found = self.find(h, f, f, self.tables[::-1])
        if not found:
            return 0
        found[0][found[1]] = 0
        self.items -= 1
        self.deletes += 1
        if len(self.tables) > 1 and self.deletes > self.items * 0.1:
            self.compact(False)
        return 1

    def compact(self, all_):
        for t in range(len(self.tables) - 1, 0, -1):
            table, dirty = self.tables[t], False
            for at in range(len(table)):
                f = table[at]
                if not f:
                    continue
                to = self.find(at // self.size, f, 0, self.tables[:t])
                if to:
                    to[0][to[1]] = f
                    table[at] = 0
                else:
                    dirty = True
            if not dirty and t == len(self.tables) - 1:
                self.tables.pop()
            if dirty and not all_:
                break
        self.deletes = 0

    def header(self):
        return struct.pack("<QQQQHHH", self.items, self.buckets, self.deletes,
                           len(self.tables), self.size, self.iterations,
                           self.expansion)

    def stream(self):
        return b"".join(bytes(t) for t in self.tables)


class CountMin:
    def __init__(self, width, depth):
        self.width, self.depth, self.total = width, depth, 0
        self.rows = [[0] * width for _ in range(depth)]

    def cells(self, item):
        return [(row, murmur2(item, r) % self.width)
                for r, row in enumerate(self.rows)]

    def query(self, item):
        return min(row[c] for row, c in self.cells(item))

    def add(self, item, n):
        for row, c in self.cells(item):
            row[c] = min(row[c] + n, M32)
        self.total += n
        return self.query(item)
