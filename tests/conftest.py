"""Black-box tests of the command: what a user types, what comes back.

BLOOMERY names the program (default: build/bloomery); BLY_BUILD the build
folder, where the sanitizer builds are.
"""
import json
import os
import pathlib
import random
import signal
import socket
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BLY_BUILD", ROOT / "build"))
PROGRAM = os.environ.get("BLOOMERY", str(ROOT / "build" / "bloomery"))

# A shell that runs the tests in the background has them ignore interrupts, and
# so would the programs that are interrupted here.
signal.signal(signal.SIGINT, signal.default_int_handler)

# glibc fills what malloc() gives, and what free() takes back, with bytes that
# are neither zero nor an address. So memory that is used before it was written,
# or after it was freed, shows in every test of the command.
os.environ.setdefault("MALLOC_PERTURB_", "165")

# Seconds after which something that hangs is ended. Every limit of a test is
# this one, so that no machine is too slow or too busy: no test measures time.
PATIENCE = 3600
# The same for a server that was told to end: then it is killed.
GRACE = 20


def free_port():
    """A port of 127.0.0.1 that is free now, and the one 10000 above it, which
    servers of a cluster want too. Both lie below those that the system gives
    to connections, which might take them before the server does."""
    while True:
        port = random.SystemRandom().randrange(10000, 22000)
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 10000))
                return port
            except OSError:
                continue


class Result:
    """Status, output and error of one run; output as bytes and as text."""

    def __init__(self, status, out, err):
        self.status, self.raw, self.err = status, out, err
        self.out = out.decode("utf-8", "replace")

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def json(self):
        return json.loads(self.out)


SCHEMAS = json.loads((ROOT / "docs" / "schema.json").read_text())["$defs"]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float), "null": type(None)}


def misfit(value, schema, where="it"):
    """What is wrong with a JSON value, by the part of JSON Schema that
    docs/schema.json uses; None if nothing is."""
    if "anyOf" in schema:
        wrong = [misfit(value, s, where) for s in schema["anyOf"]]
        return None if None in wrong else "; or ".join(wrong)
    types = schema["type"]
    types = types if isinstance(types, list) else [types]
    if not any(isinstance(value, TYPES[t]) and
               (t == "boolean" or not isinstance(value, bool)) for t in types):
        return f"{where} is no {' or '.join(types)}: {value!r}"
    parts = []
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), \
            schema["additionalProperties"]
        for name in schema.get("required", []):
            if name not in value:
                return f"{where} has no {name}"
        for name, member in value.items():
            if name not in known and not other:
                return f"{where} has {name}, which is not in the schema"
            parts.append((member, known.get(name, other), name))
    elif isinstance(value, list):
        kinds = schema.get("prefixItems") or [schema["items"]] * len(value)
        if len(kinds) != len(value):
            return f"{where} has {len(value)} elements"
        parts = [(v, kind, f"{where}[{i}]")
                 for i, (v, kind) in enumerate(zip(value, kinds))]
    return next(filter(None, (misfit(*part) for part in parts)), None)


def check_reports(argv, result):
    """All that a command prints with --json is as docs/schema.json says."""
    command = str(argv[0]) if argv else ""
    if "--json" not in argv or command not in SCHEMAS or result.status > 1:
        return
    # What these print is data: their report is on standard error.
    lines = result.lines if command not in ("join", "unique") else \
        [line for line in result.err.splitlines() if line[0] == "{"]
    for line in lines:
        wrong = misfit(json.loads(line), SCHEMAS[command])
        assert wrong is None, (argv, wrong)


def run(*argv, stdin=b"", program=PROGRAM, cwd=None, timeout=PATIENCE, **kw):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([program, *map(str, argv)], input=stdin, cwd=cwd,
                          capture_output=True, timeout=timeout, **kw)
    result = Result(done.returncode, done.stdout,
                    done.stderr.decode("utf-8", "replace"))
    check_reports(argv, result)
    return result


@pytest.fixture
def bly(tmp_path):
    """Run the command in a folder of the test's own."""
    def call(*argv, **kw):
        return run(*argv, cwd=kw.pop("cwd", tmp_path), **kw)
    call.path = tmp_path
    return call


@pytest.fixture
def ok(bly):
    """The same, and it must succeed."""
    def call(*argv, **kw):
        result = bly(*argv, **kw)
        assert result.status == 0, result.err
        return result
    call.path = bly.path
    return call


@pytest.fixture
def trouble(bly):
    """The same, and it must fail: status 2, nothing on standard output, one
    line on standard error that holds every word given as `says`."""
    def call(*argv, says=(), **kw):
        result = bly(*argv, **kw)
        assert result.status == 2, (result.status, result.out, result.err)
        assert result.raw == b"", result.out
        lines = result.err.splitlines()
        assert len(lines) == 1, result.err
        assert lines[0].startswith("bloomery: "), lines[0]
        for word in [says] if isinstance(says, str) else says:
            assert word in lines[0], (word, lines[0])
        return result
    call.path = bly.path
    return call


def keys(first, n, prefix="key-"):
    return "".join(f"{prefix}{i}\n" for i in range(first, first + n))


TABLE = json.loads(run("kinds", "--json").out)
KINDS = [k["kind"] for k in TABLE]


def kinds_that(*abilities, without=()):
    """The kinds that can do all of these and none of those, from the table.
    Traits count as abilities."""
    return [k["kind"] for k in TABLE
            if set(abilities) <= set(k["can"] + k["traits"])
            and not set(without) & set(k["can"] + k["traits"])]


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """The command alone, without its programs, and linked without the
    libraries that it can do without."""
    folder = tmp_path_factory.mktemp("bare")
    made = BUILD / "release"

    def compiled(*words):
        subprocess.run(["gcc", *map(str, words)], check=True, cwd=ROOT)
    without = ["io/unpack.c", "apps/index/text_file.c"]
    for source in without:
        compiled("-std=c11", "-Iinclude", "-I.", "-c", source, "-o",
                 folder / f"{pathlib.Path(source).stem}.o")
    compiled("-pthread", *(folder / f"{pathlib.Path(s).stem}.o" for s in without),
             *(made / "cli" / f"{c.stem}.o" for c in (ROOT / "cli").glob("*.c")),
             made / "jobs.a", made / "libbloomery.a", "-lz", "-lzstd", "-lm",
             "-o", folder / "bloomery")
    return folder / "bloomery"
