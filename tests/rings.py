"""Rings of processes, for tests: nodes in folders below one, on loopback, ports
chosen by the kernel."""
import os
import random
import signal
import subprocess
import time

from conftest import PATIENCE, PROGRAM
from conftest import run as run_command

QUICK = ["--period", "100", "--exchange", "500", "--patience", "1000"]


def run(*argv, status=0, **kw):
    """Run the command; it must end with this status, if one is given."""
    done = run_command(*argv, **kw)
    assert status is None or done.status == status, (argv, done.status, done.err)
    return done


def until(holds, *told):
    """Wait until it does. What was found then."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, [t() if callable(t) else t for t in told]
        time.sleep(0.1)
    return found


class Ring:
    def __init__(self, at, *options, patience=3000):
        self.at, self.options, self.patience = at, options, patience
        self.nodes = {}  # address: (process, folder)
        self.number = 0

    def start(self, *options, listen=None, folder=None, join=None, inside=(), **kw):
        """A node; `inside` is a command that runs another, kw goes to Popen."""
        self.number += 1
        folder = folder or self.at / f"store{self.number}"
        argv = [*inside, PROGRAM, "node", "run", *QUICK, *self.options, *options]
        for address in (list(self.nodes) if join is None else join)[:8]:
            argv += ["-j", address]
        if listen:
            argv += ["--listen", listen]
        log = open(self.at / f"log{self.number}", "w")
        process = subprocess.Popen([*argv, folder], stdout=subprocess.PIPE, stderr=log, text=True, **kw)
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        address = line.split()[-1]
        self.nodes[address] = (process, folder)
        return address

    def command(self, verb, *args, status=0, at=True, inside=None):
        argv = ["node", verb, *args, *self.options, "--patience", self.patience]
        # However busy the machine is.
        if verb in ("put", "get", "rm", "ls"):
            argv += ["--wait", 1000 * PATIENCE]
        if at:
            for address in (list(self.nodes) if at is True else at)[:4]:
                argv += ["--at", address]
        if inside:
            return run(*inside[1:], PROGRAM, *argv, status=status, program=inside[0])
        return run(*argv, status=status)

    def status(self, address, inside=None):
        """However busy the machine is: whoever does not answer is asked again, if it runs."""
        def answer():
            done = self.command("status", address, "--json", at=False, inside=inside, status=None)
            assert done.status == 0 or self.nodes[address][0].poll() is None, (address, done.err)
            return done.json if done.status == 0 else None
        return until(answer, address)

    def order(self):
        """Members in the order of their ids."""
        found = [(m["id"], a) for a in self.nodes for m in self.status(a)["members"]]
        return [a for _, a in sorted(found)]

    def whole(self, nodes=None, inside=None):
        """Is it one ring, of all nodes or of these?"""
        states = {a: self.status(a, inside) for a in nodes or self.nodes}
        members = [(m["id"], a, m) for a, state in states.items() for m in state["members"]]
        members.sort(key=lambda m: m[0])
        n = len(members)
        # They have agreed on who keeps names, and have what they have to keep.
        agreed = (len({state["epoch"] for state in states.values()}) == 1
                  and all(state["voter"] and state["ready"] and state["voters"] == len(states)
                          for state in states.values()))
        return agreed and all(m["phase"] == "in" and m["predecessor"] == members[i - 1][0]
                   and m["successors"][0] == members[(i + 1) % n][1]
                   for i, (_, _, m) in enumerate(members))

    def settle(self, nodes=None, inside=None):
        until(lambda: self.whole(nodes, inside), lambda: [self.status(a, inside) for a in nodes or self.nodes])

    def copies(self):
        """How many nodes have each record."""
        count = {}
        for _, folder in self.nodes.values():
            for path in folder.glob("??/*"):
                if len(path.name) == 64:
                    count[path.name] = count.get(path.name, 0) + 1
        return count

    def kept(self, n, copies):
        """Wait until each of n records has so many copies."""
        def are():
            count = self.copies()
            return len(count) >= n and all(c == copies for c in count.values())
        until(are, self.copies)

    def kill(self, address):
        process, folder = self.nodes.pop(address)
        process.kill()
        process.wait()
        return folder

    def leave(self, address):
        process, _ = self.nodes.pop(address)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0

    def close(self):
        for process, _ in self.nodes.values():
            process.kill()
        for process, _ in self.nodes.values():
            process.wait()


def filled(ring, folder, nfiles, most, seed=1, **kw):
    """Files on the ring, and where they are on disk."""
    chance = random.Random(seed)
    files = {}
    for i in range(nfiles):
        path = folder / f"file{i}"
        path.write_bytes(chance.randbytes(chance.randrange(most)))
        files[path.name] = path
    ring.command("put", *files.values(), **kw)
    return files


def compare(ring, files, folder, **kw):
    for name, path in files.items():
        ring.command("get", name, "-o", folder / "got", **kw)
        assert (folder / "got").read_bytes() == path.read_bytes(), name
