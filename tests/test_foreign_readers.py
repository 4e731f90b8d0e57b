"""Filters that real programs write, asked through the command: git, the
linker, LevelDB; and the blocks of BIP 158's vectors."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest
from conftest import ROOT

VECTORS = pathlib.Path(os.environ.get("BLY_VECTORS", ROOT.parent / "shared" / "vectors"))


def needs(*programs):
    for p in programs:
        if not shutil.which(p):
            pytest.skip(f"no {p}")


def sh(*argv, cwd, **kw):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, **kw)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


# ------------------------------------------------------------------------ git


class Repository:
    """Commits with all that a changed-path filter treats specially."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
                        GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@test", GIT_COMMITTER_NAME="a",
                        GIT_COMMITTER_EMAIL="a@test")
        self("init", "-q", "-b", "main")
        for i in range(40):
            self.change({f"src/d{i % 5}/f{i % 17}.c": i, "README": i})
        self.change({"docs/übung.txt": 1, "docs/日本/x": 2})
        self.change({f"many/{i}": i for i in range(600)})
        self("commit", "-q", "--allow-empty", "-m", "nothing")
        self.change({"docs/übung.txt": 3})
        self("rm", "-q", "-r", "src/d1")
        self("commit", "-q", "-m", "removed")
        self("checkout", "-q", "-b", "side", "HEAD~3")
        self.change({"side/x": 1})
        self("checkout", "-q", "main")
        self("merge", "-q", "-m", "merged", "side")

    def __call__(self, *argv):
        return sh("git", *argv, cwd=self.path, env=self.env)

    def change(self, files):
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(f"{text}\n")
        self("add", ".")
        self("commit", "-q", "-m", "changed")

    def commits(self):
        return self("rev-list", "--all").split()

    def paths(self, commit):
        """What differs from the first parent, with all folders above."""
        parents = self("rev-list", "--parents", "-1", commit).split()[1:]
        before = parents[0] if parents else self("hash-object", "-t", "tree", "/dev/null").strip()
        raw = self("diff-tree", "-r", "--name-only", "-z", "--no-renames", before, commit)
        found = set()
        for path in filter(None, raw.split("\0")):
            while path:
                found.add(path)
                path = path.rpartition("/")[0]
        return found


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    needs("git")
    return Repository(tmp_path_factory.mktemp("git") / "repo")


def where(ok, graph, path):
    lines = ok("has", "--parts", graph, path).lines
    assert all(line.startswith(path + "\t") for line in lines)
    return {line.split("\t")[1] for line in lines}


def assert_graph(ok, repository, graph, commits):
    """No commit that changed a path is missed, and few others are named."""
    changed = {c: repository.paths(c) for c in commits}
    every = sorted(set().union(*changed.values()))
    large = {c for c in commits if len(changed[c]) > 512}
    wrong = asked = 0
    for path in every[::7] + [p for p in every if "docs" in p or "src" in p] + ["not/there"]:
        maybe = where(ok, graph, path)
        truth = {c for c in commits if path in changed[c]}
        assert truth <= maybe, path
        wrong += len(maybe - truth - large)
        asked += len(commits)
        assert large <= maybe
    assert wrong < asked * 0.1, (wrong, asked)
    info = ok("info", "--json", graph).json
    assert info["format"] == "git" and info["filters"] == len(commits)
    return info


def test_git(ok, repository):
    repository("commit-graph", "write", "--reachable", "--changed-paths")
    graph = repository.path / ".git/objects/info/commit-graph"
    commits = repository.commits()
    assert_graph(ok, repository, graph, commits)
    # What git log finds by walking is found by the filters.
    log = set(repository("log", "--all", "--format=%H", "--", "docs/übung.txt").split())
    assert log and log <= where(ok, graph, "docs/übung.txt")
    one = sorted(log)[0]
    assert ok("has", "-O", f"commit={one[:12]}", graph, "docs/").out == "docs/\n"


def test_git_chain(ok, repository):
    """Each file of a chain has the commits that those below it lack."""
    info = repository.path / ".git/objects/info"
    (info / "commit-graph").unlink(missing_ok=True)
    first = repository("rev-list", "--first-parent", "main").split()[10]
    for commits in (first, "\n".join(repository.commits())):
        subprocess.run(["git", "commit-graph", "write", "--stdin-commits", "--split=no-merge",
                        "--changed-paths"], cwd=repository.path, env=repository.env, check=True,
                       input=(commits + "\n").encode())
    folder = info / "commit-graphs"
    graphs = [folder / f"graph-{name}.graph"
              for name in (folder / "commit-graph-chain").read_text().split()]
    assert len(graphs) == 2
    below = set(repository("rev-list", first).split())
    assert_graph(ok, repository, graphs[0], below)
    assert_graph(ok, repository, graphs[1], set(repository.commits()) - below)


def test_git_without_filters(trouble, repository):
    bare = repository.path / "no-filters"
    repository("clone", "-q", "--bare", ".", str(bare))
    sh("git", "-c", "core.commitGraph=true", "commit-graph", "write", "--reachable",
       "--no-changed-paths", cwd=bare, env=repository.env)
    trouble("info", bare / "objects/info/commit-graph", says="--changed-paths")


# ------------------------------------------------------------------------ ELF



def names(first, n):
    """Names that h = 33 h + c does not bring together."""
    return ["_" + hashlib.md5(str(i).encode()).hexdigest() for i in range(first, first + n)]


SYMBOLS = names(0, 500)


def library(path, compiler, *flags):
    source = path / "lib.c"
    source.write_text("".join(f"int {s}(void) {{ return {i}; }}\n" for i, s in enumerate(SYMBOLS)))
    out = path / f"lib-{compiler}.so"
    sh(compiler, "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu", *flags, "-o", out, source,
       cwd=path)
    return out


def assert_library(ok, bly, lib, bits, order):
    assert ok("has", lib, stdin="\n".join(SYMBOLS)).lines == SYMBOLS
    wrong = bly("has", "-c", lib, stdin="\n".join(names(500, 2000)))
    info = ok("info", "--json", lib).json
    assert int(wrong.out) <= 2000 * info["fpr_now"] * 1.5 + 40
    assert info["params"]["word_bits"] == bits and info["params"]["byte_order"] == order
    return info


@pytest.mark.parametrize("compiler,bits,order", [
    ("gcc", 64, "little-endian"),
    ("aarch64-linux-gnu-gcc", 64, "little-endian"),
    ("s390x-linux-gnu-gcc", 64, "big-endian"),
    ("i686-linux-gnu-gcc", 32, "little-endian"),
])
def test_elf(ok, bly, compiler, bits, order):
    needs(compiler)
    lib = library(ok.path, compiler)
    info = assert_library(ok, bly, lib, bits, order)
    # Section headers are for tools: without them the answers are the same.
    image = bytearray(lib.read_bytes())
    byte = ">" if order == "big-endian" else "<"
    if bits == 64:
        struct.pack_into(byte + "Q", image, 40, 0)
        struct.pack_into(byte + "HHH", image, 58, 0, 0, 0)
    else:
        struct.pack_into(byte + "I", image, 32, 0)
        struct.pack_into(byte + "HHH", image, 46, 0, 0, 0)
    stripped = ok.path / "stripped.so"
    stripped.write_bytes(image)
    again = assert_library(ok, bly, stripped, bits, order)
    assert again["items"] == info["items"] >= len(SYMBOLS)


def test_elf_of_this_machine(ok, bly, trouble):
    """As the documentation says."""
    needs("gcc")
    libc = sh("gcc", "-print-file-name=libc.so.6", cwd=ok.path).strip()
    assert ok("has", libc, "printf", "no_such_symbol_here").out == "printf\n"
    (ok.path / "m.c").write_text("int x;")
    sh("gcc", "-c", "m.c", cwd=ok.path)
    trouble("info", "m.o", says=[".gnu.hash"])
    trouble("has", library(ok.path, "gcc", "-Wl,--hash-style=sysv"), "x", says="sysv")


# -------------------------------------------------------------------- LevelDB

WRITER = r"""
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char *error = NULL, key[64];
    leveldb_options_t *o = leveldb_options_create();
    leveldb_options_set_create_if_missing(o, 1);
    leveldb_options_set_compression(o, atoi(argv[2]));
    if (argc > 3)
        leveldb_options_set_filter_policy(o, leveldb_filterpolicy_create_bloom(10));
    leveldb_t *db = leveldb_open(o, argv[1], &error);
    leveldb_writeoptions_t *w = leveldb_writeoptions_create();
    for (int i = 0; i < 5000 && !error; i++)
        leveldb_put(db, w, key, (size_t)sprintf(key, "k%d\xc3\xbc", i), "a value that is the same",
                    24, &error);
    if (error)
        return fprintf(stderr, "%s\n", error), 1;
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_close(db);
    return 0;
}
"""


@pytest.fixture(scope="module")
def leveldb(tmp_path_factory):
    needs("gcc")
    path = tmp_path_factory.mktemp("leveldb")
    (path / "w.c").write_text(WRITER)
    built = subprocess.run(["gcc", "-o", "w", "w.c", "-lleveldb"], cwd=path, capture_output=True)
    if built.returncode:
        pytest.skip("no libleveldb-dev")
    return path


@pytest.mark.parametrize("compression", [0, 1])
def test_leveldb(ok, leveldb, compression):
    folder = leveldb / f"db{compression}"
    sh(leveldb / "w", folder, str(compression), "filter", cwd=leveldb)
    tables = sorted(folder.glob("*.ldb"))
    assert tables
    found, wrong = set(), 0
    keys = [f"k{i}ü" for i in range(5000)]
    for table in tables:
        info = ok("info", "--json", table).json
        assert info["format"] == "leveldb"
        found |= set(ok("has", table, stdin="\n".join(keys)).lines)
    assert found == set(keys)
    # A key that is in no table is named by one filter in a hundred, and has to
    # pass all of them.
    others = "\n".join(f"other{i}" for i in range(2000))
    lines = ok("has", "--parts", tables[0], stdin=others).lines
    filters = ok("info", "--json", tables[0]).json["filters"]
    assert len(lines) < 2000 * filters * 0.03
    assert all("\tblocks from " in line for line in lines)


def test_leveldb_without_filters(leveldb, trouble):
    sh(leveldb / "w", leveldb / "plain", "0", cwd=leveldb)
    table = sorted((leveldb / "plain").glob("*.ldb"))[0]
    trouble("info", table, says="filter policy")
    data = bytearray(table.read_bytes())
    data[-60] ^= 1
    damaged = trouble.path / "damaged.ldb"
    damaged.write_bytes(data)
    trouble("info", damaged, says="damaged.ldb")


# -------------------------------------------------------------------- BIP 158


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n:self.at]

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def size(self):
        first = self.number(1)
        return first if first < 253 else self.number(1 << (first - 252))


def output_scripts(block):
    r = Reader(block)
    r.take(80)
    for _ in range(r.size()):
        r.take(4)
        witness = r.data[r.at] == 0
        if witness:
            r.take(2)
        inputs = r.size()
        for _ in range(inputs):
            r.take(36)
            r.take(r.size())
            r.take(4)
        for _ in range(r.size()):
            r.take(8)
            yield r.take(r.size())
        if witness:
            for _ in range(inputs):
                for _ in range(r.size()):
                    r.take(r.size())
        r.take(4)


def test_bip158(ok, bly, trouble):
    path = VECTORS / "bip158" / "testnet-19.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    rows = json.loads(path.read_text())[1:]
    assert len(rows) == 10
    for height, block_hash, block, spent, _, basic, _, note in rows:
        name = ok.path / f"{height}.filter"
        name.write_bytes(bytes.fromhex(basic))
        scripts = {s.hex() for s in output_scripts(bytes.fromhex(block)) if s and s[0] != 0x6a}
        scripts |= {s for s in spent if s}
        asked = "\n".join(sorted(scripts))
        as_is = ("-F", "bip158", "-O", f"block={block_hash}")
        info = ok("info", "--json", *as_is, name).json
        assert info["items"] == len(scripts), note
        if scripts:
            assert ok("has", *as_is, name, stdin=asked).out.split() == sorted(scripts), note
        assert bly("has", "-c", *as_is, name, stdin="\n".join(f"{i:08x}" for i in range(1000))).out == "0\n"
        # With the hash of another block nothing is found.
        other = ("-F", "bip158", "-O", f"block={block_hash[::-1]}")
        assert bly("has", "-c", *other, name, stdin=asked or "00").out == "0\n"
    trouble("has", "-F", "bip158", name, "00", says="block")
    trouble("has", "-F", "bip158", "-O", "block=12", name, "00", says="64")
