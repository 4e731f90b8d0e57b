"""What a filter says of its keys, and what the command makes of it: the same
key is found whatever type it was asked as, or there is an error; never a no."""
import json
import struct

import pytest

from conftest import PROGRAM
import subprocess


def run(tmp_path, *argv, stdin=b""):
    done = subprocess.run([PROGRAM, *map(str, argv)], cwd=tmp_path, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def files(tmp_path):
    """One list of numbers in files of each type."""
    (tmp_path / "n.txt").write_text("7\n8\n9\n")
    for name, options in (("text", []), ("int64", ["--int"]),
                          ("uint64", ["--uint"])):
        for kind in ("blocked", "countmin", "counting"):
            status, _, err = run(tmp_path, "build", "-n", 100, "-k", kind,
                                 "-o", f"{name}-{kind}.bly", *options, "n.txt")
            assert status == 0, err
    return tmp_path


TYPES = ["text", "int64", "uint64"]


def info(tmp_path, name):
    status, out, err = run(tmp_path, "info", "--json", name)
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize("name", TYPES)
def test_build_says_what_keys_are(files, name):
    told = info(files, f"{name}-blocked.bly")
    assert told["key_type"] == name
    assert told["note"] is None and told["meta"] == []
    assert f"type of keys      {name}\n" in run(
        files, "info", f"{name}-blocked.bly")[1]


@pytest.mark.parametrize("name", TYPES)
def test_seven_is_seven(files, name):
    """The law: every command that asks gives the same answer for 7, whatever
    the file's type."""
    f = f"{name}-blocked.bly"
    counted = f"{name}-counting.bly"
    assert run(files, "has", f, "7", "10")[:2] == (0, "7\n")
    assert run(files, "has", f, "-f", "n.txt", "-c")[:2] == (0, "3\n")
    assert run(files, "count", counted, "7")[:2] == (0, "7\t1\n")
    assert run(files, "add", counted, "7")[0] == 0
    assert run(files, "count", counted, "7")[:2] == (0, "7\t2\n")
    assert run(files, "remove", counted, "7")[0] == 0
    assert run(files, "count", counted, "7")[:2] == (0, "7\t1\n")
    assert run(files, "unique", "--filter", f, "-q", stdin=b"7\n77\n")[:2] == \
        (0, "77\n")
    assert run(files, "convert", "-k", "classic", "-o", "c.bly", "-f", "n.txt",
               f)[0] == 0
    assert info(files, "c.bly")["key_type"] == name
    assert run(files, "has", "c.bly", "7")[0] == 0


@pytest.mark.parametrize("name", TYPES[1:])
def test_what_is_no_integer_is_an_error_and_not_a_no(files, name):
    f = f"{name}-counting.bly"
    before = (files / f).read_bytes()
    for command in ("has", "count", "add", "remove"):
        for key in ("x", "7.0", "", "99999999999999999999"):
            status, _, err = run(files, command, f, "--", key)
            assert status == 2 and "a whole number" in err, (command, key)
    assert (files / f).read_bytes() == before
    # What is one, however it is written, is found.
    assert run(files, "has", "-c", f, "--", "+7", "007", " 7", "7\r")[1] == \
        "4\n"
    status, out, err = run(files, "has", f, "-f", "-", stdin=b"7\nx\n8\n")
    assert status == 2 and "line 2: 'x'" in err
    assert out == "7\n8\n"
    assert run(files, "has", f, "--skip-bad", stdin=b"7\nx\n8\n")[:2] == \
        (0, "7\n8\n")


def test_the_range_of_integers(files):
    assert run(files, "has", "int64-blocked.bly", "--", "-7")[0] == 1
    assert run(files, "has", "uint64-blocked.bly", "--", "-7")[0] == 2
    assert run(files, "has", "int64-blocked.bly", 2**63)[0] == 2
    assert run(files, "has", "uint64-blocked.bly", 2**63)[0] == 1


def test_bad_lines_are_named_and_nothing_is_built(files):
    (files / "bad.txt").write_text("1\ntwo\n3\n")
    status, _, err = run(files, "build", "--int", "-o", "new.bly", "bad.txt")
    assert status == 2 and "bad.txt: line 2: 'two'" in err
    assert not (files / "new.bly").exists()
    status, out, _ = run(files, "build", "--int", "--skip-bad", "-o",
                         "new.bly", "bad.txt")
    assert status == 0 and "2 keys read" in out


def test_arguments_are_not_called_lines(files):
    err = run(files, "has", "int64-blocked.bly", "7", "x", "y")[2]
    assert "key 2: 'x'" in err and "2 arguments are not keys; --skip-bad" in err
    assert "1 argument is not a key; left out" in \
        run(files, "has", "--skip-bad", "int64-blocked.bly", "7", "x")[2]


def test_bad_keys_of_values_are_left_out_if_asked(files):
    run(files, "build", "--int", "-k", "bloomier", "-o", "v.bly",
        stdin=b"7\t1\n8\t2\n")
    status, _, err = run(files, "set", "v.bly", stdin=b"x\t3\n7\t3\n")
    assert status == 2 and "line 1" in err and "--skip-bad" in err
    assert run(files, "get", "v.bly", "7")[1] == "7\t1\n"
    assert run(files, "set", "--skip-bad", "v.bly",
               stdin=b"x\t3\n007\t3\n")[0] == 0
    assert run(files, "get", "v.bly", "7")[1] == "7\t3\n"


def test_folded_and_trimmed_keys_are_asked_as_they_were_added(tmp_path):
    run(tmp_path, "build", "-i", "--trim", "--crlf", "-o", "f.bly",
        stdin=" Apple\r\nÉtude\n".encode())
    told = info(tmp_path, "f.bly")
    assert told["folded"] and told["trimmed"] and told["no_cr"]
    assert run(tmp_path, "has", "f.bly", "APPLE ", "étude", "pear")[:2] == \
        (0, "APPLE \nétude\n")
    assert run(tmp_path, "add", "f.bly", "PEAR")[0] == 0
    assert run(tmp_path, "has", "-q", "f.bly", "pear")[0] == 0
    # And the other way round it is refused: some would be missed.
    run(tmp_path, "build", "-o", "plain.bly", stdin=b"Apple\n")
    status, _, err = run(tmp_path, "has", "-i", "plain.bly", "Apple")
    assert status == 2 and "without -i" in err
    assert run(tmp_path, "add", "-i", "plain.bly", "Pear")[0] == 2
    # What says nothing may have been folded by hand, or not.
    run(tmp_path, "note", "plain.bly", "--keys", "unknown")
    status, _, err = run(tmp_path, "has", "-i", "plain.bly", "apple")
    assert status == 1 and "warning: plain.bly: does not say" in err
    run(tmp_path, "note", "plain.bly", "--keys", "text", "--form", "folded")
    assert run(tmp_path, "has", "-i", "plain.bly", "apple")[2] == ""


def test_types_are_not_mixed(files):
    for command in ("merge", "intersect"):
        status, _, err = run(files, command, "-o", "m.bly", "text-blocked.bly",
                             "int64-blocked.bly")
        assert status == 2 and "text" in err and "int64" in err
        assert not (files / "m.bly").exists()
    status, _, err = run(files, "compare", "text-blocked.bly",
                         "uint64-blocked.bly")
    assert status == 2 and "text" in err and "uint64" in err
    # Asked as integers, the texts of a file that says nothing would be missed;
    # and asked as folded text, those that are not folded.
    assert run(files, "note", "text-blocked.bly", "--keys", "unknown")[0] == 0
    run(files, "build", "-i", "-n", "100", "-o", "folded.bly", "n.txt")
    run(files, "build", "-n", "100", "-o", "other.bly", "n.txt")
    for typed in ("int64-blocked.bly", "uint64-blocked.bly", "other.bly",
                  "folded.bly"):
        for command in ("merge", "intersect"):
            for pair in (("text-blocked.bly", typed),
                         (typed, "text-blocked.bly")):
                status, _, err = run(files, command, "-o", "m.bly", *pair)
                assert status == 2 and "does not say what its keys are" in err
                assert not (files / "m.bly").exists()
        assert run(files, "compare", "text-blocked.bly", typed)[0] == 2
    # Once both say the same, they go together.
    assert run(files, "note", "text-blocked.bly", "--keys", "text")[0] == 0
    assert run(files, "merge", "-o", "m.bly", "text-blocked.bly",
               "other.bly")[0] == 0
    assert run(files, "has", "-q", "m.bly", "7")[0] == 0


def test_notes(files):
    f = "text-counting.bly"
    status, out, err = run(files, "note", f, "von Müller", "--meta", "a=b=c",
                           "--meta", "z=")
    assert status == 0, err
    assert "von Müller" in out
    told = info(files, f)
    assert told["note"] == "von Müller"
    assert told["meta"] == [{"name": "a", "value": "b=c"},
                            {"name": "z", "value": ""}]
    assert run(files, "has", "-q", f, "7")[0] == 0
    # Whatever is made of it has the note too.
    assert run(files, "compress", "-o", "coded.bly", f)[0] == 0
    assert run(files, "convert", "-k", "classic", "-o", "bits.bly", f)[0] == 0
    assert run(files, "merge", "-o", "both.bly", f, f)[0] in (0, 2)
    for made in ("coded.bly", "bits.bly"):
        assert info(files, made)["note"] == "von Müller"
        assert len(info(files, made)["meta"]) == 2
    assert run(files, "note", f, "", "--meta", "z")[0] == 0
    told = info(files, f)
    assert told["note"] is None and len(told["meta"]) == 1


def test_what_cannot_be_noted(files):
    f = "text-blocked.bly"
    before = (files / f).read_bytes()
    for argv, why in (
            (["a\x1b[31mb"], "control"), (["a\nb"], "control"),
            ([b"\xff"], "UTF-8"), (["x" * 1025], "1024"),
            (["--meta", "a b=c"], "name"), (["--meta", "=c"], "NAME=VALUE"),
            (["--meta", "a=" + "x" * 1025], "1024"),
            (["--keys", "float"], "int64"), (["--form", "folded"], "--keys"),
            (["--keys", "text", "--form", "red"], "trimmed"),
            (["--keys", "int64", "--form", "folded"], "text"),
            (["--keys", "int64"], "already"),
            ([], "nothing to note"), (["a", "b"], "one word"),
            (sum((["--meta", f"n{i}=" + "x" * 1000] for i in range(4)), []),
             "3696")):
        done = subprocess.run([PROGRAM, "note", f, *argv], cwd=files,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 2, argv
        assert why in done.stderr.decode(), (argv, done.stderr)
        assert (files / f).read_bytes() == before
    status, _, err = run(files, "build", "-o", "new.bly", "--note", "a\tb",
                         "n.txt")
    assert status == 2 and "control" in err
    assert not (files / "new.bly").exists()
    assert run(files, "build", "-o", "new.guava", "--format", "guava",
               "--note", "x", "n.txt")[0] == 2
    assert run(files, "build", "-o", "new.bly", "--meta", "owner",
               "n.txt")[0] == 2


def test_into_a_format_that_cannot_say_it(files):
    """What the filter holds goes in, not the lines that it is built from
    again; and what gets lost is named, if it matters."""
    (files / "names.txt").write_text(" Alice\nBOB\n")
    (files / "low.txt").write_text("alice\nbob\n")
    assert run(files, "build", "-i", "--trim", "-o", "names.bly",
               "names.txt")[0] == 0
    status, _, err = run(files, "convert", "--to", "guava", "-f", "names.txt",
                         "-o", "names.guava", "names.bly")
    assert status == 0 and "no place" in err and "case folded, trimmed" in err
    assert run(files, "has", "names.guava", "-f", "low.txt")[1] == \
        "alice\nbob\n"
    status, _, err = run(files, "convert", "--to", "guava", "-f", "n.txt",
                         "-o", "n.guava", "int64-blocked.bly")
    assert status == 0 and "no place" in err and "int64" in err
    status, _, err = run(files, "convert", "--to", "guava", "-f", "n.txt",
                         "-o", "n.guava", "text-blocked.bly")
    assert (status, err) == (0, "")
    # A filter that was not folded is named, whatever it turns into.
    for into in (["--to", "guava"], ["-k", "classic"]):
        status, _, err = run(files, "convert", "-i", *into, "-f", "n.txt",
                             "-o", "x", "text-blocked.bly")
        assert status == 2 and "text-blocked.bly: the case" in err


def test_a_damaged_note_is_refused(files):
    """Bit by bit: the header's checksum covers it."""
    f = files / "text-blocked.bly"
    run(files, "note", f, "a note")
    data = bytearray(f.read_bytes())
    n = struct.unpack_from("<I", data, 288)[0]
    for at in range(288, 292 + n):
        data[at] ^= 4
        (files / "bad.bly").write_bytes(data)
        assert run(files, "info", "bad.bly")[0] == 2
        data[at] ^= 4


def test_an_update_keeps_what_the_receiver_says(files):
    old, new = "text-blocked.bly", "next.bly"
    run(files, "build", "-n", 100, "-o", new, stdin=b"7\n8\n9\n10\n")
    run(files, "note", new, "the publisher's")
    assert run(files, "delta", "-o", "d.bld", old, new)[0] == 0
    run(files, "note", old, "mine")
    status, _, err = run(files, "apply", old, "d.bld")
    assert status == 0, err
    assert info(files, old)["note"] == "mine"
    assert run(files, "has", "-q", old, "10")[0] == 0
