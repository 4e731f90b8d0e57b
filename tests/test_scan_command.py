"""bloomery traffic scan: strings in files and captures, beside an automaton,
grep, and a plain search."""

import json
import os
import random
import struct
import subprocess

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
    """What is sent again does not take the place of what was there."""
    path = capture(tmp_path / "c", whole(
        segment(FIRST, b"", 2), segment(FIRST + 1, b"atta"),
        segment(FIRST + 1, b"xxxxck"), segment(FIRST + 7, b"!")))
    assert matches(bly, "--strings", strings, path, status=2)[0] == [(0, 1)]


def scanned(bly, strings, path, *packets):
    """Matches and summary of a capture, the status and what is printed."""
    got = bly("traffic", "scan", "--json", "--strings", strings,
              capture(path, whole(*packets)))
    lines = [json.loads(x) for x in got.out.splitlines()]
    return [(x["offset"], x["rule"]) for x in lines[:-1]], lines[-1], got


def in_pieces(first, text, size):
    return [segment((first + i) % 2**32, text[i:i + size])
            for i in range(0, len(text), size)]


def test_two_versions_differ(bly, strings, tmp_path):
    """Which of two versions a receiver took cannot be known: both are looked
    at, and a string across segments of the second may be missed, which is
    said. Bytes that are sent again unchanged are no trouble."""
    begin = segment(FIRST, b"", 2)
    for fakes in ([segment(FIRST + 1, b"xxxxxx")],
                  [segment(FIRST + 1, b"x")],
                  [segment(FIRST + 2, b"xxx"), segment(FIRST + 1, b"x")]):
        found, total, got = scanned(
            bly, strings, tmp_path / "c", begin, *fakes,
            segment(FIRST + 1, b"attack"), segment(FIRST + 7, b"!"))
        assert (0, 1) in found and got.status == 2
        assert 1 <= total["changed"] <= 6 and "other values" in got.err
    found, total, got = scanned(
        bly, strings, tmp_path / "c", begin, segment(FIRST + 1, b"xxxxxx"),
        segment(FIRST + 1, b"att"), segment(FIRST + 4, b"ack"))
    assert got.status == 2 and total["changed"] == 6
    same = [segment(FIRST + 1, b"attack"), segment(FIRST + 3, b"tack no"),
            segment(FIRST + 1, b"attack no")]
    found, total, got = scanned(bly, strings, tmp_path / "c", begin, *same)
    assert found == [(0, 1)] and got.status == 0
    assert total["changed"] == total["late"] == 0


def test_late_segments(bly, strings, tmp_path):
    """A segment is found however late it comes. So late that the stream has
    gone on without it, it is looked at by itself, which is said."""
    begin = segment(FIRST, b"", 2)
    rest = in_pieces(FIRST + 7, b"." * 300, 1)
    found, total, got = scanned(bly, strings, tmp_path / "c", begin, *rest,
                                segment(FIRST + 1, b"attack"))
    assert found == [(0, 1)] and got.status == 0 and total["gaps"] == 0
    rest = in_pieces(FIRST + 7, b"." * 5000, 1)
    found, total, got = scanned(bly, strings, tmp_path / "c", begin, *rest,
                                segment(FIRST + 1, b"attack"))
    assert found == [(0, 1)] and got.status == 2
    assert total["late"] == 6 and total["gaps"] == 1 and "too late" in got.err
    # What is not there is not found, but that is no all-clear.
    found, total, got = scanned(bly, strings, tmp_path / "c", begin, *rest,
                                segment(FIRST + 1, b"attic."))
    assert found == [] and got.status == 2


@pytest.mark.parametrize("ahead", [2_000, 1_100_000, 20_000_000, 2**30, 2**31,
                                   -5_000_000, -2**30])
def test_injected_segments(bly, strings, tmp_path, ahead):
    """A segment that a receiver drops since it lies outside of its window does
    not hide what comes behind it, in whatever order."""
    fake = segment((FIRST + ahead) % 2**32, b"nothing")
    pieces = in_pieces(FIRST + 1, STREAM, 5)
    for order in pieces, pieces[::-1]:
        for at in 0, 1, 4:
            found, _, _ = scanned(
                bly, strings, tmp_path / "c", segment(FIRST, b"", 2),
                *order[:at], fake, *order[at:])
            assert found == [(8, 2), (35, 1)]


@pytest.mark.parametrize("forged", [
    [(50, 2)], [(4, 2)], [(-4, 2)], [(2**31, 2)], [(9_000_000, 2)],
    [(5 * i + 1, 2) for i in range(-5, 20)],
    [(200_000_000 * i, 2) for i in range(20)],
    [(0, 4)], [(0, 1)], [(0, 4), (-1, 2)], [(0, 4), (70_000, 2)],
    [(0, 4)] + [(200_000_000 * i, 2) for i in range(1, 20)],
], ids=range(12))
def test_forged_beginnings_and_ends(bly, strings, tmp_path, forged):
    """SYN, FIN and RST that a receiver refuses hide nothing: a string across
    them is found, or the status is 2."""
    pieces = in_pieces(FIRST + 1, STREAM, 5)
    for order in pieces, pieces[:2] + pieces[3:1:-1] + pieces[4:]:
        for at in range(0, len(order), 2):
            # Forged ones lie at the next byte, or so far from it.
            begun = [segment((FIRST + 1 + 5 * at + by) % 2**32, b"", flags)
                     for by, flags in forged]
            found, _, got = scanned(
                bly, strings, tmp_path / "c", segment(FIRST, b"", 2),
                *order[:at], *begun, *order[at:])
            assert {(8, 2), (35, 1)} <= set(found) or got.status == 2


def test_ports_used_again(bly, strings, tmp_path):
    """A connection that begins with the ports of one that has ended is a
    stream of its own, from 0 on, also if its numbers are near the old ones."""
    end = segment(FIRST + 1 + len(STREAM), b"", 1)
    for first in 700_000_000, FIRST + len(STREAM) + 65_538, 2**32 - 10:
        found, total, got = scanned(
            bly, strings, tmp_path / "c", segment(FIRST, b"", 2),
            *in_pieces(FIRST + 1, STREAM, 5), end,
            segment(first, b"", 2), *in_pieces(first + 1, STREAM, 5))
        assert found == 2 * [(8, 2), (35, 1)] and got.status == 0
        assert total["streams"] == 2 and total["gaps"] == 0


def test_without_a_beginning(bly, strings, tmp_path):
    """What comes before the first segment that was captured is looked at."""
    found, total, got = scanned(bly, strings, tmp_path / "c",
                                segment(FIRST + 20, b"some bytes"),
                                segment(FIRST, b"...an attack........"),
                                segment(FIRST + 30, b" attack"))
    assert sorted(found) == [(6, 1), (11, 1)] and got.status == 2
    assert total["late"] == 20
    # The beginning itself may come late.
    found, total, got = scanned(bly, strings, tmp_path / "c",
                                segment(FIRST + 1, b"att"),
                                segment(FIRST, b"", 2),
                                segment(FIRST + 4, b"ack"))
    assert found == [(0, 1)] and got.status == 0


def test_nothing_hides(bly, strings, tmp_path):
    """All of it at once: whatever forged segments lie between those of a
    stream, its strings are found or the status is 2; a string within one
    segment is always found."""
    chance = random.Random(8)
    for _ in range(60):
        size = chance.choice([3, 7, 30])
        packets = in_pieces(FIRST + 1, STREAM, size)
        for i in range(len(packets) - 1):
            if chance.random() < 0.2:
                packets[i], packets[i + 1] = packets[i + 1], packets[i]
        for _ in range(chance.randint(1, 8)):
            by = chance.choice([0, 0, 1, -3, 50, 3000, 1 << 21, 1 << 25,
                                1 << 30, -(1 << 30)]) + \
                chance.randrange(len(STREAM))
            text = bytes(chance.choices(b"abkt", k=chance.randint(0, 9)))
            packets.insert(chance.randrange(len(packets) + 1), segment(
                (FIRST + 1 + by) % 2**32, text,
                chance.choice([16, 16, 2, 18, 4, 1, 17])))
        packets.insert(chance.randrange(len(packets) + 1), segment(
            FIRST + 1 + chance.randrange(60), b"an attack"))
        if chance.random() < 0.7:
            packets.insert(0, segment(FIRST, b"", 2))
        found, _, got = scanned(bly, strings, tmp_path / "c", *packets)
        assert 1 in {rule for _, rule in found}
        assert 2 in {rule for _, rule in found} or got.status == 2


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
    assert "1 fragment, " in got.err and got.status == 2
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
exec python3 - <<'END'
import os, signal, socket, subprocess, time
both = [subprocess.Popen(["{PROGRAM}", "traffic", *words], stdout=out)
        for words, out in (
            (["scan", "--interface", "lo", "--strings", "{strings}"],
             open("out", "wb")),
            (["digest", "-q", "--interface", "lo", "-o", "lo.dig"], None))]
def look_on():
    # Both sockets have an interface, and both wait for packets.
    sockets = [x.split() for x in open("/proc/net/packet").readlines()[1:]]
    states = [open("/proc/%d/stat" % x.pid).read().rpartition(")")[2].split()[0]
              for x in both]
    return sum(x[4] != "0" for x in sockets) == 2 and states == ["S", "S"]
def going_on():
    assert all(x.poll() is None for x in both)
    time.sleep(0.05)
while not look_on():
    going_on()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while not os.path.getsize("out"):
    s.sendto(b"an attack", ("127.0.0.1", 9))
    going_on()
for child in both:
    child.send_signal(signal.SIGTERM)
    assert child.wait() in (0, 2)
END
"""
    done = subprocess.run(["unshare", "-n", "sh", "-c", script], cwd=tmp_path,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    assert " 3: 1 attack\n" in (tmp_path / "out").read_text()
    assert (tmp_path / "lo.dig").read_bytes().startswith(b"BLYDIG2")


def test_without_its_program(bare, bly, strings, tmp_path):
    """Captures are made all the same; what reads them says what is missing."""
    assert bly("traffic", "gen", "-o", "c", program=bare).status == 0
    for verb in (["scan", "--strings", strings, "c"], ["queue", "c"],
                 ["digest", "-o", "d", "c"], ["trace", "d"],
                 ["scan", "--strings", strings, "--interface", "lo"]):
        got = bly("traffic", *verb, program=bare)
        assert got.status == 2 and "bloomery-traffic" in got.err \
            and "libpcap" in got.err
