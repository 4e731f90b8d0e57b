"""The checker of ring histories is checked: by histories written by hand, good
and bad, and by a register that does the same job and is then made to err."""
import itertools
import random

import pytest

from ring_history import (ABSENT, NOTHING, OK, REFUSED, UNKNOWN, History, Operation, faults_of, get, judge, linearize,
                          put, rm)

GOOD = {
    "nothing": [],
    "read what was written": [put("a", 0, 1), get("a", 2, 3)],
    "absent at first": [get(ABSENT, 0, 1), put("a", 2, 3), get("a", 4, 5)],
    "a read beside a write sees the old or the new": [
        put("a", 0, 1), put("b", 2, 9), get("a", 3, 4), get("b", 5, 6), get("b", 7, 8)],
    "two writes at once, in either order": [put("a", 0, 5), put("b", 1, 4), get("a", 6, 7)],
    "removed": [put("a", 0, 1), rm(2, 3), get(ABSENT, 4, 5), rm(6, 7, NOTHING)],
    "removed and put again": [put("a", 0, 1), rm(2, 3), put("b", 4, 5), get("b", 6, 7)],
    "an unknown put that happened": [put("a", 0, 1), put("b", 2), get("b", 3, 4)],
    "an unknown put that did not happen": [put("a", 0, 1), put("b", 2), get("a", 3, 4)],
    "an unknown put that happened late": [
        put("a", 0, 1), put("b", 2), get("a", 3, 4), put("c", 5, 6), get("c", 7, 8), get("b", 9, 10)],
    "an unknown removal that happened late": [
        put("a", 0, 1), rm(2), get("a", 3, 4), put("c", 5, 6), get(ABSENT, 7, 8)],
    "a removal of what an unknown put left": [put("a", 0, 1), rm(2, 3), put("b", 4), rm(5, 6)],
    "two removals at once may both have removed": [put("a", 0, 1), rm(2, 5), rm(3, 4), get(ABSENT, 6, 7)],
    "a put that was refused": [put("a", 0, 1), put("b", 2, 3, REFUSED), get("a", 4, 5)],
    "a get that failed says nothing": [
        put("a", 0, 1), Operation("get", "x", ABSENT, 2, 3, UNKNOWN), get("a", 4, 5)],
}

BAD = {
    "lost": [
        # The first row of what was found: v10 is acknowledged, and v4 comes back.
        [put("v4", 0, 1), put("v10", 2, 3), get("v4", 4, 5)],
        [put("a", 0, 1), get(ABSENT, 2, 3)],
        [put("a", 0, 1), rm(2, 3, NOTHING)],
        [put("a", 0, 1), rm(2, 3), put("b", 4, 5), get(ABSENT, 6, 7)],
        [put("a", 0, 1), put("b", 2, 3), get("a", 4, 5), put("c", 6, 7), get("c", 8, 9)],
        [put("a", 0, 1), put("b", 2, 3), put("c", 2.5), get("a", 4, 5)],
    ],
    "stale": [
        [put("a", 0, 1), put("b", 2, 3), get("a", 4, 5), get("b", 6, 7)],
        [put("a", 0, 1), get(ABSENT, 2, 3), get("a", 4, 5)],
    ],
    "resurrected": [
        [put("a", 0, 1), rm(2, 3), get("a", 4, 5)],
        [put("a", 0, 1), rm(2, 3), get(ABSENT, 4, 5), get("a", 6, 7)],
        [put("a", 0, 1), rm(2, 3), rm(4, 5)],
    ],
    "invented": [
        [get("a", 0, 1)],
        [get("a", 0, 1), put("a", 2, 3)],
        [put("a", 0, 1, REFUSED), get("a", 2, 3)],
    ],
    "disorder": [
        # Backwards: the new value, and then the old one, while the put is under way.
        [put("a", 0, 1), put("b", 2, 9), get("b", 3, 4), get("a", 5, 6)],
        # Two readers disagree about the order of two writes.
        [put("a", 0, 9), put("b", 0, 9), get("a", 10, 11), get("b", 12, 13)],
        # An unknown put happens once.
        [put("b", 0), get("b", 1, 2), put("a", 3, 4), get("a", 5, 6), get("b", 7, 8), put("c", 9, 10),
         get("c", 11, 12), get("b", 13, 14)],
        [put("a", 0, 9), get("a", 1, 2), get(ABSENT, 3, 4)],
        [put("a", 0, 1), rm(2, 9), get(ABSENT, 3, 4), get("a", 5, 6)],
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_takes_what_is_right(name):
    assert linearize(GOOD[name]) is None
    assert faults_of("x", GOOD[name]) == []


@pytest.mark.parametrize("kind,number", [(k, i) for k, bad in BAD.items() for i in range(len(bad))])
def test_names_what_is_wrong(kind, number):
    history = BAD[kind][number]
    faults = faults_of("x", history)
    assert [f.kind for f in faults] == [kind], faults
    assert all(o in history for f in faults for o in f.operations)
    # The patterns say nothing that the search would not; only that rm found
    # something is not asked there.
    assert linearize(history) is not None or [o.what for o in history].count("rm") == 2


def test_every_name_is_judged_by_itself():
    history = History()
    for o in (put("a", 0, 1, name="x"), put("b", 2, 3, name="y"), get("b", 4, 5, name="y"), get(ABSENT, 4, 5, name="x")):
        history.add(o)
    found = judge(history)
    assert {kind: [f.name for f in faults] for kind, faults in found.items() if faults} == {"lost": ["x"]}
    assert history.acknowledged() == 4


# ------------------------------------------------------------------- made by a register

def made(chance, n, clients):
    """What clients of a register see who begin, act and end at different moments; some never hear."""
    value, history, clock, number = ABSENT, [], itertools.count(), itertools.count()
    under_way = {}
    while len(history) < n or under_way:
        who = chance.randrange(clients)
        if who not in under_way and len(history) < n:
            what = chance.choice(["put", "put", "get", "get", "get", "rm"])
            o = Operation(what, "x", f"v{next(number)}" if what == "put" else ABSENT, next(clock), who=str(who))
            history.append(o)
            under_way[who] = [o, False, chance.random() < 0.1]
        elif who in under_way:
            o, acted, deaf = under_way[who]
            if not acted:
                under_way[who][1] = True
                if deaf and chance.random() < 0.5:
                    continue  # it never happens
                o.outcome = OK
                if o.what == "put":
                    value = o.value
                elif o.what == "get":
                    o.value = value
                else:
                    o.outcome = OK if value else NOTHING
                    value = ABSENT
            else:
                del under_way[who]
                o.ended = next(clock)
                if deaf:
                    o.outcome, o.ended = UNKNOWN, float("inf")
    return history


def brute(history):
    """The definition: some order of some of the unknown ones and all the others."""
    certain = [o for o in history if o.outcome in (OK, NOTHING)]
    unknown = [o for o in history if o.outcome == UNKNOWN and o.what != "get"]

    def fits(left, value):
        if not any(o in certain for o in left):
            return True
        first = min(o.ended for o in left)
        for o in left:
            if o.began > first or (o.reads() and o.value != value):
                continue
            rest = [p for p in left if p is not o]
            if fits(rest, o.value):
                return True
        return False
    return any(fits(certain + list(some), ABSENT)
               for k in range(len(unknown) + 1) for some in itertools.combinations(unknown, k))


def test_a_register_is_never_accused():
    for seed in range(60):
        history = made(random.Random(seed), 60, 4)
        assert faults_of("x", history) == [], seed


def test_the_search_agrees_with_the_definition():
    """On short histories of which one answer was changed; about half are wrong then."""
    wrong = 0
    for seed in range(400):
        chance = random.Random(seed)
        history = made(chance, 7, 3)
        reads = [o for o in history if o.what == "get" and o.outcome == OK]
        if reads:
            chance.choice(reads).value = chance.choice([ABSENT] + [o.value for o in history if o.what == "put"])
        good = brute(history)
        wrong += not good
        assert (linearize(history) is None) == good, history
        # And nobody is accused by a pattern who is innocent.
        assert not good or not faults_of("x", history), history
    assert 60 < wrong < 340
