"""bloomery traffic block: lists that change while the kernel asks them, on interfaces of network namespaces."""
import json
import os
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM
from test_traffic_block import kernel_or_skip, pytestmark  # noqa: F401


def wire(name, path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    script = os.path.join(os.path.dirname(__file__), "block_wire.py")
    done = subprocess.run(["unshare", "-n", "-m", sys.executable, script, name], capture_output=True, text=True, cwd=path,
                          timeout=PATIENCE, env=os.environ | {"BLOOMERY": str(PROGRAM)}, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "skip" in told:
        pytest.skip(told["skip"])
    return told


def test_entries_come_and_go(ok, bly, tmp_path):
    kernel_or_skip(bly, ok, tmp_path)
    t = wire("changes", tmp_path)
    everyone = {"10.9.0.2", "10.9.0.3", "10.9.1.5", "10.9.1.6", "fd00::2", "fd00::3", "fd00::1:5"}
    assert set(t["before"]) == set(t["end"]) == everyone
    assert set(t["attached"]) == {"fd00::3", "fd00::1:5"}
    assert t["status"][1]["entries"] == t["status"][1]["timed"] == 2 and t["status"][1]["stopped"] == 5
    # Not before its time, and the line beside it stays.
    assert t["expired"] >= 2
    assert set(t["others"]) == {"10.9.0.3", "fd00::3", "fd00::1:5"}
    status, did, said = t["released"]
    assert status == 0 and did["released"] == 3 and did["missing"] == 1 and "192.0.2.1" in said
    assert set(t["free"]) == everyone
    assert t["none"][0] == 1 and t["none"][1]["missing"] == 1
    assert t["added"][0] == 0 and t["added"][1]["added"] == 3
    assert set(t["after"]) == everyone - {"10.9.0.2", "10.9.1.5", "fd00::1:5"}
    assert t["part"][0] == 1 and "10.9.1.4/31" in t["part"][2]
    assert set(t["second"]) == everyone - {"10.9.0.2", "10.9.0.3", "10.9.1.5", "fd00::1:5"}
    assert t["counts"][1]["entries"] == 3 and t["counts"][1]["released"] == 1
    assert set(t["listed"]) == set(t["second"]) - {"fd00::2"}
    assert set(t["bly"]) == everyone - {"10.9.0.3", "fd00::2"}
    assert t["bly_expired"] >= 2 and set(t["bly_after"]) == everyone
    assert not t["pins"]


def test_only_what_is_listed(ok, bly, tmp_path):
    kernel_or_skip(bly, ok, tmp_path)
    t = wire("only", tmp_path)
    assert set(t["only"]) == {"10.9.0.2", "10.9.0.3", "fd00::2", "fd00::3"}
    status = t["status"][1]
    assert status["only"] and status["stopped"] >= 2 and status["allowed"] >= 2
    assert set(t["added"]) == set(t["only"]) | {"10.9.0.4"}
    assert set(t["released"]) == set(t["added"]) - {"10.9.0.2"}
    assert t["empty"][0] == 2 and "nobody" in t["empty"][2]
    assert t["locked"][0] == 2 and "192.0.2.7" in t["locked"][2]
    assert t["open"][0] == 0


def test_room_is_bounded(ok, bly, tmp_path):
    kernel_or_skip(bly, ok, tmp_path)
    t = wire("room", tmp_path)
    status, did, said = t["many"]
    assert status == 2 and "found no room" in said
    assert did["added"] + did["no_room"] == 2000 and 256 <= did["added"] <= 7 * 64
    assert t["status"][1]["no_room"] == did["no_room"] and t["status"][1]["room"] == 256
    assert t["items"][0] == 2 and "--detach" in t["items"][2]
    assert t["some"][0] == 0 and t["some"][1]["added"] == 201 and not t["stopped"]
    for status, did in t["adds"]:
        assert status == 0 and did["added"] + did["renewed"] == 100000
    assert t["longer"][0] == 2 and "33 lengths" in t["longer"][2]
    assert t["lengths"][0] == 0 and t["heard"] == ["10.9.0.2"]


def test_a_heavy_sender_is_blocked_and_released(ok, bly, tmp_path):
    kernel_or_skip(bly, ok, tmp_path)
    t = wire("guard", tmp_path)
    print(t["blocked_after"], t["released_after"])
    assert t["block"]["event"] == "block" and t["block"]["source"] == "10.9.0.66"
    assert t["release"]["event"] == "release" and t["release"]["source"] == "10.9.0.66"
    assert t["release"]["packets"] > 50
    # A thousand senders have lost nothing; the other one came through before it was noticed.
    assert t["good"] == [t["rounds"]]
    assert 10 <= t["bad"] < t["rounds"] * 50 - t["release"]["packets"] + 1 and t["free"] == ["10.9.0.66"]
    status, rows, _ = t["end"]
    assert status == 0 and rows[-1]["blocked"] == rows[-1]["released"] == rows[-1]["most"] == 1
    assert rows[-1]["stopped"] == t["release"]["packets"] and not t["pins"]


def test_guards_in_trouble(ok, bly, tmp_path):
    kernel_or_skip(bly, ok, tmp_path)
    t = wire("guards", tmp_path)
    assert t["dry"]["event"] == "block" and t["dry_heard"] == ["10.9.0.66"]
    assert t["dry_end"][1][-1]["dry_run"] and t["dry_end"][1][-1]["blocked"] == 1
    events = [e["event"] for e in t["forged"]]
    assert events.count("block") >= 50
    end = t["forged_end"][1][-1]
    assert end["most"] == 50 and end["no_room"] >= 1
    assert t["kill"]["source"] == "10.9.0.66"
    assert t["with"]["source"] == "10.9.0.64/27" and t["with_heard"] == t["still_heard"] == []
    assert t["left"][1]["stopped"] >= 1 and t["left"][1]["entries"] == 0
    assert t["detached"][0] == 2 and "no longer attached" in t["detached"][1]
    assert t["gone"][0] == 2


def test_wrong_uses_of_changes(trouble):
    trouble("traffic", "guard", "--byte-rate", "5", says="-i INTERFACE")
    trouble("traffic", "guard", "-i", "nowhere0", says="--byte-rate")
    trouble("traffic", "guard", "-i", "nowhere0", "--byte-rate", "5", "--key", "dst", says="src or prefix/N")
    trouble("traffic", "guard", "-i", "nowhere0", "--byte-rate", "5", "--allow", "missing", says="missing")
    trouble("traffic", "block", "--add", "eth0", says="usage")
    trouble("traffic", "block", "--release", "eth0", "10.0.0.1", "--ttl", "5", says="--ttl")
    trouble("traffic", "block", "--add", "eth0", "10.0.0.1", "--release", "eth0", says="exclude")
    trouble("traffic", "block", "--add", "eth0", "10.0.0.300", says="10.0.0.300")
    trouble("traffic", "block", "--status", "eth0", "--only", says="--only")
