"""bloomery passwords: lists of leaked passwords, and what is asked of them.

The lists are made here by Python's hashlib, and, where Debian's sqlmap is
there, from its 1.6 million passwords.
"""
import gzip
import hashlib
import json
import pathlib
import random
import re
import signal
import subprocess
import termios
import urllib.error
import urllib.request
import zipfile

import pytest

from conftest import GRACE, PATIENCE, PROGRAM, run
from terminal_support import Terminal

WORDS = [f"word{i}" for i in range(3000)] + ["password", "pässwörd", "😀"]
OTHERS = [f"other{i}" for i in range(3000)]


def sha1(word):
    return hashlib.sha1(word.encode()).hexdigest().upper()


def md4(data):
    """MD4, which today's OpenSSL refuses (RFC 1320)."""
    def turn(x, n):
        return (x << n | (x & 0xffffffff) >> 32 - n) & 0xffffffff
    data += b"\x80" + bytes((55 - len(data)) % 64) + \
        (8 * len(data)).to_bytes(8, "little")
    state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]
    orders = [range(16), [i % 4 * 4 + i // 4 for i in range(16)],
              [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]]
    mixes = [lambda x, y, z: x & y | ~x & z,
             lambda x, y, z: x & y | x & z | y & z, lambda x, y, z: x ^ y ^ z]
    turns = [(3, 7, 11, 19), (3, 5, 9, 13), (3, 9, 11, 15)]
    for at in range(0, len(data), 64):
        words = [int.from_bytes(data[at + i:at + i + 4], "little")
                 for i in range(0, 64, 4)]
        a, b, c, d = state
        for r, plus in enumerate((0, 0x5a827999, 0x6ed9eba1)):
            for i, k in enumerate(orders[r]):
                a, d, c, b = d, c, b, turn(
                    a + (mixes[r](b, c, d) & 0xffffffff) + words[k] + plus
                    & 0xffffffff, turns[r][i % 4])
        state = [x + y & 0xffffffff for x, y in zip(state, (a, b, c, d))]
    return b"".join(x.to_bytes(4, "little") for x in state)


def ntlm(word):
    return md4(word.encode("utf-16-le")).hex().upper()


def counted(words, hashed=sha1):
    return sorted(f"{hashed(w)}:{i % 50 + 1}" for i, w in enumerate(words))


def text(lines, end="\n"):
    return "".join(line + end for line in lines)


@pytest.fixture
def pwned(ok):
    (ok.path / "sha1.txt").write_text(text(counted(WORDS)))
    ok("passwords", "build", "-q", "-p", 1e-6, "-o", "p.bly", "sha1.txt")
    return ok


def zeroed(path):
    """A small filter whose bits were lost, while its header is whole."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


def test_a_damaged_filter_says_no_to_nothing(pwned, trouble):
    zeroed(pwned.path / "p.bly")
    trouble("passwords", "check", "p.bly", stdin="password\n", says=("damaged",))
    trouble("passwords", "check", "p.bly", "--hashes", "sha1.txt", says=("damaged",))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mirror_without_counts(pwned, end):
    """Lists may lack counts: what is in them was seen once at least."""
    (pwned.path / "bare.txt").write_text(text(sorted(map(sha1, WORDS)), end), newline="")
    told = pwned("passwords", "check", "p.bly", "--mirror", "bare.txt", stdin="password\nnone\n")
    assert told.lines == ["line 1: in the list, seen 1 times"]


# ----------------------------------------------------------------- building

def test_every_form_of_a_list_is_one_filter(pwned):
    """Sorted or not, compressed, in lower case, with CRLF, without counts, as
    range files, as words: the same hashes are the same filter."""
    at = pwned.path
    lines = counted(WORDS)
    mixed = lines[:]
    random.Random(1).shuffle(mixed)
    (at / "mixed.txt.gz").write_bytes(gzip.compress(text(mixed).encode()))
    (at / "lower.txt").write_text(text(line.lower() for line in lines))
    (at / "crlf.txt").write_text(text(lines, "\r\n"))
    (at / "bare.txt").write_text(text(line[:40] for line in lines))
    (at / "words.txt").write_text(text(WORDS))
    (at / "ranges").mkdir()
    ranges = {}
    for line in lines:
        ranges.setdefault(line[:5], []).append(line[5:])
    for prefix, rest in ranges.items():
        # With padding, as the service sends it, and without a last newline.
        (at / "ranges" / f"{prefix}.txt").write_bytes(
            "\r\n".join([*rest, "F" * 35 + ":0"]).encode())
    want = (at / "p.bly").read_bytes()
    for source in ("mixed.txt.gz", "lower.txt", "crlf.txt", "bare.txt",
                   "ranges"):
        pwned("passwords", "build", "-q", "-p", 1e-6, "-o", "x.bly", source)
        assert (at / "x.bly").read_bytes() == want, source
    pwned("passwords", "build", "-q", "--words", "-p", 1e-6, "-o", "x.bly",
          "words.txt")
    assert (at / "x.bly").read_bytes() == want


def test_range_files_that_are_missing_are_told(ok):
    """All have the same good hash in them; whoever lacks some learns which is the first."""
    (ok.path / "ranges").mkdir()
    for i in (0, 1, 3, 0xABCDE):
        (ok.path / "ranges" / f"{i:05X}").write_text("1E4C9B93F3F0682250B6CF8331B7EE68FD8:7\n")
    (ok.path / "ranges" / "00001.txt").write_text("1E4C9B93F3F0682250B6CF8331B7EE68FD8:7\n")
    said = ok("passwords", "build", "-o", "x.bly", "ranges").err
    assert "4 of 1048576 range files" in said and "missing is 00002" in said
    (ok.path / "whole.txt").write_text(text(counted(WORDS)))
    assert "range files" not in ok("passwords", "build", "-o", "x.bly", "whole.txt").err
    assert "range files" not in ok("passwords", "build", "--words", "-o", "x.bly", "ranges").err


def test_ntlm(ok):
    (ok.path / "ntlm.txt").write_text(text(counted(WORDS, ntlm)))
    (ok.path / "words.txt").write_text(text(WORDS))
    ok("passwords", "build", "-q", "--list", "ntlm", "-p", 1e-6, "-o", "a",
       "ntlm.txt")
    ok("passwords", "build", "-q", "--list", "ntlm", "--words", "-p", 1e-6,
       "-o", "b", "words.txt")
    assert (ok.path / "a").read_bytes() == (ok.path / "b").read_bytes()
    told = ok("passwords", "check", "a", stdin=text(["none", *WORDS[-3:]]))
    assert told.lines == [f"line {i}: in the list" for i in (2, 3, 4)]


def test_min_count(ok):
    (ok.path / "sha1.txt").write_text(text(counted(WORDS)))
    made = ok("passwords", "build", "-p", 1e-6, "--min-count", 26, "-o", "p",
              "sha1.txt")
    want = [i + 1 for i in range(len(WORDS)) if i % 50 + 1 >= 26]
    assert f"{len(WORDS) - len(want)} lines left out" in made.err
    told = ok("passwords", "check", "p", "--json", stdin=text(WORDS))
    assert [json.loads(line)["line"] for line in told.lines] == want


@pytest.mark.parametrize("kind", ["blocked", "fuse", "ribbon", "cuckoo"])
def test_any_kind(ok, kind):
    (ok.path / "sha1.txt").write_text(text(counted(WORDS)))
    ok("passwords", "build", "-q", "-k", kind, "-p", 1e-5, "-o", "p",
       "sha1.txt")
    assert ok("passwords", "check", "p", "-c",
              stdin=text(WORDS)).out == f"{len(WORDS)}\n"
    assert int(run("passwords", "check", "p", "-c", stdin=text(OTHERS),
                   cwd=ok.path).out) < 5


def test_bad_lines_are_named_and_the_rest_is_used(bly, ok):
    lines = counted(WORDS)
    lines[6:6] = ["password", lines[3][:39] + ":4", lines[2] + "x",
                  ntlm("x") + ":4", "", lines[1][:40] + ":", lines[1][5:]]
    (ok.path / "bad.txt").write_text(text(lines))
    made = bly("passwords", "build", "-o", "p", "bad.txt")
    assert made.status == 2 and "p: 3003 keys read" in made.out
    named = [int(n) for n in re.findall(r"bad\.txt: line (\d+):", made.err)]
    assert named == [7, 8, 9, 10, 12, 13]
    for word in ("--words", "colon", "--list ntlm", "range file"):
        assert word in made.err
    assert ok("passwords", "check", "p", "-c",
              stdin=text(WORDS)).out == f"{len(WORDS)}\n"
    quietly = ok("passwords", "build", "--skip-bad", "-o", "q", "bad.txt")
    assert "line 7" not in quietly.err
    assert (ok.path / "p").read_bytes() == (ok.path / "q").read_bytes()


def test_what_cannot_be_meant(trouble, pwned):
    (pwned.path / "empty").mkdir()
    (pwned.path / "none").write_text("")
    for argv, says in (
            (["build", "sha1.txt"], "-o FILE"),
            (["build", "-o", "x", "none"], "no keys"),
            (["build", "-o", "x", "empty"], "no file"),
            (["build", "-o", "x", "absent"], "absent"),
            (["build", "-o", "sha1.txt", "sha1.txt"], "sha1.txt"),
            (["build", "-o", "x", "--list", "md5", "sha1.txt"], "md5"),
            (["build", "-o", "x", "--format", "guava", "sha1.txt"], "--words"),
            (["build", "-o", "x", "--format", "dcso", "--words"], "guava"),
            (["build", "-o", "x", "--words", "--min-count", 3], "counts"),
            (["build", "-o", "/dev/full", "sha1.txt"], "/dev/full"),
            (["check", "sha1.txt"], "sha1.txt"),
            (["check", "p.bly", "password"], "never from operands"),
            (["check", "p.bly", "--hashes", "--json"], "--count"),
            (["check", "p.bly", "--mirror", "absent"], "absent"),
            (["check", "p.bly", "--mirror", "p.bly"], "p.bly"),
            (["serve", "absent"], "absent"),
            (["serve", "sha1.txt", "--listen", "x:y"], "x:y")):
        trouble("passwords", *argv, says=says)
    pwned("build", "-q", "-o", "plain.bly", stdin="a\n")
    trouble("passwords", "check", "plain.bly", says="which hash")


# ----------------------------------------------------------------- checking

def test_check_from_a_pipe(pwned, bly):
    told = pwned("passwords", "check", "p.bly",
                 stdin=text([*OTHERS[:5], "password", OTHERS[7], "word7"]))
    assert told.lines == ["line 6: in the list", "line 8: in the list"]
    assert told.err == ""
    none = bly("passwords", "check", "p.bly", stdin=text(OTHERS[:9]))
    assert (none.status, none.out) == (1, "")
    inverted = pwned("passwords", "check", "-v", "p.bly",
                     stdin="word1\nother1")
    assert inverted.lines == ["line 2: not in the list"]
    assert pwned("passwords", "check", "-q", "p.bly", stdin="word1\n").out == ""
    nul = pwned("passwords", "check", "-0", "p.bly", stdin=b"x\0word1\0word2")
    assert nul.lines == ["line 2: in the list", "line 3: in the list"]


def test_long_and_empty_passwords(pwned, bly, trouble):
    long = "x" * (1 << 20)
    (pwned.path / "w.txt").write_text(text([long, long[:-1]]))
    pwned("passwords", "build", "-q", "--words", "-p", 1e-9, "-o", "w.bly",
          "w.txt")
    told = pwned("passwords", "check", "w.bly",
                 stdin=text(["", long[:-1], long, long[:-2]]))
    assert told.lines == ["line 2: in the list", "line 3: in the list"]
    trouble("passwords", "check", "w.bly", stdin=long + "x",
            says="longer than 1 MiB")
    assert bly("passwords", "check", "w.bly", stdin="\n").status == 1
    assert bly("passwords", "check", "w.bly", stdin="").status == 1


def test_the_mirror_decides(ok, bly):
    """A filter that is nearly always wrong, beside the list itself."""
    lines = counted(WORDS)
    (ok.path / "sha1.txt").write_text(text(lines))
    ok("passwords", "build", "-q", "-p", 0.5, "-o", "p", "sha1.txt")
    (ok.path / "ranges").mkdir()
    ranges = {sha1(w)[:5]: [] for w in WORDS + OTHERS}
    for line in lines:
        ranges[line[:5]].append(line[5:])
    for prefix, rest in ranges.items():
        (ok.path / "ranges" / prefix).write_text(text(rest, "\r\n"))
    asked = [w for pair in zip(OTHERS, WORDS) for w in pair]
    counts = dict(line.split(":") for line in lines)
    for mirror in "sha1.txt", "ranges":
        told = ok("passwords", "check", "p", "--mirror", mirror,
                  stdin=text(asked))
        assert told.lines == [
            f"line {i + 1}: in the list, seen {counts[sha1(w)]} times"
            for i, w in enumerate(asked) if w in WORDS]
        assert ok("passwords", "check", "p", "--hashes", "--mirror", mirror,
                  stdin=text(map(sha1, asked))).lines == \
            [sha1(w) for w in asked if w in WORDS]
    mixed = lines[1000:] + lines[:1000]
    (ok.path / "mixed.txt").write_text(text(mixed))
    wrong = bly("passwords", "check", "p", "--mirror", "mixed.txt",
                stdin="password\n")
    assert wrong.status == 2 and "not sorted" in wrong.err


def test_hashes(pwned, bly):
    asked = [sha1(w) for w in OTHERS[:50] + WORDS[:50]]
    told = pwned("passwords", "check", "p.bly", "--hashes",
                 stdin=text(asked))
    assert told.lines == asked[50:]
    (pwned.path / "h.txt").write_text(text(asked + ["nonsense"]))
    mixed = bly("passwords", "check", "p.bly", "--hashes", "h.txt")
    assert mixed.status == 2 and mixed.lines == asked[50:]
    assert "h.txt: line 101" in mixed.err


def test_a_keyed_filter(ok, trouble):
    (ok.path / "key").write_bytes(bytes(range(16)))
    (ok.path / "key").chmod(0o600)
    (ok.path / "w").write_text(text(WORDS))
    ok("passwords", "build", "-q", "--words", "-p", 1e-6, "-K", "key", "-o",
       "p", "w")
    assert ok("passwords", "check", "p", "-K", "key", "-c",
              stdin=text(WORDS)).out == f"{len(WORDS)}\n"
    trouble("passwords", "check", "p", stdin="x\n", says="key")


# ----------------------------------------------------------------- secrecy

SECRET = "correct-horse-battery-staple-4711"


def memory_of(pid):
    """All that a process can read of its own memory."""
    with open(f"/proc/{pid}/maps") as maps, \
            open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" in line.split()[1] and "[v" not in line:
                mem.seek(start)
                try:
                    yield mem.read(end - start)
                except OSError:
                    pass


def test_on_a_terminal_nothing_is_shown_or_kept(pwned):
    screen = Terminal([PROGRAM, "passwords", "check", "p.bly"], pwned.path,
                      None)
    pid = screen.child.pid
    screen.until("Password: ")
    for word, verdict in (("password", "leaked"), (SECRET, "not in the list")):
        seen = len(screen.seen)
        screen.type(word + "\n")
        screen.until(rf"(?s).{{{seen}}}.*{verdict}.*Password: ")
    assert SECRET not in screen.seen
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    if "memory cannot be locked" not in screen.seen:
        assert int(re.search(r"VmLck:\s+(\d+)", status).group(1)) > 0
    assert not any(SECRET.encode() in part for part in memory_of(pid))
    screen.type("\n")
    assert screen.child.wait(PATIENCE) == 0


def test_interrupted_the_terminal_echoes_again(pwned):
    screen = Terminal([PROGRAM, "passwords", "check", "p.bly"], pwned.path,
                      None)
    screen.until("Password: ")
    assert not termios.tcgetattr(screen.master)[3] & termios.ECHO
    screen.child.send_signal(signal.SIGINT)
    assert screen.child.wait(PATIENCE) == -signal.SIGINT
    assert termios.tcgetattr(screen.master)[3] & termios.ECHO


# ----------------------------------------------------------------- serving

@pytest.fixture
def served(pwned):
    (pwned.path / "ntlm.txt").write_text(text(counted(WORDS, ntlm)))
    child = subprocess.Popen(
        [PROGRAM, "passwords", "serve", "sha1.txt", "--ntlm-mirror",
         "ntlm.txt", "--listen", "127.0.0.1:0"], cwd=pwned.path,
        stdout=subprocess.PIPE, text=True)
    url = child.stdout.readline().split(": ", 1)[1].strip()

    def get(path, **headers):
        asked = urllib.request.Request(url + path, headers=headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.read().decode()
    yield get
    child.send_signal(signal.SIGTERM)
    try:
        assert child.wait(GRACE) == 0
        assert "requests" in child.stdout.read()
    finally:
        child.kill()


def test_serve_answers_as_the_public_service(served):
    """Five digits of each password: what a client sees of its range."""
    lines = counted(WORDS)
    for word in WORDS[-20:]:
        digits = sha1(word)
        want = [line[5:] for line in lines if line[:5] == digits[:5]]
        assert served(digits[:5]).split("\r\n") == want
        assert served(digits[:5].lower()).split("\r\n") == want
    nt = counted(WORDS, ntlm)
    digits = ntlm("password")
    assert served(digits[:5] + "?mode=ntlm").split("\r\n") == \
        [line[5:] for line in nt if line[:5] == digits[:5]]


def test_serve_pads(served):
    digits = sha1("password")
    sizes = set()
    for _ in range(4):
        lines = served(digits[:5], **{"Add-Padding": "true"}).split("\r\n")
        sizes.add(len(lines))
        assert 800 <= len(lines) <= 1000
        assert all(re.fullmatch(r"[0-9A-F]{35}:\d+", line) for line in lines)
        assert lines == sorted(lines)
        assert [line for line in lines if not line.endswith(":0")] == \
            [line[5:] for line in counted(WORDS) if line[:5] == digits[:5]]
    assert len(sizes) > 1


def test_serve_refuses(served):
    for path, code in (("5BAA", 400), ("5BAA61", 400), ("5BAX6", 400),
                       ("../etc/passwd", 400), ("%2e%2e/x", 400)):
        with pytest.raises(urllib.error.HTTPError) as wrong:
            served(path)
        assert wrong.value.code == code, path
    empty = next(f"{i:05X}" for i in range(1 << 20)
                 if not any(line.startswith(f"{i:05X}")
                            for line in counted(WORDS)))
    assert served(empty) == ""


# --------------------------------------------------------------- real lists

SQLMAP = pathlib.Path("/usr/share/sqlmap/data/txt/wordlist.tx_")


@pytest.mark.skipif(not SQLMAP.exists(), reason="sqlmap is not there")
def test_the_passwords_of_sqlmap(ok):
    """1.6 million real ones: all found, and as few others as was planned."""
    with zipfile.ZipFile(SQLMAP) as archive:
        words = archive.read(archive.namelist()[0])
    (ok.path / "w.txt").write_bytes(words)
    made = ok("passwords", "build", "--json", "--words", "-k", "fuse", "-p",
              1 / 256, "-o", "w.bly", "w.txt").json
    n = len({w for w in words.split(b"\n") if w})
    assert abs(made["items"] / n - 1) < 0.01
    assert made["bits_per_key"] < 9.3
    listed = [w for w in words.split(b"\n") if w]
    assert int(ok("passwords", "check", "-c", "w.bly",
                  stdin=b"\n".join(listed)).out) == len(listed)
    others = text(f"{i}-other-{i * 7919}" for i in range(100000))
    wrong = int(ok("passwords", "check", "-c", "w.bly", stdin=others).out)
    assert abs(wrong - 100000 / 256) < 5 * (100000 / 256) ** 0.5
