"""Filters of other systems in info, has, build --format, convert --to, formats."""
import bz2
import gzip
import lzma
import json

import pytest
from conftest import keys, run

FORMATS = json.loads(run("formats", "--json").out)
WRITTEN = [f["format"] for f in FORMATS if "build" in f["can"]]
URLS = "".join(f"http://item.test/{i}\n" for i in range(1000))
OTHERS = "".join(f"http://other.test/{i}\n" for i in range(1000))


def test_formats_lists_what_it_describes(ok, trouble):
    table = ok("formats").out
    for f in FORMATS:
        assert f["format"] in table
        page = ok("formats", f["format"]).out
        assert page.startswith(f["format"] + ": ")
        for option in f["options"]:
            assert option["name"] in page
    trouble("formats", "gauva", says=["gauva", "guava"])


@pytest.mark.parametrize("name", WRITTEN)
def test_build_info_has(ok, bly, name):
    """A filter of each format is made, recognised, described and asked."""
    made = ok("build", "--format", name, "--json", "-o", "f", "-p", "1%", stdin=URLS).json
    assert made["keys"] == 1000 and made["format"] == name
    info = ok("info", "--json", "f").json
    # A table of RedisBloom's cuckoo filter with room for 1000 overflows before the last of them.
    assert info["format"] == name and info["filters"] == (2 if name == "rediscuckoo" else 1)
    assert info["bits"] == made["bits"] and info["k"] == made["k"]
    assert abs(info["items_estimate"] - 1000) < 100
    assert name in ok("info", "f").out
    assert ok("has", "f", "-f", "-", stdin=URLS).out == URLS
    wrong = bly("has", "-c", "f", stdin=OTHERS)
    assert int(wrong.out) <= max(40, 3000 * info["fpr_now"])
    assert bly("has", "-v", "f", stdin=URLS).status == 1
    got = ok("has", "-c", "--json", "f", stdin=URLS).json
    assert got == {"asked": 1000, "maybe": 1000, "by_mistake": got["by_mistake"]}
    assert (got["by_mistake"] or 0) < 1e-6  # next to nothing, or not known
    assert ok("has", "-q", "f", "http://item.test/7").out == ""
    # The same bytes, whether the number of keys was known or found out.
    ok("build", "-q", "--format", name, "--items", 1000, "-o", "g", stdin=URLS)
    assert (ok.path / "f").read_bytes() == (ok.path / "g").read_bytes()
    # Compressed, and through a pipe.
    (ok.path / "f.gz").write_bytes(gzip.compress((ok.path / "f").read_bytes()))
    assert ok("info", "--json", "f.gz").json["bits"] == info["bits"]
    for pack in lzma.compress, bz2.compress:
        (ok.path / "f.x").write_bytes(pack((ok.path / "f").read_bytes()))
        assert ok("info", "--json", "f.x").json["bits"] == info["bits"]
    piped = ok("info", "--json", "--format", name, "-", stdin=(ok.path / "f").read_bytes())
    assert piped.json["bits"] == info["bits"]
    # To standard output.
    assert ok("build", "--format", name, "-o", "-", stdin=URLS).raw == (ok.path / "f").read_bytes()


@pytest.mark.parametrize("name", WRITTEN)
def test_convert_both_ways(ok, trouble, name):
    (ok.path / "all").write_text(URLS + OTHERS)
    ok("build", "-q", "-o", "ours.bly", "-p", "0.1%", stdin=URLS)
    trouble("convert", "--to", name, "-o", "theirs", "ours.bly", says=["keys", "-f INPUT"])
    made = ok("convert", "--json", "--to", name, "-o", "theirs", "-f", "all", "ours.bly").json
    assert 980 <= made["left_out"] <= 1000  # what was not in ours stays out
    assert ok("has", "theirs", stdin=URLS).out == URLS
    trouble("convert", "--kind", "classic", "-o", "back.bly", "theirs", says=["keys", "-f INPUT"])
    ok("convert", "-q", "--kind", "classic", "-o", "back.bly", "-f", "all", "theirs")
    assert ok("has", "back.bly", stdin=URLS).out == URLS


def test_bad_input(ok, trouble, bly):
    ok("build", "-q", "--format", "guava", "-o", "f", stdin=URLS)
    before = (ok.path / "f").read_bytes()
    trouble("build", "--format", "gauva", "-o", "x", stdin=URLS, says=["did you mean 'guava'"])
    trouble("build", "--format", "guava", "--kind", "fuse", "-o", "x", stdin=URLS, says="--kind")
    trouble("build", "--format", "guava", "-O", "keys=words", "-o", "x", stdin=URLS, says="keys")
    trouble("build", "--format", "guava", "-O", "keys=int64", "-o", "x", stdin="1\ntwo\n", says="two")
    trouble("build", "--format", "guava", "-o", "x", stdin="", says="no keys")
    trouble("build", "--format", "guava", "-o", "f", "f", says="f")
    trouble("has", "-O", "keys=int64", "f", "twelve", says=["f", "twelve", "64 bits"])
    trouble("has", "-O", "nothing=1", "f", "x", says="nothing")
    trouble("has", "--format", "guava", "none", "x", says="none")
    trouble("has", "--parts", "-v", "f", "x", says="--parts")
    (ok.path / "cut").write_bytes(before[:-1])
    trouble("info", "cut", says="not a .bly file")
    trouble("info", "--format", "guava", "cut", says=["cut", "words"])
    (ok.path / "empty").write_bytes(b"")
    trouble("info", "empty")
    trouble("info", "--format", "guava", "empty", says="empty")
    (ok.path / "gz").write_bytes(gzip.compress(before)[:-9])
    trouble("info", "gz", says="gz")
    trouble("add", "f", "key", says=["guava", "cannot be changed"])
    trouble("build", "--format", "guava", "-o", "/dev/full", stdin=URLS, says="/dev/full")
    assert not (ok.path / "x").exists()
    assert (ok.path / "f").read_bytes() == before
    assert not list(ok.path.glob(".*"))


def test_our_own_are_never_taken_for_others(ok):
    ok("build", "-q", "-o", "f.bly", stdin=keys(0, 1000))
    assert "kind" in ok("info", "--json", "f.bly").json


def test_add_changes_nothing_where_it_fails(ok, trouble):
    """What is full, compressed, of another kind or a wrong key stays as it is."""
    ok("build", "-q", "--format", "redisbloom", "-O", "scaling=no", "--items", 10, "-o", "f", stdin="a\nb\n")
    whole = (ok.path / "f").read_bytes()
    trouble("add", "f", stdin=URLS, says=["f:", "full", "10"])
    trouble("add", "f", "-O", "keys=hex", "xyz", says=["f:", "xyz"])
    trouble("add", "f", "--format", "guava", "x", says="f:")
    assert (ok.path / "f").read_bytes() == whole
    (ok.path / "f.gz").write_bytes(gzip.compress(whole))
    trouble("add", "f.gz", "x", says=["f.gz", "compressed"])
    assert gzip.decompress((ok.path / "f.gz").read_bytes()) == whole
    ok("build", "-q", "--format", "guava", "-o", "g", stdin="a\nb\n")
    trouble("add", "g", "x", says=["g:", "guava"])
    assert ok("add", "f", "-O", "keys=hex", "--json", "00ff", "00ff").json == {"file": "f", "keys": 2, "new": 1}
    assert ok("has", "f", "-O", "keys=hex", "00ff").out == "00ff\n"


def test_remove_and_count_of_a_cuckoo_dump(ok, bly, trouble):
    """Dumps of CF.* hold keys as often as they were added, and give them
    back."""
    ok("build", "-o", "f", "--format", "rediscuckoo",
       stdin="".join(f"{i}\n" for i in range(500)))
    ok("add", "f", "7", "7")
    assert ok("count", "f", "7", "8").out == "7\t3\n8\t1\n"
    assert ok("count", "f", "--json", "7").json == {"key": "7", "count": 3}
    assert ok("count", "f", "--min", "2", "7", "8").out == "7\t3\n"
    ok("remove", "f", "7", "7")
    assert ok("count", "f", "7").out == "7\t1\n"
    before = (ok.path / "f").read_bytes()
    some = bly("remove", "f", "--json", "no such key", "8")
    assert some.status == 1 and "no such key: absent" in some.err
    assert some.json["removed"] == 1 and some.json["refused"] == 1
    assert (ok.path / "f").read_bytes() != before
    before = (ok.path / "f").read_bytes()
    assert bly("remove", "-q", "f", "no such key").status == 1
    assert (ok.path / "f").read_bytes() == before
    # Those that neither count nor give back say so.
    ok("build", "-o", "b", "--format", "redisbloom", stdin="a\n")
    for command in "remove", "count":
        trouble(command, "b", "a", says="redisbloom")
        trouble(command, "missing", "a", says="missing")
