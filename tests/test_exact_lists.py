"""docs/exact-lists.md: a list for known askers, and its change from day to day."""
import random


def lines(keys):
    return "".join(f"{k}\n" for k in keys)


def asked(bly, filter_, keys):
    done = bly("has", filter_, stdin=lines(keys))
    assert done.status < 2, done.err
    return set(done.lines)


def test_two_filters_are_right_for_today(ok, bly):
    """Yesterday's filter and one of those it is wrong for: their answers
    differ exactly for what is revoked today, new numbers included."""
    chance = random.Random(7)
    issued = [f"serial-{i}" for i in range(56000)]
    revoked = set(chance.sample(issued, 500))
    (ok.path / "issued").write_text(lines(issued))
    (ok.path / "revoked").write_text(lines(sorted(revoked)))
    ok("build", "-q", "-o", "base.bly", "--universe", "issued", "revoked")
    assert asked(bly, "base.bly", issued) == revoked

    fresh = [f"serial-{i}" for i in range(56000, 58000)]
    everybody = issued + fresh
    today = set(chance.sample(sorted(revoked), 490)) | \
        set(chance.sample(everybody, 15))
    said = asked(bly, "base.bly", everybody)
    (ok.path / "today").write_text(lines(everybody))
    (ok.path / "changed").write_text(lines(sorted(said ^ today)))
    made = ok("build", "--json", "-o", "day.bly", "--universe", "today",
              "changed").json
    assert asked(bly, "base.bly", everybody) ^ \
        asked(bly, "day.bly", everybody) == today
    assert made["bytes"] < 300
