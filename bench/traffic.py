"""Captures to flows: packets per second of one core, beside tcpdump's copy of
the same file; and heavy flows beside a table of all flows.

    python3 bench/traffic.py [PACKETS [FLOWS [ROUNDS]]]

The file is in the page cache. Times are those of the processor, user and system;
of each way the least of several rounds, which alternate."""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("BLOOMERY", "build/bloomery")
packets, flows, rounds = (int(x) for x in
                          (sys.argv[1:] + ["5000000", "1000000", "5"][
                              len(sys.argv) - 1:]))


def spent(*argv):
    """Seconds of the processor, and what it printed last."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime
            - before.ru_stime, done.stdout.splitlines()[-1:])


with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)  # tcpdump reads as a user of its own
    path = os.path.join(folder, "zipf.pcap")
    subprocess.run([PROGRAM, "traffic", "gen", "-q", "-o", path, "--flows",
                    str(flows), "--count", str(packets)], check=True)
    look = [PROGRAM, "traffic", "flows", "--json", "--top", "1"]
    # 0.1 % of the bytes; ten counters for each flow that could have as many.
    heavy = ["--threshold", str(packets), "--counters", "10000", "--entries",
             "2000"]
    ways = {
        "heavy flows": [*look, *heavy, path],
        # It also sorts them once, which is a part of its time.
        "a table of all flows": [*look, "--threshold", "1", "--counters", "1",
                                 "--entries", str(flows), path],
        # What both take without their last step: reading, parsing, printing.
        "one flow": [*look, "--key", "dst", *heavy, path],
    }
    if shutil.which("tcpdump"):
        ways["tcpdump -w /dev/null"] = ["tcpdump", "-r", path, "-w",
                                        "/dev/null"]
    else:
        print("tcpdump is not here: no comparison with it")
    best, memory = {}, {}
    for _ in range(rounds):
        for name, argv in ways.items():
            seconds, last = spent(*argv)
            best[name] = min(best.get(name, 1e9), seconds)
            if last and name != "tcpdump -w /dev/null":
                memory[name] = json.loads(last[0])["memory"]
    print(f"{packets} packets of {flows} flows")
    for name, seconds in best.items():
        print(f"{name:24} {packets / seconds / 1e6:8.2f} million packets per "
              f"second of one core, {seconds / best['heavy flows']:5.2f} times "
              f"the time of heavy flows, {memory.get(name, 0):12} bytes")
