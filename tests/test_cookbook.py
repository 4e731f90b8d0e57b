"""docs/cookbook.md: every line is run, and prints what its page says or what the
exact way prints."""
import gzip
import os
import re
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, ROOT

PAGE = (ROOT / "docs" / "cookbook.md").read_text()
JOBS = {}
for title, body in re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", PAGE,
                              re.M | re.S):
    JOBS[title] = (re.findall(r"^```sh\n(.*?)^```$", body, re.M | re.S),
                   re.findall(r"^Exactly: `(.*)`$", body, re.M),
                   re.findall(r"^```text\n(.*?)^```$", body, re.M | re.S))

NAMES = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"]


def log(first, n):
    """Requests of a day, as web servers write them."""
    return "".join(
        f"192.0.2.{first + i * i % 17} - - [01/May/2026:10:00:{i % 60:02}] "
        f"\"GET /page-{(i % 13) ** 2 % 5} HTTP/1.1\" 200 {100 + i}\n"
        for i in range(n))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that the page speaks of."""
    folder = tmp_path_factory.mktemp("cookbook")

    def put(name, text):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)

    lines = [f"item-{i:03}" for i in range(60)]
    put("names.txt", "\n".join(NAMES) + "\n")
    put("leaked.txt", "123456\nhunter2\nsecret\n")
    put("yesterday.txt", "\n".join(lines[:40]) + "\n")
    put("today.txt", "\n".join(lines[25:]) + "\n")
    put("repeated.txt", "\n".join(lines[i * i % 23] for i in range(90)) + "\n")
    put("mail.txt", "alice@example.org\nbob@example.org\n")
    put("yesterday.log", log(1, 40))
    put("today.log", log(5, 50))
    put("bad.txt", "192.0.2.200\n192.0.2.201\n")
    put("app.log", "".join(
        f"{'warning' if i % 3 else 'error'} user={(NAMES + ['mallory'])[i % 9]}"
        f" step={i % 4}\n" for i in range(60)))
    put("customers.csv", "id,name\n" + "".join(
        f"c{i},name {i}\n" for i in range(20)))
    put("orders.csv", "order,customer,sum\n" + "".join(
        f"{i},c{i * 3 % 31},{i * 7}\n" for i in range(30)))
    put("events.jsonl", "".join(
        f'{{"user":{{"name":"{name}"}},"n":{i}}}\n'
        for i, name in enumerate(NAMES + ["mallory", "trent", "alice"])))
    put("points.csv", "name,x,y,z\n" + "".join(
        f"p{i},{i % 3 - 1},{i % 3 * 0.5 + i / 300},{1 + i % 3}\n"
        for i in range(6)))
    for i in range(4):
        text = log(20 * i, 20) + (f"192.0.2.20{i} - - x\n" if i < 2 else "")
        put(f"logs/{i}.gz", "")
        (folder / f"logs/{i}.gz").write_bytes(gzip.compress(text.encode()))
    for name in "a", "b", "in/c":
        put(f"backup/{name}", name)
    for name in "a", "in/c", "in/new\u00e9", "z":
        put(f"tree/{name}", name)
    # So that a line with `tail -f` ends: it follows a process that is gone.
    put("bin/tail", "#!/bin/sh\nexec /usr/bin/tail --pid=99999999 \"$@\"\n")
    (folder / "bin/tail").chmod(0o755)
    (folder / "bin/bloomery").symlink_to(PROGRAM)
    return folder


def test_there_are_twenty_and_each_can_be_checked():
    assert len(JOBS) >= 20
    for title, (lines, exactly, text) in JOBS.items():
        assert len(lines) == 1 and lines[0].count("\n") == 1, title
        assert len(exactly) + len(text) == 1, title


@pytest.mark.parametrize("title", JOBS)
def test_line(made, title):
    for stale in made.glob("*.bl?"):
        stale.unlink()

    def out(line):
        done = subprocess.run(
            ["bash", "-c", line], cwd=made, capture_output=True, text=True,
            timeout=PATIENCE, env={**os.environ, "LC_ALL": "C.UTF-8",
                                   "PATH": f"{made}/bin:{os.environ['PATH']}"})
        assert done.stderr == "", (line, done.stderr)
        return done.stdout

    lines, exactly, text = JOBS[title]
    wanted = out(exactly[0]) if exactly else text[0]
    assert wanted and out(lines[0]) == wanted
