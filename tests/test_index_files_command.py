"""bloomery index: what it prints is what grep prints, whatever the pattern, the
packing and the locale, and no line is missed without a word."""
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import re
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM

PARTS = ["a", "b", "foo", "bar", "Foo", "BAR", "foobar", "x1", "_", "-", ".",
         ":", "/", "@", " ", " ", "  ", "é", "É", "ß", "ı", "ſ", "日本", "1",
         "192.0.2.7", "10.0.0.1", "user=4711", "ERROR", "error",
         "trace-7f3a91", "i", "s", "k", "S", "I", "\t", '"', "(", "[", "]",
         "*", "+", "{", "|", "^", "$", "\\", "aaaa", "aaab"]


def zstd(text):
    return subprocess.run(["zstd", "-q"], input=text, check=True,
                          capture_output=True).stdout


def pieces(text, n=7000):
    return [text[i:i + n] for i in range(0, len(text), n)] or [b""]


PACKINGS = {
    "": lambda t: t,
    ".gz": gzip.compress,
    ".m.gz": lambda t: b"".join(gzip.compress(p) for p in pieces(t)),
    ".zst": zstd,
    ".m.zst": lambda t: b"".join(map(zstd, pieces(t))),
    ".xz": lzma.compress,
    ".b.xz": lambda t: subprocess.run(
        ["xz", "-q", "--block-size=9000"], input=t, check=True,
        capture_output=True).stdout,
    ".bz2": bz2.compress,
    ".b.bz2": lambda t: b"".join(bz2.compress(p, 1)
                                 for p in pieces(t, 250_000)),
}


def texts(rng, n):
    """Files of several packings: {name: text}."""
    packings = list(PACKINGS) + [""] * 2
    made = {}
    for i in range(n):
        lines = ["".join(rng.choice(PARTS)
                         for _ in range(rng.choice([0, 1, 3, 8, 20, 40])))
                 for _ in range(rng.choice([0, 1, 5, 100, 700]))]
        text = "\n".join(lines).encode() + b"\n" * (rng.random() < .8)
        if i % 4 == 1:
            text = text.replace(b"\xc3\xa9", b"\xe9", 3)
        if i % 7 == 3 and len(text) > 40000:
            text = text[:35000] + b"\0" + text[35000:]
        made[f"t/f{i:02}.log{packings[i % len(packings)]}"] = text
    return made


def put(folder, made):
    for name, text in made.items():
        packing = name[name.index(".log") + 4:]
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(PACKINGS[packing](text))


def grep(made, *options, locale="C"):
    """What grep prints of these texts, one after another, as zgrep runs it."""
    out, status = b"", 1
    for name in sorted(made):
        done = subprocess.run(
            ["grep", "-n", f"--label={name}", *options, "-"],
            input=made[name], capture_output=True, timeout=PATIENCE,
            env={"PATH": os.environ["PATH"], "LC_ALL": locale})
        out += done.stdout
        status = 2 if 2 in (status, done.returncode) else \
            min(status, done.returncode)
    return status, out


def search(folder, *options, locale="C", index="x.blx"):
    done = subprocess.run(
        [PROGRAM, "index", "search", *options, index], cwd=folder,
        capture_output=True, timeout=PATIENCE,
        env={"PATH": os.environ["PATH"], "LC_ALL": locale})
    return done.returncode, done.stdout, done.stderr.decode()


def pattern(rng, extended, depth=0):
    """A random regular expression, mostly of texts that are there."""
    def op(c):
        return c if extended else "\\" + c

    def sub():
        return pattern(rng, extended, depth + 1)
    if rng.random() < .45 or depth > 3:
        return "".join(rng.choice(
            ["foo", "bar", "foobar", "ERROR", "error", r"192\.0.2.7",
             "10.0.0.1", "user=4711", "trace-7f3a91", "aaaa", "aaab", "x1",
             "Foo", "é", "oo", "日本", "1", "a", "-", "_", "is", "kiss", " ",
             "ı"]) for _ in range(rng.choice([1, 1, 2, 3])))
    before = ["^", "$", r"\<", r"\>", r"\b", r"\B", r"\w", r"\W", r"\s", "[ab]",
              "[^a]", "[a-z]", "[[:alpha:]]", "[Ff]", "[ ./]", r"\.",
              op("(") + "a" + op(")") + r"\1"]
    after = ["*", ".*", ".", op("+"), op("?"), op("{") + "1,2" + op("}"),
             op("{") + "2" + op("}"), op("{") + "0,1" + op("}"), "$", r"\>",
             r"\b", r"\W", "[^a]", "[[:space:]]"]
    return rng.choice([
        lambda: sub() + sub(), lambda: op("(") + sub() + op(")"),
        lambda: op("(") + sub() + op("|") + sub() + op(")"),
        lambda: sub() + rng.choice(after), lambda: rng.choice(before) + sub(),
        lambda: sub() + op("|") + sub()])()


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_print_what_grep_prints(tmp_path, seed):
    rng = random.Random(seed)
    made = texts(rng, 12)
    put(tmp_path, made)
    build = ["build", "-q", "-o", "x.blx", "--block", "4096", "--points",
             "8192", "--binary", *["-i"] * (seed % 2)]
    subprocess.run([PROGRAM, "index", *build, "t"], cwd=tmp_path, check=True)
    for _ in range(25):
        syntax = rng.choice(["-G", "-E", "-F"])
        options = [syntax, rng.choice(["-H", "-h"]),
                   "--color=" + rng.choice(["never", "never", "always"])]
        for option, share in ("-i", .3), ("-w", .35), ("-c", .1), ("-o", .15):
            options += [option] * (rng.random() < share)
        for option, share in ("-A", .2), ("-B", .2), ("-C", .1), ("-m", .15):
            if rng.random() < share:
                options.append(f"{option}{rng.randint(option == '-m', 5)}")
        for _ in range(rng.choice([1, 1, 2])):
            options += ["-e", pattern(rng, syntax == "-E")]
        locale = rng.choice(["C", "C.UTF-8"])
        status, out = grep(made, *options, locale=locale)
        got = search(tmp_path, *options, locale=locale)
        assert got[0] == status, (options, locale, got[2])
        if status < 2:
            assert got[1] == out, (options, locale, got[2])


@pytest.fixture
def logs(ok, tmp_path):
    """Ten files of a log, compressed in every way, and their index."""
    rng = random.Random(7)
    made = {}
    for i, packing in enumerate(list(PACKINGS) + ["", ""]):
        made[f"logs/d{i}.log{packing}"] = "".join(
            f"2026-11-{i + 1:02} 10.{i}.0.{j % 250} trace-{rng.getrandbits(64):016x} "
            f"user={rng.randrange(10 ** 6)} {rng.choice(['ERROR', 'INFO'])} "
            f"in {rng.choice(['pay', 'cart'])}\n"
            for j in range(600)).encode()
    put(tmp_path, made)
    ok("index", "build", "-q", "-o", "x.blx", "--block", "8192", "--points",
       "16384", "logs")
    return made


def test_a_word_opens_one_block(logs, tmp_path, bly):
    name = "logs/d3.log.zst"
    word = logs[name].split()[2 + 7 * 300].decode()
    line = bly("index", "search", "x.blx", "-w", word)
    number = logs[name].decode().split("\n").index(
        next(x for x in logs[name].decode().split("\n") if word in x)) + 1
    assert line.out.startswith(f"{name}:{number}:") and line.status == 0
    assert len(line.lines) == 1 and not line.err
    maybe = bly("index", "search", "--json", "--maybe", "x.blx", "-w", word)
    told = [json.loads(x) for x in maybe.lines]
    assert sum(t["blocks"] for t in told) <= 3, told
    assert bly("index", "search", "x.blx", "-w", "trace-0").status == 1
    assert bly("index", "search", "-q", "x.blx", "-w", word).raw == b""


def test_all_operands_must_be_in_a_file(logs, bly):
    a = logs["logs/d0.log"].split()[2].decode()
    b = logs["logs/d0.log"].split()[9].decode()
    c = logs["logs/d1.log.gz"].split()[2].decode()
    assert bly("index", "search", "-l", "x.blx", a, b).lines == ["logs/d0.log"]
    assert bly("index", "search", "-l", "x.blx", a, c).status == 1
    both = bly("index", "search", "x.blx", a, b)
    assert len(both.lines) == 2
    assert len(bly("index", "search", "x.blx", "-e", a, "-e", c).lines) == 2


def test_what_is_new_or_changed_is_searched(logs, tmp_path, bly, ok):
    (tmp_path / "logs/new.log").write_text("a needle\n")
    plain = tmp_path / "logs/d0.log"
    plain.write_bytes(plain.read_bytes() + b"another needle\n")
    (tmp_path / "logs/d1.log.gz").unlink()
    got = bly("index", "search", "-l", "x.blx", "needle")
    assert got.lines == ["logs/d0.log", "logs/new.log"]
    for part in "d0.log: changed", "1 new file", "d1.log.gz":
        assert part in got.err
    told = ok("index", "add", "--json", "x.blx").json
    assert (told["files"], told["removed"], told["unchanged"]) == \
        (2, 1, len(logs) - 2)
    got = bly("index", "search", "-l", "x.blx", "needle")
    assert got.lines == ["logs/d0.log", "logs/new.log"] and not got.err


def test_a_change_of_the_same_size_is_seen(logs, tmp_path, bly):
    plain = tmp_path / "logs/d0.log"
    before = plain.stat()
    plain.write_bytes(plain.read_bytes().replace(b"2026-11-01", b"needle-now", 1))
    os.utime(plain, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert bly("index", "search", "-c", "x.blx", "needle-now").lines[0] \
        == "logs/d0.log:1"


def test_names_with_newlines_and_files_that_are_not_text(tmp_path, ok, bly):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/two\nlines").write_text("needle\n")
    (tmp_path / "d/binary").write_bytes(b"needle\0\n" * 9)
    (tmp_path / "d/twice.gz").write_bytes(gzip.compress(gzip.compress(b"x\n")))
    (tmp_path / "d/empty").write_bytes(b"")
    os.mkfifo(tmp_path / "d/pipe")
    (tmp_path / "d/link").symlink_to("two\nlines")
    built = ok("index", "build", "-o", "x.blx", "d")
    assert "gzip inside gzip" in built.err and "2 left out as binary" in built.out
    got = bly("index", "search", "x.blx", "needle")
    assert got.raw == b"d/two\nlines:1:needle\n"
    assert "2 binary files were not searched" in got.err
    ok("index", "build", "-q", "--binary", "-o", "x.blx", "d")
    got = bly("index", "search", "x.blx", "needle")
    assert got.raw == b"d/two\nlines:1:needle\n"
    assert "d/binary: binary file matches" in got.err


def test_what_cannot_be_read_is_named_and_tried_again(tmp_path, bly):
    (tmp_path / "d").mkdir()
    good = gzip.compress(b"needle\n" * 4000 + random.Random(1).randbytes(
        3000).hex().encode() + b"\n", 1)
    (tmp_path / "d/cut.gz").write_bytes(good[:-700])
    (tmp_path / "d/fine").write_text("needle\n")
    built = bly("index", "build", "-o", "x.blx", "d")
    assert built.status == 2 and "cut.gz: the gzip data ends too early" in built.err
    got = bly("index", "search", "-c", "x.blx", "needle")
    assert got.lines == ["d/cut.gz:4000", "d/fine:1"] and got.status == 2
    assert "ends too early" in got.err
    (tmp_path / "d/cut.gz").write_bytes(good)
    assert bly("index", "add", "x.blx").status == 0
    got = bly("index", "search", "-c", "x.blx", "needle")
    assert got.lines == ["d/cut.gz:4000", "d/fine:1"] and got.status == 0


def test_an_index_with_damage_anywhere(logs, tmp_path, bly):
    """Wherever a byte is damaged: all lines are found, or an error says so."""
    path = tmp_path / "x.blx"
    word = logs["logs/d0.log"].split()[2 + 7 * 500]
    whole = bly("index", "search", "x.blx", "-w", word.decode())
    assert whole.status == 0
    damaged = bytearray(path.read_bytes())
    for at in range(0, len(damaged), max(1, len(damaged) // 60)):
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        got = bly("index", "search", "x.blx", "-w", word.decode())
        # All of it, or an error: never a line less without a word.
        assert got.status in (0, 2), at
        if got.status == 0:
            assert got.out == whole.out, at
        else:
            assert got.err
        damaged[at] ^= 0x55


def test_indexes_of_parts_are_one(logs, tmp_path, ok, bly):
    for i in (1, 2, 3):
        ok("index", "build", "-q", "--part", f"{i}/3", "-o", f"p{i}.blx",
           "--block", "8192", "logs")
    whole = ok("index", "search", "x.blx", "-c", "ERROR").out
    assert ok("index", "search", "p1.blx", "p2.blx", "p3.blx", "-c",
              "ERROR").out == whole
    assert bly("index", "merge", "-o", "all.blx", "p1.blx",
               "p2.blx").status == 2
    ok("index", "merge", "-q", "-o", "all.blx", "p1.blx", "p2.blx", "p3.blx")
    got = ok("index", "search", "all.blx", "-c", "ERROR")
    assert got.out == whole and not got.err


def test_an_add_that_is_killed(logs, tmp_path, bly):
    """The index is the old one or the new one, whole."""
    rng = random.Random()
    for i in range(8):
        (tmp_path / f"logs/more{i}").write_text(f"needle-{i}\n" * 20000)
        child = subprocess.Popen(
            [PROGRAM, "index", "add", "-q", "x.blx"], cwd=tmp_path)
        time.sleep(.1 * rng.random())
        child.kill()
        child.wait()
        assert bly("index", "info", "x.blx").status == 0
        got = bly("index", "search", "-c", "-h", "x.blx", f"needle-{i}")
        assert "20000" in got.lines
    assert bly("index", "add", "-q", "x.blx").status == 0
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]


def test_sequences(tmp_path, ok, bly):
    rng = random.Random(3)

    def bases(n):
        return "".join(rng.choice("ACGT") for _ in range(n))
    flip = str.maketrans("ACGT", "TGCA")
    genes = [bases(3000) for _ in range(5)]
    (tmp_path / "s").mkdir()
    for i, gene in enumerate(genes):
        lines = "\n".join(gene[j:j + 70] for j in range(0, 3000, 70))
        (tmp_path / f"s/{i}.fa.gz").write_bytes(
            gzip.compress(f">g{i}\n{lines}\n".encode()))
    (tmp_path / "s/9.fq").write_text(
        f"@r1\n{genes[2][:1500]}\n+\n{'@' * 1500}\n@r2\n{genes[2][1400:]}\n+r2\n"
        + "I" * 1600 + "\n")
    ok("index", "build", "-q", "--kmers", "31", "--grams", "1%", "-o", "s.blx",
       "s")
    back = genes[2][500:1300].translate(flip)[::-1]
    (tmp_path / "q.fa").write_text(f">q\n{back}\n")
    got = ok("index", "search", "s.blx", "--coverage", "0.8", "-f", "q.fa")
    assert [x.split("\t")[:2] for x in got.lines] == [
        ["1.0000", "s/2.fa.gz"], ["1.0000", "s/9.fq"]]
    told = ok("index", "search", "--json", "s.blx", "--coverage", "0.8",
              genes[4][:900]).lines
    assert [json.loads(x)["file"] for x in told] == ["s/4.fa.gz"]
    assert bly("index", "search", "s.blx", "--coverage", "0.8",
               bases(900)).status == 1
    assert "--coverage" in bly("index", "search", "s.blx", "ACGT").err


def field_lines(name, text):
    """What is searched of a file: [(id, field)] for its lines."""
    if ".csv" in name:
        lines, reader = [], csv.reader(io.StringIO(text.decode(), newline=""))
        for i, row in enumerate(reader):
            lines += [("", "")] * (reader.line_num - len(lines))
            first = len(lines) - 1 - "".join(row).count("\n")
            lines[first] = (row[0], row[2].replace("\n", " ")) if i else ("", "")
        return lines
    lines = []
    for line in text.decode().split("\n")[:-1]:
        try:
            record = json.loads(line)
            lines.append((record.get("id", ""),
                          record["m"]["text"].replace("\n", " ")))
        except (ValueError, KeyError):
            lines.append(("", ""))
    return lines


RECORD_WORDS = ["alpha", "beta", "trace-1", "needle", "so\nit", "é", "a\tb",
                'q"uote', "com,ma", "needle-7", "192.0.2.7"]


def records(rng, n):
    made = [{"id": f"r{i}", "m": {"text": " ".join(
        rng.choice(RECORD_WORDS) for _ in range(rng.randrange(9)))}}
            for i in range(n)]
    lines = [json.dumps(x, ensure_ascii=bool(i % 2))
             for i, x in enumerate(made)]
    for i in range(3, n, 97):
        lines[i] = rng.choice(["{broken", "", '{"id": "x"}',
                               '{"m": {"text": "needle without id"}}'])
    return "\n".join(lines).encode() + b"\n"


def table(rng, n, mark=b""):
    to = io.StringIO(newline="")
    rows = csv.writer(to, lineterminator=rng.choice(["\n", "\r\n"]))
    rows.writerow(["id", "other", "te,xt"])
    for i in range(n):
        rows.writerow([f"c{i}", "needle", " ".join(
            rng.choice(RECORD_WORDS) for _ in range(rng.randrange(9)))])
    return mark + to.getvalue().encode()


# A line that grep printed: file, mark, number, mark, text.
NUMBERED = re.compile(r"(t/[^:]*?[.]log[.a-z0-9]*)([:-])([0-9]+)\2(.*)",
                      re.DOTALL)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_one_field_of_records(tmp_path, ok, bly, kind):
    """The field of each record takes the place of its line, and an id that of
    the line's number."""
    rng = random.Random(17)
    some = {"jsonl": records, "csv": table}[kind]
    made = {f"t/{i}.{kind}.log{packing}": some(rng, 900 if i else 0)
            for i, packing in enumerate(PACKINGS)}
    if kind == "csv":
        made["t/mark.csv.log"] = table(rng, 300, b"\xef\xbb\xbf")
    put(tmp_path, made)
    field = ["--jsonl", "m.text"] if kind == "jsonl" else ["--csv", "te,xt"]
    build = ["index", "build", "-q", "--block", "4096", "--points", "8192",
             *field]
    assert bly(*build, "-o", "n.blx", "t").status == 0
    assert bly(*build, "-o", "i.blx", "--id", "id", "t").status == 0
    made["t/new." + kind + ".log"] = some(rng, 500) # not in either
    put(tmp_path, {"t/new." + kind + ".log": made["t/new." + kind + ".log"]})
    lines = {name: field_lines(name, text.removeprefix(b"\xef\xbb\xbf"))
             for name, text in made.items()}
    texts = {name: "".join(t + "\n" for _, t in x).encode()
             for name, x in lines.items()}
    for options in (
            ["needle"], ["-w", "trace-1"], ["-F", 'q"uote com,ma'],
            ["-c", "so it"], ["-A1", "-E", "needle (alpha|beta) so"],
            ["-o", "it.needle"], ["-i", "NEEDLE-7 192"], ["-B1", "é é"],
            ["absent"], ["a\tb a\tb"], ["-m3", "-E", "needle.*com"],
            ["-C2", "--no-line-number", "alpha so it"]):
        options[-1:] = ["-e", options[-1]]
        plain = [x for x in options if x != "--no-line-number"]
        status, out = grep(texts, "-H", *plain, locale="C.UTF-8")
        numbered = out.decode().split("\n")
        expected = [NUMBERED.sub(r"\1\2\4", x) for x in numbered] \
            if plain != options else numbered
        got = search(tmp_path, *options, locale="C.UTF-8", index="n.blx")
        assert (got[0], got[1].decode().split("\n")) == (status, expected)
        if "-c" not in options and plain == options:
            expected = [NUMBERED.sub(
                lambda m: m[1] + m[2] + lines[m[1]][int(m[3]) - 1][0] +
                m[2] + m[4], x) for x in numbered]
        got = search(tmp_path, *options, locale="C.UTF-8", index="i.blx")
        assert (got[0], got[1].decode().split("\n")) == (status, expected)
    told = ok("index", "info", "--json", "i.blx").json
    assert (told["field"], told["id"]) == (field[1], "id")
    assert bly("index", "merge", "-o", "all.blx", "n.blx", "i.blx").status == 2


def test_fields_that_are_not_there(tmp_path, bly, ok):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.csv").write_text("id,text\n1,needle\n")
    (tmp_path / "d/b.csv").write_text("id,name\n2,needle\n")
    (tmp_path / "d/empty.csv").write_text("")
    built = bly("index", "build", "-o", "x.blx", "--csv", "text", "d")
    assert built.status == 2 and "no column 'text'; there are: id, name" in built.err
    got = bly("index", "search", "x.blx", "needle")
    assert got.lines == ["d/a.csv:2:needle"] and got.status == 2
    assert "d/b.csv: no column" in got.err
    (tmp_path / "d/b.csv").write_text("id,text\n2,needle\n")
    ok("index", "add", "-q", "x.blx")
    assert ok("index", "search", "x.blx", "needle").lines == [
        "d/a.csv:2:needle", "d/b.csv:2:needle"]
    (tmp_path / "j").write_text('{"a": "needle"}\n{"b": 1}\n')
    built = ok("index", "build", "-o", "j.blx", "--jsonl", "a", "j")
    assert "1 record without the field" in built.out
    assert "j: line 2: no such field" in built.err
    for words, says in ((["--id", "a", "j"], "--id"),
                        (["--jsonl", "a", "--csv", "b", "j"], "exclude"),
                        (["--jsonl", "a", "--kmers", "31", "j"], "--kmers"),
                        (["--field", "1", "--id", "x", "j"], "--id 'x'")):
        done = bly("index", "build", "-o", "y.blx", *words)
        assert done.status == 2 and says in done.err
        assert not (tmp_path / "y.blx").exists()


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("level", [1, 3, 9])
def test_bzip2_is_entered_at_its_blocks(tmp_path, ok, streams, level):
    """Also if their bits begin inside of a byte, and there are several streams."""
    rng = random.Random(level)
    lines = [f"{i} {rng.getrandbits(200):x}\n" for i in range(60_000)]
    lines[5:5] = ["a" * 300_000 + "\n"]  # runs are few bytes of a block
    size = len(lines) // streams + 1
    packed = b"".join(
        bz2.compress("".join(lines[i:i + size]).encode(), level)
        for i in range(0, len(lines), size))
    path = tmp_path / "a.bz2"
    path.write_bytes(packed)
    ok("index", "build", "-q", "--block", "65536", "-o", "x.blx", "a.bz2")
    for i in sorted(rng.sample(range(len(lines)), 12)) + [len(lines) - 1]:
        got = ok("index", "search", "-F", "x.blx", lines[i].strip())
        assert got.out == f"a.bz2:{i + 1}:{lines[i]}" and not got.err
    # Of what was waited for, the bytes that it read count here, too.
    before = bytes_read()
    ok("index", "search", "-q", "-t", 1, "-F", "x.blx", lines[-9].strip())
    assert bytes_read() - before < len(packed) // 2


def bytes_read():
    with open("/proc/self/io") as f:
        return int(f.readline().split()[1])


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_record_that_is_longer_than_a_block(tmp_path, ok, packing):
    """Also one that is read in several pieces, with newlines in it."""
    long = "line of a record\n" * 200_000 + "needle\n"
    text = f'id,text\n1,short\n2,"{long}"\n3,needle too\n'.encode()
    put(tmp_path, {f"t/a.log{packing}": text})
    ok("index", "build", "-q", "--block", "4096", "--csv", "text", "-o",
       "x.blx", "t")
    for _ in range(2):  # by the index, and without it
        got = ok("index", "search", "-o", "x.blx", "needle.*")
        assert got.lines == [f"t/a.log{packing}:3:needle ",
                             f"t/a.log{packing}:200005:needle too"]
        os.utime(tmp_path / f"t/a.log{packing}")


def test_words_that_are_joined(tmp_path, ok, bly):
    """Four words that one byte each joins are a term, whatever stands around
    them; so an address is found where its numbers are everywhere."""
    lines = [f"{i}.{j}.{k}.{m} x" for i in range(9) for j in range(9)
             for k in range(9) for m in range(9) if (i, j, k, m) != (1, 2, 3, 4)]
    (tmp_path / "d").mkdir()
    for i in range(64):
        (tmp_path / f"d/{i}").write_text("\n".join(lines) + "\n")
    (tmp_path / "d/here").write_text("x:1.2.3.4:80\n")
    ok("index", "build", "-q", "-o", "x.blx", "d")
    assert ok("index", "search", "-w", "x.blx", r"1\.2\.3\.4").lines \
        == ["d/here:1:x:1.2.3.4:80"]
    maybe = ok("index", "search", "-w", "--maybe", "x.blx", r"1\.2\.3\.4")
    assert "d/here" in maybe.lines and len(maybe.lines) < 4


@pytest.mark.parametrize("options, says", [
    (["-v", "x.blx", "needle"], "-v is refused"),
    (["-F", "-E", "x.blx", "needle"], "only one of"),
    (["x.blx"], "pattern is needed"),
    (["none.blx", "needle"], "none.blx"),
    (["x.blx", "-f", "none", "-l"], "none"),
    (["logs/d0.log", "needle"], "d0.log"),
    (["x.blx", "-e", "a\\(b"], "Unmatched ("),
    (["x.blx", "--color=blue", "needle"], "auto, always or never"),
    (["x.blx", "a[b"], "Unmatched ["),
])
def test_mistakes(logs, bly, options, says):
    got = bly("index", "search", *options)
    assert got.status == 2 and says in got.err and not got.raw


@pytest.mark.parametrize("words", [["info", "x.blx"], ["has", "x.blx", "needle"],
                                   ["merge", "-o", "y", "x.blx", "x.blx"]])
def test_an_index_is_no_filter(logs, bly, words):
    got = bly(*words)
    assert got.status == 2 and "bloomery index searches" in got.err


def test_relative_names_from_elsewhere(logs, tmp_path, bly):
    (tmp_path / "other").mkdir()
    got = bly("index", "search", "../x.blx", "ERROR", cwd=tmp_path / "other")
    assert got.status == 2 and str(tmp_path) in got.err


def test_a_pattern_that_the_index_cannot_help_with(logs, bly):
    got = bly("index", "search", "-c", "x.blx", "E.*I")
    assert "cannot help" in got.err
    got = bly("index", "search", "-c", "-i", "x.blx", "error")
    assert "not built with -i" in got.err and got.status == 0


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("pattern", ["fooı*x", "foo\\(ı\\)*x", "fooı\\{2\\}x"])
def test_what_is_repeated_depends_on_the_locale(tmp_path, ok, pattern, locale):
    """Of a character with several bytes, or of its last byte."""
    made = {"t/a.log": "foox\nfooıx\nfooııx\n".encode() +
            b"foo\xc4\xb1\xb1x\nfoo\xc4x\n"}
    put(tmp_path, made)
    ok("index", "build", "-q", "-o", "x.blx", "t")
    status, out = grep(made, "-H", "-a", pattern, locale=locale)
    got = search(tmp_path, "-l", "-e", pattern, locale=locale)
    assert got[0] == status and bool(out) == bool(got[1])


def test_output_that_ends_early(logs, tmp_path):
    """Who reads only the first line ends the search, as grep's would."""
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" index search x.blx 2026 | head -1',
         PROGRAM], cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.stdout.startswith(b"logs/d0.log:1:")
    assert done.returncode in (0, 141) and not done.stderr
