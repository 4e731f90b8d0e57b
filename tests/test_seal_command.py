"""bloomery seal: documents that are searched by somebody who cannot read them.

The index is read here as docs/seal.md describes it, so that the three
experiments of the scheme are made from the file that the other side holds.
"""
import ctypes
import ctypes.util
import hashlib
import itertools
import json
import math
import os
import random
import re
import signal
import struct
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM, run

pytestmark = pytest.mark.skipif(
    "without libsodium" in run("seal", "init").err, reason="no libsodium")


def text(words, n=1):
    return " ".join(words) + "\n"


@pytest.fixture
def archive(ok):
    """Thirty documents of a hundred words, of which word-i-j is in document i
    alone, `all` in all and `third` in each third."""
    (ok.path / "docs").mkdir()
    for i in range(30):
        words = [f"word{i}x{j}" for j in range(98)] + ["All"] + \
            (["Third"] if i % 3 == 0 else ["other"])
        (ok.path / "docs" / f"{i}.txt").write_text(text(words))
    ok("seal", "init", "-q", "-o", "key")
    ok("seal", "add", "-q", "-K", "key", "-p", 0.001, "arch", "docs")
    return ok


def door(ok, word, key="key"):
    return ok("seal", "trapdoor", "-K", key, word).out.strip()


def found(bly, word, archive="arch"):
    done = bly("seal", "search", archive, door(bly, word))
    assert done.status == (0 if done.lines else 1), done.err
    return done.lines


def names(bly, ids):
    done = bly("seal", "open", "-K", "key", "arch", "--names", *ids)
    return sorted(re.findall(r"  (.*),", done.out))


def files_below(folder):
    """Names and contents of all files."""
    return {str(p.relative_to(folder)): p.read_bytes()
            for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def read_index(path):
    """Rate, probes, and id, m and bits of each document."""
    data = path.read_bytes()
    magic, version, r, p = struct.unpack_from("<8sIId", data)
    assert (magic, version) == (b"BLYSEALX", 2)
    n, at, entries = struct.unpack_from("<Q", data, 32)[0], 64, []
    for _ in range(n):
        id_, m = struct.unpack_from("<16sQ", data, at)
        nbytes = (m + 7) // 8
        entries.append((id_.hex(), m, data[at + 24:at + 24 + nbytes]))
        at += 24 + nbytes + 16
    assert at == len(data)
    return p, r, entries


def ones(bits):
    return int.from_bytes(bits, "little").bit_count() \
        if hasattr(int, "bit_count") else bin(int.from_bytes(bits, "little")).count("1")


# ------------------------------------------------------------------ the way

def test_found_and_opened(archive):
    assert len(found(archive, "all")) == 30
    third = [f"docs/{i}.txt" for i in range(0, 30, 3)]
    ids = found(archive, "THIRD")
    assert set(third) <= set(names(archive, ids))
    opened = archive("seal", "open", "-K", "key", "arch", "-w", "third", "-o",
                     "out", stdin="\n".join(ids))
    assert files_below(archive.path / "out") == {
        name: (archive.path / name).read_bytes() for name in third}
    assert len(opened.lines) == 10
    one = found(archive, "word7x3")
    assert "docs/7.txt" in names(archive, one)
    shown = archive("seal", "open", "-K", "key", "arch", "-w", "word7x3", *one)
    assert shown.raw == (archive.path / "docs" / "7.txt").read_bytes()


def test_several_words_are_all_wanted(archive):
    done = archive("seal", "search", "arch", door(archive, "third"),
                   door(archive, "word6x1"))
    assert "docs/6.txt" in names(archive, done.lines) and len(done.lines) < 3


def test_more_is_added_later(archive):
    (archive.path / "late.txt").write_text("a latecomer, naïve and ÜBER\n")
    told = archive("seal", "add", "-K", "key", "arch", "late.txt", "--json")
    assert (told.json["documents"], told.json["all"]) == (1, 31)
    for word in ("latecomer", "NAÏVE", "über"):
        assert "late.txt" in names(archive, found(archive, word))
    assert len(found(archive, "all")) >= 30


CONTENTS = {
    "empty": b"", "letter": b"x", "no UTF-8": b"\xff\xfe\x00\x80",
    "half a letter": b"\xc3", "a long word": "é".encode() * 20000,
    "exactly a piece": b"a" * (16384 - 20 - 1), "NUL": b"one\0two",
    "random": random.Random(1).randbytes(100000),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_any_bytes_come_back(ok, content):
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "d").write_bytes(content)
    ok("seal", "add", "-q", "-K", "key", "arch", "d")
    p, r, entries = read_index(ok.path / "arch" / "index")
    assert ok("seal", "open", "-K", "key", "arch", entries[0][0]).raw == content
    for word in (b"x", b"one", b"two"):
        if re.search(rb"\b%s\b" % word, content) and len(content) < 9:
            assert found(ok, word.decode())


# -------------------------------------------------------------- experiments

def test_every_match_is_found_and_others_at_the_rate(ok):
    """(a): 300 documents, words that one of them has, words that none has."""
    (ok.path / "docs").mkdir()
    for i in range(300):
        (ok.path / "docs" / f"{i}").write_text(f"only{i} " + "x" * 100)
    ok("seal", "init", "-q", "-o", "key")
    ok("seal", "add", "-q", "-K", "key", "-p", 0.05, "arch", "docs")
    doors = ok("seal", "trapdoor", "-K", "key",
               *(f"only{i}" for i in range(40)),
               *(f"none{i}" for i in range(40))).lines
    wrong = 0
    for i, trapdoor in enumerate(doors):
        ids = run("seal", "search", "arch", trapdoor, cwd=ok.path).lines
        wrong += len(ids)
        if i < 40:
            assert f"docs/{i}" in names(ok, ids)
            wrong -= 1
    n = 80 * 300 - 40
    # r is rounded up, so a filter that is exactly half full errs with 2^-5.
    p = 2.0 ** -math.ceil(math.log2(1 / 0.05))
    # How full a filter is varies, too: about r / sqrt(m) of the rate.
    assert abs(wrong / n - p) < 3 * math.sqrt(p / n) + 0.1 * p


def test_equal_documents_are_strangers(ok):
    """(b): the same words, and as many common ones as chance has it."""
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "a").write_text(text(f"w{i}" for i in range(5000)))
    ok("seal", "add", "-q", "-K", "key", "arch", "a", "a")
    _, r, [(ida, m, a), (idb, mb, b)] = read_index(ok.path / "arch" / "index")
    assert ida != idb and m == mb
    common = ones(bytes(x & y for x, y in zip(a, b))) / m
    chance = ones(a) / m * (ones(b) / m)
    assert abs(common - chance) < 4 * math.sqrt(chance * (1 - chance) / m)


def test_fill_does_not_tell_how_many_words(ok):
    """(c): one word 5,000 times, or 5,000 words: as long, and as full."""
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "few").write_text(text(["w1234"] * 5000))
    (ok.path / "many").write_text(text(f"w{i}" for i in range(1000, 6000)))
    ok("seal", "add", "-q", "-K", "key", "arch", "few", "many")
    _, r, [(_, m, few), (_, mb, many)] = read_index(ok.path / "arch" / "index")
    assert m == mb
    sealed = [os.path.getsize(ok.path / "arch" / f)
              for f in os.listdir(ok.path / "arch") if f.endswith("sealed")]
    assert sealed[0] == sealed[1]
    fills = ones(few) / m, ones(many) / m
    assert abs(fills[0] - 0.5) < 0.01
    # The deviation of a fill at one half, twice over.
    assert abs(fills[0] - fills[1]) < 4 * math.sqrt(2 * 0.25 / m)


def test_the_index_does_not_tell_the_order_of_names(ok):
    """Of 40 documents, in the order of their names by chance once in 10^47; of
    one that is named twice, the later counts."""
    (ok.path / "docs").mkdir()
    for i in range(40):
        (ok.path / "docs" / f"{i:02}").write_text(f"text {i}")
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "other").mkdir()
    (ok.path / "other" / "x").write_text("first")
    (ok.path / "x").write_text("second")
    ok("seal", "add", "-q", "-K", "../key", "../arch", "../docs", "x", "../x",
       cwd=ok.path / "other")
    ids = [entry[0] for entry in read_index(ok.path / "arch" / "index")[2]]
    listed = ok("seal", "open", "-K", "key", "--names", "arch", *ids).out
    order = re.findall(r"docs/(\d\d)", listed)
    assert len(order) == 40 and order != sorted(order)
    ok("seal", "open", "-K", "key", "-o", "out", "arch", *ids)
    assert (ok.path / "out" / "x").read_text() == "second"


def test_nothing_of_a_text_is_in_the_archive(archive):
    everything = b"".join((archive.path / "arch" / f).read_bytes()
                          for f in os.listdir(archive.path / "arch"))
    for word in (b"word7x3", b"Third", b"third", b"7.txt"):
        assert word not in everything
    key = (archive.path / "key").read_text().strip()
    assert bytes.fromhex(key) not in everything


# ------------------------------------------------- names, versions, folders

def seal(folder, keyfile, name, text, number=None):
    """Seal a document as docs/seal.md describes it, whatever its name; without
    a number as version 1 did. Its id."""
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    master = bytes.fromhex(keyfile.read_text())

    def derived(n, which):
        out = ctypes.create_string_buffer(n)
        sodium.crypto_kdf_derive_from_key(out, ctypes.c_size_t(n),
                                          ctypes.c_uint64(which), b"blyseal1",
                                          master)
        return out.raw
    id_ = os.urandom(16)
    head = b"BLYSEALD" + struct.pack("<II", 1 if number is None else 2, 0) + \
        derived(16, 3)[:8] + id_
    inside = struct.pack("<IQ", len(name), len(text)) + \
        (b"" if number is None else struct.pack("<Q", number)) + name + text
    inside += bytes(-len(inside) % 1024)
    assert len(inside) <= 16384
    state = ctypes.create_string_buffer(
        sodium.crypto_secretstream_xchacha20poly1305_statebytes())
    start = ctypes.create_string_buffer(24)
    sodium.crypto_secretstream_xchacha20poly1305_init_push(state, start,
                                                           derived(32, 1))
    sealed = ctypes.create_string_buffer(len(inside) + 17)
    sodium.crypto_secretstream_xchacha20poly1305_push(
        state, sealed, None, inside, ctypes.c_uint64(len(inside)), head,
        ctypes.c_uint64(len(head)), ctypes.c_ubyte(3))
    (folder / f"{id_.hex()}.sealed").write_bytes(head + start.raw + sealed.raw)
    return id_.hex()


def test_files_of_one_name_in_several_folders(ok):
    """They took each other's place, and the status was 0."""
    wanted = {}
    for folder in "a", "b", "a/deep/er":
        (ok.path / folder).mkdir(parents=True)
        for name in "x.txt", "y.txt":
            (ok.path / folder / name).write_text(f"common {folder} {name}")
            wanted[f"{folder}/{name}"] = f"common {folder} {name}".encode()
    ok("seal", "init", "-q", "-o", "key")
    ok("seal", "add", "-q", "-K", "key", "arch", "a", "b/")
    ids = found(ok, "common")
    ok("seal", "open", "-K", "key", "-o", "out", "arch", *ids)
    assert files_below(ok.path / "out") == wanted
    # However the path was written, nothing of it leads out of the folder.
    (ok.path / "in").mkdir()
    for path in (ok.path / "a" / "x.txt", "../b/x.txt", ".././a//y.txt",
                 "../a/../b/y.txt"):
        ok("seal", "add", "-q", "-K", "../key", "../other", path,
           cwd=ok.path / "in")
    ids = found(ok, "common", "other")
    ok("seal", "open", "-K", "key", "-o", "again", "other", *ids)
    inner = str(ok.path / "a" / "x.txt").lstrip("/")
    assert sorted(files_below(ok.path / "again")) == \
        sorted([inner, "b/x.txt", "a/y.txt", "b/y.txt"])


def test_the_newest_of_a_name_wins(ok):
    """In whatever order they are opened, and however often."""
    ok("seal", "init", "-q", "-o", "key")
    for i in range(3):
        (ok.path / "letter").write_text(f"common version{i}")
        ok("seal", "add", "-q", "-K", "key", "arch", "letter")
    ids = [entry[0] for entry in read_index(ok.path / "arch" / "index")[2]]
    for n, some in enumerate(itertools.permutations(ids)):
        told = ok("seal", "open", "-K", "key", "-o", f"out{n}", "--json",
                  "arch", stdin="\n".join(some + some[:1]))
        assert files_below(ok.path / f"out{n}") == \
            {"letter": b"common version2"}
        assert [(line["id"], line["older"]) for line in
                map(json.loads, told.lines)] == \
            [(id_, id_ != ids[2]) for id_ in some]
    # An old one can be had, by asking for it alone.
    ok("seal", "open", "-K", "key", "-o", "old", "arch", ids[0])
    assert files_below(ok.path / "old") == {"letter": b"common version0"}
    # With a word, of those that have it.
    ok("seal", "open", "-K", "key", "-o", "second", "-w", "version1", "arch",
       *ids)
    assert files_below(ok.path / "second") == {"letter": b"common version1"}
    listed = ok("seal", "open", "-K", "key", "--names", "arch", *ids).lines
    assert [line.endswith(", older") for line in listed] == [True, True, False]


def test_documents_that_were_sealed_without_a_number(ok, bly):
    """Their place in the index counts; without one nothing is chosen."""
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "arch").mkdir()
    old = [seal(ok.path / "arch", ok.path / "key", b"letter", b"common %d" % i)
           for i in range(3)]
    assert ok("seal", "open", "-K", "key", "arch", old[1]).raw == b"common 1"
    ok("seal", "open", "-K", "key", "-o", "one", "arch", old[1])
    assert files_below(ok.path / "one") == {"letter": b"common 1"}
    done = bly("seal", "open", "-K", "key", "-o", "none", "arch", *old)
    assert done.status == 2 and done.err.count("newer") == 3
    assert files_below(ok.path / "none") == {}
    # An index as version 1 wrote it, in this order.
    (ok.path / "x").write_text("another")
    ok("seal", "add", "-q", "-K", "key", "arch", "x")
    data = (ok.path / "arch" / "index").read_bytes()
    entry = data[64:-16]
    entries = b""
    for id_ in (old[1], old[2], old[0]):
        one = bytes.fromhex(id_) + entry[16:]
        entries += one + hashlib.blake2b(one, digest_size=16).digest()
    head = data[:32] + struct.pack("<QQ", 3, 0)
    (ok.path / "arch" / "index").write_bytes(
        head + hashlib.blake2b(head, digest_size=16).digest() + entries)
    ok("seal", "open", "-K", "key", "-o", "now", "arch", *old)
    assert files_below(ok.path / "now") == {"letter": b"common 0"}


def test_who_holds_the_index_does_not_choose_the_rate(archive, trouble):
    """Its checksum needs no key, so anybody can write another rate: nothing is sealed at that one."""
    index = archive.path / "arch" / "index"
    good = index.read_bytes()
    rate, r, _ = read_index(index)

    def written(version, probes, fpr, proof=good[40:48]):
        head = good[:8] + struct.pack("<IId", version, probes, fpr) + good[24:40] + proof
        index.write_bytes(head + hashlib.blake2b(head, digest_size=16).digest() + good[64:])
    (archive.path / "more").write_text("another text")
    add = ["seal", "add", "-q", "-K", "key", "arch", "more"]
    for probes, fpr in ((r + 8, rate / 256), (1, 0.5), (r, rate * 1.01)):
        written(2, probes, fpr)
        trouble(*add, says="changed the rate")
        trouble(*add, "--fpr", fpr, says="changed the rate")
        assert index.read_bytes()[64:] == good[64:] and len(list((archive.path / "arch").glob("*.sealed"))) == 30
    # Version 1 proved nothing: its owner says the rate again, and then it is proved.
    written(1, r, rate, bytes(8))
    trouble(*add, says="--fpr")
    trouble(*add, "--fpr", rate / 256, says="leave out --fpr")
    archive(*add, "--fpr", rate)
    assert read_index(index)[:2] == (rate, r) and index.read_bytes()[40:48] == good[40:48]
    archive(*add)
    assert len(found(archive, "another")) == 2


def test_nothing_is_replaced_and_nothing_written_outside(ok, bly):
    (ok.path / "docs").mkdir()
    (ok.path / "docs" / "x").write_text("common text")
    ok("seal", "init", "-q", "-o", "key")
    ok("seal", "add", "-q", "-K", "key", "arch", "docs/x")
    [[id_, _, _]] = read_index(ok.path / "arch" / "index")[2]
    outside = ok.path / "outside"
    outside.mkdir()

    def refused(says):
        before = files_below(ok.path)
        done = bly("seal", "open", "-K", "key", "-o", "out", "arch", id_)
        assert done.status == 2 and done.out == "" and says in done.err
        assert files_below(ok.path) == before
        assert not os.listdir(outside)
    (ok.path / "out" / "docs").mkdir(parents=True)
    (ok.path / "out" / "docs" / "x").write_text("mine")
    refused("left as it is")
    (ok.path / "out" / "docs" / "x").unlink()
    os.symlink(outside / "made", ok.path / "out" / "docs" / "x")
    refused("left as it is")           # a link that leads nowhere
    (ok.path / "out" / "docs" / "x").unlink()
    (ok.path / "out" / "docs").rmdir()
    os.symlink(outside, ok.path / "out" / "docs")
    refused("is a link")
    (ok.path / "out" / "docs").unlink()
    (ok.path / "out" / "docs").write_text("a file")
    refused("not a folder")
    (ok.path / "out" / "docs").unlink()
    ok("seal", "open", "-K", "key", "-o", "out", "arch", id_)
    refused("left as it is")           # twice


@pytest.mark.parametrize("name", [
    b"", b".", b"..", b"/", b"/evil", b"../evil", b"a/../../evil", b"a//b",
    b"a/", b"a/./b", b"a/..", b"nul\0evil", b"n" * 5000])
def test_hostile_names(ok, bly, name):
    """Whoever has the key may have sealed it."""
    ok("seal", "init", "-q", "-o", "key")
    (ok.path / "arch").mkdir()
    (ok.path / "in").mkdir()
    id_ = seal(ok.path / "arch", ok.path / "key", name, b"evil", 1)
    before = files_below(ok.path)
    done = bly("seal", "open", "-K", "../key", "-o", "out", "../arch", id_,
               cwd=ok.path / "in")
    assert done.status == 2 and len(done.err.splitlines()) == 1, done.err
    assert files_below(ok.path) == before
    assert os.listdir(ok.path / "in") == ["out"]
    assert os.listdir(ok.path / "in" / "out") == []
    assert bly("seal", "open", "-K", "key", "arch", id_).raw == \
        (b"evil" if len(name) < 5000 else b"")


# ---------------------------------------------------------------- bad input

def test_another_key_is_refused_before_any_answer(archive, trouble):
    archive("seal", "init", "-q", "-o", "other")
    trapdoor = door(archive, "all", "other")
    trouble("seal", "search", "arch", trapdoor, says="another key")
    trouble("seal", "add", "-K", "other", "arch", "docs", says="another key")
    one = found(archive, "word7x3")[0]
    trouble("seal", "open", "-K", "other", "arch", one, says="another key")
    (archive.path / "bad").write_text("0123456789")
    for bad in ("bad", "/dev/null", "docs", "absent"):
        trouble("seal", "open", "-K", bad, "arch", one, says=bad)
        trouble("seal", "trapdoor", "-K", bad, "word", says=bad)


def test_an_index_with_a_flipped_bit(archive, bly):
    path = archive.path / "arch" / "index"
    whole = path.read_bytes()
    trapdoor = door(archive, "all")
    places = [*range(0, 64, 5), *range(64, 64 + 40, 3),
              *range(104, len(whole), len(whole) // 40)]
    for at in places:
        data = bytearray(whole)
        data[at] ^= 4
        path.write_bytes(data)
        done = bly("seal", "search", "arch", trapdoor)
        assert (done.status, done.out) == (2, ""), at
        assert "index" in done.err
        done = bly("seal", "add", "-K", "key", "arch", "docs/1.txt")
        assert done.status == 2 and path.read_bytes() == data
    for n in (0, 10, 63, 64, 90, len(whole) - 1):
        path.write_bytes(whole[:n])
        assert bly("seal", "search", "arch", trapdoor).status == 2, n
    path.write_bytes(whole + b"x")
    assert bly("seal", "search", "arch", trapdoor).status == 2


def test_a_document_that_was_changed(archive, bly):
    one = found(archive, "word7x3")[0]
    path = archive.path / "arch" / f"{one}.sealed"
    whole = path.read_bytes()
    for at in (0, 9, 17, 30, 50, 64, 100, len(whole) - 1):
        data = bytearray(whole)
        data[at] ^= 1
        path.write_bytes(data)
        done = bly("seal", "open", "-K", "key", "arch", "-o", "out", one)
        assert done.status == 2, at
        assert not os.listdir(archive.path / "out")
    for data in (b"", whole[:40], whole[:-1], whole[:64], whole + b"x"):
        path.write_bytes(data)
        done = bly("seal", "open", "-K", "key", "arch", "-o", "out", one)
        assert done.status == 2
        assert not os.listdir(archive.path / "out")
    # Another document under this one's name.
    other = next(f for f in os.listdir(archive.path / "arch")
                 if f.endswith("sealed") and f != path.name)
    path.write_bytes((archive.path / "arch" / other).read_bytes())
    assert bly("seal", "open", "-K", "key", "arch", one).status == 2


def test_what_cannot_be_meant(archive, trouble):
    for argv, says in (
            (["init"], "-o KEY"), (["init", "-o", "key"], "another name"),
            (["add", "arch", "docs"], "-K KEY"),
            (["add", "-K", "key", "arch"], "FILE"),
            (["add", "-K", "key", "arch", "absent"], "absent"),
            (["add", "-K", "key", "-p", 0.3, "arch", "docs"], "0.1 %"),
            (["add", "-K", "key", "/dev/full", "docs"], "/dev/full"),
            (["trapdoor", "-K", "key", "two words"], "one word"),
            (["trapdoor", "-K", "key", ""], "one word"),
            (["search", "arch", "word"], "not a trapdoor"),
            (["search", "docs", "bly-seal-1:" + "0" * 80], "no index"),
            (["open", "-K", "key", "arch", "../key"], "id"),
            (["open", "-K", "key", "arch", "0" * 32], "0" * 32),
            (["open", "-K", "key", "nowhere"], "nowhere"),
            (["open", "-K", "key", "arch/index"], "not an archive"),
            (["open", "-K", "key", "--names", "-o", "x", "arch"], "-o"),
            (["open", "-K", "key", "--json", "arch"], "--names")):
        trouble("seal", *argv, says=says)
    assert len(read_index(archive.path / "arch" / "index")[2]) == 30


def test_if_one_file_fails_none_is_added(archive, trouble):
    before = sorted(os.listdir(archive.path / "arch"))
    whole = (archive.path / "arch" / "index").read_bytes()
    trouble("seal", "add", "-K", "key", "arch", "docs/1.txt", "docs/2.txt",
            "absent", says="absent")
    assert sorted(os.listdir(archive.path / "arch")) == before
    assert (archive.path / "arch" / "index").read_bytes() == whole


def test_two_at_once(archive):
    """Whoever comes second waits; nothing of either is lost."""
    for i in range(4):
        (archive.path / f"new{i}").write_text(f"fresh{i} all\n")
    children = [subprocess.Popen(
        [PROGRAM, "seal", "add", "-q", "-K", "key", "arch", f"new{i}"],
        cwd=archive.path) for i in range(4)]
    assert [c.wait(PATIENCE) for c in children] == [0] * 4
    assert len(read_index(archive.path / "arch" / "index")[2]) == 34
    for i in range(4):
        assert f"new{i}" in names(archive, found(archive, f"fresh{i}"))


def test_killed_while_adding(archive):
    """The index is the old or the new one, and can be added to again."""
    (archive.path / "big").write_bytes(os.urandom(1 << 20))
    for ms in range(0, 40, 4):
        child = subprocess.Popen([PROGRAM, "seal", "add", "-q", "-K", "key",
                                  "arch", "big", "docs"], cwd=archive.path)
        try:
            child.wait(ms / 1000)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert (len(read_index(archive.path / "arch" / "index")[2]) - 30) % 31 == 0
    archive("seal", "add", "-q", "-K", "key", "arch", "docs/1.txt")


@pytest.mark.parametrize("make", [["seal", "init", "-q", "-o"], ["node", "key"]],
                         ids=" ".join)
def test_a_secret_takes_nobodys_place(ok, trouble, make):
    """Not even that of a link that leads nowhere, through which the secret
    would be written to a place that somebody else chose."""
    (ok.path / "old").write_text("precious")
    os.symlink("elsewhere", ok.path / "dangling")
    os.symlink("old", ok.path / "link")
    os.mkfifo(ok.path / "pipe")
    (ok.path / "folder").mkdir()
    for name in "old", "dangling", "link", "pipe", "folder":
        trouble(*make, name, says=[name, "another name"])
    trouble(*make, "absent/key", says="absent/key")
    assert not (ok.path / "elsewhere").exists()
    assert (ok.path / "old").read_text() == "precious"
    mask = os.umask(0)
    try:
        ok(*make, "folder/new")
    finally:
        os.umask(mask)
    made = os.stat(ok.path / "folder" / "new")
    assert made.st_mode & 0o777 == 0o600 and made.st_size == 65


def test_the_key_is_for_its_owner_alone(ok, bly):
    ok("seal", "init", "-q", "-o", "key")
    assert os.stat(ok.path / "key").st_mode & 0o777 == 0o600
    os.chmod(ok.path / "key", 0o644)
    assert "others may read" in bly("seal", "trapdoor", "-K", "key", "x").err


# ---------------------------------------------------------------- removing

def archive_of(ok, *names):
    """An archive with these files; the ids in the order of the names."""
    ok("seal", "init", "-o", "key")
    ids = []
    for name in names:
        before = set(ids)
        (ok.path / name).write_text(f"common words of {name}")
        ok("seal", "add", "-K", "key", "arch", name, "-p", "1e-6")
        ids += [p.stem for p in (ok.path / "arch").glob("*.sealed") if p.stem not in before]
    return ids


def found_ids(call, word):
    door = call("seal", "trapdoor", "-K", "key", word).out.strip()
    return set(call("seal", "search", "arch", door).lines)


def test_removing_documents(ok, trouble, bly):
    ids = archive_of(ok, "a", "b", "c", "d")
    assert found_ids(ok, "common") == set(ids)
    before = files_below(ok.path / "arch")
    # All or none.
    trouble("seal", "rm", "arch", ids[0], "00" * 16, says="nothing was removed")
    trouble("seal", "rm", "arch", ids[0], "xyz", says="32 digits")
    trouble("seal", "rm", "nowhere", ids[0], says="nowhere")
    assert not (ok.path / "nowhere").exists()
    assert files_below(ok.path / "arch") == before
    assert bly("seal", "rm", "arch", stdin="\n").status == 1
    assert files_below(ok.path / "arch") == before
    # Without the key; an id twice is one.
    (ok.path / "key").rename(ok.path / "away")
    done = ok("seal", "rm", "arch", "--json", stdin=f"{ids[1]}\n{ids[1]}\n{ids[3]}\n")
    assert done.json == {"archive": "arch", "removed": 2, "all": 2}
    (ok.path / "away").rename(ok.path / "key")
    assert found_ids(ok, "common") == {ids[0], ids[2]}
    assert {p.stem for p in (ok.path / "arch").glob("*.sealed")} == {ids[0], ids[2]}
    trouble("seal", "rm", "arch", ids[1], says="nothing was removed")
    # What is added now is newer than what was there.
    (ok.path / "c").write_text("common words again")
    ok("seal", "add", "-K", "key", "arch", "c")
    ok("seal", "open", "-K", "key", "arch", "-o", "out", *sorted(found_ids(ok, "common")))
    assert files_below(ok.path / "out") == {"a": b"common words of a", "c": b"common words again"}
    ok("seal", "rm", "arch", *found_ids(ok, "common"), "-q")
    assert [p.name for p in (ok.path / "arch").iterdir()] == ["index"]
    ok("seal", "add", "-K", "key", "arch", "a", "b")
    assert len(found_ids(ok, "common")) == 2


def test_replacing_documents(ok, bly):
    ids = archive_of(ok, "a", "b", "c")
    (ok.path / "a").write_text("common new words")
    done = ok("seal", "add", "-K", "key", "arch", "./a", "c", "--replace", "--json", "-p", "1e-6")
    assert (done.json["documents"], done.json["replaced"], done.json["all"]) == (2, 2, 3)
    now = found_ids(ok, "common")
    assert len(now) == 3 and ids[1] in now and {p.stem for p in (ok.path / "arch").glob("*.sealed")} == now
    names = [json.loads(x) for x in ok("seal", "open", "-K", "key", "arch", "--names", "--json", *now).lines]
    assert sorted((n["name"], n["older"]) for n in names) == [("a", False), ("b", False), ("c", False)]
    # One that cannot be opened may be of that name: nothing changes.
    hurt = ok.path / "arch" / f"{ids[1]}.sealed"
    hurt.write_bytes(hurt.read_bytes()[:90])
    before = files_below(ok.path / "arch")
    assert bly("seal", "add", "-K", "key", "arch", "a", "--replace").status == 2
    assert files_below(ok.path / "arch") == before


def test_removing_and_faults(ok, bly):
    """If the index cannot be written, everything is as it was."""
    ids = archive_of(ok, "a", "b")
    before = files_below(ok.path / "arch")
    limit = ["prlimit", "--fsize=100", "--"]
    for argv in (["rm", "arch", ids[0]], ["add", "-K", "key", "arch", "a", "--replace"]):
        done = subprocess.run([*limit, PROGRAM, "seal", *argv], cwd=ok.path, capture_output=True)
        assert done.returncode != 0
        assert files_below(ok.path / "arch") == before
