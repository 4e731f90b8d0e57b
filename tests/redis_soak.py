"""Random commands, restarts, failovers and memory limits, for as long as told.

Two servers, a primary and its replica, both with a log. Rounds of commands of
every family go to the primary; after each the two must agree on every key: its
digest, its dump, what it replies; INFO must count the keys that are there; and
the servers' logs must not tell of anything that one refused of what the other
had done. Between rounds something happens to the servers: a reload, a kill and a
restart from the log, a log that is written anew, a failover, a limit.

    /usr/bin/python3 tests/redis_soak.py [SECONDS [SEED]]
"""
import pathlib
import random
import sys
import tempfile
import time

from conftest import kinds_that
from redis_support import FOUND, Server, redis, wait_for

FAMILY = {b"MBbloom--": "bloom", b"bloomfltr": "bloom", b"MBbloomCF": "cuckoo",
          b"CMSk-TYPE": "cms", b"TopK-TYPE": "topk", b"bloomery-": "bly"}
KINDS = kinds_that("add")
FORGETS = [k.encode() for k in kinds_that("tick")]
SETTLED = 600  # seconds after which a replica that does not follow is lost
BAD_LOG = ("sending an error to its", "BUG REPORT", "crashed by signal",
           "ASSERTION", "Bad data format", "Internal error", "Short read",
           "Unrecoverable", *FOUND)


class Commands:
    """Commands as clients send them: mostly sensible, on few keys, so that
    they meet."""

    def __init__(self, rng):
        self.rng = rng
        self.dumps = {}

    def key(self):
        """One that this family uses, most likely."""
        own = self.rng.random() < 0.95
        return f"{self.letter if own else self.rng.choice('abcdef')}" \
            f"{self.rng.randrange(7)}"

    def item(self):
        return self.rng.choice([
            lambda: f"i{self.rng.randrange(3000)}",
            lambda: self.rng.randbytes(self.rng.randrange(1, 40)),
            lambda: "", lambda: "x" * self.rng.randrange(1000)])() \
            if self.rng.random() < 0.2 else f"i{self.rng.randrange(3000)}"

    def items(self):
        n = self.rng.choice([1, 1, 2, 5, 20, 150])
        return [self.item() for _ in range(n)]

    def number(self, *usual):
        if self.rng.random() < 0.06:
            return self.rng.choice(["x", "-1", "0", str(2**62), "1e3", ""])
        return str(self.rng.choice(usual))

    def option(self, *words):
        return [self.number(*w) if isinstance(w, tuple) else w
                for w in words] if self.rng.random() < 0.4 else []

    def bloom(self):
        r = self.rng
        return r.choice([
            lambda: ["BF.RESERVE", self.key(),
                     self.number("0.01", "0.1", "1e-5", "0.5"),
                     self.number(1, 7, 100, 5000),
                     *self.option("EXPANSION", (0, 1, 2, 4)),
                     *self.option("NONSCALING")],
            lambda: ["BF.ADD", self.key(), self.item()],
            lambda: ["BF.MADD", self.key(), *self.items()],
            lambda: ["BF.MADD", self.key(), *self.items()],
            lambda: ["BF.INSERT", self.key(),
                     *self.option("CAPACITY", (1, 10, 1000)),
                     *self.option("ERROR", ("0.01", "0.001")),
                     *self.option("EXPANSION", (1, 2, 4)),
                     *self.option("NOCREATE"), *self.option("NONSCALING"),
                     *self.option("TIGHTENING", ("0.5", "0.9", "0.3")),
                     *self.option("VALIDATESCALETO", (10, 100000)),
                     "ITEMS", *self.items()],
            lambda: ["BF.MEXISTS", self.key(), *self.items()],
            lambda: ["BF.SCANDUMP", self.key(), 0]])()

    def cuckoo(self):
        return self.rng.choice([
            lambda: ["CF.RESERVE", self.key(), self.number(8, 64, 1000),
                     *self.option("BUCKETSIZE", (1, 2, 4)),
                     *self.option("MAXITERATIONS", (1, 20, 100)),
                     *self.option("EXPANSION", (0, 1, 2))],
            lambda: ["CF.ADD", self.key(), self.item()],
            lambda: ["CF.ADDNX", self.key(), self.item()],
            lambda: ["CF.INSERT", self.key(),
                     *self.option("CAPACITY", (8, 500)), "ITEMS",
                     *self.items()],
            lambda: ["CF.INSERTNX", self.key(), "ITEMS", *self.items()],
            lambda: ["CF.DEL", self.key(), self.item()],
            lambda: ["CF.COMPACT", self.key()],
            lambda: ["CF.MEXISTS", self.key(), *self.items()]])()

    def cms(self):
        return self.rng.choice([
            lambda: ["CMS.INITBYDIM", self.key(), self.number(10, 200),
                     self.number(1, 5)],
            lambda: ["CMS.INITBYPROB", self.key(), self.number("0.01", "0.1"),
                     self.number("0.01", "0.3")],
            lambda: ["CMS.INCRBY", self.key(), *sum((
                [i, self.number(0, 1, 5, 4000000000)]
                for i in self.items()), [])],
            lambda: ["CMS.MERGE", self.key(), self.number(1, 2), self.key(),
                     self.key(), *self.option("WEIGHTS", (1, -1, 3), (1, 2))],
            lambda: ["CMS.QUERY", self.key(), *self.items()]])()

    def topk(self):
        return self.rng.choice([
            lambda: ["TOPK.RESERVE", self.key(), self.number(1, 5, 20),
                     *self.option((8, 50), (3, 7), ("0.9", "1", "0.5"))],
            lambda: ["TOPK.ADD", self.key(), *self.items()],
            lambda: ["TOPK.INCRBY", self.key(), *sum((
                [i, self.number(0, 1, 50, 100000)] for i in self.items()),
                [])],
            lambda: ["TOPK.LIST", self.key(), "WITHCOUNT"]])()

    def bly(self):
        r = self.rng
        return r.choice([
            lambda: ["BLY.CREATE", self.key(), r.choice(KINDS),
                     *self.option("CAPACITY", (1, 50, 2000)),
                     *self.option("FPR", ("0.01", "0.2", "1e-6")),
                     *self.option("KEYED"),
                     *self.option("KEYS", ("text", "bytes", "int64"))],
            lambda: ["BLY.ADD", self.key(), *self.items()],
            lambda: ["BLY.ADD", self.key(), *self.items()],
            lambda: ["BLY.ADD", self.key(), *self.items()],
            lambda: ["BLY.REMOVE", self.key(), *self.items()],
            lambda: ["BLY.HAS", self.key(), *self.items()],
            lambda: ["BLY.HASRANGE", self.key(), *self.items()],
            lambda: ["BLY.COUNT", self.key(), *self.items()],
            lambda: ["BLY.MERGE", self.key(), self.key()],
            lambda: ["BLY.RESIZE", self.key(), self.number(10, 5000)],
            lambda: ["BLY.TICK", self.key(), int(time.time())],
            lambda: ["BLY.IMPORT", self.key(), 0, 5000, "x" * 100],
            lambda: ["BLY.EXPORT", self.key(), 0, self.number(10, 1000)],
            lambda: ["BLY.COMPARE", self.key(), self.key()]])()

    def plain(self):
        """What any key may go through."""
        key, r = self.key(), self.rng
        dump = r.choice([*self.dumps.values(), b"junk"])
        return r.choice([
            ["UNLINK", key], ["DEL", key], ["COPY", key, self.key()],
            ["RENAME", key, self.key()], ["SET", key, "text"],
            ["RESTORE", key, 0, dump, "REPLACE"], ["RESTORE", key, 0, dump],
            ["PEXPIRE", key, r.choice([1, 50, 100000])], ["PERSIST", key],
            ["EVAL", "return redis.call(ARGV[1], KEYS[1], ARGV[2])", 1, key,
             r.choice(["BF.ADD", "CF.ADD", "BLY.ADD", "TOPK.ADD"]), "scripted"],
            ["FLUSHALL"] if r.random() < 0.02 else ["TYPE", key]])

    def next(self):
        family = self.rng.choices(
            [self.bloom, self.cuckoo, self.cms, self.topk, self.bly,
             self.plain], [5, 3, 2, 2, 7, 1])[0]
        self.letter = {self.bloom: "a", self.cuckoo: "b", self.cms: "c",
                       self.topk: "d", self.bly: self.rng.choice("ef")}.get(
                           family, self.rng.choice("abcdef"))
        return family()


class Soak:
    def __init__(self, folder, seed, say=lambda text: None, **how):
        self.folder, self.say = pathlib.Path(folder), say
        self.rng = random.Random(seed)
        self.commands = Commands(self.rng)
        self.ncommands = self.nerrors = self.nchecks = 0
        self.events = {}
        self.history = []  # for who looks for what went wrong
        secret = self.folder / "secret"
        secret.write_text("7f3a9c51e0b2d4466a8813f5cc09e27d\n")
        secret.chmod(0o600)
        self.primary = self.replica = None
        options = ["--appendonly", "yes", "--appendfsync", "always",
                   "--repl-diskless-sync-delay", 0, "--repl-timeout", 600]
        # One has the secret, the other gets it when it becomes the primary.
        self.secret = str(secret)
        self.a = Server(self.folder / "a", *options, **how)
        self.b = Server(self.folder / "b", *options, **how)
        self.lead(self.a, self.b)

    def lead(self, primary, replica):
        primary.r.execute_command("REPLICAOF", "NO", "ONE")
        replica.r.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        self.primary, self.replica = primary, replica
        primary.r.config_set("bf.bly-secret-file", self.secret)
        self.settled()

    def settled(self):
        """The replica has all that the primary has."""
        def same():
            here = self.primary.r.info("replication")
            there = self.replica.r.info("replication")
            return there.get("master_link_status") == "up" and \
                here["role"] == "master" and \
                here["master_repl_offset"] == there["slave_repl_offset"]
        try:
            wait_for(same, SETTLED)
        except AssertionError:
            raise AssertionError(
                "the replica does not follow: " + str([
                    (s.r.info("replication"), s.log()[-1500:])
                    for s in (self.primary, self.replica)])) from None

    # ----------------------------------------------------------------- rounds

    def work(self, n):
        r = self.primary.r
        for _ in range(n):
            words = self.commands.next()
            self.ncommands += 1
            self.history = [*self.history[-700:], [str(w)[:40] for w in
                                                   words[:12]]]
            try:
                if self.rng.random() < 0.03:
                    second = self.commands.next()
                    self.history.append(["and", *map(str, second[:12])])
                    with r.pipeline(transaction=True) as p:
                        p.execute_command(*words)
                        p.execute_command(*second)
                        p.execute(raise_on_error=False)
                else:
                    r.execute_command(*words)
            except redis.exceptions.ResponseError:
                self.nerrors += 1
            except redis.exceptions.ConnectionError:
                raise AssertionError(
                    f"the server is gone after {words}: " +
                    self.primary.log()[-3000:]) from None

    def limits(self):
        """Limits of other sizes, on one server or both."""
        for s in (self.a, self.b):
            s.r.config_set("bf.bloom-memory-usage-limit",
                           self.rng.choice([0, 0, 500, 3000, 100000]))
            s.r.config_set("bf.bly-memory-limit",
                           self.rng.choice([0, 0, 2000, 50000]))
            s.r.config_set("bf.cf-max-expansions", self.rng.choice([1, 4, 32]))
            s.r.config_set("bf.bf-initial-size", self.rng.choice([1, 100, 999]))
        full = self.rng.random() < 0.4
        r = self.primary.r
        r.config_set("maxmemory-policy", self.rng.choice(
            ["noeviction", "allkeys-lru", "volatile-ttl"]))
        r.config_set("maxmemory", r.info("memory")["used_memory"] +
                     self.rng.choice([-1000, 20000, 200000]) if full else 0)

    # ---------------------------------------------------------------- checks

    def snapshot(self, server):
        """{key: (type, digest, dump)}"""
        keys = sorted(server.r.keys())
        return {k: (server.r.type(k),
                    server.r.execute_command("DEBUG", "DIGEST-VALUE", k),
                    server.r.dump(k)) for k in keys}

    def asked(self, server, key, kind):
        """What a key replies to who looks at it."""
        words = {
            b"MBbloom--": [["BF.INFO", key], ["BF.DEBUG", key],
                           ["BF.CARD", key]],
            # Max scaled capacity is about the settings of the server.
            b"bloomfltr": [["BF.INFO", key, field] for field in (
                "CAPACITY", "SIZE", "FILTERS", "ITEMS", "ERROR", "EXPANSION",
                "TIGHTENING")],
            b"MBbloomCF": [["CF.INFO", key], ["CF.DEBUG", key]],
            b"CMSk-TYPE": [["CMS.INFO", key],
                           ["CMS.QUERY", key, *self.sample]],
            b"TopK-TYPE": [["TOPK.LIST", key, "WITHCOUNT"],
                           ["TOPK.COUNT", key, *self.sample]],
            b"bloomery-": [["BLY.INFO", key], ["BLY.EXPORT", key, 0]],
        }.get(kind, [])
        if kind in (b"MBbloom--", b"bloomfltr", b"MBbloomCF"):
            words.append(["BF.MEXISTS" if kind != b"MBbloomCF" else
                          "CF.MEXISTS", key, *self.sample])
        replies = []
        for w in words:
            try:
                replies.append(server.r.execute_command(*w))
            except redis.exceptions.ResponseError as e:
                replies.append(str(e))
        # Where the secret is not, BLY.INFO says so: that is all that differs.
        return str(replies).replace("b'locked'", "b'yes'")

    def tick_all(self):
        """Time that passes between two looks is no difference."""
        for key in self.primary.r.keys():
            if self.primary.r.type(key) == b"bloomery-":
                try:
                    info = self.primary.r.execute_command("BLY.INFO", key)
                    if info[1] in FORGETS:
                        self.primary.r.execute_command(
                            "BLY.TICK", key, int(time.time()) + 2)
                except redis.exceptions.ResponseError:
                    pass

    def about(self, key):
        """The commands that named a key, and what happened to the servers."""
        name = key.decode()
        return [h for h in self.history if name in h or h[0] in (
            "FLUSHALL", "EVENT")]

    def compare(self, what, mine, theirs):
        self.logs()
        for key in mine.keys() ^ theirs.keys():
            raise AssertionError((
                what, key, "only here" if key in mine else "only there",
                self.about(key)))
        for key in mine:
            assert mine[key] == theirs[key], (
                what, key, mine[key][0], theirs[key][0],
                self.about(key),
                [self.asked(s, key, mine[key][0])[:600]
                 for s in (self.primary, self.replica)])
            self.nchecks += 3

    def section(self, server, snapshot):
        wait_for(lambda: server.r.info("memory")["lazyfree_pending_objects"]
                 == 0)
        info = server.r.info("bf")
        for family in set(FAMILY.values()):
            n = sum(FAMILY.get(v[0]) == family for v in snapshot.values())
            told = info[f"bf_{family}_num_objects"]
            assert told == n, (family, told, n)
            nbytes = info[f"bf_{family}_total_memory_bytes"]
            assert (nbytes > 0) == (n > 0) and nbytes < 1 << 32, (
                family, nbytes, n)
            self.nchecks += 2
        return {k: v for k, v in info.items() if k.startswith("bf_bloom")
                and "defrag" not in k}

    def check(self):
        for s in (self.a, self.b):  # nothing vanishes between two looks
            s.r.config_set("maxmemory", 0)
        for key in self.primary.r.keys():
            self.primary.r.persist(key)
        # KEYS hides those whose time is over; they go soon after.
        wait_for(lambda: self.primary.r.dbsize() ==
                 len(self.primary.r.keys()))
        self.tick_all()
        self.settled()
        mine = self.snapshot(self.primary)
        self.compare("replica", mine, self.snapshot(self.replica))
        assert self.section(self.primary, mine) == \
            self.section(self.replica, mine)
        self.sample = [self.commands.item() for _ in range(50)]
        for key, (kind, *_) in mine.items():
            here = self.asked(self.primary, key, kind)
            if not any(k.decode() in here for k in FORGETS):
                assert here == self.asked(self.replica, key, kind), (key, kind)
                self.nchecks += 1
        self.logs()
        self.commands.dumps = {k: v[2] for k, v in mine.items()}
        return mine

    def logs(self):
        for s in (self.a, self.b):
            assert s.is_alive(), s.log()[-3000:]
            log = s.log()
            for word in BAD_LOG:
                assert word not in log, log[log.index(word) - 300:][:2000]

    # ---------------------------------------------------------------- events

    def reload(self, server):
        server.r.execute_command("DEBUG", "RELOAD")

    def restart(self, server):
        """From its log, which is written anew after a full synchronisation."""
        self.log_is_whole(server)
        server.kill()
        server.start()
        self.compare("log", self.mine, self.snapshot(server))
        if server is self.primary:
            server.r.config_set("bf.bly-secret-file", self.secret)
        else:
            server.r.execute_command("REPLICAOF", "127.0.0.1",
                                     self.primary.port)

    @staticmethod
    def log_is_whole(server):
        def idle():
            told = server.r.info("persistence")
            return not (told["aof_rewrite_in_progress"] or
                        told["aof_rewrite_scheduled"] or
                        told["rdb_bgsave_in_progress"] or
                        not told["aof_enabled"])
        wait_for(idle, SETTLED)

    def rewrite(self, server):
        self.log_is_whole(server)
        server.r.bgrewriteaof()
        self.log_is_whole(server)
        assert server.r.info("persistence")["aof_last_bgrewrite_status"] == \
            "ok", server.log()[-3000:]
        self.restart(server)

    def failover(self, _):
        self.lead(self.replica, self.primary)

    def resync(self, _):
        """The replica forgets all, and gets it anew."""
        self.replica.r.execute_command("REPLICAOF", "NO", "ONE")
        self.replica.r.flushall()
        self.replica.r.execute_command("REPLICAOF", "127.0.0.1",
                                       self.primary.port)

    def happen(self, mine):
        event = self.rng.choice([self.reload, self.restart, self.rewrite,
                                 self.failover, self.resync])
        server = self.rng.choice([self.primary, self.replica])
        name = event.__name__
        self.events[name] = self.events.get(name, 0) + 1
        self.history.append(["EVENT", name, "primary" if server is self.primary
                             else "replica"])
        self.mine = mine
        event(server)
        self.settled()
        self.compare(name, mine, self.snapshot(server))
        self.section(server, mine)

    def round(self):
        self.limits()
        self.work(self.rng.choice([50, 200, 600]))
        self.happen(self.check())

    def run(self, seconds):
        end, told, nrounds = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            self.round()
            nrounds += 1
            if time.monotonic() > told + 60:
                told = time.monotonic()
                self.say(self.summary(nrounds))
        self.check()
        return self.summary(nrounds)

    def summary(self, nrounds):
        return (f"{nrounds} rounds, {self.ncommands} commands "
                f"({self.nerrors} refused), {self.nchecks} checks, " +
                ", ".join(f"{n} {name}" for name, n in self.events.items()))

    def close(self):
        for s in (self.a, self.b):
            s.stop()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    with tempfile.TemporaryDirectory() as folder:
        print(f"seed {seed}", flush=True)
        soak = Soak(folder, seed, lambda text: print(text, flush=True))
        try:
            print("passed:", soak.run(seconds))
        finally:
            soak.close()


if __name__ == "__main__":
    main()
