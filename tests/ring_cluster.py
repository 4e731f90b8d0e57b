"""Rings of processes that can be hurt: each has a network namespace, a disk and a clock of its own.

    namespace hub   the clients, and two bridges: all are on the first, and whoever is cut off is moved to the other,
                    so that packets vanish without a word
    namespace nN    node N, at 10.79.0.N:7000
    disk            a tmpfs, which shrinks to what is on it
    clock           the time of day of tests/jumping_clock.c

Where namespaces cannot be made (that takes root), all run on loopback, and nobody can be cut off.
"""
import ctypes
import hashlib
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

from conftest import BUILD, PATIENCE, PROGRAM
from conftest import run as run_command
from net_namespaces import IP, sweep
from rings import QUICK

CLOCK = BUILD / "tests" / "jumping_clock.so"
DISK = 512 << 20  # bytes of a disk


def place(text):
    """Where a member's address, or a name, lies on the ring."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def until(holds, told=None, log=None):
    """Wait until it does. Now and then the log gets what told() returns, for whoever wonders what is waited for."""
    began = said = time.monotonic()
    while not holds():
        now = time.monotonic()
        if now > began + PATIENCE:
            raise AssertionError(told() if told else "waited in vain")
        if log and told and now > said + 20:
            log("waits:", told())
            said = now
        time.sleep(0.2)  # asking them all is work


def enter(path):
    """This thread, and whatever it starts, goes to another network namespace."""
    with open(path) as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


class Network:
    """Namespaces and bridges; None of it if they cannot be had."""

    def __init__(self, n):
        self.mark = f"bly{os.getpid()}-"
        self.old = f"/proc/{os.getpid()}/task/{os.getpid()}/ns/net"
        sweep()
        self.spaces = [f"{self.mark}hub", *(f"{self.mark}n{i}" for i in range(1, n + 1))]
        hub = self.spaces[0]
        self.ip(None, *(f"netns add {space}" for space in self.spaces),
                *(f"link add name v{i} netns {hub} type veth peer name eth0 netns {self.spaces[i]}"
                  for i in range(1, n + 1)))
        self.ip(hub, "link set lo up", "link add name whole type bridge", "link add name aside type bridge",
                "addr add 10.79.0.254/24 dev whole", "link set whole up", "link set aside up",
                *(f"link set v{i} master whole up" for i in range(1, n + 1)))
        for i in range(1, n + 1):
            self.ip(self.spaces[i], "link set lo up", f"addr add 10.79.0.{i}/24 dev eth0", "link set eth0 up")
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        enter(f"/run/netns/{hub}")

    @staticmethod
    def possible():
        if not IP or os.geteuid() != 0:
            return False
        probe = f"bly{os.getpid()}-probe"
        made = subprocess.run([IP, "netns", "add", probe], capture_output=True).returncode == 0
        if made:
            made = subprocess.run([IP, "-n", probe, "link", "add", "name", "whole", "type", "bridge"],
                                  capture_output=True).returncode == 0
            subprocess.run([IP, "netns", "del", probe], capture_output=True)
        return made

    def ip(self, space, *lines):
        done = subprocess.run([IP, *(["-n", space] if space else []), "-batch", "-"], input="\n".join(lines),
                              capture_output=True, text=True)
        assert done.returncode == 0, (lines, done.stderr)

    def inside(self, i):
        return ["nsenter", f"--net=/run/netns/{self.spaces[i]}"]

    def move(self, numbers, bridge):
        """Onto one bridge, all at once."""
        subprocess.run([IP, "-batch", "-"], input="\n".join(f"link set v{i} master {bridge}" for i in numbers),
                       text=True, check=True)

    def close(self):
        enter(f"/proc/self/fd/{self.home}")
        os.close(self.home)
        for space in self.spaces:
            subprocess.run([IP, "netns", "del", space], capture_output=True)


class Member:
    """A process, or the place of one."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.process = None
        self.folder = cluster.folder / f"store{number}"
        self.clock = cluster.folder / f"clock{number}"
        self.log = cluster.folder / f"log{number}"
        self.address = f"10.79.0.{number}:7000" if cluster.network else f"127.0.0.1:{cluster.port(number)}"
        self.id = place(f"{self.address}#0")
        self.stopped = self.aside = self.full = self.starved = False
        self.clock.write_bytes(bytes(8))
        self.folder.mkdir()
        if cluster.disks:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", self.folder], check=True)

    def __repr__(self):
        return f"n{self.number}"

    def healthy(self):
        return self.process and not (self.stopped or self.aside or self.full or self.starved)

    def reached(self):
        """Do clients get answers from it?"""
        return self.process and not (self.stopped or self.aside)

    def start(self, *options):
        cluster = self.cluster
        inside = cluster.network.inside(self.number) if cluster.network else []
        argv = [*inside, PROGRAM, "node", "run", *QUICK, *cluster.options, *options, "--listen", self.address]
        known = [m for m in cluster.members if m.process and m is not self]
        known.sort(key=lambda m: not m.reached() or m.aside != self.aside)
        for m in known[:8]:
            argv += ["-j", m.address]
        env = dict(os.environ)
        if CLOCK.exists() and not cluster.sanitized:
            env.update(LD_PRELOAD=str(CLOCK), BLY_CLOCK=str(self.clock))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([*argv, self.folder / "records"], stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=env)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), (line, self.log.read_text()[-500:])
        self.stopped = self.starved = False

    def kill(self, wipe=False):
        self.process.kill()
        self.process.wait()
        self.process = None
        if wipe:
            shutil.rmtree(self.folder / "records")

    def leave(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def jump(self, seconds):
        # In place: a process that reads its clock in a file without bytes is killed.
        with open(self.clock, "r+b", buffering=0) as f:
            f.write(struct.pack("<q", seconds))

    def limit(self, what, soft):
        """Set a limit of the process; None: as high as it may be."""
        _, hard = resource.prlimit(self.process.pid, what)
        resource.prlimit(self.process.pid, what, (hard if soft is None else soft, hard))

    def fill(self, full):
        """Its disk has no room, or has it again."""
        self.full = full
        if not self.cluster.disks:
            if self.process:
                self.limit(resource.RLIMIT_FSIZE, 0 if full else None)
            return
        while True:
            disk = os.statvfs(self.folder)
            size = (disk.f_blocks - disk.f_bfree) * disk.f_frsize if full else DISK
            done = subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], capture_output=True)
            if done.returncode == 0:
                return  # otherwise something was written in between

    def starve(self, starved):
        """It may open no more files than it has."""
        self.starved = starved
        if self.process:
            used = {int(fd) for fd in os.listdir(f"/proc/{self.process.pid}/fd")}
            self.limit(resource.RLIMIT_NOFILE, min(set(range(len(used) + 1)) - used) if starved else None)

    def records(self):
        """Paths of what it keeps, as far as they are there at this moment."""
        found = []
        for top, _, names in os.walk(self.folder / "records"):
            found += [os.path.join(top, name) for name in names if len(name) == 64]
        return sorted(found)

    def damage(self, chance, n):
        """Flip a bit in the middle of n records."""
        records = self.records()
        for path in chance.sample(records, min(n, len(records))):
            try:
                with open(path, "r+b") as f:
                    data = f.read()
                    f.seek(len(data) // 2)
                    f.write(bytes([data[len(data) // 2] ^ 0x40]))
            except (FileNotFoundError, IndexError):
                pass  # removed meanwhile, or written

    def check(self):
        """It runs, unless somebody has ended it."""
        assert not self.process or self.process.poll() is None, \
            f"{self} has ended with {self.process.poll()}: {self.log.read_text()[-2000:]}"

    def brief(self):
        """For people."""
        state = self.status()
        return f"{self}: " + (", ".join(f"{m['phase']} {m['predecessor'][:4]}<{m['id'][:4]}<{m['successors'][0]}"
                                        for m in state["members"])
                              + f" epoch {state['epoch']}, {state['voters']} voters, ready {state['ready']}"
                              if state else "no answer")

    def status(self):
        self.check()
        done = run_command("node", "status", self.address, "--json", "--patience", "1000")
        return done.json if done.status == 0 else None


class Cluster:
    def __init__(self, folder, n, *options, cuts=True, sanitized=False):
        self.folder, self.options, self.sanitized = folder, options, sanitized
        self.network = Network(n) if cuts and Network.possible() else None
        self.disks = os.geteuid() == 0
        self.members = []
        try:
            for i in range(1, n + 1):
                self.members.append(Member(self, i))
            for m in self.members:
                m.start()
            self.settle()
        except BaseException:
            self.close()
            raise

    def port(self, number):
        """A port of loopback that was free a moment ago, and below 32768, so that nobody is given it by chance."""
        for i in range(750):
            port = 20000 + (os.getpid() * 16 + number + i * 16) % 12000
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port
        raise AssertionError("no port below 32768 is free")

    def order(self):
        return sorted(self.members, key=lambda m: m.id)

    def holders(self, name, n=3):
        """The owner of a name and its successors, if all are there."""
        at, order = place("file:" + name), self.order()
        first = next((i for i, m in enumerate(order) if m.id >= at), 0)
        return [order[(first + i) % len(order)] for i in range(n)]

    def whole(self, members=None, agreed=True):
        """Are these, or all that run, one ring? agreed: on who keeps names, too, and ready for it."""
        members = members or [m for m in self.members if m.process]
        members = sorted(members, key=lambda m: m.id)
        epochs = set()
        for i, m in enumerate(members):
            state = m.status()
            if not state or agreed and not (state["ready"] and state["voters"] == len(members)):
                return False
            epochs.add(state["epoch"] if agreed else 0)
            me = state["members"][0]
            if me["phase"] != "in" or me["predecessor"] != f"{members[i - 1].id:016x}" or \
                    me["successors"][0] != members[(i + 1) % len(members)].address:
                return False
        return len(epochs) == 1

    def settle(self, members=None, agreed=True, log=None):
        until(lambda: self.whole(members, agreed), lambda: [m.brief() for m in members or self.members if m.process], log)

    def exchanged(self, rounds=2, members=None, log=None):
        """Wait until everybody has compared its range with its holders so many times from now on."""
        members = [m for m in members or self.members if m.process]

        def count(m):
            state = m.status()
            return state["exchanges"] if state else -1
        before = {m: count(m) for m in members}
        until(lambda: all(count(m) >= before[m] + rounds or not m.process for m in members),
              lambda: [(m, before[m], count(m)) for m in members], log)

    def cut(self, members):
        for m in members:
            m.aside = True
        self.network.move([m.number for m in members], "aside")

    def join(self, members):
        self.network.move([m.number for m in members], "whole")
        for m in members:
            m.aside = False

    def command(self, verb, *args, at=None, patience=500, inside=None, wait=1000 * PATIENCE):
        """A command of a client; at: members to ask, or those that clients reach; wait: as long as the machine takes, or
        None for what a command does by itself."""
        at = at or [m for m in self.members if m.reached()]
        argv = ["node", verb, *args, "--patience", patience, *(["--wait", wait] if wait else [])]
        for m in at[:4]:
            argv += ["--at", m.address]
        if inside and self.network:
            return run_command(*self.network.inside(inside.number)[1:], PROGRAM, *argv, program="nsenter")
        return run_command(*argv)

    def put(self, name, value, **kw):
        path = self.folder / "value"
        path.write_text(value)
        return self.command("put", path, "--as", name, **kw)

    def get(self, name, **kw):
        return self.command("get", name, **kw)

    def rm(self, name, **kw):
        return self.command("rm", name, **kw)

    def complaints(self):
        """What sanitizers have said."""
        return [line for m in self.members if m.log.exists() for line in m.log.read_text().splitlines()
                if any(word in line for word in ("Sanitizer", "runtime error", "Assertion", "SUMMARY:"))]

    def close(self):
        for m in self.members:
            if m.process:
                m.process.kill()
                m.process.wait()
        for m in self.members:
            if self.disks:
                subprocess.run(["umount", "-l", m.folder], capture_output=True)
        if self.network:
            self.network.close()
