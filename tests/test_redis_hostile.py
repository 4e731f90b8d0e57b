"""Bytes from anyone: dumps with their checksum made right, pieces, files."""
import random
import struct

import pytest
from redis_support import needs_server, r, redis, server  # noqa: F401

pytestmark = needs_server

JONES = 0xad93d23594c935a9


def crc64_table():
    reflected = int(f"{JONES:064b}"[::-1], 2)
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (reflected if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc64_table()


def sealed(dump):
    """A dump without its checksum, with one that the server takes."""
    crc = 0
    for byte in dump:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return dump + struct.pack("<Q", crc)


MAKE = {
    "bf": [("BF.RESERVE", "k", "0.01", 20), ("BF.MADD", "k", *range(70))],
    "vk": [("BF.INSERT", "k", "TIGHTENING", "0.5", "CAPACITY", 20, "ITEMS",
            *range(70))],
    "cf": [("CF.RESERVE", "k", 20, "EXPANSION", 2),
           ("CF.INSERT", "k", "ITEMS", *range(70))],
    "cms": [("CMS.INITBYDIM", "k", 9, 3), ("CMS.INCRBY", "k", "a", 7)],
    "topk": [("TOPK.RESERVE", "k", 3), ("TOPK.ADD", "k", *"abcdabca")],
    "tdigest": [("TDIGEST.CREATE", "k", "COMPRESSION", 10),
                ("TDIGEST.ADD", "k", *range(40))],
    "bly": [("BLY.CREATE", "k", "classic", "CAPACITY", 20),
            ("BLY.ADD", "k", *range(20))],
    "pieces": [("BLY.IMPORT", "k", 0, 100, b"x" * 50)],
}
USE = [("BF.MADD", *range(30)), ("BF.INFO",), ("BF.DEBUG",),
       ("BF.MEXISTS", *range(30)), ("BF.SCANDUMP", 0), ("BF.SCANDUMP", 1),
       ("CF.ADD", "x"), ("CF.DEL", "1"), ("CF.COMPACT",), ("CF.INFO",),
       ("CF.COUNT", "x"), ("CF.SCANDUMP", 1), ("CMS.INCRBY", "x", 2),
       ("CMS.QUERY", "a"), ("CMS.INFO",), ("CMS.MERGE", 2, "k", "k"),
       ("TOPK.ADD", "x"), ("TOPK.LIST",), ("TOPK.COUNT", "a"),
       ("TDIGEST.INFO",), ("TDIGEST.QUANTILE", 0, 0.3, 1),
       ("TDIGEST.CDF", -1, 7, 1e9), ("TDIGEST.RANK", 3), ("TDIGEST.BYRANK", 2),
       ("TDIGEST.TRIMMED_MEAN", 0.1, 0.8), ("TDIGEST.ADD", *range(90)),
       ("TDIGEST.MERGE", 2, "k", "k"), ("TDIGEST.QUANTILE", 0.5),
       ("BLY.ADD", "x"), ("BLY.HAS", "x"), ("BLY.INFO",), ("BLY.EXPORT", 0)]


def use(r):
    """Every command on the key, whatever it answers; then it is saved. What a
    command announces it sends: the reply behind it is that to ECHO."""
    pipe = r.pipeline(transaction=False)
    for i, (name, *words) in enumerate(USE):
        pipe.execute_command(name, "k", *words)
        pipe.echo(f"mark {i}")
    pipe.execute_command("DEBUG", "DIGEST-VALUE", "k")
    pipe.execute_command("COPY", "k", "copy", "REPLACE")
    pipe.memory_usage("k")
    pipe.dump("k")
    answers = pipe.execute(raise_on_error=False)
    for answer in answers:
        assert not isinstance(answer, redis.exceptions.ConnectionError)
    for i in range(len(USE)):
        assert answers[2 * i + 1] == b"mark %d" % i


def mutations(rng, whole):
    """What a dump may become: other bytes, fewer, more, large numbers."""
    for _ in range(120):
        bad = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(bad))
            how = rng.randrange(4)
            if how == 0:
                bad[at] ^= 1 << rng.randrange(8)
            elif how == 1:
                bad[at] = rng.choice((0, 1, 127, 128, 255))
            elif how == 2:
                del bad[at:at + rng.randrange(1, 9)]
            else:
                bad[at:at] = rng.choice((b"\x81" + b"\xff" * 8, b"\0" * 8,
                                         b"\x80\x7f\xff\xff\xff"))
            if not bad:
                break
        yield bytes(bad)


@pytest.mark.parametrize("kind", MAKE)
def test_dumps_with_a_right_checksum(r, kind):
    for words in MAKE[kind]:
        r.execute_command(*words)
    dump = r.dump("k")
    body, version = dump[:-10], dump[-10:-8]
    assert sealed(body + version) == dump
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "k")
    r.restore("k", 0, dump, replace=True)
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "k") == before
    rng = random.Random(kind)
    refused = taken = 0
    # Byte 0 is the server's own type of value.
    for bad in mutations(rng, body[1:]):
        try:
            r.restore("k", 0, sealed(body[:1] + bad + version), replace=True)
            taken += 1
            use(r)
        except redis.exceptions.ResponseError as e:
            assert "Bad data format" in str(e)
            refused += 1
    assert refused > 20


def with_version(dump, encoding):
    """The dump's module id with another version of the encoding: its last ten
    bits. Ids are saved as 64-bit lengths, a byte 0x81 before them."""
    assert dump[0] == 7 and dump[1] == 0x81
    number = int.from_bytes(dump[2:10], "big") & ~1023 | encoding
    return dump[:2] + number.to_bytes(8, "big")


def u(x):
    return b"\x02\x81" + struct.pack(">Q", x)


def d(x):
    return b"\x04" + struct.pack("<d", x)


def s(data):
    return b"\x05\x81" + struct.pack(">Q", len(data)) + data


def test_versions_of_old_are_read_and_newer_ones_refused(r):
    """A Bloom filter of version 0 has no bits and no n2, and may end within a
    byte; a cuckoo filter below 4 has three numbers."""
    r.execute_command("BF.RESERVE", "k", "0.01", 20)
    dump = r.dump("k")
    old = (with_version(dump, 0) + u(0) + u(1) + u(21) + d(0.01) + u(7) +
           d(9.585) + s(b"\0" * 26) + u(0) + b"\0" + dump[-10:-8])
    r.restore("old", 0, sealed(old))
    assert r.execute_command("BF.MADD", "old", *"abc") == [1, 1, 1]
    assert r.execute_command("BF.MEXISTS", "old", *"abcd") == [1, 1, 1, 0]
    assert b"bits:201 " in r.execute_command("BF.DEBUG", "old")[1]
    newer = with_version(dump, 5) + dump[10:-8]
    with pytest.raises(redis.exceptions.ResponseError):
        r.restore("newer", 0, sealed(newer))

    r.execute_command("CF.RESERVE", "c", 8)
    dump = r.dump("c")
    old = (with_version(dump, 3) + u(2) + u(4) + u(0) + s(b"\0" * 8) +
           s(b"\0" * 8) + b"\0" + dump[-10:-8])
    r.restore("oldc", 0, sealed(old))
    assert r.execute_command("CF.INFO", "oldc")[5] == 2
    assert r.execute_command("CF.INSERT", "oldc", "ITEMS", *range(40))
    assert all(r.execute_command("CF.MEXISTS", "oldc", *range(40)))
    assert r.execute_command("COPY", "oldc", "copy") == 1


@pytest.mark.parametrize("said", [0, 1, 14, 16, 20, 2**64 - 1])
def test_a_total_that_is_not_the_sum(r, said):
    """As large as it is, BF.MADD would see room for items that there is none
    for, and announce more replies than come."""
    r.execute_command("BF.RESERVE", "k", "0.01", 20, "NONSCALING")
    r.execute_command("BF.MADD", "k", *range(15))
    dump = r.dump("k")
    body, version = dump[:-10], dump[-10:-8]
    at = body.index(b"\x02\x0f")  # an integer, 15
    assert at == 10  # the first
    for replace in (body[:at] + u(said) + body[at + 2:], body):
        try:
            r.restore("k", 0, sealed(replace + version), replace=True)
            assert replace == body, "it was taken"
        except redis.exceptions.ResponseError as e:
            assert replace != body and "Bad data format" in str(e)
        use(r)
        assert r.ping()


@pytest.mark.parametrize("bits, n2", [
    (2**40, 0), (2**63, 0), (193, 0), (184, 0), (0, 0), (192, 8), (192, 63)])
def test_more_bits_than_there_are_bytes(r, bits, n2):
    """192 bits, or a few less in the last byte, are what 24 bytes hold."""
    r.execute_command("BF.RESERVE", "k", "0.01", 20)
    dump = r.dump("k")

    def filter_of(bits, n2):
        return sealed(dump[:10] + u(0) + u(1) + u(5) + u(2) + u(20) + d(0.01) +
                      u(7) + d(9.585) + u(bits) + u(n2) + s(b"\0" * 24) +
                      u(0) + b"\0" + dump[-10:-8])

    r.restore("good", 0, filter_of(192, 0))
    with pytest.raises(redis.exceptions.ResponseError, match="Bad data"):
        r.restore("bad", 0, filter_of(bits, n2))


def pieces_of(r, family):
    at, found = 0, []
    while True:
        at, data = r.execute_command(family + ".SCANDUMP", "k", at)
        if at == 0:
            return found
        found.append((at, data))


@pytest.mark.parametrize("family, key", [("BF", "bf"), ("CF", "cf")])
def test_chunks(r, family, key):
    for words in MAKE[key]:
        r.execute_command(*words)
    chunks = pieces_of(r, family)
    rng = random.Random(family)
    numbers = (0, 1, -1, 2, 2**31, 2**62, 2**63 - 1, -2**63)
    for _ in range(150):
        r.delete("k")
        for at, data in chunks:
            bad = data
            if rng.random() < 0.5:
                bad = next(mutations(rng, data))
            if rng.random() < 0.2:
                at = rng.choice(numbers)
            try:
                r.execute_command(family + ".LOADCHUNK", "k", at, bad)
            except redis.exceptions.ResponseError:
                pass
        use(r)


def test_load_of_valkey_bloom(server, r):
    """What an AOF holds of such a filter, changed."""
    for words in MAKE["vk"]:
        r.execute_command(*words)
    whole = (b"\x01" + struct.pack("<IddBQ", 2, 0.01, 0.5, 0, 1) +
             struct.pack("<Q", 45 + 24) + b"\x01" +
             struct.pack("<QI", 24, 7) + b"s" * 32 + b"\0" * 24 +
             struct.pack("<qq", 0, 20))
    assert r.execute_command("BF.LOAD", "good", whole) == b"OK"
    assert r.execute_command("BF.ADD", "good", "x") == 1
    for bad in mutations(random.Random(5), whole):
        r.delete("k")
        try:
            r.execute_command("BF.LOAD", "k", bad)
        except redis.exceptions.ResponseError as e:
            assert "decoding failed" in str(e)
            continue
        use(r)
    for n in range(len(whole)):
        with pytest.raises(redis.exceptions.ResponseError):
            r.execute_command("BF.LOAD", "short", whole[:n])


def test_files_in_pieces(r):
    for words in MAKE["bly"]:
        r.execute_command(*words)
    size, whole = r.execute_command("BLY.EXPORT", "k", 0)
    assert size == len(whole)
    for bad in mutations(random.Random(6), whole):
        r.delete("k")
        try:
            cut = len(bad) // 2
            r.execute_command("BLY.IMPORT", "k", 0, len(bad), bad[:cut])
            r.execute_command("BLY.IMPORT", "k", cut, len(bad), bad[cut:])
        except redis.exceptions.ResponseError:
            assert not r.exists("k"), "nothing of it stays"
            continue
        use(r)
    for offset, total in ((0, 2**62), (1, 100), (-1, 5), (0, 0), (5, 3),
                          (2**63 - 1, 2**63 - 1), (0, 2**63 - 1)):
        r.delete("k")
        with pytest.raises(redis.exceptions.ResponseError):
            r.execute_command("BLY.IMPORT", "k", offset, total, b"x")
