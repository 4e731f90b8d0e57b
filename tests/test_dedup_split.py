"""bloomery dedup split: many tasks, and the result of one machine."""
import json
import os
import random
import shlex
import shutil
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, run

STAGES = "sketch band link deal pairs sets keep write join".split()
RESULTS = "out removed pairs clusters".split()


def texts(n, seed=7):
    """Random words; copies, equal ones too; pages of a template; nothing."""
    r = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(2000)]
    template = [f"page{i}" for i in range(60)]
    made = []
    for _ in range(n):
        x = r.random()
        if made and x < 0.15:
            t = r.choice(made)
        elif made and x < 0.4:
            t = list(r.choice(made))
            for _ in range(r.choice([1, 2, 3, 5, 8])):
                t[r.randrange(len(t))] = r.choice(vocabulary)
        elif x < 0.43:
            yield ""
            continue
        elif x < 0.53:
            t = template + r.choices(vocabulary, k=r.choice([5, 10, 30]))
        else:
            t = r.choices(vocabulary, k=r.randint(8, 90))
        made.append(t)
        yield " ".join(t)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two plain files, one without a newline at its end, and a compressed one."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = [json.dumps({"id": f"d{i}", "n": i * 37 % 101, "text": t})
             for i, t in enumerate(texts(3000))]
    lines[1234] = "not JSON"
    (folder / "a.jsonl").write_text("\n".join(lines[:1100]))
    (folder / "b.jsonl").write_text("\n".join(lines[1100:2000]) + "\n")
    (folder / "c.jsonl").write_text("\n".join(lines[2000:]) + "\n")
    (folder / "none.jsonl").write_text("")
    subprocess.run(["gzip", "c.jsonl"], cwd=folder, check=True)
    return folder


INPUTS = "a.jsonl none.jsonl b.jsonl c.jsonl.gz".split()


def results(prefix):
    return ["-o", f"{prefix}.out"] + [
        word for name in RESULTS[1:] for word in (f"--{name}", f"{prefix}.{name}")]


def bytes_of(folder, prefix):
    return {name: (folder / f"{prefix}.{name}").read_bytes() for name in RESULTS}


def one_machine(folder, *options, inputs=INPUTS):
    done = run("dedup", "-q", *inputs, *results("one"), *options, cwd=folder)
    return done.status, bytes_of(folder, "one")


def split(folder, tasks, *options, engine="local", inputs=INPUTS, work="work"):
    return run("dedup", "split", "--tasks", tasks, "--work", work, "--engine", engine,
               *inputs, *results("many"), *options, cwd=folder)


@pytest.fixture
def place(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path, dirs_exist_ok=True)
    return tmp_path


def commands(place, tasks, *options):
    """The command of each task, by stage."""
    printed = split(place, tasks, *options, engine="script")
    assert printed.status == 0, printed.err
    rows = [line.split("\t") for line in printed.lines]
    return [(stage, shlex.split(command)) for stage, command in rows]


@pytest.mark.parametrize("tasks, options", [
    (1, ""), (3, ""), (16, "--id-field id"), (7, "--priority longest --all"),
    (4, "--priority field:n:asc --drop-all --drop-empty"),
    (5, "--policy component --max-cluster 20"), (5, "--exact"), (2, "--lines"),
    (3, "--verify estimate"), (3, "--memory 1M --threshold 0.5"),
    (3, "--verify none --bands 16,8 --unit char --size 9"),
])
def test_many_tasks_are_one_machine(place, tasks, options):
    status, wanted = one_machine(place, *options.split())
    got = split(place, tasks, *options.split())
    assert got.status == status, got.err
    assert bytes_of(place, "many") == wanted
    assert len(wanted["removed"].splitlines()) > 100
    report = run("dedup", "status", "work", "--json", cwd=place)
    assert report.status == 0
    assert report.json["complete"] and report.json["tasks"] == 7 * tasks + 2
    assert [row["stage"] for row in report.json["stages"]] == STAGES
    left = {str(p.relative_to(place / "work")) for p in place.glob("work/**/*")
            if p.is_file()}
    assert left == {"plan", "link/0", "join/0"} | {
        f"{s}/{i}" for s in STAGES if s not in ("link", "join") for i in range(tasks)}


@pytest.mark.skipif(not os.environ.get("BLY_FULL"), reason="only in the long form: 1,402 processes")
def test_two_hundred_tasks(place):
    status, wanted = one_machine(place)
    assert split(place, 200).status == status
    assert bytes_of(place, "many") == wanted


def test_folders_and_files(place):
    def tree(name):
        return {str(p.relative_to(place / name)): p.read_bytes()
                for p in (place / name).rglob("*") if p.is_file()}
    run("dedup", "-q", *INPUTS, "-o", "one/", cwd=place)
    run("dedup", "split", "-q", "--tasks", 6, "--work", "work", "--engine", "local", *INPUTS,
        "-o", "many/", cwd=place)
    assert tree("one") == tree("many") and len(tree("one")) == 3
    (place / "docs").mkdir()
    for i, text in enumerate(texts(120)):
        (place / "docs" / f"{i:03}").write_text(text)
    for i, out in enumerate(["list", "copies/"]):
        run("dedup", "-q", "--files", "docs", "-o", f"one.{out}", cwd=place)
        run("dedup", "split", "-q", "--tasks", 5, "--work", f"work{i}", "--engine", "local",
            "--files", "docs", "-o", f"many.{out}", cwd=place)
    assert (place / "one.list").read_bytes() == (place / "many.list").read_bytes()
    assert tree("one.copies") == tree("many.copies")


def test_every_task_twice_at_once_and_again(place):
    _, wanted = one_machine(place)
    todo = commands(place, 3)
    assert [s for s, _ in todo] == [s for s in STAGES for _ in range(1 if s in ("link", "join") else 3)]
    for stage in STAGES:
        at_once = [subprocess.Popen(command + ["-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for s, command in todo if s == stage for _ in range(2)]
        # The last one tells of the malformed line.
        assert {p.wait(PATIENCE) for p in at_once} <= ({0, 2} if stage == "join" else {0})
    assert bytes_of(place, "many") == wanted
    for _, command in todo:
        again = subprocess.run(command, capture_output=True, text=True)
        assert again.returncode == 0 and "was done before" in again.stderr


def test_killed_again_and_again(place):
    """Whatever was being done: whoever goes on comes to the same result."""
    _, wanted = one_machine(place)
    r = random.Random(11)
    argv = [PROGRAM, "dedup", "split", "--tasks", "6", "--work", "work", "--engine", "local",
            "--threads", "2", *INPUTS, *results("many")]
    for _ in range(12):
        engine = subprocess.Popen(argv, cwd=place, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(r.uniform(0, 0.1))  # any moment will do
        os.killpg(engine.pid, 9)
        engine.wait()
    done = split(place, 6)
    # The last task tells of the malformed line, and may have done so before.
    assert done.status == 2 and "malformed" in done.err or done.status == 0, done.err
    assert bytes_of(place, "many") == wanted
    assert not [p for p in place.rglob("*") if p.name.startswith(".")]


def test_a_killed_task_is_run_again(place):
    """The engine itself: a task that a signal ends is not the end."""
    _, wanted = one_machine(place)
    engine = subprocess.Popen(
        [PROGRAM, "dedup", "split", "--tasks", "20", "--work", "work", "--engine", "local",
         "--threads", "2", *INPUTS, *results("many")],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    killed = 0
    while killed < 3 and engine.poll() is None:
        for child in open(f"/proc/{engine.pid}/task/{engine.pid}/children").read().split():
            try:
                os.kill(int(child), 9)
                killed += 1
            except ProcessLookupError:
                pass
    err = engine.communicate(timeout=PATIENCE)[1]
    # All three kills may have met the same task, which then is given up.
    if engine.returncode == 0 or "4 times" not in err:
        assert engine.returncode == 2 and "malformed" in err
        assert err.count("it is run again") <= killed
        assert bytes_of(place, "many") == wanted


def says(result, *words):
    assert result.status == 2
    for word in words:
        assert word in result.err, result.err


def test_parts_that_are_not_of_this_run(place):
    split(place, 3)
    shutil.copytree(place / "work", place / "other")
    keep = place / "work" / "keep"
    for stage in "keep", "write", "join":
        shutil.rmtree(place / "work" / stage)

    def task(stage, i):
        return run("dedup", "task", "work", stage, i, cwd=place)
    says(task("write", 0), "work/keep/0", "not there", "dedup task", "keep 0")
    assert "failed: write 0" in run("dedup", "status", "work", cwd=place).out
    status = run("dedup", "status", "work", "--json", cwd=place)
    assert status.status == 2 and status.json["next"] == "keep"
    assert [(f["stage"], f["task"]) for f in status.json["failed"]] == [("write", 0)]
    assert [task("keep", i).status for i in range(3)] == [0, 0, 0]
    whole = (keep / "1").read_bytes()
    for cut in 0, 1, 50, len(whole) // 2, len(whole) - 1:
        (keep / "1").write_bytes(whole[:cut])
        says(task("write", 2), "work/keep/1", "not a whole part")
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        (keep / "1").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        done = task("write", 2)  # what it does not read may be anything
        assert done.status == 0 or "work/keep/1" in done.err
        assert done.status == 2 or not (place / "work/write/2").unlink()
    # Of the same task, but of a run with another threshold; of another task.
    assert split(place, 3, "--threshold", "0.9", work="foreign").status == 2
    shutil.copy(place / "foreign/keep/1", keep / "1")
    says(task("write", 2), "work/keep/1", "another run")
    shutil.copy(keep / "0", keep / "1")
    says(task("write", 2), "work/keep/1", "another run")
    (keep / "1").unlink()
    assert task("keep", 1).status == 0
    assert (keep / "1").read_bytes()[:-8 * 10] == whole[:-8 * 10]
    assert [task("write", i).status for i in range(3)] == [0, 0, 0]
    assert run("dedup", "status", "work", cwd=place).status == 1


def test_inputs_that_changed(place):
    assert split(place, 2, engine="none").status == 0
    for stage in "sketch", "band", "link":
        for i in range(1 if stage == "link" else 2):
            assert run("dedup", "task", "work", stage, i, cwd=place).status == 0
    with open(place / "a.jsonl", "a") as f:
        f.write("\n")
    says(split(place, 2), "plan of another run")
    for stage in "deal", "pairs":
        for i in range(2):
            assert run("dedup", "task", "work", stage, i, cwd=place).status == 0
    says(run("dedup", "task", "work", "sets", 0, cwd=place), "a.jsonl", "changed since")
    (place / "a.jsonl").unlink()
    says(run("dedup", "task", "work", "sets", 0, cwd=place), "a.jsonl", "No such file")


def test_what_split_refuses(place):
    says(run("dedup", "split", "a.jsonl", "-o", "x", cwd=place), "--work DIR")
    says(run("dedup", "split", "--work", "w", "-o", "x", cwd=place, stdin=b""), "standard input")
    says(run("dedup", "split", "--work", "w", "-", "-o", "x", cwd=place, stdin=b""), "standard input")
    says(run("dedup", "split", "--work", "w", "a.jsonl", "-o", "-", cwd=place), "standard output")
    says(run("dedup", "split", "--work", "w", "a.jsonl", "-o", "a.jsonl", cwd=place), "a.jsonl")
    says(run("dedup", "split", "--work", "w", "a.jsonl", "--save-index", "i", cwd=place), "--save-index")
    says(run("dedup", "split", "--work", "w", "--paragraphs", "a.jsonl", "-o", "x", cwd=place), "one pass")
    says(run("dedup", "--tasks", 3, "a.jsonl", "-o", "x", cwd=place), "dedup split")
    says(run("dedup", "split", "--work", "w", "--tasks", 0, "a.jsonl", "-o", "x", cwd=place), "--tasks")
    assert split(place, 3, engine="none").status == 0
    says(split(place, 4, engine="none"), "another run")
    says(split(place, 3, "--threshold", "0.7", engine="none"), "another run")
    assert split(place, 3, engine="none").status == 0
    says(run("dedup", "task", "work", "sort", 0, cwd=place), "not a stage", "sketch")
    says(run("dedup", "task", "work", "sketch", 3, cwd=place), "0 to 2")
    says(run("dedup", "task", "work", "link", 1, cwd=place), "0 to 0")
    says(run("dedup", "task", "work", "sketch", "-1", cwd=place), "")
    says(run("dedup", "task", "work", "sketch", cwd=place), "a folder, a stage and a number")
    says(run("dedup", "task", "nowhere", "sketch", 0, cwd=place), "nowhere")
    says(run("dedup", "task", ".", "sketch", 0, cwd=place), "dedup split makes it")
    says(run("dedup", "status", ".", cwd=place), "dedup split makes it")
    (place / "work/plan").write_bytes((place / "work/plan").read_bytes()[:-1])
    says(run("dedup", "task", "work", "sketch", 0, cwd=place), "work/plan")


def test_strict_writes_nothing_and_names_the_line(place):
    says(split(place, 5, "--strict"), "b.jsonl:135: not JSON")
    assert not list(place.glob("many.*"))
    assert run("dedup", "-q", "--strict", *INPUTS, "-o", "x", cwd=place).status == 2


def test_long_lines_and_many_small_files(place):
    """A line longer than many shares; and more files than tasks."""
    r = random.Random(2)
    long = " ".join(f"{r.getrandbits(20):x}" for _ in range(300_000))
    lines = [json.dumps({"text": t}) for t in texts(200)]
    lines.insert(50, json.dumps({"text": long}))
    lines.insert(150, json.dumps({"text": long + " end"}))
    (place / "long.jsonl").write_text("\n".join(lines))
    (place / "small").mkdir()
    names = []
    for i, line in enumerate(lines[:50] + lines[60:120]):
        names.append(f"small/{i}.jsonl")
        (place / names[-1]).write_text(line)
    inputs = ["long.jsonl", *names]
    status, wanted = one_machine(place, inputs=inputs)
    assert split(place, 30, inputs=inputs).status == status == 0
    assert bytes_of(place, "many") == wanted
    assert b"long.jsonl:151\tlong.jsonl:51\t" in wanted["removed"]


def test_work_with_little_memory_goes_by_tasks(place):
    """--work: too much for its memory is done in tasks, with the same result;
    --resume goes on, and without it a run begins anew."""
    status, wanted = one_machine(place)
    argv = ["dedup", "-q", *INPUTS, *results("many"), "--work", "work", "--memory", "1M"]
    for _ in range(2):
        assert run(*argv, cwd=place).status == status
        assert bytes_of(place, "many") == wanted
    assert (place / "work/join/0").exists() and not (place / "work/journal").exists()
    tasks = len(list((place / "work/keep").iterdir()))
    assert tasks > 4
    (place / "work/keep/1").unlink()
    shutil.rmtree(place / "work/join")
    before = (place / "work/keep/0").stat().st_mtime_ns
    assert run(*argv, "--resume", cwd=place).status == status
    assert bytes_of(place, "many") == wanted
    assert (place / "work/keep/0").stat().st_mtime_ns == before
    says(run(*argv, "--resume", "--threshold", "0.7", cwd=place), "another run")
    assert run(*argv, "--threshold", "0.7", cwd=place).status == status
    assert bytes_of(place, "many") != wanted
    # A pipe can be read once only, and a strict run stops at once: not by tasks.
    piped = run("dedup", "-q", "-", *results("many"), "--work", "pipe", "--memory", "1M", cwd=place,
                stdin=b"".join((place / n).read_bytes() for n in INPUTS[:1]))
    assert piped.status == 0 and not (place / "pipe/plan").exists()
