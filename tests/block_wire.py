"""Two network namespaces, joined by a veth pair, for tests of what the kernel drops: the receiver is this process, its
interface v0 has 10.9.0.1 and fd00::1; the sender's v1 has what the test asks for. Run as a program under unshare -n -m,
with the name of a scenario of one of the tests, so that nothing is left behind: see wire() in test_block_changes.py."""
import json
import os
import select
import socket
import subprocess
import sys
import time

PROGRAM = os.environ.get("BLOOMERY", "")
SO_RCVBUFFORCE = 33  # which the module does not name
SENDER = """
import select, socket, sys, time
socks = {}
def sock(source):
    if source not in socks:
        kind = socket.AF_INET6 if ":" in source else socket.AF_INET
        socks[source] = socket.socket(kind, socket.SOCK_DGRAM)
        socks[source].bind((source, 0))
    return socks[source]
for line in sys.stdin:
    for source in line.split():
        sock(source).sendto(source.encode(), ("fd00::1" if ":" in source else "10.9.0.1", 5555))
    print(flush=True)
"""


# As many packets per second as there are senders, two each; with "attack", one of them sends fifty times as much.
LOAD = """
import os, select, socket, sys, time
bad, good = sys.argv[1], sys.argv[2:]
def sock(source):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    return s
socks = [(s, sock(s)) for s in good]
attacker, attack, n, sent = sock(bad), False, 0, 0
while True:
    for source, s in socks:
        s.sendto(source.encode(), ("10.9.0.1", 5555))
        n += 1
        if attack and n % 20 == 0:
            attacker.sendto(bad.encode(), ("10.9.0.1", 5555))
        time.sleep(0.5 / len(socks))
    if select.select([sys.stdin], [], [], 0)[0]:
        word = sys.stdin.readline().strip()
        if word not in ("attack", "peace"):
            break
        attack = word == "attack"
        print(n // len(socks), flush=True)
print(n // len(socks), flush=True)
"""
# Packets whose sources are not those of the host: "N COUNT" sends COUNT from each of N.
FORGED = """
import random, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("v1", 0))
rng = random.Random(7)
for line in sys.stdin:
    n, count = map(int, line.split())
    for _ in range(n):
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, rng.randbytes(4), bytes([10, 9, 0, 1]))
        for _ in range(count):
            s.send(bytes.fromhex(sys.argv[1]) + bytes(6) + b"\\x08\\0" + ip + bytes(8))
    print(flush=True)
"""


def run(*words, ok=True, **kw):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **kw)
    if ok and done.returncode:
        sys.exit("FAILED " + " ".join(words) + ": " + done.stderr)
    return done


def skip(why):
    print(json.dumps({"skip": why}))
    sys.exit(0)


class Wire:
    def __init__(self, addresses):
        if run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf", ok=False).returncode:
            skip("no bpf file system here")
        self.other = subprocess.Popen(["unshare", "-n", "sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        while os.stat(f"/proc/{self.other.pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
            time.sleep(0.02)
        if run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", ok=False).returncode:
            skip("no veth here")
        run("ip", "link", "set", "v1", "netns", str(self.other.pid))
        self.batch(["link set lo up", "link set v0 up", "addr add 10.9.0.1/16 dev v0", "addr add fd00::1/64 dev v0 nodad"])
        self.batch(["link set v1 up"] + [f"addr add {a}/{'64' if ':' in a else '16'} dev v1" + (" nodad" if ":" in a else "")
                                         for a in addresses], self.there())
        self.four, self.six = (socket.socket(kind, socket.SOCK_DGRAM) for kind in (socket.AF_INET, socket.AF_INET6))
        for s, address in (self.four, "10.9.0.1"), (self.six, "fd00::1"):
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            s.bind((address, 5555))
        self.sender = subprocess.Popen([*self.there(), sys.executable, "-c", SENDER], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def there(self):
        return ["nsenter", "-t", str(self.other.pid), "-n"]

    def batch(self, lines, there=()):
        run(*there, "ip", "-batch", "-", input="\n".join(lines))

    def send(self, *sources):
        self.sender.stdin.write(" ".join(sources) + "\n")
        self.sender.stdin.flush()
        self.sender.stdout.readline()

    def waiting(self):
        got = []
        while ready := select.select([self.four, self.six], [], [], 0)[0]:
            for s in ready:
                got.append(s.recv(2000).decode(errors="replace"))
        return got

    def heard(self, mark, *sources):
        """Who of these is heard: `mark`, who passes, sends last, so that what comes has come. A receiver that is busy with
        the backlog of one socket may have that of the other before."""
        got = set()
        self.waiting()
        self.send(*sources, *mark)
        waits = set(mark)
        while waits:
            select.select([self.four, self.six], [], [])
            new = self.waiting()
            got |= set(new)
            waits -= set(new)
        return sorted(got - set(mark))

    def start(self, script, *words):
        return subprocess.Popen([*self.there(), sys.executable, "-c", script, *words], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)

    def close(self):
        self.sender.kill()
        self.sender.wait()
        self.other.kill()
        self.other.wait()


def block(*words, ok=True, **kw):
    return run(PROGRAM, "traffic", "block", *words, ok=ok, **kw)


def told(*words, **kw):
    done = block(*words, "--json", ok=False, **kw)
    return [done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr]


MARK = ["10.9.9.9", "fd00::99"]


def changes():
    """Additions, releases, times and prefixes, while the program stays."""
    w = Wire(["10.9.0.2", "10.9.0.3", "10.9.1.5", "10.9.1.6", "fd00::2", "fd00::3", "fd00::1:5", *MARK])
    all_ = "10.9.0.2", "10.9.0.3", "10.9.1.5", "10.9.1.6", "fd00::2", "fd00::3", "fd00::1:5"
    out = {}
    try:
        out["before"] = w.heard(MARK, *all_)
        with open("list", "w", encoding="ascii") as f:
            f.write("10.9.0.2\nfd00::2\n10.9.0.3 timeout 2\nadd x 10.9.1.0/24 timeout 86400\n")
        began = time.monotonic()
        first = block("--xdp", "v0", "list", ok=False)
        if first.returncode:
            skip(first.stderr.strip())
        out["attached"] = w.heard(MARK, *all_)
        out["status"] = told("--status", "v0")
        while "10.9.0.3" not in w.heard(MARK, "10.9.0.3"):
            time.sleep(0.05)
        out["expired"] = time.monotonic() - began
        out["others"] = w.heard(MARK, *all_)
        out["released"] = told("--release", "v0", "10.9.0.2", "fd00::2", "10.9.1.0/24", "192.0.2.1")
        out["free"] = w.heard(MARK, *all_)
        out["none"] = told("--release", "v0", "10.9.0.2")
        # A prefix of a new length needs another program; the same maps go on.
        out["added"] = told("--add", "v0", "10.9.1.4/31", "fd00::1:0/112", "10.9.0.2")
        out["after"] = w.heard(MARK, *all_)
        out["part"] = told("--release", "v0", "10.9.1.5")
        # A new list takes the place of the old one; what was added stays, and so does what was released.
        with open("second", "w", encoding="ascii") as f:
            f.write("10.9.0.3\nfd00::2\n")
        block("--xdp", "v0", "second")
        out["second"] = w.heard(MARK, *all_)
        out["counts"] = told("--status", "v0")
        out["again"] = told("--add", "v0", "fd00::2", "--ttl", "1000")
        out["listed"] = w.heard(MARK, *all_)
        # What a whole list is loaded for.
        block("-o", "bly.bly", "second")
        block("--detach", "v0")
        began = time.monotonic()
        block("--xdp", "v0", "bly.bly", "--ttl", "2")
        out["bly"] = w.heard(MARK, *all_)
        while "10.9.0.3" not in w.heard(MARK, "10.9.0.3"):
            time.sleep(0.05)
        out["bly_expired"] = time.monotonic() - began
        out["bly_after"] = w.heard(MARK, *all_)
        block("--detach", "v0")
        out["end"] = w.heard(MARK, *all_)
        out["pins"] = os.path.exists("/sys/fs/bpf/bloomery")
        print(json.dumps(out))
    finally:
        w.close()


def only():
    """An allow list, and those who always pass; what IPv6 and IPv4 need passes, too."""
    w = Wire(["10.9.0.2", "10.9.0.3", "10.9.0.4", "fd00::2", "fd00::3", "fd00::4", *MARK])
    all_ = "10.9.0.2", "10.9.0.3", "10.9.0.4", "fd00::2", "fd00::3", "fd00::4"
    out = {}
    try:
        with open("list", "w", encoding="ascii") as f:
            f.write("10.9.0.2\nfd00::2\n10.9.9.9\nfd00::99\n")
        with open("allow", "w", encoding="ascii") as f:
            f.write("10.9.0.3\nfd00::3\n")
        first = block("--xdp", "v0", "list", "--only", "--allow", "allow", ok=False)
        if first.returncode:
            skip(first.stderr.strip())
        # Nobody knows anybody's address on the link: ARP and neighbour discovery must come through.
        for there in [], w.there():
            run(*there, "ip", "neigh", "flush", "all")
        out["only"] = w.heard(MARK, *all_)
        out["status"] = told("--status", "v0")
        block("--add", "v0", "10.9.0.4")
        out["added"] = w.heard(MARK, *all_)
        block("--release", "v0", "10.9.0.2")
        out["released"] = w.heard(MARK, *all_)
        with open("none", "w", encoding="ascii") as f:
            f.write("# nobody\n")
        out["empty"] = told("--xdp", "v0", "none", "--only")
        out["locked"] = told("--xdp", "v0", "list", "--only", env=os.environ | {"SSH_CONNECTION": "192.0.2.7 22 10.9.0.1 22"})
        out["open"] = told("--xdp", "v0", "list", "--only", env=os.environ | {"SSH_CONNECTION": "10.9.0.2 22 10.9.0.1 22"})
        print(json.dumps(out))
    finally:
        w.close()


def room():
    """More entries than there is room for, and a million of them, which come and go."""
    w = Wire(["10.9.0.2", *MARK])
    out = {}
    try:
        first = block("--xdp", "v0", "--empty", "--items", "256", ok=False)
        if first.returncode:
            skip(first.stderr.strip())
        with open("many", "w", encoding="ascii") as f:
            f.write("".join(f"198.18.{i >> 8}.{i & 255} timeout 1\n" for i in range(2000)))
        out["many"] = told("--add", "v0", "many")
        out["status"] = told("--status", "v0")
        out["items"] = told("--xdp", "v0", "--empty", "--items", "1000000")
        # Places of what has expired are used again.
        while told("--status", "v0")[1]["entries"]:
            time.sleep(0.05)
        with open("some", "w", encoding="ascii") as f:
            f.write("".join(f"198.19.{i >> 8}.{i & 255}\n" for i in range(200)) + "10.9.0.2\n")
        out["some"] = told("--add", "v0", "some")
        out["stopped"] = w.heard(MARK, "10.9.0.2")
        block("--detach", "v0")
        block("--xdp", "v0", "--empty", "--items", "100000")
        out["adds"] = [told("--add", "v0", "-", input="".join(
            f"198.{18 + (j >> 16)}.{j >> 8 & 255}.{j & 255} timeout 1\n" for j in range(100000)))[:2] for i in range(2)]
        # Every length of IPv4, and as many of IPv6 as the kernel takes.
        block("--detach", "v0")
        with open("lengths", "w", encoding="ascii") as f:
            f.write("".join(f"198.51.100.0/{n}\n" for n in range(8, 33)) + "".join(f"2001:db8::/{n}\n" for n in range(97, 129)))
        block("--xdp", "v0", "lengths")
        out["lengths"] = told("--add", "v0", "lengths")
        out["longer"] = told("--add", "v0", "2001:db8::/20")
        out["heard"] = w.heard(MARK, "10.9.0.2")
        print(json.dumps(out))
    finally:
        w.close()


class Guard:
    def __init__(self, *words):
        self.process = subprocess.Popen([PROGRAM, "traffic", "guard", "-i", "v0", "--json", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        while "warning" in self.said:
            self.said = self.process.stderr.readline()
        if "until a signal" not in self.said:
            skip(self.said.strip())

    def event(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.terminate()
        out, said = self.process.communicate()
        return [self.process.returncode, [json.loads(line) for line in out.splitlines()], said]


def say(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def guard():
    """One who sends fifty times as much as each of a thousand others, until he stops."""
    good = [f"10.9.{16 + i // 250}.{1 + i % 250}" for i in range(1000)]
    bad = "10.9.0.66"
    w = Wire([*good, bad, *MARK])
    out = {}
    try:
        g = Guard("--packet-rate", "10", "--ttl", "1")
        load = w.start(LOAD, bad, *good)
        say(load, "peace")
        say(load, "attack")
        began = time.monotonic()
        out["block"] = g.event()
        out["blocked_after"] = time.monotonic() - began
        # Longer than the time for which one is blocked: it goes on, and so does the block.
        rounds = int(say(load, "attack"))
        while int(say(load, "attack")) < rounds + 3:
            pass
        say(load, "peace")
        began = time.monotonic()
        out["release"] = g.event()
        out["released_after"] = time.monotonic() - began
        out["rounds"] = int(say(load, "end"))
        load.wait()
        got = w.waiting()
        out["good"] = sorted({got.count(source) for source in good})
        out["bad"] = got.count(bad)
        out["free"] = w.heard(MARK, bad)
        out["end"] = g.end()
        out["pins"] = os.path.exists("/sys/fs/bpf/bloomery")
        print(json.dumps(out))
    finally:
        w.close()


def flood(sender, process, source, event):
    """Send until there is an event of the guard."""
    while not select.select([process.stdout], [], [], 0)[0]:
        sender.send(*[source] * 5)
        time.sleep(0.01)
    return event()


def guards():
    """What may go wrong: forged senders, a dry run, a guard that is killed, a list that is there, an interface that goes."""
    bad = "10.9.0.66"
    w = Wire([bad, "10.9.0.2", *MARK])
    out = {}
    try:
        with open("allow", "w", encoding="ascii") as f:
            f.write("10.9.9.9\nfd00::99\n")
        often = "--packet-rate", "10", "--ttl", "1", "--allow", "allow"
        g = Guard(*often, "--dry-run")
        out["dry"] = flood(w, g.process, bad, g.event)
        out["dry_heard"] = w.heard(MARK, bad)
        out["dry_end"] = g.end()
        # Of many sources with a packet each nobody is blocked; of many that send too much, as many as there is room for.
        mac = run("ip", "-j", "link", "show", "v0").stdout
        forged = w.start(FORGED, json.loads(mac)[0]["address"].replace(":", ""))
        g = Guard(*often, "--entries", "50", "--counters", "64")
        say(forged, "5000 1")
        say(forged, "300 50")
        out["forged"] = []
        while not any(e["event"] == "no room" for e in out["forged"]):
            out["forged"].append(g.event())
        out["forged_end"] = g.end()
        forged.kill()
        forged.wait()
        # Killed: the kernel releases by itself.
        g = Guard(*often)
        out["kill"] = flood(w, g.process, bad, g.event)
        g.process.kill()
        g.process.communicate()
        while not w.heard(MARK, bad):
            time.sleep(0.05)
        block("--detach", "v0")
        # A list that is there goes on, with its entries and its exceptions.
        with open("list", "w", encoding="ascii") as f:
            f.write("10.9.0.2\n")
        block("--xdp", "v0", "list")
        g = Guard(*often, "--key", "prefix/27")
        out["with"] = flood(w, g.process, bad, g.event)
        out["with_heard"] = w.heard(MARK, bad, "10.9.0.2")
        # Another list takes its place, and those who are blocked stay blocked.
        block("--xdp", "v0", "list", "--allow", "allow")
        out["still_heard"] = w.heard(MARK, bad, "10.9.0.2")
        out["with_end"] = g.end()
        out["left"] = told("--status", "v0")
        block("--detach", "v0")
        g = Guard(*often)
        block("--detach", "v0")
        out["detached"] = [g.process.wait(), g.process.communicate()[1]]
        g = Guard(*often)
        run("ip", "link", "del", "v0")
        out["gone"] = [g.process.wait(), g.process.communicate()[1]]
        print(json.dumps(out))
    finally:
        w.close()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
