"""Nanoseconds of the kernel's program of `traffic block --xdp` for a packet, by what the list has: runs of the program that
is attached, by BPF_PROG_TEST_RUN. As root, in namespaces of its own:

    unshare -n -m python3 bench/block_live.py build/bloomery

All lists are asked in turn, and the least of the rounds counts."""
import ctypes
import ipaddress
import json
import os
import struct
import subprocess
import sys
import tempfile

SYS_BPF, TEST_RUN, FD_BY_ID = 321, 10, 13
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    room = ctypes.create_string_buffer(attr.ljust(144, b"\0"))
    got = libc.syscall(SYS_BPF, command, room, 144)
    if got < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return got, room.raw


def program_of(interface):
    shown = json.loads(subprocess.run(["ip", "-j", "link", "show", interface], capture_output=True, check=True).stdout)
    return bpf(FD_BY_ID, struct.pack("I", shown[0]["xdp"]["prog"]["id"]))[0]


def timed(program, source, repeat=100000):
    """(verdict, nanoseconds) of a packet from an address."""
    packet = bytes(12) + b"\x08\0\x45" + bytes(11) + ipaddress.ip_address(source).packed + bytes(30)
    data = ctypes.create_string_buffer(packet)
    attr = struct.pack("IIIIQQII", program, 0, len(packet), 0, ctypes.addressof(data), 0, repeat, 0)
    out = bpf(TEST_RUN, attr)[1]
    return struct.unpack_from("I", out, 4)[0], struct.unpack_from("I", out, 36)[0]


def main():
    bloomery = os.path.abspath(sys.argv[1])
    os.chdir(tempfile.mkdtemp())

    def block(*words):
        subprocess.run([bloomery, "traffic", "block", "-q", *words], check=True, stderr=subprocess.DEVNULL)

    for words in (["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
                  ["ip", "link", "set", "v0", "up"], ["ip", "link", "set", "v1", "up"]):
        subprocess.run(words, check=True)
    with open("base", "w", encoding="ascii") as f:
        f.write("".join(f"10.0.{i >> 8}.{i & 255}\n" for i in range(40000)))
    with open("timed", "w", encoding="ascii") as f:
        f.write("".join(f"10.1.{i >> 8}.{i & 255} timeout 3600\n" for i in range(40000)))
    lists = {"list": ["base"], "expiring entries": ["timed"], "both": ["base", "timed"]}
    programs = {}
    for name, files in lists.items():
        block("--xdp", "v0", *files)
        programs[name] = program_of("v0")
        block("--detach", "v0")
    packets = {"list": {"pass": "10.9.9.9", "stop": "10.0.0.7"}, "expiring entries": {"pass": "10.9.9.9", "stop": "10.1.0.7"},
               "both": {"pass": "10.9.9.9", "stop by the list": "10.0.0.7", "stop by an entry": "10.1.0.7"}}
    best = {}
    for _ in range(20):
        for name, what in packets.items():
            for verb, source in what.items():
                verdict, ns = timed(programs[name], source)
                assert (verdict == 1) == verb.startswith("stop"), (name, verb)
                best[name, verb] = min(ns, best.get((name, verb), ns))
    for (name, verb), ns in best.items():
        print(f"{name:18} {verb:18} {ns} ns")


if __name__ == "__main__":
    main()
