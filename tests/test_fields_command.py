"""Keys from fields, columns, JSON and regular expressions: whole lines come out, and bad ones are named."""
import csv
import io
import json
import random

import pytest
from conftest import keys, kinds_that

VALUES = kinds_that("build", "get")


def build(ok, text, *argv, name="f.bly"):
    return ok("build", "-o", name, *argv, stdin=text)


def told(result):
    """What standard error says, without the name of the command."""
    return [line.split(": ", 2)[2] for line in result.err.splitlines()]


# ----------------------------------------------------------------- fields

@pytest.mark.parametrize("field, key", [("1", "a"), ("2", "b b"), ("3", ""), ("4", "c"), ("-1", "c"), ("-4", "a"), ("-3", "b b")])
def test_a_field_is_the_key_and_the_whole_line_comes_out(ok, field, key):
    build(ok, key + "\n")
    line = "a\tb b\t\tc\n"
    assert ok("has", "f.bly", "--field", field, stdin=line).out == line


def test_fields_of_any_length_at_any_place(ok):
    """Against a plain split: lines longer than a window of 64 bytes, empty fields, no fields."""
    rng = random.Random(17)
    lines = [":".join("x" * rng.choice((0, 1, 5, 30, 63, 64, 65, 200)) + str(i) for i in range(rng.randint(1, 12)))
             for _ in range(2000)]
    for field in (1, 2, 3, 7, -1, -2, -5):
        wanted = [line.split(":")[field - (field > 0)] for line in lines if len(line.split(":")) >= abs(field)]
        build(ok, "\n".join(wanted) + "\n")
        out = ok("has", "f.bly", "--field", field, "-d", ":", "--skip-bad", "-c", stdin="\n".join(lines))
        assert int(out.out) == len(wanted)
        report = ok("build", "--json", "-o", "g.bly", "--field", field, "-d", ":", "--skip-bad", stdin="\n".join(lines))
        assert report.json["keys"] == len(wanted)
        assert (ok.path / "f.bly").read_bytes() == (ok.path / "g.bly").read_bytes()


def test_runs_of_blanks_are_one_delimiter(ok):
    rng = random.Random(18)
    lines = ["".join(rng.choice((" ", "\t", "  \t ", " " * 70)) + "y" * rng.choice((1, 3, 70)) for _ in range(rng.randint(1, 8)))
             + rng.choice(("", " ", "\t\t")) for _ in range(1000)]
    for field in (1, 2, 5, -1, -3):
        wanted = [line.split()[field - (field > 0)] for line in lines if len(line.split()) >= abs(field)]
        build(ok, "\n".join(wanted) + "\n")
        build(ok, "\n".join(lines), "--field", field, "-d", "blanks", "--skip-bad", name="g.bly")
        assert (ok.path / "f.bly").read_bytes() == (ok.path / "g.bly").read_bytes()


def test_lines_with_too_few_fields_are_named_and_counted(ok, bly):
    (ok.path / "old").write_text("x\n")
    build(ok, "b\n")
    before = (ok.path / "f.bly").read_bytes()
    text = "a\tb\nonly\n" + "c\tb\n" + "\n"
    result = bly("has", "f.bly", "--field", "2", stdin=text)
    assert result.status == 2 and result.out == "a\tb\nc\tb\n"
    assert told(result) == ["standard input: line 2: 1 field, and field 2 is asked for",
                            "standard input: line 4: 1 field, and field 2 is asked for",
                            "2 lines have no key; --skip-bad leaves them out"]
    for command in (["build", "-o", "f.bly"], ["add", "f.bly"]):
        result = bly(*command, "--field", "2", stdin=text)
        assert result.status == 2 and result.out == "" and len(told(result)) == 3
        assert (ok.path / "f.bly").read_bytes() == before
    result = ok("add", "--json", "f.bly", "--field", "2", "--skip-bad", stdin=text)
    assert result.json["keys"] == 2 and told(result) == ["warning: 2 lines have no key; left out"]


def test_only_the_first_bad_lines_are_named(bly, ok):
    build(ok, "b\n")
    (ok.path / "a").write_text("x\ty\n" * 200000 + "bad\n" * 30000 + "x\tb\n")
    result = bly("has", "-t", "2", "f.bly", "--field", "2", "-f", "a")
    assert result.status == 2 and result.out == "x\tb\n"
    assert told(result) == [f"a: line {200001 + i}: 1 field, and field 2 is asked for" for i in range(10)] + \
        ["30000 lines have no key; --skip-bad leaves them out"]


# -------------------------------------------------------------------- CSV

TABLE = 'id,email,"the note"\r\n1,ann@x.org,"a, ""b"""\r\n2,"bob@x.org","two\nlines"\r\n\r\n3,"c""d@x.org",\r\n'


def test_a_column_by_name_and_by_number(ok):
    (ok.path / "t.csv").write_text(TABLE, newline="")
    build(ok, 'bob@x.org\nc"d@x.org\n')
    for column in ("email", "2"):
        assert ok("has", "f.bly", "--csv", column, "-f", "t.csv").raw.decode() == '2,"bob@x.org","two\nlines"\r\n3,"c""d@x.org",\r\n'
    build(ok, 'a, "b"\n')
    assert ok("has", "f.bly", "--csv", "the note", "-f", "t.csv", "-c").out == "1\n"
    assert ok("has", "f.bly", "--csv", "3", "--no-header", "-f", "t.csv", "-c").out == "1\n"
    build(ok, "email\n")
    assert ok("has", "f.bly", "--csv", "2", "--no-header", "-f", "t.csv").out.startswith("id,email")


def test_every_file_has_its_own_header(ok):
    (ok.path / "a").write_text("id,name\n1,ann\n")
    (ok.path / "b").write_text("\ufeff\"name\",id\nbob,2\n")
    report = ok("build", "--json", "-o", "f.bly", "--csv", "name", "a", "b")
    assert report.json["keys"] == 2
    assert ok("has", "f.bly", "ann", "bob").lines == ["ann", "bob"]


def test_csv_as_python_reads_it(ok):
    """Random tables, written and read by Python's csv: quotes, newlines, long fields, several blocks."""
    rng = random.Random(4180)
    pieces = ["x", "yy", '"', '""', ",", "\n", "\r\n", ";", " ", "z" * 60, "é"]
    for delimiter in (",", ";", "\t"):
        rows = [["".join(rng.choices(pieces, k=rng.randint(0, 6))) for _ in range(4)] for _ in range(6000)]
        rows = [[field.replace("\r\n", "\n") for field in row] for row in rows]
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator=rng.choice(("\n", "\r\n")), quoting=rng.choice((0, 1)))
        writer.writerow(["a", "b", "c", "d"])
        writer.writerows(rows)
        for column, name in enumerate("abcd"):
            data = "\0".join(row[column] for row in rows).encode() + b"\0"
            ok("build", "-0", "-o", "f.bly", stdin=data)
            ok("build", "-t", "2", "-o", "g.bly", "--csv", name, "-d", delimiter.replace("\t", "\\t"), stdin=text.getvalue())
            assert (ok.path / "f.bly").read_bytes() == (ok.path / "g.bly").read_bytes()
        everything = ok("has", "-t", "2", "f.bly", "--csv", "d", "-d", delimiter, stdin=text.getvalue())
        assert everything.raw.decode() == text.getvalue().split("d", 1)[1].lstrip("\r\n") or \
            everything.raw.decode() == text.getvalue()[text.getvalue().index("\n") + 1:]


def test_bad_records_are_named_with_their_lines(bly, ok):
    text = 'id,name\n1\n2,"two\nlines",x\n3,"a"b\n4,d"e\n5,"open\nand\non\n'
    build(ok, 'two\nlines\nd"e\n')
    result = bly("build", "-o", "g.bly", "--csv", "name", stdin=text)
    assert result.status == 2 and not (ok.path / "g.bly").exists()
    assert [line.split(";")[0] for line in told(result)] == [
        "standard input: line 2: 1 column, and column 2 is asked for",
        "standard input: line 5: text behind the quote that closes a field",
        "standard input: lines 7 to 9: a quote that is never closed",
        "5 lines have no key"]
    assert ok("has", "f.bly", "--csv", "name", "--skip-bad", stdin=text).out == '4,d"e\n'


def test_a_missing_column_lists_those_there_are(trouble, ok):
    build(ok, "x\n")
    trouble("has", "f.bly", "--csv", "emial", stdin="id,email\n1,x\n", says=["no column 'emial'", "id, email"])
    trouble("has", "f.bly", "--csv", "id", stdin='id,x,"id" \n1,x\n', says="text behind")
    trouble("has", "f.bly", "--csv", "id", stdin='id,x, id\n1,x,2\n', says=["2 columns are called 'id'", "number"])
    # A header of very many columns is read in one pass: one for each would take hours.
    wide = ",".join(f"c{i}" for i in range(2_000_000)) + "\n"
    trouble("has", "f.bly", "--csv", "none", stdin=wide, says="no column 'none'")
    assert ok("has", "-v", "f.bly", "--csv", "email", stdin="id,email\n1,y\n").out == "1,y\n"


# ------------------------------------------------------------------- JSON

def test_a_field_of_json_lines(ok):
    rows = [{"id": i, "user": {"name": f"näme-{i}\t\"{i}\"", "tags": ["x", f"t{i}"]}} for i in range(5000)]
    for path, key in (("user.name", lambda r: r["user"]["name"]), ("/user/name", lambda r: r["user"]["name"]),
                      ("id", lambda r: str(r["id"])), ("user.tags.1", lambda r: r["user"]["tags"][1])):
        ok("build", "-o", "f.bly", stdin="".join(key(r) + "\n" for r in rows))
        for ascii_only in (False, True):
            text = "".join(json.dumps(r, ensure_ascii=ascii_only) + "\n" for r in rows)
            ok("build", "-o", "g.bly", "--jsonl", path, stdin=text)
            assert (ok.path / "f.bly").read_bytes() == (ok.path / "g.bly").read_bytes()
    assert ok("has", "f.bly", "--jsonl", "user.tags.1", stdin=text).out == text


def test_json_that_has_no_such_text_is_bad(bly):
    text = '{"a":"x"}\n{"a":1.50}\n\n{"b":1}\n{"a":null}\n{"a":{}}\n{"a":true}\n{"a":"x"\n[1]\n'
    result = bly("top", "--jsonl", "a", stdin=text)
    assert result.status == 2 and sorted(result.lines) == ["1.50\t1", "x\t1"]
    assert told(result) == ["standard input: line 4: no such field",
                            *[f"standard input: line {i}: the field is neither text nor a number" for i in (5, 6, 7)],
                            "standard input: line 8: not JSON", "standard input: line 9: no such field",
                            "6 lines have no key; --skip-bad leaves them out"]


def test_json_is_utf8(ok, bly):
    """Other bytes are told, not taken: whoever writes JSON again could not write them."""
    good = '{"a":"näïve €"}\n{"a":"\\u00e4"}\n{"b":1,"a":"x"}\n'.encode()
    odd = [b"\xe4", b"abcdefgh\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82"]
    text = good + b"".join(b'{"a":"%s"}\n' % bytes_ for bytes_ in odd)
    result = bly("top", "--jsonl", "a", stdin=text)
    assert result.status == 2 and len(result.lines) == 3
    assert told(result)[:-1] == [f"standard input: line {i}: not JSON: the field is not UTF-8" for i in range(4, 9)]
    assert bly("build", "-o", "f.bly", "--jsonl", "a", stdin=text).status == 2 and not (ok.path / "f.bly").exists()
    ok("build", "-o", "f.bly", "--jsonl", "a", "--skip-bad", stdin=text)
    assert ok("has", "f.bly", "--jsonl", "a", stdin=good).raw == good
    # In what is not asked for, nobody looks.
    assert ok("has", "-c", "f.bly", "--jsonl", "a", stdin=b'{"b":"\xff","a":"x"}\n').lines == ["1"]


# ------------------------------------------------------------------ regex

def test_what_a_regular_expression_matches(ok, bly):
    text = "GET /a HTTP\nGET /b HTTP\nPOST /a HTTP\n"
    assert ok("top", "--regex", "/[a-z]+", stdin=text).lines == ["/a\t2", "/b\t1"]
    assert ok("top", "--regex", "^(GET|POST) (/[a-z]+)", stdin=text).lines == ["GET\t2", "POST\t1"]
    build(ok, "/a\n")
    result = bly("has", "f.bly", "--regex", "^GET (.*) HTTP", stdin=text)
    assert result.status == 2 and result.out == "GET /a HTTP\n"
    assert told(result) == ["standard input: line 3: no match", "1 line has no key; --skip-bad leaves it out"]
    result = bly("build", "-o", "g.bly", "--regex", "PUT", "--skip-bad", stdin=text)
    assert result.status == 2 and "no keys in the input" in result.err


# --------------------------------------------------------------- the form

def test_case_white_space_and_carriage_returns(ok, bly):
    build(ok, "  Äpfel \r\nΣΊΣΥΦΟΣ\r\nStraße\r\nkelvin \u212a\r\n", "-i", "--trim", "--crlf")
    for key in ("äPFEL", "σίσυφος", "STRAßE", " Kelvin k"):
        assert ok("has", "-i", "--trim", "f.bly", key).out == key + "\n"
    assert bly("has", "-i", "f.bly", "strasse").status == 1
    line = "x\t ÄPFEL \r\n"
    assert ok("has", "-i", "--trim", "f.bly", "--field", "2", stdin=line).raw.decode() == line
    build(ok, "a\n")
    assert ok("has", "--crlf", "f.bly", "--field", "-1", stdin="1\ta\r\n").raw == b"1\ta\r\n"
    assert bly("has", "f.bly", "--field", "-1", stdin="1\ta\r\n").status == 1


def test_folding_is_that_of_unicode_and_bytes_stay(ok):
    """Every character, alone, against Python; and bytes that are not UTF-8."""
    def folded(c):
        for f in (c.casefold(), c.lower()):
            if len(f) == 1:
                return f
        return c
    every = [chr(c) for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000 and chr(c) != "\n"]
    build(ok, "\n".join(map(folded, every)) + "\n")
    build(ok, "\n".join(every) + "\n", "-i", name="g.bly")
    # But for the headers: only one says that it is folded.
    assert (ok.path / "f.bly").read_bytes()[4096:] == (ok.path / "g.bly").read_bytes()[4096:]
    broken = b"\xff\xc3\n\xe2\x84\n\xed\xa0\x80X\n\xc0\x80\n\xf4\x90\x80\x80\n"
    ok("build", "-i", "-o", "f.bly", stdin=broken.lower())
    assert ok("has", "-i", "f.bly", stdin=broken).raw == broken


# ------------------------------------------------------------ all commands

@pytest.mark.parametrize("kind", kinds_that("add", "has", "remove")[:2])
def test_add_has_count_and_remove_take_the_same_fields(ok, bly, kind):
    text = "".join(f"{i},key-{i}\n" for i in range(500))
    ok("build", "-q", "-k", kind, "--items", "2000", "-p", "1e-4", "-o", "f.bly", stdin="other\n")
    ok("add", "f.bly", "--field", "2", "-d", ",", stdin=text)
    assert ok("has", "f.bly", stdin=keys(0, 500)).out == keys(0, 500)
    assert ok("has", "f.bly", "--field", "2", "-d", ",", stdin=text).out == text
    bly("remove", "-q", "f.bly", "--field", "2", "-d", ",", stdin=text)
    assert bly("has", "-c", "f.bly", "--field", "2", "-d", ",", stdin=text).out < "50"


def test_count_of_a_field(ok):
    ok("build", "-k", kinds_that("add", "count")[0], "--items", "1000", "-o", "f.bly", stdin="a\na\nb\n")
    assert ok("count", "f.bly", "--field", "2", stdin="1\ta\n2\tb\n").lines == ["a\t2", "b\t1"]


def test_threads_do_not_change_what_comes_out(ok):
    text = "".join(f'{i},"k{i % 977}","{"z" * (i % 50)}\n{i}"\n' for i in range(60000))
    (ok.path / "t.csv").write_text("n,k,z\n" + text)
    ok("build", "-q", "-p", "1e-9", "-o", "f.bly", stdin="".join(f"k{i}\n" for i in range(100)))
    one, four = (ok("has", "-t", n, "f.bly", "--csv", "k", "-f", "t.csv").raw for n in (1, 4))
    assert one == four and one.count(b'","') == sum(i % 977 < 100 for i in range(60000))


# ------------------------------------------------------------- bad options

@pytest.mark.parametrize("argv, says", [
    (["--field", "0"], "--field '0'"), (["--field", "x"], "1 is the first"), (["--field", "1x"], "--field '1x'"),
    (["--field", "99999999999999999999"], "--field"), (["--field", "1", "-d", "ab"], "--delimiter 'ab'"),
    (["--field", "1", "-d", "\n"], "--delimiter"), (["--field", "1", "--csv", "a"], "exclude each other"),
    (["--csv", "0"], "--csv '0'"), (["--csv", "a", "--no-header"], "column's number"), (["--csv", "a", "-d", '"'], "--delimiter"),
    (["--csv", "a", "-0"], "--csv and --null"), (["--no-header"], "--no-header needs --csv"), (["-d", ","], "--delimiter"),
    (["--jsonl", "/a~2"], "--jsonl"), (["--jsonl", ".".join("a" * 17)], "at most 16"), (["--regex", "(a"], "--regex '(a'"),
])
def test_what_cannot_be_meant(trouble, ok, argv, says):
    build(ok, "x\n")
    trouble("has", "f.bly", *argv, stdin="x\n", says=says)
    trouble("build", "-o", "g.bly", *argv, stdin="x\n", says=says)
    trouble("top", *argv, stdin="x\n", says=says)


def test_fields_are_not_for_arguments_or_values(trouble, ok):
    build(ok, "x\n")
    trouble("has", "f.bly", "--field", "1", "key", says=["--field", "arguments"])
    trouble("build", "-o", "g.bly", "-k", VALUES[0], "--field", "1", says=["--field", "value"])


# --------------------------------------------------------------- distinct

def test_how_many_different_keys(ok):
    (ok.path / "a").write_text(keys(0, 20000) * 2)
    (ok.path / "b").write_text(keys(10000, 20000))
    result = ok("distinct", "--json", "--each", "a", "b")
    report = result.json
    assert report["keys"] == 60000 and [i["file"] for i in report["inputs"]] == ["a", "b"]
    for part, truth in ((report, 30000), (report["inputs"][0], 20000), (report["inputs"][1], 20000)):
        assert 0 < part["deviation"] < 0.01
        assert abs(part["distinct"] - truth) < 6 * part["deviation"] * truth
    result = ok("distinct", "--each", "a", "b")
    assert result.lines == [f"{report['inputs'][0]['distinct']}\ta", f"{report['inputs'][1]['distinct']}\tb", f"{report['distinct']}\tall"]
    assert "standard error 0.79 %" in result.err
    for threads in (1, 3):
        assert ok("distinct", "-q", "-t", threads, "a", "b").out == f"{report['distinct']}\n"
    finer = ok("distinct", "--json", "--precision", "18", "a").json
    assert finer["deviation"] < 0.003 and abs(finer["distinct"] - 20000) < 6 * finer["deviation"] * 20000


def test_distinct_of_a_column_and_of_nothing(ok, bly, trouble):
    (ok.path / "t.csv").write_text("id,who\n1,Ann\n2,ann\n3,bob\n")
    assert ok("distinct", "-q", "--csv", "who", "t.csv").out == "3\n"
    assert ok("distinct", "-q", "-i", "--csv", "who", "t.csv").out == "2\n"
    assert ok("distinct", "-q").out == "0\n"
    result = bly("distinct", "--field", "2", stdin="a\tb\nc\n")
    assert result.status == 2 and result.out == "1\n" and "line 2" in result.err
    trouble("distinct", "--precision", "19", says="4 to 18")
    trouble("distinct", "missing", says="missing")
