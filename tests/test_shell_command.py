"""bloomery shell: lines from a script and from a terminal, and what may happen to
the filter meanwhile."""
import ctypes.util
import os
import shlex
import shutil
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, keys, run
from terminal_support import Terminal


@pytest.fixture
def place(tmp_path, ok):
    """A folder with a filter that counts, and one that cannot be added to."""
    ok("build", "-q", "-k", "counting", "-n", 2000, "-o", tmp_path / "f.bly",
       stdin="apple\npear\n7\n")
    ok("build", "-q", "-k", "fuse", "-o", tmp_path / "fixed.bly",
       stdin=keys(0, 100))
    return tmp_path


def script(folder, text, *argv, path="f.bly"):
    return run("shell", *argv, path, stdin=text, cwd=folder)


# ---------------------------------------------------------------- scripts

def test_lines_are_the_commands_of_their_names(place, ok):
    """What the shell prints is what the commands print."""
    shutil.copy(place / "f.bly", place / "g.bly")
    lines = ["has apple plum pear", "add plum 'two words'", "has -v plum quince",
             "count apple 'two words'", "remove apple", "has apple 7", "info",
             "note 'from the list of May'", "info --json", "plan -n 100 -k classic", "kinds cuckoo"]
    wanted = ""
    for line in lines:
        command, *words = shlex.split(line)
        whole = [command] if command in ("plan", "kinds") else [command, "f.bly"]
        wanted += run(*whole, *words, cwd=place).out
    (place / "g.bly").rename(place / "f.bly")
    done = script(place, "\n".join(lines))
    assert done.out == wanted and done.err == "" and done.status == 0


def test_words_are_quoted_as_in_sh(place):
    done = script(place, "add 'a b' \"it's\" c\\ d '' \"q\\\"q\" 'x\\y' --  -z\n"
                  "has  'a b'\t\"it's\"  'c d' '' 'q\"q' x\\\\y -- -z\n")
    assert done.lines[1:] == ["a b", "it's", "c d", "", 'q"q', "x\\y", "-z"]


def test_long_lines(place):
    many = " ".join(f"'k {i}'" for i in range(100000))
    done = script(place, f"add -q {'x' * 1000000}\nhas -v -c {many}\n"
                  f"has -c {'x' * 1000000}\n")
    assert done.lines[1] == "1" and int(done.lines[0]) > 90000


def test_status_of_a_script(place):
    """That of the last line; comments and empty lines do not count; but a line
    that failed is not forgotten."""
    for text, status in (("has apple", 0), ("has none-such", 1),
                         ("has none-such\nhas apple\n\n# end\n  \n", 0),
                         ("", 0), ("has apple\nquit\nhas none-such\n", 0),
                         ("nonsense\nhas apple\n", 2),
                         ("has none-such\nexit", 1)):
        assert script(place, text).status == status, text


@pytest.mark.parametrize("line,says", [
    ("has 'open", "quote"), ('has "open', "quote"), ("hsa apple", "'has'"),
    ("frobnicate", "help"), ("has", "has KEY"), ("add", "add KEY"),
    ("has -Z x", "-Z"), ("has -f missing", "missing"), ("build -o x", "help"),
    ("has x\0y", "NUL"), ("help nonesuch", "nonesuch"), ("has -f -", "input"),
    ("set a 5", "counting"),
])
def test_bad_lines_are_named_and_the_rest_is_run(place, line, says):
    before = (place / "f.bly").read_bytes()
    done = script(place, f"has apple\n{line}\nhas pear\n")
    assert done.status == 2 and done.lines == ["apple", "pear"]
    assert "bloomery: shell: line 2: " in done.err and says in done.err
    assert len(done.err.splitlines()) == 1
    assert (place / "f.bly").read_bytes() == before


def test_what_the_kind_cannot_do_is_said(place):
    done = script(place, "add x\nhelp\n", path="fixed.bly")
    assert done.status == 2 and "fuse" in done.err
    assert "  add " not in done.out and "  has " in done.out


def test_bad_filters(place, trouble):
    (place / "text").write_text("no filter\n")
    whole = (place / "f.bly").read_bytes()
    (place / "cut.bly").write_bytes(whole[:-9])
    for path, says in (("missing", "missing"), ("text", "text"),
                       ("cut.bly", "cut.bly"), (".", "."), ("-", "file")):
        done = script(place, "has x\n", path=path)
        assert done.status == 2 and says in done.err and done.out == ""
    trouble("shell", says="no filter is given")
    trouble("shell", "a.bly", "b.bly", says="b.bly")


def test_a_damaged_filter_never_says_no(place):
    whole = bytearray((place / "f.bly").read_bytes())
    whole[-1] ^= 1
    (place / "f.bly").write_bytes(whole)
    done = script(place, "has apple\nadd x\ninfo\n")
    assert done.status == 2 and "apple" not in done.out
    assert len(done.err.splitlines()) == 3
    assert (place / "f.bly").read_bytes() == whole


def test_filters_of_other_systems_and_odd_names(place, ok):
    ok("build", "-q", "--format", "guava", "-o", place / "g", stdin="a\nb\n")
    assert script(place, "has a z\ninfo", path="g").lines[0] == "a"
    shutil.copy(place / "f.bly", place / "-o")
    done = run("shell", "--", "-o", cwd=place, stdin="add --json q\nhas q\n")
    assert done.lines[1] == "q" and done.status == 0


def test_keyed_filters(place, ok):
    (place / "key").write_bytes(b"0123456789abcdef")
    os.chmod(place / "key", 0o600)
    ok("build", "-q", "-K", place / "key", "-o", place / "k.bly", stdin="a\n")
    done = script(place, "add b\nhas a b c\ninfo\n", "-K", "key", path="k.bly")
    assert done.lines[1:3] == ["a", "b"] and done.status == 0
    assert script(place, "has a\n", path="k.bly").status == 2


def test_the_file_may_change_between_lines(place, ok):
    """It vanishes, and comes back as another."""
    shell = subprocess.Popen([PROGRAM, "shell", "f.bly"], cwd=place, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, bufsize=1)

    def ask(line):
        shell.stdin.write(f"{line}\nhelp\n")
        lines = []
        while not lines or not lines[-1].startswith("is on disk before"):
            lines.append(shell.stdout.readline())
        return [x for x in lines if not x.startswith("  ")][:-3]

    assert ask("has apple") == ["apple\n"]
    (place / "f.bly").rename(place / "away.bly")
    assert ask("has apple") == []
    assert ask("add plum") == []
    assert not (place / "f.bly").exists()
    ok("build", "-q", "-o", place / "f.bly", stdin="quince\n")
    assert ask("has apple quince") == ["quince\n"]
    (place / "f.bly").write_bytes(b"")
    assert ask("has apple") == []
    out, err = shell.communicate()
    assert shell.returncode == 2 and len(err.splitlines()) == 3
    assert "f.bly" in err.splitlines()[0]


def test_what_was_reported_outlives_the_shell(place):
    """kill -9 right after the answer loses nothing."""
    for i in range(5):
        shell = subprocess.Popen([PROGRAM, "shell", "f.bly"], cwd=place,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        shell.stdin.write(b"add new-%d\n" % i)
        shell.stdin.flush()
        assert b"1 key added" in shell.stdout.readline()
        shell.kill()
        shell.wait()
        shell.stdin.close()
        shell.stdout.close()
    names = [f"new-{i}" for i in range(5)]
    assert run("has", "f.bly", *names, cwd=place).lines == names
    assert sorted(p.name for p in place.iterdir()) == ["f.bly", "fixed.bly"]


def test_several_shells_at_once_lose_nothing(place):
    shells = [subprocess.Popen([PROGRAM, "shell", "f.bly"], cwd=place,
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
              for _ in range(4)]
    for n, shell in enumerate(shells):
        shell.stdin.write("".join(f"add k-{n}-{i}\n"
                                  for i in range(10)).encode())
        shell.stdin.close()
    assert [s.wait(PATIENCE) for s in shells] == [0] * 4
    names = [f"k-{n}-{i}" for n in range(4) for i in range(10)]
    assert run("has", "-c", "f.bly", *names, cwd=place).out == "40\n"


def test_a_full_disk_is_noticed(place):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "shell", "f.bly"], cwd=place,
                              input="has apple\n", text=True, stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 2 and "line 1" in done.stderr


def test_a_script_file_is_read_once(place):
    """A command does not move the place in a file that both have open."""
    (place / "script").write_text("add n\n" * 300 + "count n\n")
    with open(place / "script") as source:
        done = subprocess.run([PROGRAM, "shell", "f.bly"], cwd=place,
                              stdin=source, capture_output=True, text=True,
                              timeout=PATIENCE)
    assert len(done.stdout.splitlines()) == 301


# --------------------------------------------------------------- terminals

@pytest.fixture
def typed(place):
    made = []

    def begin(*argv, **env):
        made.append(Terminal([PROGRAM, "shell", *argv], place,
                             {**os.environ, "HOME": str(place),
                              "TERM": "xterm", **env}))
        return made[-1]

    yield begin
    for terminal in made:
        terminal.end()


def needs_libedit():
    if not ctypes.util.find_library("edit"):
        pytest.skip("libedit is not installed")


def test_a_session(typed, place):
    needs_libedit()
    shell = typed("f.bly")
    shell.shows("f.bly> ")
    shell.type("has apple plum\r")
    shell.shows("apple\nf.bly> $")
    shell.type("has plum\r")
    shell.shows("none\nf.bly> $")
    shell.type("add caf\u00e9\r")
    shell.shows("1 key added, 1 of them new\nf.bly> $")
    shell.type("\x1b[A\x1b[A\x1b[A\r")  # three lines back
    shell.shows("has apple plum\napple\nf.bly> $")
    shell.type("quit\r")
    assert shell.ended() == 0
    kept = place / ".bloomery_history"
    assert kept.read_text().splitlines() == [
        "has apple plum", "has plum", "add caf\u00e9", "has apple plum", "quit"]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert run("has", "-c", "f.bly", "caf\u00e9", cwd=place).out == "1\n"

    again = typed("f.bly")  # on another day
    again.shows("f.bly> ")
    again.type("\x1b[A\x1b[A\x1b[A\r")
    again.shows("1 key added, 0 of them new\nf.bly> $")
    again.type("\x04")
    assert again.ended() == 0


def test_tab(typed, place):
    needs_libedit()
    (place / "list one.txt").write_text("apple\n")
    shell = typed("f.bly")
    shell.shows("f.bly> ")
    for keystrokes, shown in (
            ("rem\t", "remove $"), ("\x15h\t", "\nhas +help *\n"),
            ("\x15has --inv\t", "has --invert $"),
            ("\x15has -f li\t", "has -f list\\\\ one.txt $"),
            ("\r", "apple\nf.bly> $"),
            ("plan -k cla\t", "plan -k classic $"),
            ("-O lay\t", "-O layout=$"), ("sh\t", "layout=shared $"),
            ("\x15se\t", "f.bly> se$")):  # its kind has no set
        shell.type(keystrokes)
        shell.shows(shown)


def test_interrupts_end_a_line_and_a_command_but_not_the_shell(typed, place):
    """Ctrl-C at the prompt, and while a command waits for a pipe."""
    needs_libedit()
    os.mkfifo(place / "pipe")
    shell = typed("f.bly")
    shell.shows("f.bly> ")
    shell.type("has app")
    shell.shows("has app$")
    shell.type("\x03")
    shell.shows("has app.*\nf.bly> $")
    shell.type("has -f pipe\r")
    shell.shows("-f pipe\n")
    with open(place / "pipe", "w"):  # the command has it open as well
        shell.type("\x03")
        shell.shows("-f pipe\n.*\nf.bly> $")
    shell.type("has apple\r")
    shell.shows("\napple\nf.bly> $")
    assert shell.child.poll() is None


def test_somebody_else_replaces_the_file(typed, place, ok):
    needs_libedit()
    shell = typed("f.bly")
    shell.shows("f.bly> ")
    shell.type("add mine\r")
    shell.shows("1 of them new\nf.bly> $")
    shell.type("has mine\r")
    text = shell.shows("\nmine\nf.bly> $")
    assert "replaced" not in text
    ok("build", "-q", "-o", place / "f.bly", stdin="theirs\n")
    shell.type("has mine theirs\r")
    shell.shows("was replaced by another process.*\ntheirs\nf.bly> $")
    (place / "f.bly").unlink()
    shell.type("info\r")
    shell.shows("f.bly: .*No such file.*\nf.bly> $")


def test_plain_lines_where_nothing_can_be_drawn(typed, place):
    shell = typed("f.bly", TERM="dumb")
    shell.until("f.bly> ")
    shell.type("has apple plum\n")
    shell.until("\napple\r\nf.bly> $")
    shell.type("has pe\x03")
    shell.until("f.bly> .*\r\nf.bly> $")
    shell.type("\x04")
    assert shell.ended() == 0
    assert not (place / ".bloomery_history").exists()


def test_history_is_where_it_is_wanted(typed, place):
    """In another file, in none, in none for a keyed filter; and a file that cannot
    be written is said, not fatal."""
    needs_libedit()
    (place / "key").write_bytes(b"0123456789abcdef")
    os.chmod(place / "key", 0o600)
    run("build", "-q", "-K", "key", "-o", "k.bly", stdin="a\n", cwd=place)
    for argv, history in ((["f.bly"], "other"), (["f.bly"], ""),
                          (["-K", "key", "k.bly"], None),
                          (["f.bly"], "/dev/full/x")):
        env = {} if history is None else {"BLOOMERY_HISTORY": history}
        shell = typed(*argv, **env)
        shell.until("bly> ")
        shell.type("has a\r")
        text = shell.until("has a\r\n(.*\r\n)+.*bly> $")
        assert ("not kept" in text) == (history == "/dev/full/x")
        shell.type("quit\r")
        assert shell.ended() == 0
    assert (place / "other").read_text() == "has a\nquit\n"
    assert not (place / ".bloomery_history").exists()


def test_a_long_history_is_cut(typed, place):
    needs_libedit()
    kept = place / ".bloomery_history"
    kept.write_text("".join(f"has {i}\n" for i in range(2500)))
    shell = typed("f.bly")
    shell.until("f.bly> ")
    shell.type("\x1b[A\r")
    shell.until("has 2499\r\n")
    shell.type("quit\r")
    assert shell.ended() == 0
    lines = kept.read_text().splitlines()
    assert lines[:2] == ["has 1500", "has 1501"] and len(lines) == 1002


def test_nothing_steers_the_terminal(typed, place):
    """Names and keys with escapes in them."""
    name = "f\x1b[31m.bly"
    shutil.copy(place / "f.bly", place / name)
    shell = typed(name, TERM="dumb")
    shell.until(r"f\?\[31m\.bly> ")
    (place / "keys").write_bytes(b"\x1b]0;t\x07\n")
    shell.type("has -v -f keys\n")
    shell.until(r"\?\]0;t\?\r\n")
    assert "\x1b[31m" not in shell.seen and "\x1b]" not in shell.seen
