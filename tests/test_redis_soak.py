"""A few seconds of what `make soak` does for an hour."""
import pytest
from redis_soak import Soak
from redis_support import needs_server

pytestmark = needs_server


@pytest.mark.parametrize("seed", [1, 2])
def test_two_servers_stay_the_same(tmp_path, seed):
    soak = Soak(tmp_path, seed)
    try:
        for _ in range(3):
            soak.round()
        soak.check()
        assert soak.nchecks > 50
    finally:
        soak.close()
