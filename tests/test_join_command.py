"""join: the result is that of an exact join, whatever the filter, the memory
and the format are; and what happens when files or the other end misbehave."""
import contextlib
import csv
import io
import json
import os
import random
import shlex
import signal
import sqlite3
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, run
from wire_support import frame, greeting

TYPES = ["inner", "left", "semi", "anti"]


def exact(kind, left, right, key=0, right_key=0):
    """The join of two lists of rows, by SQLite: pairs, a None for none."""
    db = sqlite3.connect(":memory:")
    db.text_factory = bytes
    for name, rows, at in ("l", left, key), ("r", right, right_key):
        db.execute(f"create table {name} (n integer primary key, k blob)")
        db.executemany(f"insert into {name} values (?, ?)",
                       ((i, row[at].encode()) for i, row in enumerate(rows)))
    db.execute("create index rk on r (k)")
    sql = {
        "inner": "select l.n, r.n from l join r on l.k = r.k",
        "left": "select l.n, r.n from l left join r on l.k = r.k",
        "semi": "select l.n, null from l where l.k in (select k from r)",
        "anti": "select l.n, null from l where l.k not in (select k from r)",
    }[kind]
    return [(left[i], None if j is None else right[j])
            for i, j in db.execute(sql + " order by 1, 2")]


def rows_of(seed, n, keys, columns):
    """Rows whose keys repeat; some are empty, long, or look alike."""
    rng = random.Random(seed)
    odd = ["", "0", "00", "x" * 5000, "é", "a b", "\x01"]
    return [[rng.choice(odd) if rng.random() < 0.02 else
             str(rng.randrange(keys)) for _ in range(1)] +
            [f"{seed}.{i}.{c}" for c in range(columns - 1)]
            for i in range(n)]


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def joined(kind, pairs, columns):
    """How the command prints them, as fields."""
    if kind in ("semi", "anti"):
        return [a for a, _ in pairs]
    return [a + (b[1:] if b else [""] * (columns - 1)) for a, b in pairs]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("nleft, nright", [
    (3000, 300), (300, 3000), (2000, 2000), (0, 50), (50, 0), (0, 0), (1, 1)])
def test_random_rows(ok, kind, nleft, nright):
    left, right = rows_of(1, nleft, 700, 2), rows_of(2, nright, 700, 3)
    (ok.path / "l").write_text(tsv(left))
    (ok.path / "r").write_text(tsv(right))
    want = tsv(joined(kind, exact(kind, left, right),
                      3 if right else 1))
    got = ok("join", "--field", 1, "--type", kind, "l", "r", "--json")
    assert got.out == want
    said = json.loads(got.err)
    assert (said["left_rows"], said["right_rows"]) == (nleft, nright)
    assert said["rows"] == want.count("\n")
    assert said["falsely"] <= said["passed"]
    # A pipe has no size, and its side is never the smaller one.
    assert ok("join", "--field", 1, "--type", kind, "-", "r", "-q",
              stdin=tsv(left)).out == want
    assert ok("join", "--field", 1, "--type", kind, "l", "-", "-q",
              stdin=tsv(right)).out == want


def wide(seed, n, keys):
    """Rows that fill a megabyte quickly."""
    rng = random.Random(seed)
    return [[str(rng.randrange(keys)), f"{seed}.{i}." + "x" * 200]
            for i in range(n)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("keys", [1, 30, 100000])
def test_memory_changes_nothing(ok, kind, keys):
    """Also where all rows have one key, which no partition divides."""
    n = 9 if keys == 1 else 90 if keys == 30 else 6000
    left, right = wide(1, n, keys), wide(2, 6000, keys)
    if keys == 1:
        left[7][0] = "other"
    (ok.path / "l").write_text(tsv(left))
    (ok.path / "r").write_text(tsv(right))
    want = tsv(joined(kind, exact(kind, left, right), 2))
    small = ok("join", "--field", 1, "--type", kind, "-m", "1M", "l", "r", "--json")
    assert small.out == want
    # Of keys alone a megabyte holds more.
    assert json.loads(small.err)["spilled"] > 0 or kind in ("semi", "anti") or \
        keys == 100000
    assert ok("join", "-q", "--field", 1, "--type", kind, "-t", 3, "l", "r"
              ).out == want
    back = ok("join", "--field", 1, "--type", kind, "-m", "1M", "r", "l", "-q").out
    assert back == ok("join", "--field", 1, "--type", kind, "r", "l", "-q").out


def test_like_join_of_coreutils(ok):
    rng = random.Random(5)
    names = {}
    for name in "lr":
        rows = sorted([f"k{rng.randrange(400):04d}", f"{name}{i}"]
                      for i in range(900))
        (ok.path / name).write_text(tsv(rows))
        names[name] = str(ok.path / name)
    for ours, theirs in ((), ()), (("--type", "left"), ("-a1", "-oauto")), \
            (("--type", "anti"), ("-v1",)):
        want = subprocess.run(
            ["join", "-t", "\t", *theirs, names["l"], names["r"]],
            env={**os.environ, "LC_ALL": "C"}, capture_output=True,
            check=True, text=True).stdout
        assert ok("join", "-q", "--field", 1, *ours, "l", "r").out == want


# ------------------------------------------------------------------- formats

def as_csv(rows, end="\n"):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", TYPES)
def test_csv(ok, kind, end):
    rng = random.Random(3)
    odd = ['a"b', "two\nlines", "x,y", "", "\r\n", "plain"]
    left = [[rng.choice(odd) + str(rng.randrange(30)), rng.choice(odd), "l"]
            for _ in range(200)]
    right = [[rng.choice(odd), rng.choice(odd) + str(rng.randrange(30))]
             for _ in range(300)]
    (ok.path / "l.csv").write_bytes(as_csv([["id", "na,me", "v"], *left], end))
    (ok.path / "r.csv").write_bytes(as_csv([["v", "key"], *right], end))
    pairs = exact(kind, left, right, 0, 1)
    got = ok("join", "-q", "--csv", "id", "--right", "key", "--type", kind,
             "l.csv", "r.csv").raw
    rows = list(csv.reader(io.StringIO(got.decode(), newline="")))
    if kind in ("semi", "anti"):
        assert rows == [["id", "na,me", "v"]] + [a for a, _ in pairs]
        return
    assert rows[0] == ["id", "na,me", "v", "v_right"]
    assert rows[1:] == [a + (b[:1] if b else [""]) for a, b in pairs]
    assert all(line.endswith(end.encode()) for line in
               as_csv(rows, end).splitlines(True) if b'"' not in line)


def test_names_of_columns(ok, trouble):
    (ok.path / "l.csv").write_text('id,a,a_right,"b"\n1,x,y,z\n')
    (ok.path / "r.csv").write_text('a,"b",id,a_right,a\n2,3,1,4,5\n')
    assert ok("join", "-q", "--csv", "id", "l.csv", "r.csv").lines == [
        'id,a,a_right,"b",a_right_right,"b_right",a_right_right_right,'
        "a_right_right_right_right",
        "1,x,y,z,2,3,4,5"]
    trouble("join", "-q", "--csv", "a", "l.csv", "r.csv",
            says="2 columns are called 'a'")
    trouble("join", "-q", "--csv", "nope", "l.csv", "r.csv",
            says="no column 'nope'")


def test_rows_that_are_too_short(ok):
    """Columns stay where the header says they are."""
    (ok.path / "l.csv").write_text("id,a,b\n1\n2,x,y\n3,x,y,z\n")
    (ok.path / "r.csv").write_text("id,c,d\n1,p\n2,q,r\n3,s,t\n")
    got = ok("join", "--csv", "id", "l.csv", "r.csv")
    assert got.lines == ["id,a,b,c,d", "1,,,p,", "2,x,y,q,r", "3,x,y,z,s,t"]
    assert "1 rows have more columns" in got.err


def test_csv_without_rows_or_header(ok):
    for name, text in ("l.csv", "id,a\n1,x\n2,y\n"), ("r.csv", "id,b,c\n"), \
            ("empty.csv", ""):
        (ok.path / name).write_text(text)
    assert ok("join", "-q", "--csv", "id", "l.csv", "r.csv").out == \
        "id,a,b,c\n"
    assert ok("join", "-q", "--type", "left", "--csv", "id", "l.csv", "r.csv"
              ).lines == ["id,a,b,c", "1,x,,", "2,y,,"]
    assert ok("join", "-q", "--type", "left", "--csv", "id", "l.csv", "empty.csv"
              ).lines == ["id,a", "1,x", "2,y"]
    assert ok("join", "-q", "--type", "anti", "--csv", "1", "--no-header", "l.csv",
              "r.csv").lines == ["1,x", "2,y"]
    assert ok("join", "-q", "--type", "left", "--csv", "1", "--no-header", "l.csv",
              "r.csv").lines == ["id,a,b,c", "1,x,,", "2,y,,"]


def test_json_lines(ok):
    left = [{"u": {"id": i % 5}, "t": 'a"\n'} for i in range(9)]
    right = [{"id": "3", "x": None}, {"id": 4}]
    (ok.path / "l").write_text("".join(json.dumps(x) + "  \r\n" for x in left))
    (ok.path / "r").write_text("".join(json.dumps(x) + "\n" for x in right))
    got = ok("join", "-q", "--type", "left", "--jsonl", "u.id", "--right", "id",
             "l", "r")
    want = [{"left": x, "right": right[x["u"]["id"] - 3]
             if x["u"]["id"] > 2 else None} for x in left]
    assert [json.loads(line) for line in got.lines] == want


def test_other_forms(ok):
    (ok.path / "l").write_text("  A  1 x\nb 2\n")
    (ok.path / "r").write_text("9  a p\n8 c\n")
    assert ok("join", "-q", "-i", "--field", 1, "--right", 2, "-d", "blanks",
              "l", "r").out == "  A  1 x 9 p\n"
    assert ok("join", "-q", "--regex", "[0-9]+", "--type", "left", "l", "r").out \
        == "  A  1 x\t\nb 2\t\n"
    assert ok("join", "-q", "--field", "-1", "-d", "blanks", "l", "l").out == \
        "  A  1 x A 1\nb 2 b\n"
    (ok.path / "n").write_bytes(b"one\ntwo\0three\0")
    (ok.path / "m").write_bytes(b"three\0one\ntwo\0three\0")
    assert ok("join", "-q", "-0", "n", "m").raw == b"one\ntwo\0three\0three\0"


def test_lines_without_a_key(bly, ok):
    (bly.path / "l").write_text("1\ta\nshort\n2\tb\n")
    (bly.path / "r").write_text("x\t1\nshort\n")
    argv = ["join", "--field", 2, "--right", 1]
    got = bly(*argv, "l", "r")
    assert got.status == 2 and "line 2: 1 field" in got.err
    assert "l: line 2" in got.err and got.err.count("l: line 2") == 1
    assert ok(*argv, "--skip-bad", "l", "r").out == ""


# ------------------------------------------------------------------ bad input

def test_what_does_not_go_together(trouble):
    (trouble.path / "l").write_text("1\n")
    trouble("join", "l", says="usage: bloomery join LEFT RIGHT")
    trouble("join", "-", "-", says="cannot be both")
    trouble("join", "l", "nowhere", says=["nowhere", "No such file"])
    trouble("join", "--type", "outer", "l", "l", says="inner, left, semi or anti")
    trouble("join", "--right", "2", "l", "l", says="--right needs")
    trouble("join", "--serve", "--remote", "x", "l", says="exclude each other")
    trouble("join", "--serve", "l", says="not the request of a join")
    trouble("join", "-m", "10k", "l", "l", says="at least 1 MB")
    trouble("join", "-o", "l", "l", "l", says="l")
    trouble("join", "-k", "generalized", "l", "l", says="only likely")
    (trouble.path / "r").write_text(tsv(wide(1, 9000, 9)))
    trouble("join", "--field", 1, "--spill", "/nowhere", "-m", "1M", "-", "r",
            says="/nowhere", stdin="1\n")


def test_full_disk(bly):
    (bly.path / "l").write_text("".join(f"{i}\n" for i in range(100000)))
    for more in (), ("-m", "1M"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "join", "l", "l", *more],
                                  cwd=bly.path, stdout=full,
                                  stderr=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 2 and b"No space left" in done.stderr
        assert done.stderr.count(b"\n") == 1


def test_output_is_whole_or_not_there(ok, bly):
    (ok.path / "l").write_text("1\t2\n3\t4\n")
    (ok.path / "bad").write_bytes(b"\x1f\x8b\x08" + b"\0" * 40)
    ok("join", "-q", "--field", 1, "l", "l", "-o", "out")
    assert (ok.path / "out").read_text() == "1\t2\t2\n3\t4\t4\n"
    got = bly("join", "-q", "--field", 1, "l", "bad", "-o", "out")
    assert got.status == 2
    assert (ok.path / "out").read_text() == "1\t2\t2\n3\t4\t4\n"


def test_a_file_that_changes_between_the_readings(bly):
    """LEFT is the smaller one, and gets a row while RIGHT is read."""
    (bly.path / "l").write_text("1\ta\n")
    os.mkfifo(bly.path / "r")
    child = subprocess.Popen([PROGRAM, "join", "--field", "1", "l", "r"],
                             cwd=bly.path, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    with open(bly.path / "r", "w", encoding="ascii") as right:
        with open(bly.path / "l", "a", encoding="ascii") as left:
            left.write("2\tb\n")
        right.write("1\tx\n2\ty\n")
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and b"changed while it was read" in err


def test_a_killed_join_leaves_nothing(bly):
    rows = wide(1, 20000, 9)
    (bly.path / "r").write_text(tsv(rows))
    (bly.path / "tmp").mkdir()
    child = subprocess.Popen(
        [PROGRAM, "join", "--field", "1", "-m", "1M", "--spill", "tmp", "-o",
         "out", "-", "r"], cwd=bly.path, stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    child.stdin.write(b"1\n" * 100000)
    child.stdin.flush()
    def spills():
        files = f"/proc/{child.pid}/fd"
        for n in os.listdir(files):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if "tmp/" in os.readlink(f"{files}/{n}"):
                    return True
        return False
    while not spills():
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait(PATIENCE)
    child.stdin.close()
    assert list((bly.path / "tmp").iterdir()) == []
    assert not (bly.path / "out").exists()


# ------------------------------------------------------------------- remotes

def serve(*argv):
    return shlex.join([PROGRAM, "join", "--serve", *map(str, argv)])


@pytest.mark.parametrize("kind", TYPES)
def test_remote(ok, kind):
    left, right = rows_of(1, 300, 5000, 2), rows_of(2, 20000, 200000, 4)
    (ok.path / "l").write_text(tsv(left))
    (ok.path / "r").write_text(tsv(right))
    want = tsv(joined(kind, exact(kind, left, right), 4))
    for stdin, name in ("", "l"), (tsv(left), "-"):
        got = ok("join", "--field", 1, "--type", kind, name, "--remote",
                 serve("--field", 1, "r"), "--json", stdin=stdin)
        assert got.out == want
        said = json.loads(got.err)
        assert said["unfiltered"] == len(tsv(right).encode())
        assert said["right_rows"] == 20000
        assert said["received"] < said["unfiltered"] / 2
        assert 0 < said["sent"] < 20000


def test_remote_csv(ok, trouble):
    (ok.path / "l.csv").write_text("id,x\n1,a\n2,b\n")
    (ok.path / "r.csv").write_text('x,"Key"\r\n"p\nq",2\r\nr,3\r\n')
    argv = "join", "--csv", "id", "--type", "left", "l.csv", "--remote"
    assert ok(*argv, serve("--csv", "Key", "r.csv"), "-q").out == \
        'id,x,x_right\n1,a,\n2,b,"p\nq"\n'
    trouble(*argv, serve("--field", 1, "r.csv"), says="another form")
    trouble(*argv, serve("--csv", "Key", "-d", ";", "--no-header", "r.csv")
            + " 2>&1", says="--remote")
    (ok.path / "none.csv").write_text("Key,y,z\n")
    assert ok(*argv, serve("--csv", "Key", "none.csv"), "-q").lines == [
        "id,x,y,z", "1,a,,", "2,b,,"]
    (ok.path / "empty.csv").write_text("id,x\n")
    assert ok("join", "--csv", "id", "empty.csv", "-q", "--remote",
              serve("--csv", "Key", "r.csv")).out == "id,x,x_right\n"


def test_remotes_that_fail(trouble):
    """Nothing is printed of a join that lacks rows."""
    left = "".join(f"{i}\n" for i in range(1000))
    (trouble.path / "l").write_text(left)
    (trouble.path / "r").write_text(left)
    good = serve("r")
    size = len(subprocess.run(
        ["sh", "-c", f"{shlex.quote(PROGRAM)} join l -q --remote "
         f"{shlex.quote(good + ' | tee answer')}"], cwd=trouble.path,
        capture_output=True, check=True).stdout)
    assert size == len(left)
    answer = (trouble.path / "answer").read_bytes()

    def fails(command, says="--remote"):
        trouble("join", "l", "--remote", command + " 2>/dev/null", says=says)

    fails("exit 3", "closed the connection")
    fails("cat", "another form")  # what was asked comes back
    fails("yes", "protocol")
    fails(f"{good}; exit 9", "status 9")
    fails(f"{good}; echo more", "follows its last row")
    fails(f"{good}; kill -9 $$", "status 137")
    # What they are asked is read, so that they are not gone before it is written.
    fails("cat answer answer; cat >/dev/null", "last row")
    fails("cat r; cat >/dev/null", "protocol")
    rng = random.Random(1)
    for n in [8, 11, 14, len(answer) - 1] + rng.sample(range(len(answer)), 6):
        fails(f"head -c 40 >/dev/null; head -c {n} answer", "closed the connection")
    # The rest of the hello is chance, which only a secret gives a meaning.
    for i in [0, 7, 44, 60, len(answer) - 1, len(answer) - 20] + \
            rng.sample(range(40, len(answer)), 12):
        bad = bytearray(answer)
        bad[i] ^= 1 << rng.randrange(8)
        (trouble.path / "bad").write_bytes(bad)
        fails("head -c 40 >/dev/null; cat bad")
    for stream in (b"\0\t\n" + b"\xff" * 8 + b"\x01", rng.randbytes(5000), b""):
        (trouble.path / "bad").write_bytes(greeting(b"blyjoin") + frame(b"\1" + stream) + frame(b"\1", number=1))
        fails("cat bad")


def test_a_server_that_is_asked_nonsense(bly):
    (bly.path / "r").write_text("1\n")
    rng = random.Random(2)
    hello = greeting(b"blyjoin")
    for ask in b"", b"blyjoin1", b"blyjoin1\0" + b"\xff" * 8, rng.randbytes(4000):
        got = bly("join", "--serve", "r", stdin=ask)
        assert got.status == 2 and got.raw == b"", ask
    for ask in b"", b"\xff" * 8, frame(b"\1\0" + rng.randbytes(100)), \
            frame(b"\1", number=7), frame(b"\1"), frame(b"\2\0"):
        got = bly("join", "--serve", "r", stdin=hello + ask)
        assert got.status == 2 and len(got.raw) == len(hello), ask


def test_a_keyed_filter(ok, trouble):
    (ok.path / "l").write_text("1\n2\n")
    (ok.path / "key").write_text("00112233445566778899aabbccddeeff\n")
    (ok.path / "key").chmod(0o600)
    argv = "join", "-q", "-K", "key", "l", "--remote"
    assert ok(*argv, serve("-K", "key", "l")).out == "1\n2\n"
    trouble(*argv, serve("l") + " 2>/dev/null", says="has no secret")


def test_forms_of_keys_reach_the_other_end(ok):
    (ok.path / "l").write_text("Ann \n")
    (ok.path / "r").write_text("aNN\nbob\n")
    assert ok("join", "-q", "-i", "--trim", "l", "--remote", serve("r")).out \
        == "Ann \n"


def test_kinds(ok):
    (ok.path / "l").write_text("".join(f"{i}\n" for i in range(3000)))
    (ok.path / "r").write_text("".join(f"{i}\n" for i in range(0, 9000, 3)))
    want = [str(i) for i in range(0, 3000, 3)]
    for kind in "classic", "fuse", "ribbon", "cuckoo":
        for pair in ("l", "r"), ("r", "l"):
            assert ok("join", "-q", "-k", kind, *pair).lines == want, kind
