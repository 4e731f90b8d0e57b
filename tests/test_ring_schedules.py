"""A few of the schedules that `make ring-check` runs by the thousand."""
import pytest

from ring_schedules import SIMULATOR, schedules, wrong_with


@pytest.mark.skipif(not SIMULATOR.exists(), reason="make programs builds what this needs")
def test_names_have_one_history_in_every_schedule():
    acknowledged = faults = 0
    for seed, names, end in schedules(1, 120):
        found = wrong_with(names, end)
        assert not found, (seed, found)
        acknowledged += sum(o.outcome == "ok" for operations in names.values() for o in operations)
        faults += int(end[2])
    assert acknowledged > 4000 and faults > 1000
