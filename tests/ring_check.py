"""Clients of a ring, a nemesis that hurts its members, and a judge.

    /usr/bin/python3 tests/ring_check.py [SECONDS [SEED]]

Clients put, get and remove names, some with one writer, some with several, and write down what they asked for and what
they were told (ring_history.py). Meanwhile the nemesis picks victims: for half of its faults neighbours, that is the
owner of a name and the members behind it, which hold its copies; for the others anybody. It kills them, with or
without their disks, stops them, cuts them off, fills their disks, moves their clocks, takes their descriptors, damages
their files, and now and then does a second thing before it has undone the first. At the end all is mended, every name
is read through several members, and the history is judged.

The nemesis keeps to what docs/ring.md promises: see Nemesis.allowed().

The last line says how many operations were acknowledged, how many faults there were, and what was lost, stale or
resurrected. The status is 1 if anything was.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from conftest import BUILD
from ring_cluster import Cluster
from ring_history import ABSENT, NOTHING, OK, REFUSED, UNKNOWN, Fault, History, Operation, judge

CLERK = BUILD / "tests" / "ring_clerk"
PATIENCE_MS = 500   # of clients: a question may take four times as long
# What a command says if it has written nothing, and nothing will come of it. After any other error something may.
NOT_DONE = "not done:", "a block could not be put"


class Client(threading.Thread):
    """One who asks, waits for the answer, and asks again, until told to end."""

    def __init__(self, cluster, history, number, names, seed, home=None, rest=0, patience=PATIENCE_MS):
        """home: the member on whose host it is, and which it asks; rest: seconds between operations, on average."""
        super().__init__(daemon=True)
        self.home, self.rest = home, rest
        self.cluster, self.history, self.number, self.names = cluster, history, number, names
        self.chance = random.Random(seed * 1000 + number)
        self.ends = threading.Event()
        self.puts, self.last, self.failed, self.trouble = 0, None, 0, None
        inside = cluster.network.inside(home.number) if home and cluster.network else []
        self.clerk = subprocess.Popen([*inside, CLERK, str(patience)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)

    def members(self):
        """Whom to ask: somebody who answers, as a rule."""
        if self.home:
            return self.home.address
        good = [m.address for m in self.cluster.members if m.reached()]
        chosen = self.chance.sample(good, min(2, len(good)))
        if self.chance.random() < 0.05:
            chosen.insert(0, self.chance.choice(self.cluster.members).address)
        return ",".join(chosen or [self.cluster.members[0].address])

    def value(self, name):
        """One that was never put under this name, but perhaps under another: then they share a block."""
        self.puts += 1
        if self.puts % 2 or self.last[1] == name:
            self.last = f"c{self.number}.{self.puts}", name
        return self.last[0]

    def ask(self, what, name, value=ABSENT):
        """An operation, written down."""
        o = Operation(what, name, value, self.history.now(), who=f"c{self.number}")
        print(what, self.members(), name, *([value] if what == "put" else []), file=self.clerk.stdin, flush=True)
        line = self.clerk.stdout.readline()
        ended = self.history.now()
        if not line:
            raise RuntimeError("a client has died")
        status, _, told = line.strip().partition(" ")
        if status == "0":
            o.outcome, o.ended = OK, ended
            if what == "get":
                o.value = told
        elif status == "1":
            o.outcome, o.ended = (NOTHING if what == "rm" else OK), ended
        elif any(word in told for word in NOT_DONE):
            o.outcome, o.ended, o.told = REFUSED, ended, told
        else:
            o.outcome, o.told = UNKNOWN, told
        self.failed += status == "2"
        self.history.add(o)
        return o

    def run(self):
        try:
            while not self.ends.is_set():
                name, mine = self.chance.choice(self.names)
                what = self.chance.choices(["put", "get", "rm"], [5, 6, 1])[0] if mine else "get"
                self.ask(what, name, self.value(name) if what == "put" else ABSENT)
                if self.rest:
                    self.ends.wait(self.chance.expovariate(1 / self.rest))
        except Exception as e:  # told to whoever waits
            self.trouble = e

    def close(self):
        self.ends.set()
        if self.ident:
            self.join()
        self.clerk.stdin.close()
        self.clerk.wait()
        self.clerk.stdout.close()


class Nemesis:
    """Hurts members, and mends them."""

    # What, how often, and whether records are gone with it.
    FAULTS = {"kill": (5, False), "wipe": (2, True), "stop": (5, False), "cut": (4, False), "full": (2, False),
              "clock": (2, False), "descriptors": (2, False), "damage": (2, True), "leave": (1, False)}

    def __init__(self, cluster, names, seed, log=None):
        self.cluster, self.names, self.chance, self.log = cluster, names, random.Random(seed), log
        self.kinds = {k: w for k, (w, _) in self.FAULTS.items()}
        if not cluster.network:
            del self.kinds["cut"]
        if cluster.sanitized:
            del self.kinds["clock"]
        self.under_way = []  # (kind, victims)
        self.counts = {"adjacent": 0, "random": 0}
        self.by_kind = {}
        self.repaired = True
        self.begin = time.monotonic()

    def say(self, *words):
        if self.log:
            print(f"{time.monotonic() - self.begin:8.2f}", *words, file=self.log, flush=True)

    def victims(self, adjacent, n):
        healthy = [m for m in self.cluster.members if m.healthy()]
        if adjacent:
            holders = self.cluster.holders(self.chance.choice(self.names))
            first = self.chance.randrange(len(holders) - n + 1)
            return [m for m in holders[first:first + n] if m in healthy]
        return self.chance.sample(healthy, min(n, len(healthy)))

    def allowed(self, kind, victims):
        """Does the ring promise to withstand this, together with what it suffers already?

        - Records are lost with one member at a time, and with no second one before copies were made again.
        - Of the three holders of a record, two may be away at once, as long as their disks come back.
        """
        if self.FAULTS[kind][1] and (not self.repaired or self.under_way or len(victims) > 1):
            return False
        away = {m for _, ms in self.under_way for m in ms} | set(victims)
        return 0 < len(away) <= 2 and bool(victims)

    def hurt(self, adjacent):
        """A fault; None if chance proposed one that is not allowed."""
        kind = self.chance.choices(list(self.kinds), list(self.kinds.values()))[0]
        n = 1 if self.FAULTS[kind][1] or kind == "leave" else self.chance.choice([1, 2])
        victims = self.victims(adjacent, n)
        if not self.allowed(kind, victims):
            return None
        self.say(kind, *victims, "adjacent" if adjacent else "random")
        if self.FAULTS[kind][1]:
            self.repaired = False
        if kind == "cut":
            self.cluster.cut(victims)
        for m in victims:
            if kind in ("kill", "wipe"):
                m.kill(wipe=kind == "wipe")
            elif kind == "stop":
                m.stop()
            elif kind == "full":
                m.fill(True)
            elif kind == "clock":
                m.jump(self.chance.choice([-1, 1]) * self.chance.choice([60, 86400, 2 * 86400]))
            elif kind == "descriptors":
                m.starve(True)
            elif kind == "damage":
                m.damage(self.chance, 1 + len(m.records()) // 4)
            elif kind == "leave":
                m.leave()
        self.counts["adjacent" if adjacent else "random"] += 1
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        self.under_way.append((kind, victims))
        return kind

    def mend(self, which=0):
        kind, victims = self.under_way.pop(which)
        self.say("mend", kind, *victims)
        if kind == "cut":
            self.cluster.join(victims)
        for m in victims:
            if kind in ("kill", "wipe", "leave"):
                m.start()
            elif kind == "stop":
                m.resume()
            elif kind == "full":
                m.fill(False)
            elif kind == "clock":
                m.jump(0)
            elif kind == "descriptors":
                m.starve(False)

    def repair(self):
        """All copies are made again."""
        while self.under_way:
            self.mend()
        self.cluster.settle(log=self.say)
        self.cluster.exchanged(log=self.say)
        self.repaired = True
        self.say("repaired")


class Check:
    """A ring, its clients, and their history."""

    def __init__(self, folder, members, *options, clients=8, names=40, seed=1, log=None, rest=0, patience=PATIENCE_MS,
                 homes=True, **kw):
        self.cluster = Cluster(folder, members, *options, **kw)
        self.history = History()
        self.names = [f"name{i}" for i in range(names)]
        self.clients = []
        try:
            for i in range(clients):
                # Of three names, two have one writer and one has all of them.
                mine = [(n, k % 3 == 0 or k % clients == i) for k, n in enumerate(self.names)]
                # A client reads mostly what it writes.
                own = [x for x in mine if x[1]]
                # One in three is cut off, and stays without an answer, together with a member.
                home = self.cluster.members[i % members] if homes and i % 3 == 2 else None
                self.clients.append(Client(self.cluster, self.history, i, own * 3 + mine, seed, home, rest, patience))
            self.nemesis = Nemesis(self.cluster, self.names, seed, log)
        except BaseException:
            self.close()
            raise

    def ended(self):
        return len(self.history.operations)

    def work(self, n, most=NotImplemented):
        """Wait until so many more operations have ended, or `most` seconds are over: whoever waits for a member that is
        stopped may wait long."""
        goal, end = self.ended() + n, time.monotonic() + most
        while self.ended() < goal and time.monotonic() < end:
            for c in self.clients:
                if c.trouble:
                    raise c.trouble
            time.sleep(0.01)

    def round(self, adjacent, gap=150):
        """A fault, now and then with another one on top, and its end; the ring need not be whole before the next."""
        nemesis = self.nemesis
        while not nemesis.hurt(adjacent):
            if nemesis.under_way or not nemesis.repaired:
                nemesis.repair()
        # Shorter than it takes until the others do without them, or longer.
        self.work(gap, nemesis.chance.choice([1, 3, 6]))
        if nemesis.chance.random() < 0.5:
            for _ in range(5):
                if nemesis.hurt(adjacent):
                    self.work(gap, 4)
                    break
        if nemesis.chance.random() < 0.8:
            while nemesis.under_way:
                nemesis.mend(nemesis.chance.randrange(len(nemesis.under_way)))
                if nemesis.chance.random() < 0.5:
                    self.work(gap // 4, 2)
        if nemesis.chance.random() < 0.5:
            nemesis.repair()
            self.work(gap, 4)
        for m in self.cluster.members:
            m.check()

    def start(self):
        for c in self.clients:
            c.start()

    def finish(self):
        """Mend everything, read every name through several members, and judge."""
        self.nemesis.repair()
        for c in self.clients:
            c.ends.set()
        for c in self.clients:
            if c.ident:
                c.join()
            if c.trouble:
                raise c.trouble
        self.nemesis.repair()
        reader, unreadable = self.clients[0], []
        for name in self.names * 3:
            for tries in range(20):
                o = reader.ask("get", name)
                if o.outcome == OK:
                    break
            else:
                unreadable.append(Fault("lost", name, (o,)))
        found = judge(self.history)
        found["lost"] += unreadable
        return found

    def summary(self, found):
        faults = self.nemesis.counts
        counts = ", ".join(f"{len(faults)} {kind}" for kind, faults in found.items())
        failed = sum(o.outcome in (UNKNOWN, REFUSED) for o in self.history.operations)
        return (f"{self.history.acknowledged()} operations acknowledged, {failed} failed; {sum(faults.values())} faults "
                f"({faults['adjacent']} adjacent, {faults['random']} random); {counts}")

    def close(self):
        for c in self.clients:
            c.ends.set()
        try:
            # Whoever waits for a member that is stopped need not wait longer.
            for m in self.cluster.members:
                if m.process and m.stopped:
                    m.resume()
            for c in self.clients:
                c.close()
        finally:
            self.cluster.close()


def main():
    ends = threading.Event()  # told to end, it judges what there is
    signal.signal(signal.SIGTERM, lambda *_: ends.set())
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1800
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    sanitized = os.environ.get("BLY_RING_SANITIZED")
    with tempfile.TemporaryDirectory(prefix="ring_check") as folder:
        folder = pathlib.Path(folder)
        print(f"seed {seed}, in {folder}", flush=True)
        # Blocks that no name uses any more go soon, while others put the same.
        check = Check(folder, 10, "--reclaim", "60000", clients=12, names=60, seed=seed, log=sys.stdout, rest=0.1,
                      sanitized=bool(sanitized))
        try:
            check.start()
            end, adjacent = time.monotonic() + seconds, False
            while time.monotonic() < end and not ends.is_set():
                adjacent = not adjacent
                check.round(adjacent)
                check.nemesis.say(f"{check.history.acknowledged()} acknowledged")
            found = check.finish()
            complaints = check.cluster.complaints()
            for kind, faults in found.items():
                for fault in faults:
                    print(fault)
            print("faults:", ", ".join(f"{n} {kind}" for kind, n in sorted(check.nemesis.by_kind.items())))
            for line in complaints[:20]:
                print(line)
            print(check.summary(found), flush=True)
            return 1 if any(found.values()) or complaints else 0
        finally:
            check.close()


if __name__ == "__main__":
    sys.exit(main())
