"""traffic digest --listen and traffic trace --ask: routers keep their digests, and are asked over the network. Each of twelve
routers watches an interface of its own, on which its packets are put."""
import json
import os
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM
from test_traffic_block import pytestmark  # noqa: F401
from test_traffic_command import capture, ether, ip4, udp

SCRIPT = """
import json, os, re, signal, socket, subprocess, sys, time
program, odd = sys.argv[1:]
os.environ["PATH"] += ":/usr/sbin:/sbin"
N = 12

def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if ok and done.returncode:
        sys.exit("FAILED " + " ".join(words) + ": " + done.stderr)
    return done

def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s, s.getsockname()[1]

run("ip", "link", "set", "lo", "up")
names = [f"r{i}" for i in range(N)] + ["x"]
for name in names:
    if run("ip", "link", "add", "d" + name, "type", "veth", "peer", "name", "p" + name, ok=False).returncode:
        print(json.dumps(dict(skip="no veth here")))
        sys.exit()
    for end in "dp":
        run("ip", "link", "set", end + name, "up")
held = {name: free_port() for name in names}
ports = {name: port for name, (s, port) in held.items()}
for s, _ in held.values():
    s.close()
links = [(f"r{i}", f"r{i + 1}") for i in range(N - 1)] + [("x", "r5"), ("x", "r0")]
run(program, "node", "key", "key")
with open("nat", "w") as f:
    f.write("10.0.0.5 192.0.2.1\\n")
running = {}

def start(name, *more):
    words = []
    for a, b in links:
        if name in (a, b):
            other = b if a == name else a
            words += ["--neighbour", f"{other}=127.0.0.1:{ports[other]}"]
    nat = ["--nat", "nat"] if name == "r6" else []
    p = subprocess.Popen([program, "traffic", "digest", "-i", "d" + name, "--router", name, "-o", name + ".dig", "--listen",
                          f"127.0.0.1:{ports[name]}", "--ask-key", "key", *words, *nat, *more], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    line = p.stderr.readline()
    if "answers questions" not in line:
        if "NET_RAW" in line or "libsodium" in line:
            print(json.dumps(dict(skip=line)))
            sys.exit()
        sys.exit(line)
    running[name] = p

def put(name, frame):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("p" + name, 0))
    s.send(bytes.fromhex(frame))

def trace(*more, at=None, key=True):
    done = run(program, "traffic", "trace", "--ask", f"127.0.0.1:{ports['r0']}", "--packet", odd, "--json", "--time",
               str(at or time.time()), "--within", "1000", *(["--ask-key", "key"] if key else []), *more, ok=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [done.returncode, rows, done.stderr]

frames = json.load(open("frames"))
out = {}
try:
    for name in names:
        start(name)
    # It came from r11; r6 has translated its source. x has seen another one.
    for i in range(N):
        put(f"r{i}", frames["outside" if i < 6 else "inside"])
    put("x", frames["other"])
    # A capture hands packets over in time.
    while True:
        out["way"] = trace()
        if any(r.get("router") == "r11" and r["answer"] == "maybe" for r in out["way"][1]):
            if any(r.get("router") == "x" and r["answer"] == "no" for r in out["way"][1]):
                break
        time.sleep(0.05)
    out["early"] = trace(at=1000.0)
    out["no_key"] = trace("--patience", "1000", key=False)
    # One is stopped, and then gone: the way ends there, and that is said.
    running["r4"].send_signal(19)
    out["stopped"] = trace("--patience", "300")
    running["r4"].send_signal(18)
    running["r4"].kill()
    running["r4"].wait()
    out["gone"] = trace()
    # Who keeps tables for a second has forgotten what was before.
    began = time.time()
    start("r4", "--keep", "1")
    put("r4", frames["outside"])
    while True:
        out["kept"] = trace("--within", "0.4", at=began)
        if any(r.get("answer") == "forgotten" for r in out["kept"][1]):
            break
        time.sleep(0.05)
    ends = {}
    for name, p in running.items():
        p.terminate()
        p.communicate()
        ends[name] = p.returncode
    out["ends"] = ends
    print(json.dumps(out))
finally:
    for p in running.values():
        p.kill()
        p.wait()
"""


def test_routers_are_asked(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    body = udp(b"an odd packet, of which there is only one")
    frames = {"inside": ether(ip4(body, 17, src="10.0.0.5")), "outside": ether(ip4(body, 17, src="192.0.2.1")),
              "other": ether(ip4(udp(b"something else, which is not asked for"), 17, src="192.0.2.1"))}
    (tmp_path / "frames").write_text(json.dumps({k: v.hex() for k, v in frames.items()}))
    path = capture(tmp_path / "odd.pcap", [frames["outside"]])
    done = subprocess.run(["unshare", "-n", sys.executable, "-c", SCRIPT, PROGRAM, path], capture_output=True, text=True,
                          cwd=tmp_path, timeout=PATIENCE, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "skip" in told:
        pytest.skip(told["skip"])
    status, rows, said = told["way"]
    assert status == 0, said
    steps, end = {r["router"]: r for r in rows[:-1]}, rows[-1]
    for i in range(12):
        step = steps[f"r{i}"]
        assert step["hops"] == i and step["from"] == (f"r{i - 1}" if i else None)
        assert step["answer"] == ("changed" if i == 6 else "maybe") and step["last"] == (i == 11)
    assert steps["r6"]["change"] == "nat" and steps["x"]["answer"] == "no"
    assert end == {"asked": 13, "passed": 12, "last": 1, "silent": 0, "forgotten": 0, "absent": 0}
    # Nobody has tables of 1970; without the secret nobody answers.
    assert told["early"][0] == 2 and told["early"][1][0]["answer"] == "no table"
    assert told["no_key"][0] == 2 and told["no_key"][1][0]["answer"] == "no answer"
    for how in "stopped", "gone":
        status, rows, said = told[how]
        steps = {r["router"]: r for r in rows[:-1]}
        assert status == 0 and steps["r4"]["answer"] == "no answer" and "r5" not in steps
        assert rows[-1]["absent"] == 1 and "r4" in said
    assert {r["answer"] for r in told["kept"][1][:-1] if r["router"] == "r4"} == {"forgotten"}
    assert set(told["ends"].values()) <= {0, -9}


def test_wrong_uses(trouble, ok, tmp_path):
    path = capture(tmp_path / "c", [ether(ip4(udp(b"x"), 17))])
    trouble("traffic", "digest", path, "-o", "d.dig", "--listen", "0", says="--interface")
    trouble("traffic", "digest", path, "-o", "d.dig", "--neighbour", "a=127.0.0.1:1", says="--listen")
    trouble("traffic", "trace", "--ask", "127.0.0.1:1", says="--packet")
    trouble("traffic", "trace", "--ask", "127.0.0.1:1", "--packet", path, "--from", "r1", says="--ask needs no files")
    trouble("traffic", "trace", "--ask", "nowhere", "--packet", path, says="nowhere")
    # Tables of a capture age by its own clock.
    ok("traffic", "digest", path, "-o", "d.dig", "--keep", "5")
