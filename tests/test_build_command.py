"""build, has, add: keys in, answers out."""
import gzip
import os
import random
import signal
import subprocess
import threading
import time

import pytest
from conftest import PATIENCE, PROGRAM, keys, kinds_that

ADDABLE = kinds_that("add", "has", without=["likely-no"])


@pytest.mark.parametrize("kind", kinds_that("has", without=["likely-no"]))
def test_what_was_built_is_found(ok, kind):
    if kind in kinds_that("build", "get"):
        pytest.skip("wants values")
    (ok.path / "in").write_text(keys(0, 3000))
    ok("build", "--kind", kind, "-o", "f.bly", "in")
    assert ok("has", "f.bly", "-f", "in").out == keys(0, 3000)
    assert ok("has", "-c", "f.bly", "-f", "in").out == "3000\n"


def test_absent_keys_are_mostly_absent(bly):
    bly("build", "-o", "f.bly", stdin=keys(0, 10000))
    answer = bly("has", "-c", "--json", "f.bly", stdin=keys(10**6, 10000))
    assert answer.json["asked"] == 10000
    assert answer.json["maybe"] < 200
    inverse = bly("has", "-v", "f.bly", stdin=keys(10**6, 10000))
    assert len(inverse.lines) == 10000 - answer.json["maybe"]


def test_exit_status_as_greps(bly):
    bly("build", "-o", "f.bly", stdin="apple\npear\n")
    assert bly("has", "f.bly", "apple").status == 0
    none = bly("has", "f.bly", "plum-that-is-not-there")
    assert (none.status, none.out) == (1, "")
    assert bly("has", "-q", "f.bly", "apple").out == ""
    assert bly("has", "-q", "f.bly", "plum-that-is-not-there").status == 1
    assert bly("has", "-v", "f.bly", "apple").status == 1
    assert bly("has", "-v", "f.bly", "plum-that-is-not-there").status == 0
    assert bly("has", "-c", "f.bly", "apple", "pear", "zzz").out == "2\n"
    assert bly("has", "nonesuch.bly", "apple").status == 2


def test_compressed_input(ok):
    text = keys(0, 5000).encode()
    (ok.path / "plain").write_bytes(text)
    (ok.path / "members.gz").write_bytes(
        gzip.compress(text[:1000]) + gzip.compress(text[1000:]))
    subprocess.run(["zstd", "-q", "plain", "-o", "one.zst"], cwd=ok.path,
                   check=True)
    subprocess.run("head -c 999 plain | zstd -q > two.zst;"
                   "tail -c +1000 plain | zstd -q >> two.zst", shell=True,
                   cwd=ok.path, check=True)
    ok("build", "-o", "plain.bly", "plain")
    expected = (ok.path / "plain.bly").read_bytes()
    for name in ("members.gz", "one.zst", "two.zst"):
        ok("build", "-o", "f.bly", name)
        assert (ok.path / "f.bly").read_bytes() == expected, name
    ok("build", "-o", "f.bly", stdin=(ok.path / "members.gz").read_bytes())
    assert (ok.path / "f.bly").read_bytes() == expected


@pytest.mark.parametrize("cut", ["gz", "zst"])
def test_damaged_compressed_input(ok, trouble, cut):
    rng = random.Random(5)
    text = "".join(f"{rng.getrandbits(64):x}\n" for _ in range(20000))
    if cut == "gz":
        packed = gzip.compress(text.encode())
    else:
        packed = subprocess.run(["zstd", "-q"], input=text.encode(),
                                capture_output=True, check=True).stdout
    (ok.path / "cut").write_bytes(packed[:len(packed) // 2])
    trouble("build", "-o", "f.bly", "cut", says="cut")
    assert not (ok.path / "f.bly").exists()
    bad = bytearray(packed)
    bad[len(bad) // 2] ^= 0x55
    (ok.path / "flipped").write_bytes(bad)
    trouble("build", "-o", "f.bly", "flipped", says="flipped")
    # An add that fails on its input changes nothing.
    ok("build", "-o", "f.bly", stdin="x\n")
    before = (ok.path / "f.bly").read_bytes()
    trouble("add", "f.bly", "-f", "cut", says="cut")
    assert (ok.path / "f.bly").read_bytes() == before


def test_bytes_are_taken_as_they_are(ok, bly):
    odd = [b"", b"\xff\xfe", b"a\rb", b"with\0nul", b" spaces ", b"tab\t",
           "gr\u00fc\u00df".encode(), b"\r"]
    ok("build", "-o", "f.bly", "--items", "1000", "--fpr", "1e-6",
       stdin=b"\n".join(odd) + b"\n")
    answer = ok("has", "f.bly", stdin=b"\n".join(odd))
    assert answer.raw.split(b"\n")[:len(odd)] == odd
    assert bly("has", "f.bly", stdin=b"with\n").status == 1
    # NUL-separated: newlines belong to keys.
    ok("build", "-0", "-o", "z.bly", stdin=b"two\nlines\0one\0")
    assert ok("has", "-0", "z.bly", stdin=b"two\nlines\0no\0").raw.startswith(
        b"two\nlines\0")
    assert bly("has", "z.bly", "two").status == 1


def test_no_final_newline(ok):
    ok("build", "-o", "f.bly", stdin=b"alpha\nomega")
    assert ok("has", "f.bly", "omega").out == "omega\n"
    assert ok("has", "f.bly", stdin=b"omega").out == "omega\n"


def test_the_empty_file(ok, trouble, bly):
    (ok.path / "empty").write_bytes(b"")
    trouble("build", "-o", "f.bly", "empty", says="--items")
    assert not (ok.path / "f.bly").exists()
    ok("build", "-o", "f.bly", "--items", "10", "empty")
    assert bly("has", "f.bly", "anything").status == 1
    assert bly("has", "f.bly", "-f", "empty").status == 1
    ok("add", "f.bly", "-f", "empty")


def test_a_line_of_100_megabytes(ok):
    line = b"x" * 100_000_000
    (ok.path / "long").write_bytes(b"first\n" + line + b"\nlast\n")
    ok("build", "-o", "f.bly", "long")
    assert ok("has", "-c", "f.bly", "-f", "long").out == "3\n"
    (ok.path / "other").write_bytes(line[:-1] + b"y\n")
    assert ok("has", "-v", "-c", "f.bly", "-f", "other").out == "1\n"


@pytest.mark.parametrize("kind", ADDABLE)
def test_threads_change_nothing(ok, kind):
    text = "".join(f"{i * 7919 % 300007}\n" for i in range(300000))
    (ok.path / "in").write_text(text)
    results = []
    for threads in ("1", "2", "7", "1000"):
        ok("build", "--kind", kind, "--items", "320000", "-o", "f.bly",
           "--threads", threads, "in")
        asked = ok("has", "f.bly", "-f", "in", "--threads", threads)
        assert asked.out == text
        results.append((ok.path / "f.bly").read_bytes())
    # Kinds that merge have no memory of the order.
    if kind in kinds_that("share", "merge"):
        assert all(r == results[0] for r in results)


@pytest.mark.parametrize("kind", ["fuse", "blocked", "cuckoo"])
def test_more_keys_than_memory(ok, trouble, kind):
    """400000 hashes are 3.2 MB; the bound is below, the filter the same."""
    (ok.path / "in").write_text(keys(0, 400000))
    (ok.path / "room").mkdir()
    options = ["--kind", kind] + ["-O", "shards=16"] * (kind == "fuse")
    ok("build", "-o", "all.bly", *options, "in")
    ok("build", "-o", "less.bly", *options, "--max-memory", "2400k", "--spill",
       "room", "-t", "1", "in")
    assert ((ok.path / "all.bly").read_bytes() ==
            (ok.path / "less.bly").read_bytes())
    assert list((ok.path / "room").iterdir()) == []
    trouble("build", "-o", "no.bly", *options, "--max-memory", "2400k",
            "--spill", "nowhere", "in", says="nowhere")
    trouble("build", "-o", "no.bly", "--spill", "room", "in",
            says="--max-memory")
    if kind == "fuse":  # without a place for them all hashes must fit
        trouble("build", "-o", "no.bly", *options, "--max-memory", "2400k",
                "in", says=["bound", "folder"])
    assert not (ok.path / "no.bly").exists()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_sized_by_distinct_keys(ok, threads):
    # 3 million lines, 1.2 million different ones: estimated, within 2 %.
    (ok.path / "in").write_text(
        "".join(f"{i % 1200000}\n" for i in range(3000000)))
    result = ok("build", "--json", "-o", "f.bly", "--threads", threads, "in")
    assert result.json["keys"] == 3000000
    assert result.json["items"] == pytest.approx(1200000, rel=0.02)
    # Few: counted exactly.
    result = ok("build", "--json", "-o", "g.bly",
                stdin="".join(f"{i % 777}\n" for i in range(9000)))
    assert result.json["items"] == 777


def test_several_inputs(ok):
    (ok.path / "a").write_text("a1\na2\n")
    (ok.path / "b").write_text("b1")
    ok("build", "-o", "f.bly", "a", "-", "b", stdin="c1\n")
    assert ok("has", "-c", "f.bly", "a1", "a2", "b1", "c1").out == "4\n"
    assert ok("has", "-c", "f.bly", "-f", "a", "-f", "b").out == "3\n"


def test_standard_output_and_input(ok):
    made = ok("build", "-q", "-o", "-", stdin="one\ntwo\n")
    (ok.path / "f.bly").write_bytes(made.raw)
    assert ok("has", "f.bly", "one").out == "one\n"


def test_seed(ok, bly):
    ok("build", "-o", "a.bly", "--items", "100", "--seed", "1", stdin="x\n")
    ok("build", "-o", "b.bly", "--items", "100", "--seed", "2", stdin="x\n")
    assert (ok.path / "a.bly").read_bytes() != (ok.path / "b.bly").read_bytes()
    assert bly("merge", "-o", "c.bly", "a.bly", "b.bly").status == 2


@pytest.mark.parametrize("argv, says", [
    (["build", "in"], "-o"),
    (["build", "-o", "f.bly", "nonesuch"], "nonesuch"),
    (["build", "-o", "f.bly", "."], "directory"),
    (["build", "-o", ".", "in"], "directory"),
    (["build", "-o", "", "in"], "empty"),
    (["build", "-o", "no/such/f.bly", "in"], "no/such"),
    (["build", "-o", "f.bly", "--kind", "nonesuch", "in"], "nonesuch"),
    (["build", "-o", "f.bly", "--items", "0", "in"], "items"),
    (["build", "-o", "f.bly", "--fpr", "2", "in"], "2"),
    (["build", "-o", "f.bly", "--threads", "0", "in"], "threads"),
    (["build", "-o", "f.bly", "--items", "1e14", "in"], ""),
    (["build", "-o", "f.bly", "--seed", "x", "in"], "seed"),
    (["has", "f.txt", "key"], "f.txt"),
    (["has", ".", "key"], "directory"),
    (["has"], "FILTER"),
    (["add", "nonesuch.bly", "key"], "nonesuch.bly"),
    (["add", "f.txt", "key"], "f.txt"),
    (["info"], ""),
    (["info", "f.txt"], "f.txt"),
    (["info", "."], "directory"),
    (["info", "empty"], "empty"),
    (["merge", "-o", "x.bly"], ""),
    (["compare", "f.txt", "f.txt"], "f.txt"),
])
def test_bad_input(trouble, argv, says):
    (trouble.path / "in").write_text("a\nb\n")
    (trouble.path / "f.txt").write_text("this is not a filter\n" * 300)
    (trouble.path / "empty").write_bytes(b"")
    trouble(*argv, says=says)
    assert not (trouble.path / "f.bly").exists()
    assert not [p for p in os.listdir(trouble.path) if "tmp" in p]


def test_a_closed_pipe(ok):
    (ok.path / "in").write_text(keys(0, 500000))
    ok("build", "-o", "f.bly", "in")
    done = subprocess.run(f"{PROGRAM} has f.bly -f in | head -n 1; "
                          "echo ${PIPESTATUS[0]}", shell=True, cwd=ok.path,
                          executable="/bin/bash", capture_output=True,
                          timeout=PATIENCE)
    assert done.stdout.splitlines()[0] == b"key-0"
    assert done.stderr == b""


def test_output_to_a_full_device(ok):
    (ok.path / "in").write_text(keys(0, 100000))
    ok("build", "-o", "f.bly", "in")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "has", "f.bly", "-f", "in"],
                              cwd=ok.path, stdout=full, stderr=subprocess.PIPE,
                              timeout=PATIENCE)
    assert done.returncode == 2
    assert b"space" in done.stderr


# ------------------------------------------------------------------- add

@pytest.mark.parametrize("kind", ADDABLE)
def test_add_says_what_was_new(ok, kind):
    ok("build", "--kind", kind, "--items", "10000", "--fpr", "1e-4", "-o",
       "f.bly", stdin=keys(0, 100))
    result = ok("add", "--json", "f.bly", stdin=keys(50, 100)).json
    assert result["keys"] == 100
    assert 49 <= result["new"] <= 100
    assert ok("has", "-c", "f.bly", stdin=keys(0, 150)).out == "150\n"


def test_add_of_arguments(ok):
    ok("build", "-o", "f.bly", "--items", "100", stdin="x\n")
    ok("add", "-q", "f.bly", "one", "two words", "")
    assert ok("has", "-c", "f.bly", "one", "two words", "").out == "3\n"


def test_two_writers_lose_nothing(ok):
    ok("build", "-o", "f.bly", "--items", "100000", stdin="x\n")
    failed = []

    def writer(number):
        for i in range(15):
            done = subprocess.run(
                [PROGRAM, "add", "-q", "f.bly", f"writer-{number}-{i}"],
                cwd=ok.path, timeout=PATIENCE)
            if done.returncode:
                failed.append((number, i))

    threads = [threading.Thread(target=writer, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    wanted = [f"writer-{n}-{i}" for n in range(4) for i in range(15)]
    assert ok("has", "-c", "f.bly", *wanted).out == "60\n"


def test_kill_at_any_moment(ok):
    """Old file or new file, never a third; and no key lost that was reported.

    The filter is large enough (12 MB) that a kill often meets the writing."""
    ok("build", "-o", "f.bly", "--memory", "12MiB", "--fpr", "1%",
       stdin="first\n")
    rng = random.Random(7)
    reported, killed = ["first"], 0
    for i in range(40):
        key = f"round-{i}"
        adder = subprocess.Popen([PROGRAM, "add", "f.bly", key], cwd=ok.path,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        time.sleep(rng.random() * 0.03)
        adder.send_signal(signal.SIGKILL)
        out, _ = adder.communicate()
        if adder.returncode == 0:
            reported.append(key)
        else:
            killed += 1
            assert adder.returncode == -signal.SIGKILL, out
        assert ok("info", "f.bly")
        assert ok("has", "-c", "f.bly", *reported).out == f"{len(reported)}\n"
    assert killed > 0
    # A killed writer leaves no lock behind, and at most a file that is
    # plainly a left-over beside the filter.
    ok("add", "f.bly", "last")
    assert ok("has", "f.bly", "last").out == "last\n"


def test_full_disk(ok, trouble):
    """A disk of 256 KiB: what does not fit is refused, what was there stays."""
    disk = ok.path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none",
                       str(disk)], capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        trouble("build", "-o", "disk/f.bly", "--memory", "1MiB", "--fpr", "1%",
                stdin="x\n", says=["disk/f.bly", "pace"])
        assert os.listdir(disk) == []
        ok("build", "-o", "disk/f.bly", "--memory", "150KiB", "--fpr", "1%",
           stdin="x\n")
        before = (disk / "f.bly").read_bytes()
        # The new version does not fit beside the old one.
        trouble("add", "disk/f.bly", "y", says=["disk/f.bly", "pace"])
        assert (disk / "f.bly").read_bytes() == before
        assert os.listdir(disk) == ["f.bly"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_read_only_folder(ok, trouble):
    ok("build", "-o", "f.bly", "--items", "100", stdin="x\n")
    folder = ok.path / "folder"
    folder.mkdir()
    (folder / "f.bly").write_bytes((ok.path / "f.bly").read_bytes())
    if subprocess.run(["mount", "--bind", str(folder), str(folder)],
                      capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)],
                       check=True)
        before = (folder / "f.bly").read_bytes()
        trouble("add", "folder/f.bly", "y", says="folder")
        trouble("build", "-o", "folder/g.bly", stdin="x\n", says="folder")
        assert ok("has", "folder/f.bly", "x").out == "x\n"
        assert (folder / "f.bly").read_bytes() == before
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_file_size_limit(ok):
    """As a full disk, by a limit on the process: for where nobody may mount."""
    done = subprocess.run(
        f"ulimit -f 100; trap '' XFSZ; echo x | {PROGRAM} build -o f.bly "
        "--memory 1MiB --fpr 1%", shell=True, cwd=ok.path,
        executable="/bin/bash", capture_output=True, timeout=PATIENCE)
    assert done.returncode == 2, done.stderr
    assert b"f.bly" in done.stderr
    assert os.listdir(ok.path) == []
