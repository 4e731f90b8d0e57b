"""bloomery redis: filters on real servers, one and a cluster."""
import re
import signal
import socket
import subprocess
import threading

import pytest
from conftest import PATIENCE, PROGRAM, ROOT, run
from redis_support import (
    Cluster, Server, needs_server, redis, wait_for)

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.bly"))


def has_hiredis():
    return b"built without" not in subprocess.run(
        [PROGRAM, "redis", "load"], capture_output=True, check=False).stderr


pytestmark = [needs_server,
              pytest.mark.skipif(not has_hiredis(), reason="no hiredis")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server")) as s:
        yield s


@pytest.fixture
def at(server):
    """Options that name the server, which is empty."""
    server.r.flushall()
    return ["--port", server.port]


def lines(*numbers):
    return "".join(f"{n}\n" for n in range(*numbers)).encode()


@pytest.fixture
def filter_file(ok):
    ok("build", "-o", "f.bly", stdin=lines(1000))
    return ok.path / "f.bly"


class Proxy:
    """Hands bytes on to a server; calls then() once `limit` of them went
    there, and hands on no more."""

    def __init__(self, port, limit, then):
        self.target, self.left, self.then = port, limit, then
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.hand_on, args=(client, there, True),
                             daemon=True).start()
            threading.Thread(target=self.hand_on, args=(there, client, False),
                             daemon=True).start()

    def hand_on(self, source, target, counted):
        try:
            while data := source.recv(65536):
                if counted:
                    self.left -= len(data)
                    if self.left <= 0:
                        then, self.then = self.then, lambda: None
                        then()
                        break
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


# ---------------------------------------------------------------- load, dump

@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_what_is_loaded_is_dumped_byte_for_byte(ok, server, at, path):
    info = ok("info", "--json", path).json
    if info["keyed"]:
        pytest.skip("the server has no secret")
    assert server.r.keys() == []
    ok("redis", "load", path, "k", *at)
    assert server.r.keys() == [b"k"] and server.r.ttl("k") == -1
    ok("redis", "dump", "k", "back.bly", *at)
    back = (ok.path / "back.bly").read_bytes()
    if "tick" in ok("kinds", "--json", info["kind"]).json[0]["can"]:
        assert len(back) == path.stat().st_size  # it was told the time
    else:
        assert back == path.read_bytes()


def test_many_pieces_both_ways_and_standard_streams(ok, server, at):
    ok("build", "-o", "f.bly", "--items", "20M", stdin=lines(1000))
    size = (ok.path / "f.bly").stat().st_size
    assert size > 5 * 4 << 20
    done = ok("redis", "load", "-", "k", "--json", *at,
              stdin=(ok.path / "f.bly").read_bytes()).json
    assert done["bytes"] == size and done["key"] == "k"
    back = ok("redis", "dump", "k", "-", "-q", *at).raw
    assert back == (ok.path / "f.bly").read_bytes()
    ok("compress", "-o", "c.bly", "f.bly")
    ok("redis", "load", "c.bly", "coded", *at)
    ok("redis", "dump", "coded", "d.bly", *at)
    assert (ok.path / "d.bly").read_bytes() == \
        (ok.path / "c.bly").read_bytes()


def test_a_filter_that_changes_while_it_is_dumped(ok, server, at):
    """The pieces do not fit together; a copy on the server does."""
    ok("redis", "build", "k", "--items", "20M", *at, stdin=lines(1000))
    n = [1000]

    def change():
        server.r.execute_command("BLY.ADD", "k", *range(n[0], n[0] + 1000))
        n[0] += 1000

    class Changing(Proxy):
        def hand_on(self, source, target, counted):
            if counted:  # before each piece is asked for
                send = target.sendall

                def sendall(data):
                    if b"BLY.EXPORT" in data and b":dumping:" not in data:
                        change()
                    send(data)
                target = type("Target", (), {
                    "sendall": staticmethod(sendall),
                    "shutdown": target.shutdown})
            super().hand_on(source, target, False)

    with Changing(server.port, 0, None) as p:
        ok("redis", "dump", "k", "f.bly", "--port", p.port)
    assert n[0] >= 3000  # the second piece is refused, and then a copy is made
    assert ok("has", "-c", "f.bly", stdin=lines(2000)).out == "2000\n"
    assert server.r.keys() == [b"k"]


def test_a_damaged_file_is_refused_before_anything_is_sent(
        trouble, server, at, filter_file):
    data = bytearray(filter_file.read_bytes())
    data[-3] ^= 4
    filter_file.write_bytes(data)
    before = server.r.info("stats")["total_connections_received"]
    trouble("redis", "load", "f.bly", "k", *at, says="f.bly")
    assert server.r.info("stats")["total_connections_received"] == before
    filter_file.write_bytes(data[:100])
    trouble("redis", "load", "f.bly", "k", *at, says="f.bly")


def test_a_keyed_filter_stays_here(ok, trouble, at):
    (ok.path / "key").write_bytes(b"0123456789abcdef")
    (ok.path / "key").chmod(0o600)
    ok("build", "-o", "f.bly", "-K", "key", stdin=lines(10))
    trouble("redis", "load", "f.bly", "k", *at, says=["keyed", "secret"])


def test_a_key_that_is_there(ok, trouble, server, at, filter_file):
    ok("redis", "load", "f.bly", "k", *at)
    ok("build", "-o", "g.bly", stdin=lines(5000, 5100))
    trouble("redis", "load", "g.bly", "k", *at, says=["k:", "--replace"])
    assert ok("redis", "has", "k", "5", "5001", *at).lines == ["5"]
    ok("redis", "load", "g.bly", "k", "--replace", *at)
    assert ok("redis", "has", "k", "5", "5001", *at).lines == ["5001"]
    assert server.r.keys() == [b"k"]
    server.r.set("s", "x")
    for more in [], ["--replace"]:
        trouble("redis", "load", "f.bly", "s", *more, *at,
                says=["s:", "string"])
    assert server.r.get("s") == b"x"


def test_wrong_types_and_missing_keys(trouble, server, at):
    server.r.set("s", "x")
    server.r.execute_command("BF.ADD", "bf", "x")
    for words in (["dump", "{}", "f.bly"], ["has", "{}", "x"],
                  ["add", "{}", "x"], ["has", "{}"]):
        for key, says in (("s", "filter"), ("bf", "filter"),
                          ("nothing", "no such key")):
            if key == "bf":
                continue  # it is one, of RedisBloom's
            trouble("redis", *[w.format(key) for w in words], *at,
                    says=[key + ":", says])
    assert not (trouble.path / "f.bly").exists()
    trouble("redis", "has", "--cluster", "nothing", "x", *at,
            says="nothing:{meta}")


def test_no_server_there(trouble, filter_file):
    with socket.socket() as held: # nobody else gets the port, or listens there
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        for words in (["load", "f.bly", "k"], ["dump", "k", "g.bly"],
                      ["has", "k", "x"], ["add", "k", "x"], ["bench"],
                      ["build", "k", "x"], ["has", "--cluster", "k", "x"]):
            trouble("redis", *words, "--port", port,
                    says=[f"127.0.0.1:{port}", "refused", "--port"])


def test_a_server_without_the_module(trouble, filter_file, tmp_path):
    with Server(tmp_path / "s", module=None) as s:
        for words in (["load", "f.bly", "k"], ["dump", "k", "g.bly"],
                      ["has", "k", "x"], ["add", "k", "x"],
                      ["bench", "--items", "10"], ["build", "k", "x"]):
            trouble("redis", *words, "--port", s.port,
                    says=["bloomery.so", f"127.0.0.1:{s.port}"])
        assert not [k for k in s.r.keys() if b"bench" not in k]


def test_passwords(ok, trouble, tmp_path, filter_file):
    with Server(tmp_path / "s") as s:
        s.r.execute_command("ACL", "SETUSER", "bob", "on", ">builder", "~*",
                            "+@all")
        s.r.config_set("requirepass", "swordfish")
        at = ["--port", s.port]
        for name, text in (("all", "swordfish\n"), ("bob", "builder"),
                           ("bad", "nothing\n"), ("empty", "\n")):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o600)
        trouble("redis", "load", "f.bly", "k", *at, says="--password-file")
        trouble("redis", "load", "f.bly", "k", *at, "--password-file", "bad",
                says="WRONGPASS")
        trouble("redis", "load", "f.bly", "k", *at, "--password-file",
                "empty", says="empty")
        trouble("redis", "load", "f.bly", "k", *at, "--user", "bob",
                says="--password-file")
        ok("redis", "load", "f.bly", "k", *at, "--password-file", "all")
        assert ok("redis", "has", "k", "7", *at, "--user", "bob",
                  "--password-file", "bob").out == "7\n"


@pytest.mark.parametrize("replace", [False, True])
def test_a_server_that_dies_under_a_load(ok, trouble, tmp_path, replace):
    """Afterwards the key is what it was, and what is left goes away."""
    ok("build", "-o", "f.bly", "--items", "20M", stdin=lines(1000))
    with Server(tmp_path / "s", "--appendonly", "yes", "--appendfsync",
                "always") as s:
        if replace:
            ok("redis", "build", "k", "old", "--port", s.port)
        with Proxy(s.port, 10 << 20, s.kill) as p:
            trouble("redis", "load", "f.bly", "k", "--port", p.port,
                    *["--replace"][:replace], says="connection was lost")
        s.start()
        left = [k for k in s.r.keys() if k != b"k"]
        assert len(left) == 1 and s.r.ttl(left[0]) > 0
        assert s.r.exists("k") == replace
        if replace:
            assert ok("redis", "has", "k", "old", "--port", s.port).out == \
                "old\n"
        ok("redis", "load", "f.bly", "k", "--port", s.port,
           *["--replace"][:replace])
        assert ok("redis", "has", "-c", "k", "--port", s.port,
                  stdin=lines(1000)).out == "1000\n"


def test_a_load_that_is_killed(ok, server, at):
    ok("build", "-o", "f.bly", "--items", "20M", stdin=lines(1000))
    with Proxy(server.port, 10 << 20, lambda: load.kill()) as p:
        load = subprocess.Popen(
            [PROGRAM, "redis", "load", "f.bly", "k", "--port", str(p.port)],
            cwd=ok.path)
        assert load.wait(PATIENCE) < 0
    left = server.r.keys()
    assert len(left) == 1 and b":loading:" in left[0]
    assert 0 < server.r.ttl(left[0]) <= 86400
    ok("redis", "load", "f.bly", "k", *at)


# ----------------------------------------------------------------------- info

def test_info_of_every_family(ok, trouble, server, at):
    """What the server says by the command of the key's family."""
    ok("redis", "build", "-k", "counting", "words", *at, stdin=lines(300))
    r = server.r
    r.execute_command("BF.ADD", "bf", "x")
    r.execute_command("CF.ADD", "cf", "x")
    r.execute_command("CMS.INITBYDIM", "cms", 10, 2)
    r.execute_command("TOPK.RESERVE", "topk", 3)
    r.set("text", "x")
    for key, command in (("words", "BLY.INFO"), ("bf", "BF.INFO"),
                         ("cf", "CF.INFO"), ("cms", "CMS.INFO"),
                         ("topk", "TOPK.INFO")):
        told = ok("redis", "info", "--json", key, *at).json
        assert told["key"] == key and told["type"] == command
        raw = r.execute_command(command, key)
        if isinstance(raw, dict):
            raw = [x for pair in raw.items() for x in pair]
        names = [x.decode() if isinstance(x, bytes) else x for x in raw[::2]]
        assert [f["name"] for f in told["facts"]] == names
        text = ok("redis", "info", key, *at).out
        assert text.startswith(f"{key}\n  type") and command in text
    assert {"name": "kind", "value": "counting"} in \
        ok("redis", "info", "--json", "words", *at).json["facts"]
    assert len(ok("redis", "info", "--json", "bf", "cf", *at).lines) == 2
    trouble("redis", "info", "none-such", *at, says="no such key")
    trouble("redis", "info", "text", *at, says="string")
    trouble("redis", "info", *at, says="KEY...")
    trouble("redis", "info", "bf", "-v", *at, says="--invert")


def test_a_name_of_shards_without_cluster_is_hinted_at(ok, trouble, server, at):
    ok("redis", "build", "--cluster", "--shards", "4", "many", *at,
       stdin=lines(1000))
    for verb in ["has", "many", "1"], ["add", "many", "1"], ["info", "many"]:
        trouble("redis", *verb, *at, says=["many", "use --cluster"])
    assert "--cluster" not in str(trouble("redis", "has", "none", "1", *at,
                                          says="none"))
    told = ok("redis", "info", "--cluster", "--json", "many", *at).json
    facts = {f["name"]: f["value"] for f in told["facts"]}
    assert told["shards"] == 4 and facts["items_added"] == "1000"
    assert facts["kind"] == "blocked" and int(facts["capacity"]) >= 1000


# ------------------------------------------------------------------ has, add

def test_has_is_has(ok, bly, server, at, filter_file):
    """Same output, same status, for the same options; names of files are not told,
    and JSON only counts."""
    ok("redis", "load", "f.bly", "k", *at)
    asked = lines(500, 3000)
    (ok.path / "in").write_bytes(asked)
    (ok.path / "in0").write_bytes(asked.replace(b"\n", b"\0"))
    for words in ([], ["-v"], ["-c"], ["-vc"], ["-q"], ["--json"],
                  ["-v", "--json"], ["-f", "in"], ["-f", "in", "-f", "in"],
                  ["-0", "-f", "in0"], ["7", "x\ny", "8"], ["-v", "a", "b"],
                  ["-q", "no"], ["-c", "nothing here"], ["-f", "missing"]):
        mine = bly("has", "--no-filename", "f.bly", *words,
                   *["-c"][:"--json" in words], stdin=asked)
        theirs = bly("redis", "has", "k", *words, *at, stdin=asked)
        if "--json" in words:  # how many are mistakes, only the file's owner can tell
            mine.raw = re.sub(rb',"by_mistake":[^}]*', b"", mine.raw)
        assert (mine.status, mine.raw) == (theirs.status, theirs.raw), words
    assert bly("redis", "has", "k", *at, stdin=b"").status == 1


def test_keys_are_what_the_filter_says(ok, trouble, at):
    """A filter of integers, or of folded text, is asked as its file is."""
    ok("build", "--int", "-n", "100", "--note", "a note", "-o", "ids.bly",
       stdin=lines(50))
    ok("redis", "load", "ids.bly", "ids", *at)
    assert ok("redis", "has", "ids", "007", "+7", "70", *at).lines == \
        ["007", "+7"]
    assert "1 of them new" in ok("redis", "add", "ids", "0070", *at).out
    assert ok("redis", "has", "-q", "ids", "70", *at)
    for verb in "has", "add":
        trouble("redis", verb, "ids", "seven", *at, says="a whole number")
    info = ok("redis", "info", "ids", *at).out
    assert re.search(r"\n  keys +int64\n  note +a note\n", info)
    ok("build", "-i", "--trim", "-o", "words.bly", stdin=b"Apple\n")
    ok("redis", "load", "words.bly", "folded", *at)
    assert ok("redis", "has", "folded", "APPLE", *at).out == "APPLE\n"
    assert re.search(r"\n  keys +text folded trimmed\n",
                     ok("redis", "info", "folded", *at).out)


def test_lines_are_text_there_too(ok, at):
    ok("redis", "build", "lines", *at, stdin=lines(50))
    assert re.search(r"\n  keys +text\n",
                     ok("redis", "info", "lines", *at).out)
    ok("redis", "dump", "lines", "d.bly", *at)
    assert ok("info", "--json", "d.bly").json["key_type"] == "text"


def test_keys_of_all_sorts(ok, at):
    keys = [b"", b"\xff\xfe", b"a b", b"*3\r", b"$5", b"x" * 100000,
            "\u00e4".encode()]
    data = b"".join(k + b"\0" for k in keys)
    ok("redis", "build", "k", "-0", *at, stdin=data)
    assert ok("redis", "has", "k", "-0", *at, stdin=data).raw == data
    ok("redis", "build", "many", "--cluster", "-0", *at, stdin=data)
    assert ok("redis", "has", "many", "--cluster", "-0", *at,
              stdin=data).raw == data


def test_add(ok, trouble, server, at):
    server.r.execute_command("BLY.CREATE", "k", "classic", "CAPACITY", 100000,
                             "FPR", "0.0001")
    done = ok("redis", "add", "k", "--json", *at, stdin=lines(50000)).json
    assert done["key"] == "k" and done["keys"] == 50000
    assert 49900 < done["new"] <= 50000
    assert "0 of them new" in ok("redis", "add", "k", "5", "6", *at).out
    assert ok("redis", "has", "-c", "k", *at, stdin=lines(50000)).out == \
        "50000\n"
    server.r.execute_command("BLY.CREATE", "full", "cuckoo", "CAPACITY", 100)
    trouble("redis", "add", "full", *at, stdin=lines(100000), says="full")


def test_a_connection_that_was_closed_for_being_idle(server, at, ok):
    ok("redis", "build", "k", "apple", *at)
    ask = subprocess.Popen([PROGRAM, "redis", "has", "k", *map(str, at)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range(3):
        ask.stdin.write(b"apple\n")
        ask.stdin.flush()
        assert ask.stdout.readline() == b"apple\n"
        server.r.execute_command("CLIENT", "KILL", "TYPE", "normal",
                                 "SKIPME", "yes")
    ask.stdin.close()
    assert ask.wait(PATIENCE) == 0


def test_a_server_that_does_not_answer(trouble, ok, server, at):
    ok("redis", "build", "k", "apple", *at)
    server.process.send_signal(signal.SIGSTOP)
    try:
        trouble("redis", "has", "k", "apple", "--timeout", "1", *at,
                says="--timeout")
    finally:
        server.process.send_signal(signal.SIGCONT)


def test_answers_come_line_by_line_where_keys_do(server, at, ok):
    ok("redis", "build", "k", "apple", "pear", *at)
    ask = subprocess.Popen([PROGRAM, "redis", "has", "k", *map(str, at)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for word in (b"apple\n", b"pear\n", b"apple\n"):
        ask.stdin.write(word)
        ask.stdin.flush()
        assert ask.stdout.readline() == word
    ask.stdin.close()
    assert ask.wait(PATIENCE) == 0


def test_options_of_other_verbs_are_refused(trouble):
    for words, says in ((["load", "f", "k", "-v"], "--invert"),
                        (["has", "k", "--replace"], "--replace"),
                        (["dump", "k", "f", "--replicas", "1"], "--replicas"),
                        (["has", "k", "--items", "5"], "--items"),
                        (["build", "k", "--shards", "5"], "--cluster"),
                        (["build", "k", "--kind", "bloomier"], "values"),
                        (["has"], "KEY"), (["load", "f"], "FILTER KEY"),
                        (["lode", "f", "k"], "'load'"), ([], "verb"),
                        (["bench", "x"], "operands"),
                        (["has", "k", "--port", "65536"], "65535"),
                        (["has", "k", "--timeout", "1M"], "86400")):
        trouble("redis", *words, says=says)


def test_bench(ok, server, at):
    done = ok("redis", "bench", "--items", "3000", "--json", *at).json
    rows = {(r["command"], r["batch"]): r for r in done["rows"]}
    assert done["items"] == 3000
    for row in (("SET", 1), ("GET", 1), ("BF.ADD", 1), ("BF.EXISTS", 1),
                *((c, n) for c in ("BLY.ADD", "BLY.HAS")
                  for n in (1, 16, 100))):
        assert rows[row]["command_ns"] > 0 and rows[row]["cpu_ns"] >= 0
    calls = server.r.info("commandstats")
    assert calls["cmdstat_SET" if "cmdstat_SET" in calls
                 else "cmdstat_set"]["calls"] >= 9000
    assert server.r.keys() == []
    assert "BLY.HAS" in ok("redis", "bench", "--items", "100", *at).out


def test_without_its_program_it_says_so(bare):
    said = run("redis", "has", "k", "x", program=bare)
    assert said.status == 2 and "bloomery-redis" in said.err and "hiredis" in said.err
    assert len(said.err.splitlines()) == 1
    helped = run("redis", "--help", program=bare)
    assert helped.status == 0 and "--cluster" in helped.out


# ----------------------------------------------------------------- a cluster

@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster"),
                 "--cluster-node-timeout", "2000") as c:
        yield c


NKEYS = 200000
SHARDS = 12


@pytest.fixture(scope="module")
def words(cluster, tmp_path_factory):
    """A filter over all of the cluster, and a file of its keys."""
    path = tmp_path_factory.mktemp("words") / "words"
    path.write_bytes(lines(NKEYS))
    made = run("redis", "build", "--cluster", "--shards", SHARDS, "words",
               "-f", path, "--json", *cluster.at)
    assert made.status == 0, made.err
    assert made.json["keys"] == NKEYS and made.json["shards"] == SHARDS
    return path


def test_a_plain_key_finds_its_server(ok, trouble, cluster, filter_file):
    for i in range(8):
        ok("redis", "load", "f.bly", f"plain{i}", *cluster.at)
        ok("redis", "load", "f.bly", f"a}}b{{{i}", *cluster.at)
        ok("redis", "dump", f"plain{i}", "back.bly", *cluster.at)
        assert (ok.path / "back.bly").read_bytes() == filter_file.read_bytes()
        assert ok("redis", "has", f"plain{i}", "5", *cluster.at).out == "5\n"
    assert len({cluster.owner(f"plain{i}").port for i in range(8)}) == 3


def test_shards_are_everywhere_and_no_key_is_forgotten(ok, cluster, words):
    assert len({cluster.owner(f"words:{{{i}}}").port
                for i in range(SHARDS)}) == 3
    meta = cluster.owner("words:{meta}").r.hgetall("words:{meta}")
    assert meta[b"shards"] == b"%d" % SHARDS and meta[b"kind"] == b"blocked"
    shares = [ok_info(cluster, f"words:{{{i}}}")[b"items_added"]
              for i in range(SHARDS)]
    assert 0.99 * NKEYS < sum(shares) <= NKEYS and max(shares) < NKEYS / 8
    assert ok("redis", "has", "--cluster", "-c", "words", "-f", words,
              *cluster.at).out == f"{NKEYS}\n"
    assert ok("redis", "has", "--cluster", "words", "-f", words,
              *cluster.at).raw == words.read_bytes()


def ok_info(cluster, key):
    flat = cluster.owner(key).r.execute_command("BLY.INFO", key)
    return dict(zip(flat[::2], flat[1::2]))


def test_answers_go_to_the_keys_they_are_for(ok, cluster):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 7, "--fpr", "1e-9", "sharp",
       stdin=lines(5000))
    mixed = b"".join(b"%d\nno%d\n" % (i, i) for i in range(5000))
    assert ok("redis", "has", *at, "sharp", stdin=mixed).raw == lines(5000)
    assert ok("redis", "has", *at, "-v", "sharp", stdin=mixed).lines == \
        [f"no{i}" for i in range(5000)]


def test_the_rate_holds_across_the_cluster(ok, cluster, words):
    asked = ok("redis", "has", "--cluster", "--json", "words", *cluster.at,
               stdin=lines(NKEYS, 2 * NKEYS)).json
    assert asked["asked"] == NKEYS
    # Six deviations of a binomial of rate 1 %.
    assert asked["maybe"] < NKEYS * 0.01 + 6 * (NKEYS * 0.01 * 0.99) ** 0.5
    assert asked["maybe"] > NKEYS * 0.005


def test_add_and_replace_across_the_cluster(ok, trouble, cluster):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 9, "more", "--items", 5000,
       stdin=lines(1000))
    trouble("redis", "build", *at, "more", "x", says=["more:", "--replace"])
    ok("redis", "add", *at, "more", stdin=lines(1000, 3000))
    assert ok("redis", "has", *at, "-c", "more", stdin=lines(3000)).out == \
        "3000\n"
    ok("redis", "build", *at, "--shards", 2, "--replace", "more",
       stdin=lines(700))
    assert ok("redis", "has", *at, "-c", "more", stdin=lines(700)).out == \
        "700\n"
    keys = [k for n in cluster.primaries() for k in n.r.keys("more*")]
    assert sorted(keys) == [b"more:{0}", b"more:{1}", b"more:{meta}"]
    # Few keys in many shards, of a kind that is built at once.
    ok("redis", "build", *at, "--shards", 50, "--kind", "fuse", "few",
       stdin=lines(20))
    assert ok("redis", "has", *at, "-c", "few", stdin=lines(20)).out == "20\n"
    trouble("redis", "build", *at, "a{b}", "x", says="braces")


def test_shards_go_to_a_folder_and_back(ok, trouble, cluster, tmp_path):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 5, "here", stdin=lines(2000))
    ok("redis", "dump", *at, "here", "folder")
    load = ["redis", "load", *at, "folder", "there"]
    trouble(*load, says="--shards")
    trouble(*load, "--shards", 6, says=["5.bly", "is not there"])
    trouble(*load, "--shards", 4, says=["4.bly", "is there"])
    told = ok(*load, "--shards", 5, "--json").json
    assert told["key"] == "there" and told["kind"] == "blocked"
    assert ok("redis", "has", *at, "-c", "there", stdin=lines(2000)).out == \
        "2000\n"
    for i in range(5):
        key = b"%%s:{%d}" % i
        assert cluster.owner((key % b"here").decode()).r.dump(key % b"here") \
            == cluster.owner((key % b"there").decode()).r.dump(key % b"there")
    trouble(*load, "--shards", 5, says="--replace")
    ok("redis", "build", *at, "--shards", 7, "--replace", "there",
       stdin=lines(10))
    # What is no shard of it is refused, and what was there stays.
    good = (tmp_path / "folder/3.bly").read_bytes()
    ok("build", "-q", "--kind", "cuckoo", "-o", "folder/3.bly",
       stdin=b"x\n")
    trouble(*load, "--shards", 5, "--replace", says=["3.bly", "cuckoo"])
    (tmp_path / "folder/3.bly").write_bytes(good[:-1])
    trouble(*load, "--shards", 5, "--replace", says="3.bly")
    assert ok("redis", "has", *at, "-c", "there", stdin=lines(10)).out == "10\n"
    (tmp_path / "folder/3.bly").write_bytes(good)
    ok(*load, "--shards", 5, "--replace")
    keys = [k for n in cluster.primaries() for k in n.r.keys("there*")]
    assert len(keys) == 6
    trouble("redis", "load", *at, "--shards", 1, "nowhere", "there",
            says="nowhere/0.bly")


def test_a_shard_that_is_missing_is_no_no(ok, trouble, cluster):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 4, "torn", stdin=lines(100))
    cluster.owner("torn:{2}").r.delete("torn:{2}")
    asked = run("redis", "has", *at, "-c", "torn", stdin=lines(100))
    assert asked.status == 2 and "torn:{2}" in asked.err


def ask_by_pipe(at, *options):
    return subprocess.Popen(
        [PROGRAM, "redis", "has", "--cluster", *options, "words",
         *map(str, at)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)


def feed(asking, data):
    """Give it keys that are all in the filter, and read as many back."""
    writer = threading.Thread(
        target=lambda: (asking.stdin.write(data), asking.stdin.flush()))
    writer.start()
    back = b""
    while len(back) < len(data):
        some = asking.stdout.read1(65536)
        assert some, asking.stderr.read()
        back += some
    writer.join()
    assert back == data


def test_slots_that_move_while_it_is_asked(ok, cluster, words):
    asking = ask_by_pipe(cluster.at)
    feed(asking, lines(1000))
    move = cluster.begin_move("words:{0}")
    feed(asking, lines(NKEYS))  # ASK
    moved_meta = cluster.begin_move("words:{meta}")
    assert ok("redis", "has", "--cluster", "-c", "words", "-f", words,
              *cluster.at).out == f"{NKEYS}\n"
    cluster.end_move(move)
    cluster.end_move(moved_meta)
    feed(asking, lines(NKEYS))  # MOVED
    asking.stdin.close()
    assert asking.wait(PATIENCE) == 0, asking.stderr.read()
    assert cluster.owner("words:{0}") is move[1]


def test_a_filter_that_is_built_anew_while_it_is_asked(ok, cluster, words):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 3, "anew", stdin=lines(100))
    asking = subprocess.Popen(
        [PROGRAM, "redis", "has", "anew", *map(str, at)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    feed(asking, lines(100))
    ok("redis", "build", *at, "--shards", 3, "--replace", "anew",
       stdin=lines(100))
    said = asking.communicate()[1]
    assert asking.returncode == 2 and b"rebuilt" in said


def test_reshard_by_the_usual_tool(ok, cluster, words):
    source, target = cluster.primaries()[:2]
    ids = [n.r.execute_command("CLUSTER", "MYID").decode()
           for n in (source, target)]
    moved = subprocess.run(
        ["redis-cli", "--cluster", "reshard", f"127.0.0.1:{source.port}",
         "--cluster-from", ids[0], "--cluster-to", ids[1],
         "--cluster-slots", "2000", "--cluster-yes"],
        capture_output=True, timeout=PATIENCE, check=False)
    assert moved.returncode == 0, moved.stdout[-2000:]
    assert ok("redis", "has", "--cluster", "-c", "words", "-f", words,
              *cluster.at).out == f"{NKEYS}\n"


def test_a_primary_dies_while_it_is_asked(ok, cluster, words):
    """The last test of this cluster: its successor is waited for."""
    for n in cluster.primaries():
        assert n.r.wait(1, PATIENCE * 1000) == 1
    victim = cluster.owner("words:{1}")
    asking = ask_by_pipe(cluster.at)
    feed(asking, lines(NKEYS))
    victim.kill()
    feed(asking, lines(NKEYS))
    asking.stdin.close()
    assert asking.wait(PATIENCE) == 0, asking.stderr.read()
    assert ok("redis", "has", "--cluster", "-c", "words", "-f", words,
              *cluster.at).out == f"{NKEYS}\n"
    done = ok("redis", "add", "--cluster", "words", "--json", *cluster.at,
              stdin=lines(NKEYS)).json
    assert done["keys"] == NKEYS and done["new"] == 0
