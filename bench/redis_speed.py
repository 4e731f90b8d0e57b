#!/usr/bin/env python3
"""Speed of the module inside a real server; prints tables in Markdown.

    bench/redis_speed.py [--module build/bloomery.so] [--capacity 200000000]
                         [--requests 200000] [--rounds 5]

Two measurements, each within one run of one server:

* BF.ADD and BF.EXISTS beside SET and GET, by redis-benchmark with pipelines of
  1, 16 and 64, in turn. The server's CPU time a command is what INFO says it
  used, so that a busy machine matters less: medians of rounds, and the least.
* BF.MADD and BF.MEXISTS of 100 items on a filter of 200 million at 1 %, a
  twentieth full: microseconds an item inside the command (INFO commandstats),
  fetching ahead and one by one in turn (bf-fetch-ahead), medians of rounds and
  the least of them: this time goes on while others have the processor.

Needs redis-server, redis-cli and redis-benchmark.
"""
import argparse
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile
import time


class Server:
    """A server on a free port, in a folder of its own, ended on exit."""

    def __init__(self, module):
        self.folder = tempfile.TemporaryDirectory()
        for _ in range(5): # another may take the port meanwhile
            if self.start(module):
                return
        raise SystemExit("the server does not start")

    def start(self, module):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--bind",
             "127.0.0.1", "--dir", self.folder.name, "--loadmodule", module],
            stdout=subprocess.DEVNULL)
        while self.process.poll() is None:
            if self.cli("PING").strip() == "PONG":
                return True
            time.sleep(0.05)
        return False

    def cli(self, *words, stdin=None):
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *map(str, words)],
            input=stdin, capture_output=True, check=False)
        return done.stdout.decode(errors="replace")

    def info(self, section):
        pairs = [line.split(":", 1) for line in
                 self.cli("INFO", section).splitlines() if ":" in line]
        return {k: v for k, v in pairs}

    def cpu(self):
        """Seconds that the server has used."""
        used = self.info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def usec(self, command):
        """Microseconds a call since the last CONFIG RESETSTAT."""
        rows = {name.lower(): row  # some register BF.MADD, some bf.madd
                for name, row in self.info("commandstats").items()}
        row = rows["cmdstat_" + command]
        return float(dict(p.split("=") for p in row.split(","))
                     ["usec_per_call"])

    def setting(self, value):
        """bf-fetch-ahead; older servers put the module's name in front."""
        if "OK" not in self.cli("CONFIG", "SET", "bf-fetch-ahead", value):
            self.cli("CONFIG", "SET", "bf.bf-fetch-ahead", value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def cpu_of(server, words, pipeline, requests):
    """Microseconds of the server's processor that a command costs."""
    before = server.cpu()
    subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-n", str(requests), "-P",
         str(pipeline), "-r", "1000000", "-q", *words],
        stdout=subprocess.DEVNULL, check=True)
    return (server.cpu() - before) / requests * 1e6


def beside_set_and_get(server, requests, rounds):
    server.cli("BF.RESERVE", "filter", "0.01", 10_000_000)
    rows = (("SET", "key:__rand_int__", "x"), ("GET", "key:__rand_int__"),
            ("BF.ADD", "filter", "key:__rand_int__"),
            ("BF.EXISTS", "filter", "key:__rand_int__"))
    print("CPU us a command, median and least of", rounds, "rounds\n\n"
          "| pipeline |", " | ".join(row[0] for row in rows),
          "| ADD / SET | EXISTS / GET |\n|" + " --- |" * 7)
    for words in rows: # every key is there, and all memory was touched
        cpu_of(server, words, 64, 5 * requests)
    for pipeline in (1, 16, 64):
        used = {row[0]: [] for row in rows}
        for _ in range(rounds):
            for words in random.sample(rows, len(rows)):
                used[words[0]].append(
                    cpu_of(server, words, pipeline, requests))
        cells = [f"{statistics.median(u):.2f}, {min(u):.2f}"
                 for u in used.values()]
        for a, b in (("BF.ADD", "SET"), ("BF.EXISTS", "GET")):
            cells.append(", ".join(f"{f(used[a]) / f(used[b]):.2f}"
                                   for f in (statistics.median, min)))
        print("|", pipeline, "|", " | ".join(cells), "|", flush=True)


def command(name, items, key=b"big"):
    words = [name.encode(), key, *items]
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def batches(name, first, n, size):
    """n commands of `size` items each, and no item twice."""
    return b"".join(command(name, [b"item:%d" % (first + i * size + k)
                                   for k in range(size)]) for i in range(n))


def many_items(server, capacity, rounds, calls=300):
    server.cli("BF.RESERVE", "big", "0.01", capacity)
    filled = 0
    while filled < capacity // 20:
        server.cli("--pipe", stdin=batches("BF.MADD", filled, 1000, 1000))
        filled += 1_000_000
    bits = server.cli("BF.DEBUG", "big")
    print(f"\n{filled:,} items in a filter of {capacity:,}:",
          bits.splitlines()[-1])
    found = {}
    next_item = filled
    for _ in range(rounds):
        for ahead in random.sample(("yes", "no"), 2):
            server.setting(ahead)
            for name, first in (("bf.madd", next_item),
                                ("bf.mexists", 10**12 + next_item),
                                ("bf.mexists, there",
                                 random.randrange(filled - calls * 100))):
                word = name.split(",")[0]
                server.cli("CONFIG", "RESETSTAT")
                server.cli("--pipe", stdin=batches(word.upper(), first, calls,
                                                   100))
                found.setdefault((name, ahead), []).append(
                    server.usec(word) / 100)
            next_item += calls * 100
    print("\n| command of 100 | fetched ahead, us an item | one by one | "
          "times | the least: ahead | one by one | times |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for name in ("bf.madd", "bf.mexists", "bf.mexists, there"):
        row = [name]
        for what in (statistics.median, min):
            yes, no = what(found[name, "yes"]), what(found[name, "no"])
            row += [f"{yes:.3f}", f"{no:.3f}", f"{no / yes:.1f}"]
        print("|", " | ".join(row), "|")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default=str(root / "build/bloomery.so"))
    parser.add_argument("--capacity", type=int, default=200_000_000)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with Server(str(pathlib.Path(options.module).resolve())) as server:
        beside_set_and_get(server, options.requests, options.rounds)
        many_items(server, options.capacity, options.rounds)


if __name__ == "__main__":
    main()
