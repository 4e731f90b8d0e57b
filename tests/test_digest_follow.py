"""digest follow: a cache that changes, the files that say so, and all that
happens to such files."""
import os
import random
import shutil

import pytest
from conftest import BUILD, PROGRAM, run
from digest_support import needs_server
from follow_support import (
    Follow, index, index_head, is_digest_of, key, line, record, shape, url)
from squid_support import wait_until

pytestmark = needs_server
KEYS = [key(url(i)) for i in range(3000)]


def built(name):
    """The command as a sanitizer builds it: a finding is an exit status that
    stop() does not take."""
    found = BUILD / name / "bloomery"
    if not found.exists():
        pytest.skip(f"no {found}")
    return found


@pytest.fixture(params=["plain", "asan"])
def program(request):
    """For what reads bytes that anybody may have written."""
    return PROGRAM if request.param == "plain" else built(request.param)


@pytest.fixture(params=["plain", "tsan"])
def threads(request):
    """For what several threads do."""
    return PROGRAM if request.param == "plain" else built(request.param)


@pytest.fixture
def state(tmp_path):
    """A swap.state with 500 objects."""
    path = tmp_path / "swap.state"
    path.write_bytes(index(KEYS[:500]))
    return path


@pytest.fixture
def log(tmp_path):
    """A store.log with 500 objects."""
    path = tmp_path / "store.log"
    path.write_bytes(b"".join(line(True, i, k)
                              for i, k in enumerate(KEYS[:500])))
    return path


def append(path, *pieces):
    with open(path, "ab") as f:
        f.write(b"".join(pieces))


def replace(path, data):
    """As Squid and logrotate do it."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.rename(path)


# ------------------------------------------------------------- swap.state

def test_follows_an_index(state, program):
    with Follow(state, program=program) as f:
        assert f.start["form"] == "swap.state" and f.start["entries"] == 500
        f.becomes(KEYS[:500])
        for i in range(0, 400, 50):
            append(state, *(record(False, j, KEYS[j])
                            for j in range(i, i + 50)),
                   *(record(True, j, KEYS[500 + j])
                     for j in range(i, i + 50)))
        f.becomes(KEYS[400:900])
        # A record that is written in two halves counts once it is whole.
        whole = record(True, 950, KEYS[950])
        append(state, record(False, 400, KEYS[400]), whole[:31])
        f.becomes(KEYS[401:900])
        append(state, whole[31:])
        f.becomes([*KEYS[401:900], KEYS[950]])
        told = f.stop()
    assert told["came"] == 401 and told["went"] == 401
    assert told["rebuilt"] == told["strays"] == told["cut"] == 0


def test_all_that_happens_to_an_index(state, threads):
    with Follow(state, program=threads) as f:
        f.becomes(KEYS[:500])
        replace(state, index(KEYS[100:300]))  # squid -k rotate
        f.becomes(KEYS[100:300])
        append(state, record(True, 1, KEYS[1]))
        f.becomes([KEYS[1], *KEYS[100:300]])
        state.write_bytes(index(KEYS[:50]))  # shorter, where it stands
        f.becomes(KEYS[:50])
        state.write_bytes(index(KEYS[600:900]))  # longer, but another one
        f.becomes(KEYS[600:900])
        # Cut within a record, and then replaced.
        append(state, record(True, 9, KEYS[9])[:40])
        replace(state, index(KEYS[:10]))
        f.becomes(KEYS[:10])
        # The cache is wiped by hand: what is known stays until Squid makes
        # a new one.
        state.unlink()
        wait_until(lambda: "No such file" in f.said())
        assert is_digest_of(f.digest(), KEYS[:10])
        state.write_bytes(index_head())
        f.becomes([])
        state.write_bytes(b"")  # it will be something, but is not yet
        wait_until(lambda: "any more" in f.said())
        assert is_digest_of(f.digest(), [])
        state.write_bytes(index(KEYS[:20]))
        f.becomes(KEYS[:20])
        told = f.stop()
    assert told["rebuilt"] >= 5 and told["cut"] == 1


@pytest.mark.parametrize("form", ["index", "log"])
def test_what_cannot_be_read_costs_nothing(state, log, form):
    """Something else stands at the path: the last digest stays, and what comes
    is still followed, until there is an index again."""
    argv = [state] if form == "index" else [log, "--begin", state]
    with Follow(*argv) as f:
        for made in os.mkdir, lambda p: p.write_text("no index\n"):
            state.unlink()
            made(state)
            wait_until(lambda: "tried again" in f.said())
            if form == "log":
                append(log, line(True, 600, KEYS[600]))
                f.becomes([*KEYS[:500], KEYS[600]])
                append(log, line(False, 600, KEYS[600]))
            f.becomes(KEYS[:500])
            state.rmdir() if state.is_dir() else state.unlink()
            state.write_bytes(index(KEYS[:500]))
            f.becomes(KEYS[:500])
        state.unlink()
        state.write_bytes(index(KEYS[:100]))
        f.becomes(KEYS[:100])


def test_several_cache_dirs(state, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(index(KEYS[1000:1100]))
    with Follow(state, other) as f:
        f.becomes([*KEYS[:500], *KEYS[1000:1100]])
        append(other, record(False, 0, KEYS[1000]))
        replace(state, index(KEYS[:3]))
        f.becomes([*KEYS[:3], *KEYS[1001:1100]])


def test_grows_with_the_cache(state, threads):
    with Follow(state, "--items", 600, program=threads) as f:
        assert f.start["capacity"] == 625
        append(state, *(record(True, i, KEYS[i]) for i in range(500, 3000)))
        f.becomes(KEYS)
        wait_until(lambda: shape(f.digest())[0] >= 3000)
        f.becomes(KEYS)
        assert f.stop()["rebuilt"] >= 1


@pytest.mark.parametrize("options, bits", [
    ([], 11), (["--bits", 5], 5), (["--fpr", "0.1%"], 21)])
def test_shapes(state, options, bits):
    with Follow(state, *options) as f:
        assert shape(f.digest()) == (1000, 500, bits)
        f.becomes(KEYS[:500])


def test_deletions_of_what_was_never_there(state):
    """They change nothing, unless all their cells look taken."""
    with Follow(state, "--bits", 100) as f:
        append(state, *(record(False, i, KEYS[i]) for i in range(500, 1500)),
               record(True, 1, KEYS[2000]))
        f.becomes([*KEYS[:500], KEYS[2000]])
        assert f.stop()["strays"] == 1000


def test_an_index_that_repeats_a_key(state):
    """A cell that is full stays; the others count."""
    with Follow(state) as f:
        append(state, *(record(True, i, KEYS[0]) for i in range(40)))
        wait_until(lambda: shape(f.digest())[1] == 540)
        append(state, *(record(False, i, KEYS[0]) for i in range(41)))
        wait_until(lambda: shape(f.digest())[1] == 499)
        told = f.stop()
    assert told["stuck"] >= 3


# -------------------------------------------------------------- store.log

def test_follows_a_log(log, program):
    with Follow(log, program=program) as f:
        assert f.start["form"] == "store.log"
        f.becomes(KEYS[:500])
        half = line(True, 600, KEYS[600])
        append(log, line(False, 0, KEYS[0]), half[:25])
        f.becomes(KEYS[1:500])
        append(log, half[25:])
        f.becomes([*KEYS[1:500], KEYS[600]])
        # What was in no file was not there; the clock may say what it likes;
        # lines may come twice; a file that is taken again was free before,
        # whatever key the line in between had.
        append(log, b"12.000 RELEASE -1 FFFFFFFF " +
               KEYS[5].hex().upper().encode() + b"  200 1 -1 1 ? 8/8 GET x\n",
               line(True, 700, KEYS[700], when="9999999999.000"),
               line(True, 700, KEYS[700], when="0.001"),
               line(False, 600, os.urandom(16)),
               line(True, 1, KEYS[701]))
        f.becomes([*KEYS[2:500], KEYS[700], KEYS[701]])
        told = f.stop()
    assert told["unknown"] == told["cut"] == 0


def test_all_that_happens_to_a_log(log, program):
    with Follow(log, program=program) as f:
        f.becomes(KEYS[:500])
        # Renamed; its writer goes on for a while, and then opens a new one.
        log.rename(log.with_suffix(".1"))
        append(log.with_suffix(".1"), line(False, 0, KEYS[0]))
        f.becomes(KEYS[1:500])
        log.write_bytes(b"")
        append(log.with_suffix(".1"), line(False, 1, KEYS[1]))
        f.becomes(KEYS[2:500])
        append(log.with_suffix(".1"), line(False, 2, KEYS[2])[:30])
        append(log, line(True, 2, KEYS[800]))
        f.becomes([*KEYS[3:500], KEYS[800]])
        # Copied and cut short, then longer again than it was.
        os.truncate(log, 0)
        append(log, *(line(True, 900 + i, KEYS[900 + i]) for i in range(9)))
        f.becomes([*KEYS[3:500], KEYS[800], *KEYS[900:909]])
        told = f.stop()
    assert told["rotations"] == 2 and told["cut"] == 1


def test_lines_that_say_nothing(log):
    wrong = [
        b"",
        b"795116114.404 SWAPOUT 00 00000000 FA48",
        # Squid 2.2: no cache_dir and no key
        b"945116114.404 SWAPOUT 0000001F  200 945116114 -1 -1 text/html 1/1 "
        b"GET http://a.test/",
        b"1795116114.404 SWAPOUT 64 00000000 " + b"A" * 32 + b" 200",
        b"1795116114.404 SWAPOUT 00 01000000 " + b"A" * 32 + b" 200",
        b"1795116114.404 SWAPOUT 00 0000000G " + b"A" * 32 + b" 200",
        b"1795116114.404 REMOVED 00 00000000 " + b"A" * 32 + b" 200",
        b"1795116114.404 SWAPOUT 00 00000000 " + b"G" * 32 + b" 200",
        b"1795116114 SWAPOUT 00 00000000 " + b"A" * 32 + b" 200",
        b"\0" * 100, os.urandom(300).replace(b"\n", b""), b"x" * 200000,
        line(True, 1, KEYS[1])[:-1] + b"x" * 70000,
    ]
    with Follow(log) as f:
        append(log, b"\n".join(wrong), b"\n", line(True, 2500, KEYS[2500]),
               b"1795116114.404 SWAPIN  00 00000000 " + b"A" * 32 + b" 200\n")
        f.becomes([*KEYS[:500], KEYS[2500]])
        assert f.said().count("\n") == 1 and "of Squid 3 to 6" in f.said()
        assert f.stop()["unknown"] == len(wrong)


def test_a_log_begins_with_an_index(log, state):
    state.write_bytes(index(KEYS[1000:1400]))
    with Follow(log, "--begin", state) as f:
        assert f.start["entries"] == 400
        f.becomes(KEYS[1000:1400])  # nothing of what the log said before
        append(log, line(True, 400, KEYS[7]), line(False, 0, KEYS[1000]),
               line(True, 3, KEYS[8], folder=1))
        f.becomes([KEYS[7], KEYS[8], *KEYS[1001:1400]])
        # Squid is started again, and has lost some; the other cache_dir, of
        # which nothing was said, keeps what it has.
        replace(state, index(KEYS[1000:1100]))
        f.becomes([KEYS[8], *KEYS[1000:1100]])


def test_a_log_grows(log):
    with Follow(log) as f:
        append(log, *(line(True, i, KEYS[i]) for i in range(500, 3000)))
        f.becomes(KEYS)
        wait_until(lambda: shape(f.digest())[0] >= 3000)
        f.becomes(KEYS)


def test_random_churn(state, log, tmp_path):
    """Both kinds of file agree with a set, whatever comes."""
    rng = random.Random(1)
    there = dict(enumerate(KEYS[:500]))
    with Follow(state) as a, Follow(log, "--begin", state) as b:
        for _ in range(40):
            records, lines = [], []
            for _ in range(rng.randrange(1, 120)):
                n = rng.randrange(1500)
                if n in there:
                    records.append(record(False, n, there[n]))
                    lines.append(line(False, n, there.pop(n)))
                else:
                    there[n] = rng.choice(KEYS)
                    records.append(record(True, n, there[n]))
                    lines.append(line(True, n, there[n]))
            append(state, *records)
            append(log, *lines)
            if rng.random() < 0.2:
                replace(state, index_head() + b"".join(
                    record(True, n, k) for n, k in there.items()))
            if rng.random() < 0.2:
                # What is not read yet would be lost with the old file.
                b.becomes(there.values())
                os.truncate(log, 0) if rng.random() < 0.5 else log.rename(
                    tmp_path / "old.log")
        a.becomes(there.values())
        b.becomes(there.values())
        told = b.stop()
        assert told["unknown"] == 0


# ---------------------------------------------------------- the command line

@pytest.mark.parametrize("argv, why", [
    (["nowhere"], "No such file"),
    (["."], "not a regular file"),
    (["random"], "neither a swap.state"),
    (["log", "state"], "it is followed alone"),
    (["state", "log"], "a store.log, and the others are not"),
    (["state", "--begin", "state"], "--begin takes"),
    (["log", "--begin", "log"], "--begin takes"),
    (["state", "--bits", "5", "--fpr", "1%"], "give one"),
    (["state", "--bits", "128"], "1 to 127"),
    (["state", "-K", "key"], "give both"),
    (["state", "--tell", "nowhere.invalid:1"], "not an address"),
    (["state", "--tell", "0", "-K", "nowhere"], "nowhere"),
    ([*["state"] * 65], "at most 64"),
    (["state", "--items", "1e9"], "bits"),
])
def test_what_is_refused(state, log, argv, why):
    shutil.copy(log, state.parent / "log")
    shutil.copy(state, state.parent / "state")
    (state.parent / "random").write_bytes(b"\3" + os.urandom(500))
    (state.parent / "key").write_text("00" * 16)
    r = run("digest", "follow", *argv, cwd=state.parent)
    assert r.status == 2 and why in r.err, r.err
    assert r.err.count("\n") == 1
