"""The first example of every page of docs/ does what the page says.

An example is the first code block with commands behind `$ ` (Python's `>>> `, redis-cli's `> `), and what they print.
`...` stands for any text, on a line of its own for any lines. Where a page has no such block, the first block of commands
has to work. Files that an example speaks of are made by NEEDS; other lists of lines are made up. FORM names pages whose
data are larger than a test wants: any number stands for any other there. Pages whose first example is a part of a program
are in PROGRAMS. ELSEWHERE says which other test runs the example of a page, and NOTHING which pages have none to run:
test_every_page_is_accounted_for() counts them.
"""
import json
import os
import platform
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, PATIENCE, PROGRAM, ROOT
from js_support import PACKAGE, needs_node, needs_package
from parquet_file import write_texts
from redis_support import Server, needs_server
from terminal_support import Terminal

# Pages whose example is run by another test, which names the page.
ELSEWHERE = {
    "digest.md": "test_digest_command.py", # it needs a Squid
    "node.md": "test_pages.py",
    "packages.md": "tree_amalgamation",
    "reconcile.md": "test_pages.py",
    "scale.md": "test_split_slurm.py", # it needs a Slurm
    "ring.md": "test_ring_nodes.py", # it kills processes on fixed ports
}
# Pages with tables and pictures alone.
NOTHING = {"README.md", "figures/index.md", "format-index.md", "json.md", "kinds/README.md", "kinds/floom.md"}
FORM = {
    "dedup.md": "a corpus of 63 MB", "distinct.md": "5 million lines", "exact-lists.md": "11 million numbers", "isect.md": "ids of two machines",
    "join.md": "a million rows", "passwords.md": "1.6 million passwords", "playground.md": "any free port", "quantiles.md": "5 million lines",
    "vectors.md": "100,000 embeddings", "seal.md": "every sealed document has a random name", "sync.md": "10 million lines", "urls.md": "a list that changes every day",
}
LINES = "".join(f"line {i * i % 7919}\n" for i in range(4000))


def blocks(text):
    """Code blocks of a page, fenced or indented, in their order."""
    found, lines, before, i = [], text.split("\n"), "", 0
    while i < len(lines):
        j = i + 1
        if fence := re.match("```+", lines[i]):
            while j < len(lines) and not lines[j].startswith(fence[0]):
                j += 1
            found.append("\n".join(lines[i + 1:j]))
            j += 1
        elif lines[i].startswith("    ") and not before.strip():
            while j < len(lines) and (lines[j].startswith("    ") or not lines[j].strip()):
                j += 1
            found.append("\n".join(line[4:] for line in lines[i:j]).rstrip())
        before, i = lines[j - 1], j
    return found


def example_of(page):
    """The block that is tested, and how: "shell", "python", "redis", "commands"; or (None, None)."""
    all_blocks = blocks(page.read_text())
    for block in all_blocks:
        for prompt, how in ("$ ", "shell"), (">>> ", "python"), ("> ", "redis"):
            if re.search(rf"^{re.escape(prompt)}", block, re.M):
                return block, how
    for block in all_blocks:
        if re.search(r"^bloomery \w", block, re.M):
            return block, "commands"
    return None, None


PAGES = {str(p.relative_to(ROOT / "docs")): p for p in sorted((ROOT / "docs").glob("**/*.md"))}
EXAMPLES = {name: example for name, page in PAGES.items() if (example := example_of(page))[0]}


def sh(folder, script):
    done = subprocess.run(["bash", "-ec", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, env=environment(folder))
    assert done.returncode == 0, (script, done.stderr)


def environment(folder):
    return {**os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHONPATH": str(BUILD / "python"), "PROMPTED": "yes"}


def put(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


# ------------------------------------------------------------------ what examples speak of

def corpus(folder):
    words = [f"word{i}" for i in range(5000)]
    put(folder, "corpus.jsonl", "".join(json.dumps({"id": i, "text": " ".join(words[(i // 2 * 37 + k * k) % 5000] for k in range(300))}) + "\n" for i in range(200)))


def customers(folder):
    put(folder, "customers.csv", "id,email\n7,Ann@example.org\n8,bob@example.org\n9,carol@example.org\n10,dave@example.org\n")
    put(folder, "today.jsonl", '{"at":"2026-11-16T09:14:07Z","user":{"id":7,"email":"ann@example.org"},"page":"/"}\n'
                               '{"at":"2026-11-16T09:14:09Z","user":{"id":3,"email":"eve@example.org"},"page":"/"}\n')


def letters(folder):
    """Documents to seal: pages of ours, one of which has the word."""
    for page in sorted((ROOT / "docs").glob("*.md"))[:19]:
        text = page.read_text()
        put(folder, f"letters/{page.name}", text if page.name == "digest.md" else re.sub("squid", "octopus", text, flags=re.I))


def easylist(folder):
    found = sorted(Path("/usr/share/webext").glob("*/assets/**/easylist.txt")) + sorted(Path("/usr/share").glob("*/ublock-origin/**/easylist.txt"))
    if not found:
        pytest.skip("no easylist.txt: apt-get install webext-ublock-origin-firefox")
    (folder / "easylist.txt").write_bytes(found[0].read_bytes())


def orders(folder):
    put(folder, "people.csv", "id,name\n" + "".join(f"{i},name {i}\n" for i in range(100)))
    put(folder, "orders.csv", "order,person\n" + "".join(f"{i},{i}\n" for i in range(20000)))
    put(folder, "bin/ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n')  # ssh db COMMAND, on this machine
    (folder / "bin/ssh").chmod(0o755)


def hunspell(folder):
    if not Path("/usr/share/hunspell/en_US.dic").exists():
        pytest.skip("no /usr/share/hunspell/en_US.dic: apt-get install hunspell-en-us")
    put(folder, "letter.txt", "Dear friend,\nhere comes teh letter that\nyou noone recieves.\n")


def shop(folder):
    """A database with orders, 17 of which are by customers who are blocked."""
    if not shutil.which("sqlite3") or not (BUILD / "bloomery_sqlite.so").exists():
        pytest.skip("docs/sql.md: sqlite3 or build/bloomery_sqlite.so is not there")
    subprocess.run(["sqlite3", "shop.db"], cwd=folder, check=True, text=True, input=f"""
        CREATE TABLE orders(email); CREATE TABLE customers(email);
        INSERT INTO orders SELECT 'c' || value || '@example.org' FROM generate_series(1, 400);
        INSERT INTO customers VALUES ('alice@example.org'), ('bob@example.org');""")
    sh(folder, "for i in $(seq 17); do echo c$((i * 20))@example.org; done | bloomery build -q --fpr 1e-9 -o blocked.bly")


def visits(folder):
    """Row groups 0 and 17 have the page that is asked for."""
    urls = [[f"http://example.org/page-{group}-{i}" for i in range(40)] + ["http://example.org/"] * (group in (0, 17)) for group in range(20)]
    write_texts(folder / "visits.parquet", {"url": urls, "user": [[f"user {i}" for i, _ in enumerate(group)] for group in urls]})


def tables(folder):
    """Three tables, the first of which has the key."""
    for i, name in enumerate(["one", "two", "three"]):
        put(folder, f"{name}.tsv", "".join(f"{k:05}-{i}\tvalue {k}\n" for k in range(0, 1000, 2 + i)))
        sh(folder, f"bloomery table build -q -o db/ {name}.tsv" if i == 0 else f"bloomery table build -q -o db/ {name}.tsv")


def embeddings(folder):
    """Vectors, every third of which is near the one before."""
    rng = random.Random(4)
    rows = [[rng.gauss(0, 1) for _ in range(24)] for _ in range(6000)]
    for i in range(3, 6000, 3):
        rows[i] = [x + rng.gauss(0, 0.1) for x in rows[i - 1]]
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (6000, 24), }".ljust(117) + "\n"
    (folder / "embeddings.npy").write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head.encode() +
                                            b"".join(struct.pack("<24f", *row) for row in rows))


def served(folder, there, *lines):
    """A list on a server that the example calls there:3130."""
    put(folder, "there.list", there)
    server = subprocess.Popen([PROGRAM, "sync", "serve", "--listen", "127.0.0.1:0", "there.list"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    port = re.search(r":(\d+)", server.stdout.readline())[1]
    for name, text in zip(lines[::2], lines[1::2]):
        put(folder, name, text)
    return server, port


NEEDS = {
    "live.md": lambda f: [put(f, f"tokens.{i}", f"{LINES}{i}\n") for i in range(1, 9)],
    "architecture.md": lambda f: sh(f, "seq 100 | bloomery build -q -o words.bly; seq 50 150 | gzip > list.gz"),
    "commands.md": lambda f: sh(f, r"""
        mkdir logs; seq 1000 | zstd -q > seen.txt.zst; seq 990 1010 > today.txt; printf '7 x\n5000 x\n' > logs/a; printf 'id,email\n1,7\n2,x\n' > new.csv
        seq 500 | bloomery build -q --items 1k -o mon.bly; seq 400 900 | bloomery build -q --items 1k -o tue.bly; cp mon.bly mirror.bly
        printf 'old-key\n7\n7\n990\n990\n990\n' > in; cp mon.bly words.bly; bloomery build -q -k generalized -n 15 -b 256 -O k0=2 -O k1=2 -o way.bly < /dev/null
        printf 'ann\t31\nbob\t40\n' | bloomery build -q --kind bloomier -o ages.bly"""),
    "dedup.md": corpus,
    "exact-lists.md": lambda f: sh(f, "seq 112000 > issued.txt; seq 112 112 112000 > revoked.txt"),
    "fields.md": customers,
    "index.md": lambda f: sh(f, """mkdir archive; for i in 1 2 3; do { seq $i 50; echo "ERROR user=4711 trace-7f3a9$i"; } | gzip > archive/log.$i.gz; done"""),
    "format.md": lambda f: (f / "tests").symlink_to(ROOT / "tests"),
    "javascript.md": lambda f: run_javascript(f, blocks(PAGES["javascript.md"].read_text())[0]),
    "join.md": orders,
    "quantiles.md": lambda f: put(f, "times.tsv", "".join(f"k{i}\t{i * 7919 % 10000 / 8 + 1}\n" for i in range(10000))),
    "parquet.md": visits,
    "vectors.md": embeddings,
    "passwords.md": lambda f: sh(f, "seq -f 'password %.0f' 1633938 > sqlmap-wordlist.txt"),
    "seal.md": letters,
    "small.md": lambda f: sh(f, "seq 100 | bloomery build -q --kind classic --fpr 1% -o flags.bly"),
    "spell.md": hunspell,
    "sql.md": shop,
    "table.md": tables,
    "urls.md": easylist,
    "kinds/attenuated.md": lambda f: sh(f, """for way in north south; do seq 10 | bloomery build -q --kind attenuated --items 1000 -O degree=3 -o $way.bly; done"""),
    "kinds/exact.md": lambda f: sh(f, "seq 1000 > issued.txt; seq 1 9 1000 > revoked.txt"),
    "kinds/range.md": lambda f: sh(f, "seq 1700000000 1700001000 > times.txt"),
}
SERVED = {
    "isect.md": lambda f: served(f, "".join(f"id-{i}\n" for i in range(1000)), "bloom.ids", "".join(f"id-{i}\n" for i in range(900, 3000))),
    "sync.md": lambda f: served(f, "".join(f"line {i}\n" for i in range(500, 20500)), "mine.txt", "".join(f"line {i}\n" for i in range(20000))),
}


# ------------------------------------------------------------------------ what they print

def plain(text, form):
    """Text to compare: without blanks at the end, and in the form of a page any number is N, with its unit."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    if form:
        text = re.sub(r"\b[0-9a-f]{16,}\b", "N", text)
        text = re.sub(r"\b\d[\d,]*(?:\.\d+)?(?: (?:[KMGT]i)?B\b| million)?", "N", text)
        text = re.sub(r"[ \t]+", " ", text)
    return text


def says(expected, found, form=False):
    """Do these lines of a page say what was printed?"""
    parts = []
    for line in plain("\n".join(expected), form).split("\n") if expected else []:
        parts.append(r"(?:.*\n)*?" if line.strip() == "..." else ".*".join(re.escape(part) for part in line.split("...")) + "\n")
    return bool(re.fullmatch("".join(parts), plain(found, form)))


def steps_of(block):
    """[command, lines that it prints]; blank lines between steps do not count."""
    steps = []
    for line in block.split("\n"):
        if line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
    for _, lines in steps:
        while lines and not lines[-1].strip():
            lines.pop()
    return steps


def run_steps(folder, commands):
    """What each prints, (output, errors), all in one shell."""
    script = "".join(f"{{ {command}\n}} > {folder}/.out{i} 2> {folder}/.err{i}\n" for i, command in enumerate(commands))
    subprocess.run(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, timeout=PATIENCE, env=environment(folder), check=False)
    return [((folder / f".out{i}").read_text(), (folder / f".err{i}").read_text()) for i in range(len(commands))]


def make_lists(folder, block):
    """Lists of lines that the commands read and nobody has made: words that end as they do."""
    for name in re.findall(r"(?<![-\w./])([a-z][\w-]*\.(?:txt|log))\b", block):
        if not (folder / name).exists() and not re.search(rf"(?:-o|>) *{re.escape(name)}", block):
            put(folder, name, LINES)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bloomery").symlink_to(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("name", EXAMPLES)
def test_first_example(place, name):
    block, how = EXAMPLES[name]
    if name in PARTS:
        return  # test_first_part_of_a_program()
    if name in ELSEWHERE:
        pytest.skip(f"docs/{name}: {ELSEWHERE[name]} runs it")
    if name == "formats.md" and platform.machine() != "x86_64":
        pytest.skip("docs/formats.md: names the C library of x86_64")
    if how == "python":
        return check_python(place, block)
    if how == "redis":
        return check_redis(place, name, block)
    NEEDS.get(name, lambda _: None)(place)
    block = block.replace("/var/log/archive/", "archive/").replace("/dev/shm/", "")
    make_lists(place, block)
    server, port = SERVED[name](place) if name in SERVED else (None, None)
    try:
        if name in PEOPLE:
            PEOPLE[name](place, block)
        elif how == "shell":
            check_shell(place, name, block.replace("there:3130", f"127.0.0.1:{port}") if port else block)
        else:
            check_commands(place, block)
    finally:
        if server:
            server.terminate()
            server.wait(PATIENCE)


def check_shell(folder, name, block):
    steps = steps_of(block)
    printed = run_steps(folder, [command for command, _ in steps])
    for (command, expected), (out, err) in zip(steps, printed):
        # Which comes first depends on where they go; a page shows a terminal.
        assert any(says(expected, found, name in FORM) for found in (out + err, err + out)), f"docs/{name}: $ {command}\n{out}{err}"


def check_commands(folder, block):
    """They work: 0, or 1 for an answer that is no."""
    done = subprocess.run(["bash", "-c", "trap 's=$?; [ $s -gt 1 ] && { echo \"$BASH_COMMAND: $s\" >&2; exit 3; }' ERR\n" + block + "\ntrue"], cwd=folder,
                          capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE, env=environment(folder), check=False)
    assert done.returncode == 0, done.stderr


def check_python(folder, block):
    if not list((BUILD / "python").glob("bloomery*")):
        pytest.skip("build/python is not there: no Python headers")
    done = subprocess.run([sys.executable, "-c", "import doctest, sys\n"
                           "test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, 'page', None, 0)\n"
                           "sys.exit(doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed)"], cwd=folder, input=block + "\n",
                          capture_output=True, text=True, timeout=PATIENCE, env=environment(folder), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_redis(folder, name, block):
    """A dialogue with redis-cli, as a terminal shows it."""
    if needs_server.args[0]:
        pytest.skip(needs_server.kwargs["reason"])
    asked = [line[2:] for line in block.split("\n") if line.startswith("> ")]
    with Server(folder / "server") as server:
        said = [server.cli("--no-raw", *shlex.split(line)).stdout.decode() for line in asked]
    shown = re.split(r"^> .*\n", block + "\n", flags=re.M)[1:]
    assert said == shown, f"docs/{name}"


def run_javascript(folder, block):
    """In Node, as a module, beside the package."""
    for needed in needs_package, needs_node:
        if needed.args[0]:
            pytest.skip(needed.kwargs["reason"])
    (folder / "node_modules").mkdir()
    (folder / "node_modules/bloomery").symlink_to(PACKAGE)
    put(folder, "first.mjs", block)
    sh(folder, "node first.mjs")


# ------------------------------------------------------ what people type at a prompt

def type_sql(folder, block):
    """The lines behind sqlite> go to sqlite3."""
    lines, typed = [], []
    for line in block.replace("/usr/local/lib/bloomery/bloomery_sqlite", str(BUILD.resolve() / "bloomery_sqlite")).split("\n"):
        if line.startswith("sqlite> "):
            typed.append(line[len("sqlite> "):])
        else:
            lines.append(line)
    at = next(i for i, line in enumerate(lines) if line.startswith("$ sqlite3"))
    lines[at] = f"$ printf '%s\\n' {shlex.join(typed)} | {lines[at][2:]}"
    check_shell(folder, "sql.md", "\n".join(lines))


def type_password(folder, block):
    """One of the list, at a terminal."""
    build, check = steps_of(block)
    check_shell(folder, "passwords.md", f"$ {build[0]}\n" + "\n".join(build[1]))
    screen = Terminal(["bash", "-c", check[0]], folder, environment(folder))
    try:
        screen.until(check[1][0])
        screen.type("password 7\n")
        screen.until(re.escape(check[1][1]))
        assert "password 7" not in screen.text()
        screen.type("\n")
        assert screen.ended() == 0
    finally:
        screen.end()


def leave_by_ctrl_c(folder, block):
    """The playground is served until somebody has enough."""
    make, web = steps_of(block)
    assert make == ["make web", []]
    if not (BUILD / "web" / "play.wasm").exists():
        pytest.skip("build/web is not there")
    served = subprocess.Popen([PROGRAM, *shlex.split(web[0])[1:], "--listen", "127.0.0.1:0", "--folder", BUILD / "web"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(folder))
    try:
        shown = "".join(served.stdout.readline() for _ in web[1])
        served.send_signal(signal.SIGINT)
        assert says(web[1], shown, True) and served.wait(PATIENCE) == 0
    finally:
        served.kill()
        served.wait()


def measure(folder, block):
    """What a measurement says depends on the machine; a smaller one runs, and says it in the same form."""
    (command, shown), = steps_of(block)
    (out, err), = run_steps(folder, [command.replace("--items 1M --rounds 3", "--items 1k --rounds 1")])
    for line in shown:
        for words in re.findall(r"[a-z][a-z, ]*[a-z]", line.removesuffix("missed")):
            assert words in out + err, f"docs/performance.md: {words}\n{out}{err}"


PEOPLE = {"passwords.md": type_password, "performance.md": measure, "playground.md": leave_by_ctrl_c, "sql.md": type_sql}


# ------------------------------------------------------------- parts of programs

# What stands around a part that includes a header, and what the compiler is told: the CUDA runtime is not asked for.
PARTS = {
    "cuda.md": ("const uint64_t *keys = NULL; uint64_t *maybe = NULL; size_t n = 0; void *stream = NULL;", "", ["-c"]),
    "leveldb.md": ("leveldb_options_t *options = leveldb_options_create();",
                   "leveldb_options_set_filter_policy(options, NULL); leveldb_filterpolicy_destroy(policy); leveldb_options_destroy(options);",
                   [str(BUILD / "libbloomery_leveldb.a"), str(BUILD / "libbloomery.a"), "-lleveldb", "-lm", "-pthread"]),
}


@pytest.mark.parametrize("name", PARTS)
def test_first_part_of_a_program(tmp_path, name):
    """It compiles without a warning and, with the library at hand, runs."""
    before, after, words = PARTS[name]
    header = f"bloomery_{name.removesuffix('.md')}.h"
    part = next(block for block in blocks(PAGES[name].read_text()) if block.startswith(f"#include <{header}>")).split("\n$ ")[0]
    lines = part.split("\n")
    body = "\n".join(line for line in lines if not line.startswith("#include"))
    (tmp_path / "part.c").write_text("\n".join(line for line in lines if line.startswith("#include")) +
                                     f"\n#include <err.h>\nint main(void)\n{{\n{before}\n{body}\n{after}\nreturn 0;\n}}\n")
    if "-c" not in words and not Path(words[0]).exists():
        pytest.skip(f"docs/{name}: {Path(words[0]).name} is not there")
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include",
                    f"-I{ROOT}/adapters/{name.removesuffix('.md')}", "part.c", *words, "-o", "part"], cwd=tmp_path, check=True, timeout=PATIENCE)
    if "-c" not in words:
        subprocess.run(["./part"], cwd=tmp_path, check=True, timeout=PATIENCE)


def test_every_page_is_accounted_for():
    """A page has an example that is run, here or in a test that names the page, or has nothing to run."""
    assert set(PAGES) - set(EXAMPLES) - set(PARTS) - set(ELSEWHERE) == NOTHING
    assert not (set(FORM) | set(NEEDS) | set(SERVED) | set(PEOPLE)) - set(EXAMPLES)
    for page, test in ELSEWHERE.items():
        assert re.search(rf"docs/{page}|\"{Path(page).stem}\"", (ROOT / "tests" / test).read_text()), f"tests/{test} does not name docs/{page}"


def test_the_comparison_finds_what_is_wrong():
    assert says(["a 1", "..."], "a 1\nb\nc\n") and not says(["a 1"], "a 2\n") and not says(["a"], "a\nb\n") and says([], "")
    assert says(["a 1.5 KiB, ..."], "a 200 B, x\n", True) and not says(["a 1 lines"], "a 1 rows\n", True)
