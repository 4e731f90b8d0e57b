"""Filters in the memory of a GPU, for CuPy, PyTorch and whatever else speaks DLPack.

    import bloomery_cuda, cupy
    f = bloomery_cuda.Filter("seen.bly")
    maybe = f.has(cupy.arange(1000, dtype=cupy.uint64))   # a bitmap, on the device
    f.add(keys)
    f.save("seen.bly")

Keys are one-dimensional arrays of 64-bit integers on the device. They are read where they are, without a copy, and so are
results written. docs/cuda.md has the rest. Needs libbloomery_cuda.so (make cuda), which is looked for beside this file, in
$BLOOMERY_CUDA, and where the system keeps libraries.
"""
import ctypes
import importlib
import os

__all__ = ["Filter", "Error"]


class Error(Exception):
    """What went wrong, in a line."""


class _Tensor(ctypes.Structure):
    """DLTensor of the DLPack specification."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_CUDA, _LEGACY_STREAM = 2, 1
_INTEGERS = 0, 1  # signed and unsigned


def _library(name):
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    for path in os.environ.get("BLOOMERY_CUDA", ""), beside, name:
        if path and (path == name or os.path.exists(path)):
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    raise Error(f"there is no {name}: make cuda builds it")


_lib = _library("libbloomery_cuda.so")  # which brings libbloomery
_lib.bly_cuda_error.restype = _lib.bly_error.restype = ctypes.c_char_p
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _check(status, error=_lib.bly_cuda_error):
    if status:
        raise Error(error().decode("utf-8", "replace"))


def _on_device(array, what):
    if not hasattr(array, "__dlpack__"):
        raise TypeError(f"{what} must be an array on a device, of CuPy, PyTorch or another library with DLPack, "
                        f"not {type(array).__name__}")


def _words(array, what):
    """Where a column of 64-bit integers lies on the device, how many there are, and what keeps them alive."""
    _on_device(array, what)
    if array.__dlpack_device__()[0] != _CUDA:
        raise TypeError(f"{what} are in the memory of the processor: move them to the device, or use the package bloomery")
    capsule = array.__dlpack__(stream=_LEGACY_STREAM)
    t = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    if t.ndim != 1 or t.bits != 64 or t.lanes != 1 or t.code not in _INTEGERS:
        raise TypeError(f"{what} must be a one-dimensional array of 64-bit integers")
    if t.strides and t.shape[0] > 1 and t.strides[0] != 1:
        raise TypeError(f"{what} must be contiguous")
    return ctypes.c_void_p((t.data or 0) + t.byte_offset), t.shape[0], capsule


def _like(array, n):
    """A new array of n 64-bit words, of the library and on the device that the other is of."""
    _on_device(array, "keys")
    module = importlib.import_module(type(array).__module__.split(".")[0])
    if module.__name__ == "torch":
        return module.empty(n, dtype=module.int64, device=array.device)
    return module.empty(n, dtype="uint64")


class Filter:
    """A filter of a file, on the current device."""

    def __init__(self, path):
        self._f, self._g = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_lib.bly_open_sized(os.fsencode(path), None, ctypes.byref(self._f), ctypes.c_size_t(0)), _lib.bly_error)
        _check(_lib.bly_cuda_upload(self._f, ctypes.byref(self._g)))

    def __del__(self):
        if getattr(self, "_g", None):
            _lib.bly_cuda_free(self._g)
        if getattr(self, "_f", None):
            _lib.bly_free(self._f)

    def _call(self, name, keys, *results):
        at, n, held = _words(keys, "keys")
        out = [_words(r, "results") for r in results]
        _check(getattr(_lib, name)(self._g, at, ctypes.c_size_t(n), *(o[0] for o in out), None))
        del held, out

    def has(self, keys, out=None):
        """The bitmap of keys that may be in: bit i % 64 of word i // 64."""
        out = _like(keys, (len(keys) + 63) // 64) if out is None else out
        if len(out) < (len(keys) + 63) // 64:
            raise ValueError("out needs a word for every 64 keys")
        self._call("bly_cuda_has_ints", keys, out)
        return out

    def tally(self, keys):
        """How many of the keys may be in."""
        count = _like(keys, 1)
        self._call("bly_cuda_tally_ints", keys, count)
        return int(count[0])

    def select(self, keys):
        """The keys that may be in, in any order."""
        found, count = _like(keys, len(keys)), _like(keys, 1)
        self._call("bly_cuda_select_ints", keys, found, count)
        return found[:int(count[0])]

    def count(self, keys):
        """How often each key was added: count-min sketches."""
        counts = _like(keys, len(keys))
        self._call("bly_cuda_count_ints", keys, counts)
        return counts

    def add(self, keys):
        """Add the keys."""
        self._call("bly_cuda_add_ints", keys)

    def save(self, path):
        """Download the filter and write it, as bloomery would have made it."""
        _check(_lib.bly_cuda_download(self._g, self._f))
        _check(_lib.bly_save(self._f, os.fsencode(path)), _lib.bly_error)
