"""bloomery traffic scan: strings in files and captures, beside an automaton,
grep, and a plain search."""

import json
import os
import random
import struct
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM
from test_traffic_command import capture, ether, ip4, udp

FIRST = 1000


def segment(sequence, payload, flags=16, source=1234):
    return ip4(struct.pack(">HHIIBBHHH", source, 80, sequence, 1, 0x50, flags,
                           99, 0, 0) + payload)


def matches(bly, *argv, status=0):
    """[(offset, rule)], and the summary."""
    got = bly("traffic", "scan", "--json", *argv)
    assert got.status == status, got.err
    lines = [json.loads(x) for x in got.out.splitlines()]
    return [(x["offset"], x["rule"]) for x in lines[:-1]], lines[-1]


@pytest.fixture
def strings(tmp_path):
    path = tmp_path / "strings"
    path.write_text("attack\nvirus-in-a-stream\nab\n")
    return path


def test_files(bly, strings, tmp_path):
    text = tmp_path / "text"
    text.write_bytes(b"no\nan attack, an Attack: abab")
    assert matches(bly, "--strings", strings, text)[0] == \
        [(6, 1), (25, 3), (27, 3)]
    assert matches(bly, "--strings", strings, "--nocase", text)[0] == \
        [(6, 1), (17, 1), (25, 3), (27, 3)]
    got = bly("traffic", "scan", "--strings", strings, text)
    assert got.out.splitlines()[0] == f"{text} 6: 1 attack"
    assert "3 matches of 3 strings" in got.err
    text.write_bytes(b"nothing")
    assert matches(bly, "--strings", strings, text, status=1)[0] == []


def test_pieces_and_packing(bly, tmp_path):
    """Strings across the blocks that a file is read in, and gzip."""
    chance = random.Random(5)
    text = bytearray(chance.choices(b"abcdefgh \n", k=700_000))
    words = [bytes(chance.choices(b"abcdefgh", k=n)) for n in range(9, 300)]
    for at, word in zip(range(262_000, 700_000, 1500), words):
        text[at:at + len(word)] = word
    for word in words[:20]:
        text[262_144 - 5:262_144 - 5 + len(word)] = word
    plain = tmp_path / "text"
    plain.write_bytes(text)
    subprocess.run(["gzip", "-k", plain], check=True, timeout=PATIENCE)
    (tmp_path / "words").write_bytes(b"\n".join(words) + b"\n")
    right = sorted(occurrences(bytes(text), words))
    for form in [], ["--automaton"], ["--per-length"], ["--seed", 7]:
        assert sorted(matches(bly, "--strings", tmp_path / "words", *form,
                              plain)[0]) == right
    assert sorted(matches(bly, "--strings", tmp_path / "words",
                          f"{plain}.gz")[0]) == right


def occurrences(text, words):
    for number, word in enumerate(words, 1):
        at = text.find(word)
        while at >= 0:
            yield at, number
            at = text.find(word, at + 1)


def test_as_grep(bly, tmp_path):
    """Lines with a match are those that grep -F finds."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcd", k=chance.randint(3, 9)))
             for _ in range(400)]
    lines = ["".join(chance.choices("abcd", k=30)) for _ in range(3000)]
    (tmp_path / "w").write_text("\n".join(words) + "\n")
    (tmp_path / "t").write_text("\n".join(lines) + "\n")
    found = subprocess.run(
        ["grep", "-n", "-F", "-f", "w", "t"], cwd=tmp_path, text=True,
        capture_output=True, timeout=PATIENCE).stdout.splitlines()
    mine = {at // 31 + 1 for at, _ in
            matches(bly, "--strings", tmp_path / "w", tmp_path / "t")[0]}
    assert mine == {int(x.split(":")[0]) for x in found}


def test_rules(bly, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text(
        '# comment\n'
        'alert tcp any any -> any 80 (msg:"a"; content:"G|45|T |2F|"; '
        'nocase; depth:5; sid:11;)\n'
        'alert tcp any any -> any 80 (content:"evil",offset 10; sid:12;)\n'
        'alert tcp any any -> any 80 (content:!"absent"; sid:13;)\n')
    text = tmp_path / "text"
    text.write_bytes(b"get /evil evil get /")
    found, total = matches(bly, "--rules", rules, text)
    assert found == [(0, 11), (10, 12)]
    assert total["absent"] == 1


@pytest.mark.parametrize("text, why", [
    ("content:abc", "line 1"), ('\ncontent:"|4|"', "line 2"), ("", "no strings"),
    ("attack\nvirus", "--strings"),
    ('content:"' + "x" * 5000 + '"', "4096"),
], ids=range(5))
def test_bad_rules(bly, tmp_path, text, why):
    (tmp_path / "rules").write_text(text)
    got = bly("traffic", "scan", "--rules", tmp_path / "rules", "/dev/null")
    assert got.status == 2 and why in got.err


def test_bad_calls(bly, strings, tmp_path):
    for words in (["x"], ["--strings", strings],
                  ["--strings", strings, "--rules", strings, "x"],
                  ["--rules", strings, "--nocase", "x"],
                  ["--strings", tmp_path / "none", "x"],
                  ["--strings", strings, tmp_path / "none"],
                  ["--strings", strings, "--automaton", "--per-length", "x"]):
        got = bly("traffic", "scan", *words)
        assert got.status == 2 and got.err.startswith("bloomery: traffic: ")


# ------------------------------------------------------------------ captures

def whole(*packets):
    return [ether(x) for x in packets]


STREAM = b"GET / a virus-in-a-stream of bytes attack"


def test_streams(bly, strings, tmp_path):
    """Strings across segments, whatever order these come in."""
    pieces = [(i, STREAM[i:i + 5]) for i in range(0, len(STREAM), 5)]
    orders = [pieces, pieces[::-1], pieces + pieces, random.Random(3).sample(
        pieces, len(pieces))]
    for first in FIRST, 2**32 - 20:
        for order in orders:
            path = capture(tmp_path / "c", whole(
                segment((first - 1) % 2**32, b"", 2),
                *(segment((first + i) % 2**32, x) for i, x in order)))
            found, total = matches(bly, "--strings", strings, path)
            assert found == [(8, 2), (35, 1)]
            assert (total["streams"], total["gaps"]) == (1, 0)


def test_two_versions(bly, strings, tmp_path):
    """What is sent again does not count."""
    path = capture(tmp_path / "c", whole(
        segment(FIRST, b"", 2), segment(FIRST + 1, b"atta"),
        segment(FIRST + 1, b"xxxxck"), segment(FIRST + 7, b"!")))
    assert matches(bly, "--strings", strings, path)[0] == [(0, 1)]


def test_gaps(bly, strings, tmp_path):
    """Nothing is found across missing bytes, but behind them it is."""
    path = capture(tmp_path / "c", whole(
        segment(FIRST, b"", 2), segment(FIRST + 1, b"atta"),
        segment(FIRST + 9, b"ck attack")))
    found, total = matches(bly, "--strings", strings, path)
    assert found == [(11, 1)] and total["gaps"] == 1
    cut = [x[:14 + 40 + 4] if i == 1 else x for i, x in enumerate(whole(
        segment(FIRST, b"", 2), segment(FIRST + 1, b"attack"),
        segment(FIRST + 7, b"ck")))]
    path = capture(tmp_path / "c", cut)
    found, total = matches(bly, "--strings", strings, path, status=1)
    assert total["cut"] == 1 and total["gaps"] == 1


def test_packets(bly, strings, tmp_path):
    """Without TCP, packets are texts of their own; so are fragments."""
    path = capture(tmp_path / "c", whole(
        ip4(udp(b"atta"), 17), ip4(udp(b"ck attack"), 17),
        ip4(b"xattack", 17, fragment=9)))
    got = bly("traffic", "scan", "--strings", strings, path)
    assert got.out.splitlines() == [
        f"{path} udp 10.0.0.1:4000 > 10.0.0.2:53 packet 2 3: 1 attack",
        f"{path} udp 10.0.0.1 > 10.0.0.2 packet 3 1: 1 attack"]
    assert "1 fragments" in got.err
    assert matches(bly, "--strings", strings, "--raw", path)[1]["packets"] == 0


def test_memory(bly, strings, tmp_path):
    """Streams that are forgotten are said."""
    path = capture(tmp_path / "c", whole(
        *(segment(FIRST, b"atta", source=1000 + i) for i in range(300))))
    got = bly("traffic", "scan", "--strings", strings, "--memory", 20_000,
              path)
    assert got.status == 2 and "--memory" in got.err
    assert matches(bly, "--strings", strings, path, status=1)[1]["evicted"] == 0


def test_damaged(bly, strings, tmp_path):
    path = capture(tmp_path / "c", whole(ip4(udp(b"attack"), 17)) * 3)
    path.write_bytes(path.read_bytes()[:-3])
    got = bly("traffic", "scan", "--strings", strings, path)
    assert got.status == 2 and got.out.count("attack") == 2


def test_an_interface(strings, tmp_path):
    """A string in packets on the loopback of a namespace of its own, sent until
    it is found. Both are told to end when they catch the signal: before, it
    would end them without a result."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    script = f"""
ip link set lo up || exit 77
{PROGRAM} traffic scan --interface lo --strings {strings} > out &
scanner=$!
{PROGRAM} traffic digest -q --interface lo -o lo.dig &
exec python3 - $scanner $! <<'END'
import os, re, signal, socket, sys, time
def catches(pid):
    with open("/proc/" + pid + "/status") as f:
        caught = re.search(r"SigCgt:\\s*(\\w+)", f.read())[1]
    return int(caught, 16) >> signal.SIGTERM - 1 & 1
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + {PATIENCE / 4}
while time.monotonic() < end and not (
        os.path.getsize("out") and all(map(catches, sys.argv[1:]))):
    s.sendto(b"an attack", ("127.0.0.1", 9))
    time.sleep(0.1)
for pid in sys.argv[1:]:
    os.kill(int(pid), signal.SIGTERM)
END
"""
    done = subprocess.run(["unshare", "-n", "sh", "-c", script], cwd=tmp_path,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    assert " 3: 1 attack\n" in (tmp_path / "out").read_text()
    end = time.monotonic() + PATIENCE / 4
    while not (tmp_path / "lo.dig").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert (tmp_path / "lo.dig").read_bytes().startswith(b"BLYDIG1")


def test_without_libpcap(bare, bly, strings, tmp_path):
    """Files are scanned and queues simulated all the same; captures are not."""
    (tmp_path / "text").write_bytes(b"an attack")
    assert matches(lambda *argv: bly(*argv, program=bare), "--strings",
                   strings, "text")[0] == [(3, 1)]
    assert bly("traffic", "queue", "--flows", 3, "--rate", "1M",
               program=bare).status == 0
    capture(tmp_path / "c", whole(ip4(udp(b"attack"), 17)))
    for verb in (["scan", "--strings", strings, "c"], ["queue", "c"],
                 ["digest", "-o", "d", "c"], ["trace", "d"],
                 ["scan", "--strings", strings, "--interface", "lo"]):
        got = bly("traffic", *verb, program=bare)
        assert got.status == 2 and "libpcap" in got.err
