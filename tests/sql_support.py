"""Vectors that every adapter for a database is held against.

What a key is in SQL, and how the command asks for the same: each engine must
give the answers of `bloomery has` for one and the same file.
"""
import ctypes

from conftest import BUILD, run

# SQL literal, the key as the command takes it
TEXTS = [("'alice'", "alice"), ("'B\u00f6b'", "B\u00f6b"), ("''", ""),
         ("'12'", "12"), ("' x '", " x ")]
INTEGERS = [("7", "7"), ("-1", "-1"), ("0", "0"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808")]


class Hasher(ctypes.Structure):
    """bly_hasher: XXH3, seed 0."""
    _fields_ = [("id", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("seed", ctypes.c_uint64),
                ("secret", ctypes.c_uint64 * 2)]


def checksum(data):
    library = ctypes.CDLL(str(BUILD / "libbloomery.so"))
    library.bly_hash.restype = ctypes.c_uint64
    hasher = Hasher(id=1)
    return library.bly_hash(ctypes.byref(hasher), bytes(data), ctypes.c_size_t(len(data))).to_bytes(8, "little")


def damaged_file(ok):
    """A small file, which is mapped, with contents of zeros: unnoticed, it would say no to all of its numbers."""
    ok("build", "-q", "--int", "-o", "damaged.bly", stdin="".join(f"{i}\n" for i in range(1000)))
    path = ok.path / "damaged.bly"
    made = path.read_bytes()
    path.write_bytes(made[:4096] + bytes(len(made) - 4096))
    return path


def compact_twins(ok, n=3):
    """Compact filters of one size, of 4 KB and more, that differ in one key and so in a few bits: (key, bytes) of each.
    Such a file has no page with sums in front by which to tell it from another. Where a page would say that nothing but a
    plain payload follows, there are contents, and here they say so too: eight bytes that are zero."""
    twins = []
    common = "".join(f"common {i}\n" for i in range(4000))
    for i in range(20):
        ok("build", "-q", "-k", "classic", "-p", 1e-3, "-o", "one.bly", stdin=f"{common}own {i}\n")
        ok("compress", "-q", "--compact", "-o", "one.bly", "one.bly")
        made = bytearray((ok.path / "one.bly").read_bytes())
        assert len(made) > 4200 and checksum(made[:-8]) == made[-8:]
        made[64:72] = bytes(8)
        made[-8:] = checksum(made[:-8])
        (ok.path / "one.bly").write_bytes(made)
        if run("has", "-q", ok.path / "one.bly", f"own {i}").status == 0 and (not twins or len(made) == len(twins[0][1])):
            twins.append((f"own {i}", bytes(made)))
        if len(twins) == n:
            return twins
    raise AssertionError("no filters of one size")
