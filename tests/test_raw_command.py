"""raw: the bits of a filter alone, out and in; and kinds that have them."""

import pytest

from conftest import TABLE, kinds_that, keys

RAW = kinds_that("raw")
OTHERS = [k["kind"] for k in TABLE if k["kind"] not in RAW]


def build(ok, path, kind, *options, n=100):
    ok("build", "-q", "-o", path, "-k", kind, *options, stdin=keys(0, n))


def empty(ok, path, kind):
    """The same parameters as above, and no key."""
    ok("build", "-q", "-o", path, "-k", kind, "-n", 100, stdin="")


@pytest.mark.parametrize("kind", RAW)
def test_what_goes_out_comes_in(ok, kind):
    build(ok, "f.bly", kind, "-n", 100)
    empty(ok, "g.bly", kind)
    bits = ok("raw", "f.bly").raw
    said = ok("raw", "--json", "-o", "f.bits", "f.bly").json
    assert (ok.path / "f.bits").read_bytes() == bits
    assert said == {"file": "f.bits", "kind": kind, "bytes": len(bits),
                    "set": False}
    # The payload of the file, which starts with a page.
    ok("compress", "-q", "--decompress", "-o", "plain.bly", "f.bly")
    payload = (ok.path / "plain.bly").read_bytes()[4096:]
    assert payload.startswith(bits) and not any(payload[len(bits):])
    assert ok("raw", "--hex", "f.bly").out == bits.hex() + "\n"

    before = (ok.path / "g.bly").read_bytes()
    said = ok("raw", "--json", "--set", "f.bits", "-o", "h.bly", "g.bly").json
    assert said == {"file": "h.bly", "kind": kind, "bytes": len(bits),
                    "set": True}
    assert (ok.path / "g.bly").read_bytes() == before
    assert ok("raw", "h.bly").raw == bits
    ok("raw", "-q", "--set", "-", "g.bly", stdin=bits)
    assert ok("raw", "g.bly").raw == bits
    asked = [ok("has", "-v", name, stdin=keys(0, 200)).out.replace(name, "")
             for name in ("f.bly", "g.bly", "h.bly")]
    assert asked[0] == asked[1] == asked[2]


def test_a_packet_of_32_bytes(ok, bly):
    ok("build", "-q", "-k", "generalized", "-n", 15, "-b", 256, "-O", "k0=2",
       "-O", "k1=2", "-o", "way.bly", stdin="")
    assert ok("raw", "way.bly").raw == bytes(32)
    # A sender who sets every bit passes for nobody.
    ok("raw", "-q", "--set", "-", "way.bly", stdin=b"\xff" * 32)
    assert bly("has", "-c", "way.bly", stdin=keys(0, 500)).out == "0\n"
    ok("add", "-q", "way.bly", "router 7")
    packet = ok("raw", "--hex", "way.bly").out
    assert len(packet) == 65 and packet != "f" * 64 + "\n"
    for end in "\n", "\r\n", "":
        text = packet.strip().upper() + end
        ok("raw", "-q", "--hex", "--set", "-", "-o", "next.bly", "way.bly",
           stdin=text)
        assert ok("raw", "--hex", "next.bly").out == packet
        ok("has", "-q", "next.bly", "router 7")


def test_wrong_bits_change_nothing(ok, trouble):
    build(ok, "f.bly", "classic", "-n", 100)
    before = (ok.path / "f.bly").read_bytes()
    n = len(ok("raw", "f.bly").raw)
    wrong = {"empty": b"", "short": bytes(n - 1), "long": bytes(n + 1),
             "longer": bytes(100 * n)}
    for name, bits in wrong.items():
        (ok.path / name).write_bytes(bits)
        said = trouble("raw", "--set", name, "f.bly",
                       says=f"the raw form of f.bly has {n}").err
        assert name in said and ("more than" in said) == ("long" in name)
    trouble("raw", "--set", "none", "f.bly", says="none")
    trouble("raw", "--set", ".", "f.bly", says=".")
    for text in "12", "0" * (2 * n - 1), "g" * 2 * n, "0x" + "0" * (2 * n - 2), \
            "0" * 2 * n + "\n\n", "0" * 2 * n + "\n0":
        (ok.path / "text").write_text(text)
        trouble("raw", "--hex", "--set", "text", "f.bly", says="text")
    assert (ok.path / "f.bly").read_bytes() == before
    bits = int(ok("info", "--json", "f.bly").json["params"]["bits"])
    if bits % 8:
        trouble("raw", "--set", "-", "f.bly", stdin=b"\xff" * n,
                says="past the last one")
    assert (ok.path / "f.bly").read_bytes() == before


@pytest.mark.parametrize("kind", OTHERS)
def test_kinds_that_are_more_than_bits(ok, trouble, kind):
    values = "".join(f"key-{i}\t1\n" for i in range(10))
    stdin = values if "set" in next(
        k["can"] for k in TABLE if k["kind"] == kind) else keys(0, 10)
    ok("build", "-q", "-o", "f.bly", "-k", kind, stdin=stdin)
    for words in (["raw", "f.bly"], ["raw", "--set", "-", "f.bly"]):
        said = trouble(*words, stdin=b"").err
        assert kind in said and "blocked" in said


def test_operands_and_outputs(ok, trouble):
    build(ok, "f.bly", "blocked")
    trouble("raw", says="one filter")
    trouble("raw", "f.bly", "f.bly", says="one filter")
    trouble("raw", "none.bly", says="none.bly")
    trouble("raw", "-o", "f.bly", "f.bly", says="f.bly")
    trouble("raw", "--json", "f.bly", says="--json")
    trouble("raw", "--set", "-", "-", says="standard input")
    trouble("raw", "-o", "/dev/full", "f.bly", says="/dev/full")
    ok("raw", "-q", "-o", "f.bits", "f.bly")
    trouble("raw", "--set", "f.bits", "-o", "f.bits", "f.bly", says="f.bits")
    # Through pipes, and from a compact file.
    whole = (ok.path / "f.bly").read_bytes()
    assert ok("raw", "-", stdin=whole).raw == (ok.path / "f.bits").read_bytes()
    assert ok("raw", "--set", "f.bits", "-o", "-", "f.bly").raw[:4] == whole[:4]
    ok("compress", "-q", "--compact", "-o", "c.bly", "f.bly")
    assert ok("raw", "c.bly").raw == (ok.path / "f.bits").read_bytes()
