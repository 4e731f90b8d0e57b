"""Parquet files as tests see them: footers as trees, filters bit by bit.

Written apart from the library, so that the two can disagree. A Thrift struct is
a list of [id, type, value]; reading one and writing it again gives the same
bytes.
"""
import struct

STRUCT, LIST, BINARY, I32, I64 = 12, 9, 8, 5, 6


class Thrift:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        x = shift = 0
        while True:
            b = self.byte()
            x |= (b & 127) << shift
            shift += 7
            if b < 128:
                return x

    def zigzag(self):
        x = self.varint()
        return x >> 1 ^ -(x & 1)

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind in (1, 2, 3):
            return self.byte()
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            return self.take(8)
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            head = self.byte()
            n = head >> 4 if head >> 4 < 15 else self.varint()
            return [head & 15, [self.value(head & 15) for _ in range(n)]]
        if kind == 12:
            return self.struct()
        raise ValueError(kind)

    def struct(self):
        fields, last = [], 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            fields.append([last, kind, None if kind in (1, 2)
                           else self.value(kind)])


def varint(x):
    out = b""
    while x >= 128:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def zigzag(x):
    return varint(x << 1 if x >= 0 else (-x << 1) - 1)


def dump(kind, value):
    if kind in (1, 2, 3):
        return bytes([value])
    if kind in (4, 5, 6):
        return zigzag(value)
    if kind == 7:
        return value
    if kind == 8:
        return varint(len(value)) + value
    if kind in (9, 10):
        inner, items = value
        n = len(items)
        head = bytes([n << 4 | inner]) if n < 15 else \
            bytes([15 << 4 | inner]) + varint(n)
        return head + b"".join(dump(inner, x) for x in items)
    assert kind == 12
    out, last = b"", 0
    for number, inner, x in value:
        step = number - last
        out += bytes([step << 4 | inner]) if 0 < step < 16 else \
            bytes([inner]) + zigzag(number)
        last = number
        if inner not in (1, 2):
            out += dump(inner, x)
    return out + b"\0"


def field(fields, number, default=None):
    for f in fields:
        if f[0] == number:
            return f[2]
    return default


def put(fields, number, kind, value):
    """Set a field, in the order of ids."""
    fields[:] = sorted([f for f in fields if f[0] != number]
                       + [[number, kind, value]])


def drop(fields, *numbers):
    fields[:] = [f for f in fields if f[0] not in numbers]


class File:
    """data, and footer as a tree."""

    def __init__(self, path):
        raw = path.read_bytes()
        assert raw[:4] == raw[-4:] == b"PAR1"
        n = struct.unpack("<I", raw[-8:-4])[0]
        self.data = raw[:len(raw) - 8 - n]
        footer = raw[len(self.data):-8]
        self.footer = Thrift(footer).struct()
        assert dump(STRUCT, self.footer) == footer

    def write(self, path):
        footer = dump(STRUCT, self.footer)
        path.write_bytes(self.data + footer + struct.pack("<I", len(footer))
                         + b"PAR1")

    @property
    def groups(self):
        return field(self.footer, 4)[1]

    def chunk(self, group, column):
        """The ColumnChunk of a column by its name."""
        for chunk in field(self.groups[group], 1)[1]:
            if b".".join(field(field(chunk, 3), 3)[1]) == column.encode():
                return chunk
        raise KeyError(column)

    def meta(self, group, column):
        return field(self.chunk(group, column), 3)

    @property
    def columns(self):
        return [b".".join(field(field(c, 3), 3)[1]).decode()
                for c in field(self.groups[0], 1)[1]]

    def filter_at(self, group, column):
        """Where the bits of a filter are: from, to."""
        at = field(self.meta(group, column), 14)
        if at is None:
            return None
        header = Thrift(self.data, at)
        fields = header.struct()
        assert [f[0] for f in fields] == [1, 2, 3, 4]
        n = field(fields, 1)
        length = field(self.meta(group, column), 15)
        assert length in (None, header.at - at + n)
        return header.at, header.at + n

    def filter(self, group, column):
        at = self.filter_at(group, column)
        return at and self.data[at[0]:at[1]]

    def strip(self):
        """Forget all filters."""
        for group in self.groups:
            for chunk in field(group, 1)[1]:
                drop(field(chunk, 3), 14, 15)
        return self


def write_texts(path, columns):
    """A file of text, plain and not compressed: {name: [values of each row group]}."""
    data, groups = b"PAR1", []
    for g in range(len(next(iter(columns.values())))):
        chunks = []
        for name, values in columns.items():
            page = b"".join(struct.pack("<I", len(v.encode())) + v.encode() for v in values[g])
            head = dump(STRUCT, [[1, I32, 0], [2, I32, len(page)], [3, I32, len(page)],
                                 [5, STRUCT, [[1, I32, len(values[g])], [2, I32, 0], [3, I32, 3], [4, I32, 3]]]])
            size = len(head) + len(page)
            chunks.append([[2, I64, len(data)], [3, STRUCT, [
                [1, I32, 6], [2, LIST, (I32, [0])], [3, LIST, (BINARY, [name.encode()])], [4, I32, 0], [5, I64, len(values[g])],
                [6, I64, size], [7, I64, size], [9, I64, len(data)]]]])
            data += head + page
        groups.append([[1, LIST, (STRUCT, chunks)], [2, I64, sum(c[1][2][5][2] for c in chunks)],
                       [3, I64, len(next(iter(columns.values()))[g])]])
    schema = [[[4, BINARY, b"root"], [5, I32, len(columns)]]] + \
        [[[1, I32, 6], [3, I32, 0], [4, BINARY, name.encode()], [6, I32, 0]] for name in columns]
    footer = dump(STRUCT, [[1, I32, 1], [2, LIST, (STRUCT, schema)], [3, I64, sum(g[2][2] for g in groups)], [4, LIST, (STRUCT, groups)]])
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727,
                      1609587929392839161, 9650029242287828579,
                      2870177450012600261)


def rotate(x, n):
    return (x << n | x >> 64 - n) & MASK


def xxh64(data):
    def mix(acc, lane):
        return rotate(acc + lane * P2 & MASK, 31) * P1 & MASK
    at, n = 0, len(data)
    if n >= 32:
        acc = [P1 + P2 & MASK, P2, 0, -P1 & MASK]
        while n - at >= 32:
            for i in range(4):
                acc[i] = mix(acc[i], struct.unpack_from("<Q", data,
                                                        at + 8 * i)[0])
            at += 32
        h = sum(map(rotate, acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ mix(0, a)) * P1 + P4) & MASK
    else:
        h = P5
    h = h + n & MASK
    while n - at >= 8:
        h = (rotate(h ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27)
             * P1 + P4) & MASK
        at += 8
    if n - at >= 4:
        h = (rotate(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23)
             * P2 + P3) & MASK
        at += 4
    for b in data[at:]:
        h = rotate(h ^ b * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


SALTS = (0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
         0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31)


def bits_of(value, nbytes):
    """The bits of a value, given as bytes, in a filter of nbytes."""
    h = xxh64(value)
    block = (h >> 32) * (nbytes // 32) >> 32
    low = h & 0xffffffff
    return [256 * block + 32 * j + ((low * s & 0xffffffff) >> 27)
            for j, s in enumerate(SALTS)]


def filter_of(values, nbytes):
    out = bytearray(nbytes)
    for value in values:
        for b in bits_of(value, nbytes):
            out[b >> 3] |= 1 << (b & 7)
    return bytes(out)
