"""For the tests of the Python package: where it is, and columns of Arrow that
no library of Arrow's made."""
import ctypes
import os
import pathlib
import sys

from conftest import BUILD

SANITIZED = BUILD / "asan" / "python"
FOLDER = pathlib.Path(os.environ.get("BLY_PYTHON", BUILD / "python"))
PRESENT = (FOLDER / "bloomery" / "_bloomery.abi3.so").exists()
if PRESENT:
    sys.path.insert(0, str(FOLDER))

Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", Release), ("private_data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", Release), ("private_data", ctypes.c_void_p)]


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

INTEGERS = {"c": ctypes.c_int8, "C": ctypes.c_uint8, "s": ctypes.c_int16, "S": ctypes.c_uint16,
            "i": ctypes.c_int32, "I": ctypes.c_uint32, "l": ctypes.c_int64, "L": ctypes.c_uint64}


class Column:
    """A column of text, bytes or integers; None is null."""

    def __init__(self, form, values, offset=0, **changed):
        values = [None] * offset + list(values)
        valid = bytearray((len(values) + 7) // 8)
        for i, v in enumerate(values):
            valid[i // 8] |= (v is not None) << i % 8
        self.held = [ctypes.create_string_buffer(bytes(valid), len(valid) + 1)]
        if form in INTEGERS:
            self.held.append((INTEGERS[form] * max(1, len(values)))(*[v or 0 for v in values]))
        else:
            raw = [v.encode() if isinstance(v, str) else v or b"" for v in values]
            ends = [0]
            for r in raw:
                ends.append(ends[-1] + len(r))
            width = ctypes.c_int64 if form in "UZ" else ctypes.c_int32
            self.held += [(width * len(ends))(*changed.pop("offsets", ends)),
                          ctypes.create_string_buffer(b"".join(raw), ends[-1] + 1)]
        nulls = sum(v is None for v in values)
        self.pointers = (ctypes.c_void_p * len(self.held))(*[ctypes.addressof(h) for h in self.held])
        if not nulls:
            self.pointers[0] = None
        done = Release(lambda at: None)
        fields = {"length": len(values) - offset, "null_count": nulls, "offset": offset,
                  "n_buffers": len(self.held), "buffers": self.pointers, "release": done}
        self.dictionary = changed.pop("dictionary", None)
        fields.update(changed)
        self.schema = Schema(format=form.encode(), release=done, dictionary=self.dictionary)
        self.array = Array(**fields)

    def __arrow_c_array__(self, requested_schema=None):
        return (capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
                capsule(ctypes.addressof(self.array), b"arrow_array", None))
