"""The module with sanitizers, in servers whose memory they watch as well.

A few rounds of the soak, whose commands reach nearly all that the module does,
and the tests of bytes that anyone may have written. BLY_REDIS_SANITIZED=1 runs
any of these tests so; `make redis-sanitized` runs them all.
"""
import os
import pathlib
import subprocess
import sys

import pytest
from redis_soak import Soak
from redis_support import SANITIZED, needs_server, sanitizers_library

pytestmark = [needs_server, pytest.mark.skipif(
    not SANITIZED.exists() or not sanitizers_library(),
    reason="build/asan/bloomery.so or the sanitizers' library is not there")]


def test_random_commands(tmp_path):
    soak = Soak(tmp_path, 3, sanitized=True)
    try:
        for _ in range(3):
            soak.round()
        soak.check()
    finally:
        soak.close()


def test_bytes_from_anyone():
    here = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         here / "test_redis_hostile.py"], check=False, capture_output=True,
        text=True, env={**os.environ, "BLY_REDIS_SANITIZED": "1"})
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout
