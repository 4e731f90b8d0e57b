#!/usr/bin/env python3
"""Live filters beside private ones, and beside Redis with the module.

    bench/live.py [BUILD]        default: build

First build/bench/speed_live: what a live filter costs beside a private one,
and eight processes beside one. Then a Redis server with the module on a Unix
socket, asked with pipelines of 100 by redis-benchmark: questions per second,
beside those of a live filter by single keys and by batches, from that run.
Needs redis-server and redis-benchmark; without them, the first half.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()


def redis(folder):
    """Questions per second, the best of three runs."""
    socket = f"{folder}/redis.sock"
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
         "--dir", folder, "--loadmodule", str(BUILD / "bloomery.so")],
        stdout=subprocess.DEVNULL)
    try:
        while subprocess.run(["redis-cli", "-s", socket, "PING"],
                             capture_output=True, check=False).stdout != b"PONG\n":
            if server.poll() is not None:
                return 0
            time.sleep(0.05)
        call = ["redis-benchmark", "-s", socket, "-P", "100", "-r", "1000000",
                "-q", "--csv"]
        subprocess.run(["redis-cli", "-s", socket, "BF.RESERVE", "f", "0.01",
                        "1000000"], capture_output=True, check=True)
        subprocess.run([*call, "-n", "1000000", "BF.ADD", "f", "__rand_int__"],
                       capture_output=True, check=True)
        best = 0
        for _ in range(3):
            out = subprocess.run([*call, "-n", "1000000", "BF.EXISTS", "f",
                                  "__rand_int__"], capture_output=True,
                                 check=True).stdout.decode()
            best = max(best, float(re.findall(r'"([\d.]+)"', out.splitlines()[-1])[0]))
        return best
    finally:
        server.terminate()
        server.wait()


def main():
    table = subprocess.run([BUILD / "bench" / "speed_live"], check=True,
                           capture_output=True).stdout.decode()
    print(table, end="")
    if not shutil.which("redis-benchmark") or not shutil.which("redis-server"):
        print("no redis-server or redis-benchmark here")
        return
    with tempfile.TemporaryDirectory() as folder:
        asked = redis(folder)
    rows = re.findall(r"^blocked +(\d+) +ask, (batch|one).*live +([\d.]+) ns",
                      table, re.M)
    print(f"Redis, BF.EXISTS, Unix socket, pipelined by 100: "
          f"{asked / 1e6:.2f} M questions/s")
    for items, how, ns in rows:
        live = 1e9 / float(ns)
        print(f"live, {items} keys, {how}: {live / 1e6:.1f} M questions/s, "
              f"{live / asked:.0f} times")


main()
