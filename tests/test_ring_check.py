"""What was found wrong with rings, each as a script that showed it, and a short form of `make ring-check`."""
import concurrent.futures
import hashlib
import io
import sys

import pytest

from conftest import PATIENCE, ROOT
from ring_check import CLERK, Check
from ring_cluster import CLOCK, Cluster, until

sys.path.insert(0, str(ROOT / "bench"))
import ring_client as wire  # noqa: E402

pytestmark = pytest.mark.skipif(not CLERK.exists() or not CLOCK.exists(), reason="make programs builds what this needs")


@pytest.fixture
def cluster(tmp_path, request):
    made = Cluster(tmp_path, getattr(request, "param", 3), cuts=False)
    yield made
    try:
        for m in made.members:
            m.check()
    finally:
        made.close()


# ------------------------------------------------- an acknowledged write is kept

class Script(Check):
    """Clients who do as they are told, all at once: one for each name, and each is its only writer."""

    def each(self, what, value=None, members=None, who=None):
        """All clients, or some, do the same, each with its own name; what they were told."""
        def one(c):
            if members:
                c.members = lambda: ",".join(m.address for m in members)
            try:
                return c.ask(what, self.names[c.number], value)
            finally:
                c.__dict__.pop("members", None)
        with concurrent.futures.ThreadPoolExecutor(len(self.clients)) as pool:
            return list(pool.map(one, who or self.clients))

    def puts(self, value):
        """Everybody puts a value until it is acknowledged; if nobody is told yes, the ring refuses, and may. Each try has
        a value of its own."""
        left = self.clients
        for tries in range(3):
            told = self.each("put", f"{value}.{tries}", who=left)
            left = [c for c, o in zip(left, told) if o.outcome != "ok"]
            if not left or len(left) == len(told):
                return len(left) < len(told)
        return True


@pytest.fixture
def script(tmp_path):
    made = Script(tmp_path, 6, "--evict", "1000", clients=6, names=6, patience=100, homes=False)
    # Names of one owner, so that one fault concerns them all.
    owner, names, i = made.cluster.order()[2], [], 0
    while len(names) < 6:
        if made.cluster.holders(f"n{i}")[0] is owner:
            names.append(f"n{i}")
        i += 1
    made.names = made.nemesis.names = names
    yield made
    made.close()


@pytest.mark.parametrize("how,n", [("stop", 2), ("stop", 3), ("cut", 2)])
def test_holders_that_come_back_do_not_take_a_newer_write_away(script, how, n):
    """The owner of some names and those behind it are away while others write; then they are back, and are asked to
    write at once, though what they have is old."""
    cluster = script.cluster
    if how == "cut" and not cluster.network:
        pytest.skip("network namespaces need root and iproute2")
    script.puts("v0")
    victims = cluster.holders(script.names[0])[:n]
    others = [m for m in cluster.members if m not in victims]
    for m in victims if how == "stop" else []:
        m.stop()
    if how == "cut":
        cluster.cut(victims)
    cluster.settle(others, agreed=False)  # three of six are no majority
    for i in 1, 2, 3, 4:
        if not script.puts(f"v{i}"):
            break
    for m in victims if how == "stop" else []:
        m.resume()
    if how == "cut":
        cluster.join(victims)
    script.each("put", "v10", members=victims[:1])
    script.each("get", members=victims[:1])
    script.each("rm", members=victims[1:2])
    found = script.finish()
    assert not any(found.values()), [str(f) for fs in found.values() for f in fs]


def test_a_put_is_acknowledged_when_enough_have_it(cluster):
    """--least-copies 2, as usual, and all others stand still, until the one that does not thinks itself alone."""
    a, *others = cluster.members
    assert cluster.put("before", "there").out.startswith("before: 5 B in 1 block, ")
    for m in others:
        m.stop()
    cluster.settle([a], agreed=False)
    done = cluster.put("alone", "here", at=[a], patience=50, wait=None)
    assert done.status == 2, done.out
    for m in others:
        m.resume()
    cluster.settle()
    until(lambda: cluster.put("alone", "here").status == 0)
    assert cluster.get("alone").out == "here"


# ------------------------------------------------------------------- errors have classes

def test_members_without_descriptors_forget_nothing(cluster):
    """A record that cannot be opened at this moment is not a record that is gone."""
    values = {f"f{i}": b"value %d" % i for i in range(8)}
    for name, value in values.items():
        assert cluster.put(name, value.decode()).status == 0
    cluster.exchanged()
    # Lines that are there already: no member could take a new one, and it may cut these off to save itself.
    lines = {}

    def connect():
        for m in cluster.members:
            if m not in lines:
                lines[m] = wire.connect(wire.address(m.address), timeout=PATIENCE)

    def block(m, value):
        """Of one member; None if it does not give it."""
        if m not in lines:
            return None
        try:
            lines[m].sendall(wire.frame(wire.GET, m.id.to_bytes(8, "little") + hashlib.sha256(value).digest() + b"\1"))
            _, flags, _, body = wire.receive_frame(lines[m])
        except (ConnectionError, EOFError):
            lines.pop(m).close()
            return None
        return None if flags & wire.ERROR else body[57:]

    connect()
    for m in cluster.members:
        m.starve(True)
    assert None in [block(m, value) for m in cluster.members for value in values.values()]
    for m in cluster.members:
        m.starve(False)
    # A line may still be cut off by a member that was short of descriptors a moment ago.
    until(lambda: connect() or all(block(m, value) == value for m in cluster.members for value in values.values()))
    for line in lines.values():
        line.close()
    for name, value in values.items():
        assert cluster.get(name).raw == value


def test_a_put_that_is_acknowledged_can_be_read(cluster):
    """All copies of a block are damaged: what is put again is there again."""
    assert cluster.put("old", "the same bytes").status == 0
    cluster.exchanged()
    digest = hashlib.sha256(b"the same bytes").hexdigest()
    damaged = 0
    for m in cluster.members:
        path = m.folder / "records" / digest[:2] / digest
        if path.exists():
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)
            damaged += 1
    assert damaged == 3
    assert cluster.put("new", "the same bytes").status == 0
    done = cluster.get("new")
    assert (done.status, done.out) == (0, "the same bytes"), done.err


# ------------------------------------------------------------------------- tombstones

DAY = 86400


@pytest.mark.parametrize("cluster", [5], indirect=True)
def test_removed_names_do_not_come_back_after_days(cluster):
    names = [f"f{i}" for i in range(5)]
    for name in names:
        assert cluster.put(name, name).status == 0
    cluster.exchanged()
    away = cluster.holders(names[0])[1]
    away.kill()
    cluster.settle()
    for name in names:
        until(lambda: cluster.rm(name).status in (0, 1))
    # Everybody's clock, that of the one who is away, too; less than an absence may last.
    for m in cluster.members:
        m.jump(2 * DAY)
    cluster.exchanged(3)
    away.start()
    cluster.settle()
    cluster.exchanged(3)
    for name in names:
        for m in cluster.members:
            assert cluster.get(name, at=[m]).status == 1, name


# --------------------------------------------------------------- the short form

def test_clients_are_told_the_truth_whatever_happens(tmp_path):
    """`make ring-check` does this for half an hour."""
    log = io.StringIO()
    check = Check(tmp_path, 6, "--evict", "1000", clients=4, names=12, seed=1, log=log, rest=0.01)
    try:
        check.start()
        for i in range(6):
            check.round(adjacent=i % 2 == 0, gap=20)
        # A busy machine may have answered little meanwhile.
        check.nemesis.repair()
        until(lambda: check.history.acknowledged() > 100 or any(c.trouble for c in check.clients))
        found = check.finish()
        assert not any(found.values()), [log.getvalue(), *(str(f) for fs in found.values() for f in fs)]
        assert check.history.acknowledged() > 100
        assert sum(check.nemesis.counts.values()) >= 6
    finally:
        check.close()
