"""compress: coded files, and a decoder written from docs/format.md alone."""
import math
import struct

import pytest
from conftest import KINDS, kinds_that, keys

PAGE = 4096  # the header of a file that is not coded
SHORT = 296  # and of one that is


def build(ok, name, *argv, items=20000, n=10000):
    text = keys(0, n)
    if set(argv) & set(kinds_that("build", "get")):  # a value for each key
        text = text.replace("\n", "\t5\n")
    ok("build", "-q", "-o", name, "--items", items, *argv, stdin=text)


# ------------------------------------------------------------- the decoder

class Coder:
    """The decoder of docs/format.md."""

    def __init__(self, payload):
        self.payload, self.at, self.range = payload, 0, 2**64 - 1
        self.code = self.word() << 32
        self.code |= self.word()

    def word(self):
        self.at += 4
        assert self.at <= len(self.payload)
        return int.from_bytes(self.payload[self.at - 4:self.at], "big")

    def part(self, total):
        part = self.code // (self.range // total)
        assert part < total
        return part

    def step(self, cum, freq, total):
        r = self.range // total
        self.code -= r * cum
        self.range = r * freq
        if self.range < 2**32:
            self.code = self.code << 32 | self.word()
            self.range <<= 32


class Symbols:
    def __init__(self, n):
        self.counts = [1] * n

    def next(self, coder):
        total = sum(self.counts)
        part = coder.part(total)
        cum = symbol = 0
        while cum + self.counts[symbol] <= part:
            cum += self.counts[symbol]
            symbol += 1
        coder.step(cum, self.counts[symbol], total)
        self.counts[symbol] += 16
        if total + 16 >= 2**24:
            self.counts = [x - x // 2 for x in self.counts]
        return symbol


def ones(x):
    return bin(x).count("1")


BYTES = [[x for x in range(256) if ones(x) == t] for t in range(9)]


def word_of(number, c):
    """The word of c ones that has this number."""
    word = 0
    for b in (3, 2, 1):
        for t in range(min(8, c) + 1):
            rest = math.comb(8 * b, c - t)
            if number < len(BYTES[t]) * rest:
                break
            number -= len(BYTES[t]) * rest
        word |= BYTES[t][number // rest] << 8 * b
        number %= rest
        c -= t
    return word | BYTES[c][number]


def decode(payload, encoding, nbytes):
    coder, out = Coder(payload), bytearray()
    if encoding == 2:
        symbols = Symbols(256)
        out = bytearray(symbols.next(coder) for _ in range(nbytes))
    else:
        symbols = Symbols(33)
        while len(out) < nbytes:
            c = symbols.next(coder)
            number, count = 0, math.comb(32, c)
            if count > 1:
                number = coder.part(count)
                coder.step(number, 1, count)
            out += word_of(number, c).to_bytes(4, "little")
    assert coder.code == 0
    assert coder.at == len(payload) or len(payload) == -(-nbytes // 1024)
    assert not any(payload[coder.at:])
    return bytes(out[:nbytes])


def header_bytes(coded):
    """With the metadata and their sum, as docs/format.md says."""
    if not struct.unpack_from("<I", coded, 20)[0] & 1:
        return SHORT
    entries = struct.unpack_from("<I", coded, SHORT)[0]
    return SHORT + (4 + entries + 7) // 8 * 8 + 8


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "scalable"])
def test_the_page_tells_how_to_decode(ok, kind):
    build(ok, "f.bly", "--kind", kind, items=2000, n=700)
    ok("compress", "-q", "--decompress", "-o", "plain.bly", "f.bly")
    ok("compress", "-q", "-o", "coded.bly", "f.bly")
    plain = (ok.path / "plain.bly").read_bytes()
    coded = (ok.path / "coded.bly").read_bytes()
    if plain[64] == 0:  # no layers
        encoding, nbytes, stored = struct.unpack_from("<IQQ", coded, 68)
        assert struct.unpack_from("<IQQ", plain, 68) == (0, nbytes, nbytes)
        start = header_bytes(coded)
        payload = coded[start:start + stored]
        assert len(payload) == stored == len(coded) - start
        assert decode(payload, encoding, nbytes) == plain[PAGE:]


# ------------------------------------------------------------- the command

@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(ok, kind):
    build(ok, "f.bly", "--kind", kind)
    ok("compress", "-q", "--decompress", "-o", "plain.bly", "f.bly")
    ok("compress", "-q", "-o", "coded.bly", "plain.bly")
    ok("compress", "-q", "--decompress", "-o", "again.bly", "coded.bly")
    plain = (ok.path / "plain.bly").read_bytes()
    assert (ok.path / "again.bly").read_bytes() == plain
    info = ok("info", "--json", "coded.bly").json
    assert info["coded"] is True and info["checksum"] == "right"
    assert info["file_bytes"] == (ok.path / "coded.bly").stat().st_size
    assert info["uncoded_bytes"] == len(plain)
    assert ok("info", "--json", "plain.bly").json["coded"] is False
    assert ", coded (" in ok("info", "coded.bly").out
    assert "coded" not in ok("info", "plain.bly").out


@pytest.mark.parametrize("kind", kinds_that("has", "add", without=["likely-no"]))
def test_coded_files_are_used_like_others(ok, bly, kind):
    build(ok, "f.bly", "--kind", kind)
    ok("compress", "-q", "-o", "f.bly", "f.bly")
    assert ok("has", "-c", "f.bly", stdin=keys(0, 10000)).out == "10000\n"
    ok("add", "-q", "f.bly", stdin=keys(10000, 50))
    assert ok("has", "-c", "f.bly", stdin=keys(0, 10050)).out == "10050\n"
    assert ok("info", "--json", "f.bly").json["coded"] is True
    assert bly("has", "-q", "f.bly", "certainly not this", "nor that",
               "nor the third").status in (0, 1)


@pytest.mark.parametrize("kind", kinds_that("has", "add", "merge"))
def test_coded_and_plain_files_combine(ok, kind):
    build(ok, "a.bly", "--kind", kind, n=5000)
    ok("compress", "-q", "-o", "b.bly", "a.bly")
    ok("merge", "-q", "-o", "ab.bly", "a.bly", "b.bly")
    ok("merge", "-q", "-o", "ba.bly", "b.bly", "a.bly")
    assert ok("info", "--json", "ba.bly").json["coded"] is True


def test_what_it_says(ok):
    build(ok, "f.bly", "--kind", "classic")
    said = ok("compress", "--json", "-o", "g.bly", "f.bly").json
    before = (ok.path / "f.bly").stat().st_size
    after = (ok.path / "g.bly").stat().st_size
    assert said["file"] == "g.bly" and said["kind"] == "classic"
    assert said["coded"] is True
    assert said["bytes_before"] == before and said["bytes_after"] == after
    assert said["ratio"] == pytest.approx(after / before)
    p = ok("info", "--json", "f.bly").json["fill"]
    assert p == pytest.approx(1 - math.exp(-7 * 10000 / 191702), rel=0.01)
    worth = -p * math.log2(p) - (1 - p) * math.log2(1 - p)
    assert said["entropy_bytes"] == pytest.approx((before - PAGE) * worth,
                                                  rel=0.01)
    assert after - SHORT <= 1.01 * said["entropy_bytes"] + 16
    text = ok("compress", "-o", "g.bly", "f.bly").out
    assert "before" in text and "after" in text and "%" in text
    back = ok("compress", "--json", "--decompress", "-o", "h.bly", "g.bly").json
    assert back["coded"] is False
    assert back["bytes_before"] == after and back["bytes_after"] == before


@pytest.mark.parametrize("kind", ["blocked", "classic", "counting"])
def test_a_sparse_file_is_worth_its_contents(ok, kind):
    """All of the file, its header too: 20000 keys where a million would fit."""
    build(ok, "f.bly", "--kind", kind, items=1000000, n=20000)
    said = ok("compress", "--json", "-o", "g.bly", "f.bly").json
    assert said["bytes_after"] <= 1.01 * said["entropy_bytes"]
    ok("compress", "-q", "--decompress", "-o", "h.bly", "g.bly")
    assert ((ok.path / "h.bly").read_bytes() ==
            (ok.path / "f.bly").read_bytes())


def test_levels_are_sent_in_a_few_bytes(ok):
    """Headers of coded levels are not filled up to pages."""
    build(ok, "f.bly", "--kind", "attenuated", items=100, n=10)
    said = ok("compress", "--json", "-o", "g.bly", "f.bly").json
    assert said["bytes_after"] <= said["entropy_bytes"] + 5 * (SHORT + 16)


def test_pipes_and_places(ok, trouble):
    build(ok, "f.bly")
    coded = ok("compress", "-o", "-", "f.bly")
    assert "after" in coded.err
    plain = ok("compress", "-q", "--decompress", "-o", "-", "-", stdin=coded.raw)
    assert plain.raw == (ok.path / "f.bly").read_bytes()
    ok("compress", "-q", "-o", "f.bly", "f.bly")
    assert (ok.path / "f.bly").read_bytes() == coded.raw
    ok("compress", "-q", "-o", "f.bly", "f.bly")  # once more changes nothing
    assert (ok.path / "f.bly").read_bytes() == coded.raw
    trouble("compress", "f.bly", says="-o")
    trouble("compress", "-o", "g.bly", says="one filter")
    trouble("compress", "-o", "g.bly", "f.bly", "f.bly", says="one filter")
    trouble("compress", "-o", "g.bly", "none.bly", says="none.bly")
    trouble("compress", "-o", "-", "--json", "f.bly", says="--json")
    assert not (ok.path / "g.bly").exists()


def test_damage_is_found(ok, trouble):
    build(ok, "f.bly")
    ok("compress", "-q", "-o", "g.bly", "f.bly")
    for name in ("f.bly", "g.bly"):
        whole = bytearray((ok.path / name).read_bytes())
        whole[PAGE + 1000] ^= 4
        (ok.path / "bad.bly").write_bytes(whole)
        for way in ([], ["--decompress"]):
            trouble("compress", *way, "-o", "out.bly", "bad.bly",
                    says="checksum")
        assert not (ok.path / "out.bly").exists()
    trouble("has", "bad.bly", "key-1", says="checksum")
    trouble("info", "bad.bly", says="checksum")


def test_keyed_filters_need_no_key(ok):
    (ok.path / "key").write_bytes(bytes(range(16)))
    build(ok, "f.bly", "--key-file", "key")
    ok("compress", "-q", "-o", "g.bly", "f.bly")
    assert ok("has", "-c", "--key-file", "key", "g.bly",
              stdin=keys(0, 100)).out == "100\n"


def test_a_filter_that_is_made_to_be_sent(ok):
    ok("build", "-q", "-o", "f.bly", "--kind", "compressed", "--fpr", "1%",
       stdin=keys(0, 50000))
    info = ok("info", "--json", "f.bly").json
    assert info["coded"] is True
    assert info["params"]["sent_bits_per_key"] < 9
    assert info["file_bytes"] - SHORT == pytest.approx(
        info["params"]["sent_bits"] / 8, rel=0.01)
    ok("build", "-q", "-o", "c.bly", "--kind", "classic", "--fpr", "1%",
       stdin=keys(0, 50000))
    ok("compress", "-q", "-o", "c.bly", "c.bly")
    assert info["file_bytes"] < 0.95 * (ok.path / "c.bly").stat().st_size
    assert ok("has", "-c", "f.bly", stdin=keys(0, 50000)).out == "50000\n"
    planned = ok("plan", "--json", "-n", 50000, "-p", "1%", "--kind",
                 "compressed").json["kinds"][0]
    assert planned["params"]["sent_bits"] == info["params"]["sent_bits"]
    assert planned["bytes"] == -(-info["params"]["bits"] // 8)


@pytest.mark.parametrize("kind", kinds_that("has", "add", without=["likely-no"]))
def test_compact_files_are_used_like_others(ok, kind):
    build(ok, "f.bly", "--kind", kind, items=200, n=100)
    ok("compress", "-q", "--decompress", "-o", "plain.bly", "f.bly")
    said = ok("compress", "--json", "--compact", "-o", "c.bly", "plain.bly").json
    assert said["compact"] is True
    assert said["bytes_after"] == (ok.path / "c.bly").stat().st_size < 4096 + 120
    assert ok("info", "--json", "c.bly").json["format_version"] == 3
    ok("compress", "-q", "--decompress", "-o", "back.bly", "c.bly")
    assert (ok.path / "back.bly").read_bytes() == (ok.path / "plain.bly").read_bytes()
    assert ok("has", "-c", "c.bly", stdin=keys(0, 100)).out == "100\n"
    # Changed, it stays compact.
    ok("add", "-q", "c.bly", stdin=keys(0, 5))
    assert ok("info", "--json", "c.bly").json["format_version"] == 3


def test_damaged_compact_files(ok, trouble):
    build(ok, "f.bly", "--kind", "classic", items=100, n=100)
    ok("compress", "-q", "--compact", "-o", "c.bly", "f.bly")
    whole = (ok.path / "c.bly").read_bytes()
    (ok.path / "c.bly").write_bytes(whole[:100])
    assert "cut short: it has 100 bytes" in trouble("has", "c.bly", "key").err
    (ok.path / "c.bly").write_bytes(whole[:-20] + b"?" + whole[-19:])
    assert "does not match its checksum" in trouble("has", "c.bly", "key").err
    assert "one of them" in trouble("compress", "--compact", "--decompress", "-o", "x.bly", "f.bly").err
