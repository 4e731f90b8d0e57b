"""ring and explain --ring: who holds which key; the ring of the worked example."""
import json
import xml.etree.ElementTree as xml

import pytest

LOOKUPS = {  # id, from: who asks, who is asked, the owner
    (45, 3): [3, 41, 46],
    (1, 3): [3, 41, 58, 3],
    (59, 9): [9, 41, 58, 3],
    (26, 46): [46, 20, 27],
    (20, 58): [58, 3, 9, 20],
}


@pytest.mark.parametrize("id,start", LOOKUPS)
def test_lookups_of_the_worked_ring(ok, id, start):
    shown = ok("ring", "show", "--from", start, "--find", id, "--json").json
    assert shown["path"] == LOOKUPS[id, start]
    told = ok("explain", "--ring", "--from", start, "--find", id).out
    assert f": {LOOKUPS[id, start][-1]} owns it" in told


def test_members_and_fingers(ok):
    shown = ok("ring", "show", "--json").json
    assert shown["bits"] == 6
    assert shown["members"][0] == {"id": 3, "predecessor": 58, "fingers": [9, 9, 9, 20, 20, 41]}
    assert shown["members"][6] == {"id": 58, "predecessor": 46, "fingers": [3, 3, 3, 3, 20, 27]}
    same = ok("ring", "show", "--json", *[58, 3, 46, 9, 41, 20, 27]).json
    assert same == shown
    assert ok("explain", "--ring", "--json").json == shown


def test_picture(ok):
    out = ok("ring", "show", "--from", 3, "--find", 45, "--plot", "ring.svg").out
    assert "58" in out and "* owns it" in out
    root = xml.parse(ok.path / "ring.svg").getroot()
    words = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"3", "9", "20", "27", "41", "46", "58"} <= set(words)
    # The key, the steps, and how far each finger of the asker reaches.
    assert {"key 45", "1", "2", "+1 to +4", "+8, +16", "+32"} <= set(words)
    # In the colours that the caption names: the picture's own sheet would win
    # over attributes.
    drawn = [p.get("style") for p in root.iter("{http://www.w3.org/2000/svg}path")]
    for colour in "#d62728", "#2ca02c", "#aaaaaa":
        assert any(f"stroke:{colour}" in style for style in drawn)


def test_what_is_wrong_is_said(trouble):
    trouble("ring", "show", "64", says="6 bits")
    trouble("ring", "show", "3", "3", says="twice")
    trouble("ring", "show", "x", says="not an id")
    trouble("ring", "show", "--bits", "2", "1", says="--bits")
    trouble("ring", "show", "--from", "4", says="not a member")
    trouble("explain", "--find", "4", says="--ring")
    trouble("ring", "place", "--members", "1000000", says="--members")
    trouble("ring", "place", "--points", "1000000", says="--points")


# A client that could not be opened was freed all the same: which crashed when
# its memory was not zero by chance, as it never is here (conftest.py).
CLIENTS = [["node", "put", "ring.py"], ["node", "get", "x"], ["node", "rm", "x"],
           ["node", "ls"], ["ring", "show"]]
UNOPENED = [(["-K", "absent", "--at", "127.0.0.1:1"], "absent"),
            (["--copies", "99", "--at", "127.0.0.1:1"], "--copies"),
            (["--successors", "999", "--at", "127.0.0.1:1"], "--successors"),
            (["--at", "nowhere"], "nowhere"),
            (["--at", "127.0.0.1:1"] + 8 * ["--at", "127.0.0.1:2"], "at most 8"),
            ([], "--at")]


@pytest.mark.parametrize("argv", CLIENTS, ids=" ".join)
def test_a_client_that_is_not_opened(trouble, argv):
    for wrong, says in UNOPENED:
        if argv[0] == "ring" and not wrong:
            continue           # it has a ring of its own
        trouble(*argv, *wrong, says=says)
    for verb in "status", "leave":
        trouble("node", verb, "-K", "absent", "127.0.0.1:1", says="absent")
        trouble("node", verb, "nowhere", says="nowhere")


def test_places_of_the_same_keys(ok, bly):
    report = ok("ring", "place", "--keys", "20000", "--json").json
    assert report["members"] == 10 and report["keys"] == 20000
    rules = {(r["rule"], r.get("points")): r for r in report["rules"]}
    assert rules["modulo", None]["joined"] > 0.8
    for rule in ("ring", 128), ("rendezvous", None), ("jump", None):
        assert rules[rule]["needless"] == 0
        assert 0.04 < rules[rule]["joined"] < 0.14
    assert rules["table", None]["needless"] < 0.05
    assert rules["bounded", 128]["largest"] <= 1.26
    (bly.path / "keys").write_text("".join(f"key{i}\n" for i in range(5000)))
    told = ok("ring", "place", "--members", "4", "keys").out
    assert told.startswith("5000 keys on 4 members")
    for rule in "modulo", "ring", "rendezvous", "jump", "table", "bounded":
        assert rule in told
    (bly.path / "none").write_text("")
    assert bly("ring", "place", "none").status == 2
    assert json.loads(bly("ring", "place", "--keys", "10", "--json").out)["keys"] == 10
