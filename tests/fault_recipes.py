"""Every command once, in a small folder: what tests of faults run.

A recipe is a line that somebody may type. All run in a copy of one folder
(`make_folder`), so that what a command changed is what differs from it. A
command that is not in the table fails test_every_command_is_listed: who adds
one says here what it writes, or that it writes nothing.
"""
import dataclasses
import hashlib
import http.server
import json
import os
import shlex
import shutil
import struct
import subprocess
import threading

import pytest

from conftest import BUILD, PATIENCE, PROGRAM, keys
from parquet_file import BINARY, I32, I64, LIST, STRUCT, dump
from redis_support import SERVER, Server, redis

TRACER = BUILD / "tests" / "disk_tracer"
MALLOC = BUILD / "tests" / "failing_malloc.so"
CANNOT = 77


@dataclasses.dataclass(frozen=True)
class Recipe:
    line: str                  # without "bloomery"; < FILE at the end: input
    writes: tuple = ()         # the files that are made or replaced
    status: int = 0
    work: tuple = ()           # files for going on later: any state will do
    needs: str = ""            # a server: "digest" or "redis"
    slow: bool = False         # only in the long form
    volatile: bool = False     # has times in it, or chance

    @property
    def command(self):
        return self.line.split()[0]

    @property
    def argv(self):
        return shlex.split(self.line.split(" < ")[0])

    def stdin(self, folder):
        parts = self.line.split(" < ")
        return (folder / parts[1]).read_bytes() if len(parts) > 1 else b""


def writing(line, *files, **kw):
    return Recipe(line, files, **kw)


WRITES = [
    writing("build -o new.bly a.txt", "new.bly"),
    writing("build -o a.bly b.txt", "a.bly"),
    writing("build -t 1 -o - < a.txt"),
    writing("build -o new.bly -k fuse -t 1 < a.txt", "new.bly"),
    writing("build -o link.bly b.txt", "a.bly"),
    writing("build -o new.guava --format guava a.txt", "new.guava"),
    writing("build -t 1 -k fuse -O shards=16 --max-memory 2400k --spill tmp "
            "-o a.bly many.txt", "a.bly", slow=True),
    writing("build -t 1 --max-memory 2400k --spill tmp -o new.bly many.txt",
            "new.bly", slow=True),
    writing("add a.bly -f b.txt", "a.bly"),
    writing("add link.bly one two", "a.bly"),
    writing("add r.dump -f b.txt", "r.dump"),
    writing("unique -q -t 1 --filter a.bly b.txt", "a.bly"),
    writing("unique -q -t 1 --filter kept.bly -n 5k b.txt", work=("kept.bly",)),
    writing("join -q -t 1 a.txt b.txt -o new.tsv", "new.tsv"),
    writing("join -q -t 1 --type left --field 1 ages.tsv older.tsv -o gone.tsv",
            "gone.tsv"),
    writing("sync pull -q -t 1 a.txt b.txt", "a.txt", volatile=True),
    writing("sync pull -q -t 1 a.txt b.txt -o new.txt", "new.txt",
            volatile=True),
    writing("sync push -q -t 1 texts out", "out/1", "out/2"),
    writing("table build -q -o new.blt ages.tsv", "new.blt"),
    writing("table build -q -o db older.tsv", "db/00000002.blt"),
    writing("table compact -q two", "two/00000001.blt", "two/00000002.blt",
            "two/00000003.blt"),
    writing("distinct -q -t 1 a.txt -o new.bly", "new.bly"),
    writing("distinct -q -t 1 --into count.bly b.txt", "count.bly"),
    writing("distinct -q -t 1 --into made.bly a.txt", work=("made.bly",)),
    writing("top a.txt -o heavy.bly", "heavy.bly"),
    writing("quantiles -t 1 --field 2 --skip-bad ages.tsv -o new.bly", "new.bly"),
    writing("quantiles -t 1 --field 2 --skip-bad ages.tsv --plot new.svg", "new.svg"),
    writing("top --into heavy.bly b.txt", "heavy.bly"),
    writing("merge -o new.bly count.bly dense.bly", "new.bly"),
    writing("similar -o new.bly texts/1", "new.bly"),
    writing("vectors dedup -q -t 1 v.csv -o new.csv --removed gone.tsv",
            "new.csv", "gone.tsv"),
    writing("merge -o heavy.bly heavy.bly heavy.bly", "heavy.bly"),
    writing("remove counting.bly -f half.txt", "counting.bly"),
    writing("set ages.bly -f older.tsv", "ages.bly"),
    writing("shell a.bly < lines.txt", "a.bly"),
    writing("note a.bly one --meta two=three", "a.bly"),
    writing("merge -o new.bly a.bly b.bly", "new.bly"),
    writing("merge -o a.bly a.bly b.bly", "a.bly"),
    writing("intersect -o new.bly a.bly b.bly", "new.bly"),
    writing("intersect -o b.bly a.bly b.bly", "b.bly"),
    writing("shrink a.bly", "a.bly"),
    writing("shrink -o new.bly a.bly", "new.bly"),
    writing("convert -k classic -o new.bly counting.bly", "new.bly"),
    writing("convert -k blocked -o b.bly -f a.txt counting.bly", "b.bly"),
    writing("convert --to guava -o new.guava -f a.txt a.bly", "new.guava"),
    writing("compress -o counting.bly counting.bly", "counting.bly"),
    writing("compress -o new.bly counting.bly", "new.bly"),
    writing("compress --compact -o new.bly counting.bly", "new.bly"),
    writing("raw -o new.bits a.bly", "new.bits"),
    writing("raw --set b.bits a.bly", "a.bly"),
    writing("raw --set b.bits -o new.bly a.bly", "new.bly"),
    writing("delta -o ab.bld b.bly a.bly", "ab.bld"),
    writing("delta -o new.bld a.bly b.bly", "new.bld"),
    writing("apply a.bly ab.bld", "a.bly"),
    writing("apply -o new.bly a.bly ab.bld", "new.bly"),
    writing("dedup -t 1 docs.jsonl -o clean.jsonl", "clean.jsonl"),
    writing("dedup -t 1 docs.jsonl -o seen.jsonl --removed gone.tsv --id id "
            "--pairs pairs.tsv --clusters clusters.tsv --save-index d.idx",
            "seen.jsonl", "gone.tsv", "pairs.tsv", "clusters.tsv", "d.idx"),
    writing("dedup -t 1 docs.jsonl more.jsonl -o clean/deep/ --json",
            "clean", "clean/deep", "clean/deep/docs.jsonl",
            "clean/deep/more.jsonl", volatile=True),
    writing("dedup -t 1 --files texts -o out/", "out/texts",
            "out/texts/1", "out/texts/2"),
    writing("dedup -t 1 docs.jsonl -o clean.jsonl --work work", "clean.jsonl",
            work=("work/journal", "work/checked")),
    writing("dedup -t 1 docs.jsonl -o clean.jsonl --work begun --resume",
            "clean.jsonl", work=("begun/journal", "begun/checked")),
    writing("dedup split --work parts --tasks 2 docs.jsonl -o clean.jsonl",
            "parts", "parts/plan", volatile=True),
    writing("dedup -t 1 --paragraphs --filter seen.bly docs.jsonl "
            "-o clean.jsonl", "seen.bly", "clean.jsonl"),
    writing("dedup ngrams -t 1 -n 9k --filter grams.bly docs.jsonl "
            "-o clean.jsonl", "grams.bly", "clean.jsonl"),
    writing("dedup -t 1 --index bloom docs.jsonl -o clean.jsonl",
            "clean.jsonl"),
    writing("parquet add n.parquet -o new.parquet --column n", "new.parquet"),
    writing("parquet add n.parquet -o old.parquet --column n", "old.parquet"),
    writing("index build -q -t 1 -o new.blx texts", "new.blx", volatile=True),
    writing("index add -q -t 1 old.blx a.txt", "old.blx", volatile=True),
    writing("index merge -q -o new.blx old.blx", "new.blx", volatile=True),
    writing("urls build -t 1 -o new.bly a.txt", "new.bly"),
    writing("urls build -t 1 --domains -o a.bly rules.txt", "a.bly",
            "a.bly.7e01fe93e502723b.allow"),
    writing("urls build --store prefixes -o new.pre a.txt", "new.pre"),
    writing("digest build list.txt -o new.digest", "new.digest"),
    writing("digest build list.txt -o old.digest", "old.digest"),
    writing("digest get PEER -o old.digest", "old.digest", needs="digest"),
    writing("redis --port PORT dump here b.bly", "b.bly", needs="redis"),
    writing("redis --port PORT dump here new.bly", "new.bly", needs="redis"),
    writing("passwords build -t 1 --words -o new.bly a.txt", "new.bly"),
    writing("passwords build -t 1 -o b.bly pwned.txt", "b.bly"),
    writing("seal init -q -o new.key", "new.key", volatile=True),
    writing("node key new.key", "new.key", volatile=True),
    writing("seal open -q -K seal.key -o opened sealed < ids.txt", "opened",
            "opened/texts", "opened/texts/1", "opened/texts/2"),
    writing("spell build -t 1 -o new.bly a.txt", "new.bly"),
    writing("traffic gen --count 100 --flows 5 -o new.pcap", "new.pcap"),
    writing("traffic block --seed 5 -o new.bly ips.txt", "new.bly"),
    writing("traffic block --into ips.bly more-ips.txt", "ips.bly"),
    writing("traffic digest -q --seed 1 -o new.dig old.pcap", "new.dig"),
    writing("plan -n 1000 --plot old.svg", "old.svg"),
    writing("explain --add 2,4,9 --plot new.svg", "new.svg"),
    writing("net sim loop --topology grid:4x4 --tries 20 --plot new.svg", "new.svg"),
    writing("ring show --from 3 --find 45 --plot new.svg", "new.svg"),
    writing("figures example-slides --out drawn", "drawn",
            "drawn/example-slides.csv", "drawn/example-slides.svg"),
    writing("bench -k blocked -n 1k --rounds 1 --plot curves", "curves", slow=True,
            volatile=True),
]

READS = [Recipe(*r) if isinstance(r, tuple) else Recipe(r) for r in [
    "plan -n 1000 -p 1%",
    "kinds",
    "formats",
    "has a.bly -f b.txt",
    "has -v a.bly -f b.txt",
    "has -c a.bly < b.txt",
    ("has -q a.bly nobody-has-this", (), 1),
    "has c.guava -f a.txt",
    "passwords check pw.bly < a.txt",
    "seal trapdoor -K seal.key word",
    "passwords check -t 1 pw.bly --hashes --mirror pwned.txt pwned.txt",
    "has -rn a.bly texts b.txt",
    "has --json a.bly -f b.txt",
    "count counting.bly -f half.txt",
    "get ages.bly -f names.txt",
    "info a.bly",
    "info --json counting.bly",
    ("has --live live.bly -f b.txt", (), 1),
    ("watch --times 1 live.bly", (), 0, (), "", False, True),
    # What changes one writes to memory: test_live_command.py has that disk.
    ("live checkpoint a.bly", (), 2),
    "compare a.bly b.bly",
    "raw --hex a.bly",
    "urls has --domains a.bly -f b.txt",
    "urls show -f b.txt",
    "urls compare --sample 1000 a.txt",
    "urls helper a.bly < b.txt",
    "spell check -q a.bly b.txt",
    "explain --add 2,4,9 --has 4,7,12",
    "explain --ring --from 3 --find 45",
    "top a.txt",
    "unique -q -t 1 b.txt",
    "join -q -t 1 --type anti b.txt a.txt",
    ("sync -q a.txt b.txt", (), 1),
    "isect -c -t 1 a.txt b.txt",
    "table get db -f names.txt",
    "table scan --prefix name-7 db",
    "table stat db",
    "table verify db",
    "distinct --each a.txt b.txt",
    "quantiles --json --field 2 --skip-bad ages.tsv",
    "quantiles --field 2 --by 1 --skip-bad ages.tsv",
    "distinct --and count.bly dense.bly a.txt",
    "distinct --minus --json count.bly b.txt",
    "top heavy.bly",
    "info count.bly heavy.bly",
    "distinct --csv 1 --no-header --skip-bad a.txt",
    "distinct --jsonl id --skip-bad a.txt",
    "distinct -i --regex (.+) a.txt",
    "similar texts/1 texts/2",
    "vectors pairs -t 1 v.csv",
    "vectors near -t 1 v.csv v.csv",
    "basket -T 0.1 baskets.txt",
    "parquet info n.parquet",
    "parquet has old.parquet --column n 7",
    "index info old.blx",
    "index search old.blx --coverage 0.5 -f texts/1",
    "digest has old.digest -f list.txt",
    "digest simulate --json access.log",
    "figures example-slides",
    "dedup -t 1 docs.jsonl",
    "help add",
]] + [
    Recipe("redis --port PORT has here -f a.txt", needs="redis"),
    Recipe("redis --port PORT info here", needs="redis"),
    Recipe("redis --port PORT load --replace b.bly there", needs="redis"),
    Recipe("bench -k blocked -n 1k --rounds 1", slow=True, volatile=True),
    # What came before an error is counted and printed.
    Recipe("traffic flows -q old.pcap", volatile=True),
    Recipe("traffic count -q old.pcap", volatile=True),
    Recipe("traffic block -q --exact ips.txt ips.bly old.pcap", volatile=True),
    Recipe("traffic scan -q --strings half.txt old.pcap a.txt", volatile=True),
    Recipe("traffic queue -q old.pcap", volatile=True),
    Recipe("traffic trace -q --topology net.txt --packet old.pcap --from r1 "
           "r1.dig"),
    Recipe("ring place --keys 100", volatile=True),
    Recipe("web --folder nowhere", status=2),
    Recipe("node run --successors 2 --copies 3 kept", status=2),
    Recipe("net find --at 127.0.0.1:1 x", status=2),
]

# Verbs that run until they are ended; what they serve they only read.
ENDLESS = ["digest serve", "digest relay", "digest follow", "digest peers",
           "sync serve"]


# ------------------------------------------------------------------ a folder

def parquet(path, n):
    """A column "n" of 64-bit integers, in two groups of rows."""
    data, groups = b"PAR1", []
    for first in (0, n // 2):
        values = struct.pack(f"<{n // 2}q", *range(first, first + n // 2))
        head = dump(STRUCT, [
            [1, I32, 0], [2, I32, len(values)], [3, I32, len(values)],
            [5, STRUCT, [[1, I32, n // 2], [2, I32, 0], [3, I32, 3],
                         [4, I32, 3]]]])
        at, size = len(data), len(head) + len(values)
        data += head + values
        groups.append([
            [1, LIST, [STRUCT, [[[2, I64, at], [3, STRUCT, [
                [1, I32, 2], [2, LIST, [I32, [0, 3]]],
                [3, LIST, [BINARY, [b"n"]]], [4, I32, 0], [5, I64, n // 2],
                [6, I64, size], [7, I64, size], [9, I64, at]]]]]]],
            [2, I64, size], [3, I64, n // 2]])
    footer = dump(STRUCT, [
        [1, I32, 1],
        [2, LIST, [STRUCT, [[[4, BINARY, b"schema"], [5, I32, 1]],
                            [[1, I32, 2], [3, I32, 0], [4, BINARY, b"n"]]]]],
        [3, I64, n], [4, LIST, [STRUCT, groups]]])
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def documents(first, n):
    """Texts of forty words, each third one nearly the one before."""
    lines = []
    for i in range(first, first + n):
        of = i - 1 if i % 3 == 2 else i
        words = [f"w{of * 7919 + j * 104729}" for j in range(80)]
        if of != i:
            words[-1] = "other"
        lines.append(json.dumps({"id": i, "text": " ".join(words)}))
    return "\n".join(lines) + "\n"


BEFORE = """
build -n 4000 -O folds=2 -o a.bly a.txt
build -n 4000 -O folds=2 -o b.bly b.txt
build -k counting -o counting.bly a.txt
live make -q live.bly -n 1000
build -k bloomier -o ages.bly ages.tsv
build --format guava -o c.guava a.txt
build --format redisbloom -o r.dump a.txt
passwords build --words -o pw.bly half.txt
distinct half.txt -o count.bly
distinct a.txt -o dense.bly
top half.txt -o heavy.bly
seal init -q -o seal.key
seal add -q -K seal.key sealed texts
traffic gen --count 100 --flows 5 -o old.pcap
traffic block --seed 5 -n 100 -o ips.bly ips.txt
traffic digest -q --seed 1 -o r1.dig old.pcap
table build -q -o db/ ages.tsv
table build -q -o two/ ages.tsv
table build -q -o two/ older.tsv
delta -o ab.bld a.bly b.bly
raw -o b.bits b.bly
digest build list-old.txt -o old.digest
digest build list.txt -o peer.digest
parquet add n.parquet -o old.parquet --column n -p 10%
index build -q -t 1 -o old.blx texts
dedup -t 1 --paragraphs -n 500 --filter seen.bly more.jsonl -o seen.jsonl
dedup -t 1 more.jsonl -o gone.tsv --work work
dedup -t 1 docs.jsonl -o gone.tsv --work begun
plan -n 10 --plot old.svg
"""


def make_folder(folder):
    folder.mkdir()
    (folder / "a.txt").write_text(keys(0, 2500))
    (folder / "b.txt").write_text(keys(2000, 2500))
    (folder / "half.txt").write_text(keys(0, 1250))
    (folder / "ips.txt").write_text("10.0.0.1\n10.1.0.0/16\n2001:db8::/32\n")
    (folder / "more-ips.txt").write_text("10.0.0.2\n192.0.2.0/24\n")
    (folder / "lines.txt").write_text("add -t 1 one two\n")
    (folder / "pwned.txt").write_text("".join(sorted(
        hashlib.sha1(key.encode()).hexdigest().upper() + ":3\n"
        for key in keys(0, 2500).split())))
    (folder / "many.txt").write_text(keys(0, 400000))
    for name, add in ("ages.tsv", 0), ("older.tsv", 1):
        (folder / name).write_text("".join(
            f"name-{i}\t{i % 90 + add}\n" for i in range(3000)))
    (folder / "names.txt").write_text(keys(0, 100, "name-"))
    (folder / "docs.jsonl").write_text(documents(0, 60))
    (folder / "more.jsonl").write_text(documents(31, 60))
    for i in "12":
        (folder / "texts").mkdir(exist_ok=True)
        (folder / "texts" / i).write_text(documents(100 * int(i), 20))
    (folder / "baskets.txt").write_text(
        "".join(f"milk bread item{i % 7}\n" for i in range(60)))
    (folder / "v.csv").write_text(
        "".join(f"{i % 5},{i % 7},1\n" for i in range(60)))
    (folder / "list.txt").write_text(keys(0, 900, "http://a.test/"))
    (folder / "list-old.txt").write_text(keys(0, 90, "http://a.test/"))
    (folder / "net.txt").write_text("r1 r2\n")
    (folder / "rules.txt").write_text("||bad.example^\n@@||good.example^\n")
    (folder / "access.log").write_text("".join(
        f"1066036250.{i:03d} 5 10.0.0.{i % 4} TCP_MISS/200 900 GET "
        f"http://a.test/{i % 50} - DIRECT/10.1.1.1 text/html\n"
        for i in range(300)))
    parquet(folder / "n.parquet", 2000)
    os.symlink("a.bly", folder / "link.bly")
    for name in "tmp", "work", "begun", "out":
        (folder / name).mkdir()
    for line in BEFORE.strip().splitlines():
        done = subprocess.run([PROGRAM, *line.split()], cwd=folder,
                              capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, (line, done.stderr)
    (folder / "ids.txt").write_text("".join(
        f"{path.stem}\n" for path in (folder / "sealed").glob("*.sealed")))
    # A run that was cut off in the middle of a record.
    journal = folder / "begun" / "journal"
    journal.write_bytes(journal.read_bytes()[:-3000])


def fresh(base, to, recipe):
    """A copy of the folder, with the times of its files: --resume looks at
    them. The largest file comes along only where it is read."""
    if to.exists():
        shutil.rmtree(to)
    ignore = None if "many.txt" in recipe.line else \
        shutil.ignore_patterns("many.txt")
    shutil.copytree(base, to, symlinks=True, ignore=ignore)
    return to


# ------------------------------------------------------------------- running

class Peers:
    """A proxy and a Redis server for the recipes that need one, started when
    one is first wanted."""

    def __init__(self, folder):
        self.folder, self.http, self.redis = folder, None, None

    def digest(self, base):
        if not self.http:
            body = (base / "peer.digest").read_bytes()

            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, *args):
                    pass

            self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                        Handler)
            threading.Thread(target=self.http.serve_forever,
                             daemon=True).start()
        return f"127.0.0.1:{self.http.server_address[1]}"

    def port(self, base):
        if not self.redis:
            self.redis = Server(self.folder / "redis")
            done = subprocess.run(
                [PROGRAM, "redis", "--port", str(self.redis.port), "load",
                 "a.bly", "here"], cwd=base, capture_output=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stderr
        return str(self.redis.port)

    def close(self):
        if self.http:
            self.http.shutdown()
            self.http.server_close()
        if self.redis:
            self.redis.stop()


def missing(recipe):
    """Why a recipe cannot be run here, or None."""
    if recipe.needs == "redis" and (not SERVER or redis is None):
        return "no Redis server, or no python3-redis"
    if recipe.needs == "digest" and b"libcurl" in subprocess.run(
            [PROGRAM, "digest", "get", "127.0.0.1:1"], capture_output=True,
            timeout=PATIENCE).stderr:
        return "built without libcurl"
    return None


@dataclasses.dataclass
class Done:
    status: int
    out: bytes
    err: str


def run(recipe, folder, base, peers, *options, preload=None):
    """Run a recipe in a folder, under the tracer with these options."""
    argv = recipe.argv
    if recipe.needs == "digest":
        argv = [peers.digest(base) if a == "PEER" else a for a in argv]
    elif recipe.needs == "redis":
        argv = [peers.port(base) if a == "PORT" else a for a in argv]
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    # Leaks cannot be looked for under ptrace.
    env.update(TMPDIR=str(folder / "tmp"), LC_ALL="C.UTF-8",
               ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:"
                            "allocator_may_return_null=1")
    program = [PROGRAM]
    if preload:
        env.update(preload)
    else:
        program = [str(TRACER), *map(str, options), *program]
    done = subprocess.run([*program, *argv], cwd=folder, env=env,
                          input=recipe.stdin(folder), capture_output=True,
                          timeout=PATIENCE)
    return Done(done.returncode, done.stdout,
                done.stderr.decode("utf-8", "replace"))


class Place:
    """Where the tests of a module run: the folder that is copied, the copy,
    and servers."""

    def __init__(self, at):
        self.at, self.base, self.copy = at, at / "base", at / "copy"
        self.log = at / "log"
        make_folder(self.base)
        self.peers = Peers(at)

    def fresh(self, recipe):
        return fresh(self.base, self.copy, recipe)

    def run(self, recipe, *options, **kw):
        return run(recipe, self.copy, self.base, self.peers, *options, **kw)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if not TRACER.exists():
        pytest.skip(f"{TRACER} is not built")
    done = subprocess.run([TRACER, "true"], timeout=PATIENCE)
    if done.returncode == CANNOT:
        pytest.skip("processes cannot be traced here")
    made = Place(tmp_path_factory.mktemp("place"))
    yield made
    made.peers.close()
    shutil.rmtree(made.at)
