"""Judge what clients of a ring were told: one history for each name.

A name is a register. A put writes a value that no other put writes, an rm writes
"absent", and a get reads. The history of a name is linearizable if every
operation can be given a moment between its call and its answer, so that every
get returns what was written last before it. The outcome of a put or an rm may be
unknown: it happened at some moment after the call, even long after the client
had given up, or never.

    put  ok | refused (it never happens) | unknown
    get  a value | ABSENT | unknown (nothing was read)
    rm   ok (it was there, and is gone) | nothing (it was not there) | refused | unknown

The search (`linearize`) is that of Wing and Gong in the form of Lowe's "just in
time": configurations are pairs of the register's value and the operations under
way that have had their moment, and an operation is given its moment only when
an answer demands it. An unknown write would stay under way for ever and double
the configurations. It need not: nobody notices it unless the very next operation
reads it, so it is given a moment only there.

Four patterns have names, because each says what a user would have seen. Every
one of them contradicts linearizability, and is reported with the operations
that show it:

    lost         a read that misses an acknowledged put, after which nobody
                 sees that put, or a later one, again
    stale        the same, but later reads are right
    resurrected  a value, or that it was there, after an acknowledged removal
    invented     a value that nobody has put, or not yet

What linearize() refuses and none of them explains is called `disorder`: two
reads that saw two writes in different orders, mostly.
"""
import bisect
import collections
import itertools
import threading
import time

ABSENT = None
OK, NOTHING, REFUSED, UNKNOWN = "ok", "nothing", "refused", "unknown"
NEVER = float("inf")  # when an operation ends whose outcome is unknown


class Operation:
    """What one client asked for and was told; times are of one clock."""
    __slots__ = ("what", "name", "value", "began", "ended", "outcome", "who", "told")

    def __init__(self, what, name, value, began, ended=NEVER, outcome=UNKNOWN, who="", told=""):
        self.what, self.name, self.value, self.who, self.told = what, name, value, who, told
        self.began, self.ended, self.outcome = began, ended, outcome

    def reads(self):
        """Did it tell what is there?"""
        return self.outcome == NOTHING or (self.what == "get" and self.outcome == OK)

    def writes(self):
        """Has it written, or may it have?"""
        return self.what != "get" and self.outcome in (OK, UNKNOWN)

    def __repr__(self):
        what = self.what if self.what == "rm" else f"{self.what} {self.value or 'absent'}"
        return f"[{self.began:.3f}..{self.ended:.3f} {self.who}: {what}: {self.outcome}{self.told and ' ' + self.told}]"


def put(value, began, ended=NEVER, outcome=None, name="x", **kw):
    return Operation("put", name, value, began, ended, outcome or (UNKNOWN if ended == NEVER else OK), **kw)


def get(value, began, ended, name="x", **kw):
    return Operation("get", name, value, began, ended, OK, **kw)


def rm(began, ended=NEVER, outcome=None, name="x", **kw):
    return Operation("rm", name, ABSENT, began, ended, outcome or (UNKNOWN if ended == NEVER else OK), **kw)


class History:
    """Collects operations of many threads."""

    def __init__(self):
        self.lock, self.operations, self.start = threading.Lock(), [], time.monotonic()

    def now(self):
        return time.monotonic() - self.start

    def add(self, operation):
        with self.lock:
            self.operations.append(operation)

    def names(self):
        by_name = collections.defaultdict(list)
        with self.lock:
            for o in self.operations:
                by_name[o.name].append(o)
        return by_name

    def acknowledged(self):
        with self.lock:
            return sum(o.outcome in (OK, NOTHING) for o in self.operations)


# ---------------------------------------------------------------------- the search

def linearize(operations, before=ABSENT):
    """None if the history of one name can be put in order; otherwise the first
    answer that cannot be explained, together with all before it. `before` is
    what the name had at first."""
    certain = [o for o in operations if o.outcome in (OK, NOTHING)]
    # Of an unknown outcome only writes matter: puts by their values, since each
    # value is put once; removals by their number, since all that have begun
    # are alike.
    maybe = {o.value: o.began for o in operations if o.outcome == UNKNOWN and o.what == "put"}
    gone = sorted(o.began for o in operations if o.outcome == UNKNOWN and o.what == "rm")
    events = sorted(itertools.chain(((o.began, 0, i) for i, o in enumerate(certain)),
                                    ((o.ended, 1, i) for i, o in enumerate(certain))))

    def needs(o, at, value, used, removals):
        """The unknown writes that are spent when o follows `value`; None: it cannot."""
        if not o.reads() or o.value == value:
            return used, removals
        if o.value is ABSENT:
            return (used, removals + 1) if bisect.bisect_right(gone, at) > removals else None
        return (used | {o.value}, removals) if maybe.get(o.value, NEVER) <= at and o.value not in used else None

    # A configuration: the value, which of the operations under way have had
    # their moment, which unknown puts and how many unknown removals were spent.
    configurations = {(before, frozenset(), frozenset(), 0)}
    under_way = []
    for at, ends, i in events:
        if not ends:
            under_way.append(i)
            continue
        found = set()
        for value, had, used, removals in configurations:
            if i in had:
                found.add((value, had - {i}, used, removals))
                continue
            # All orders of others under way that end with operation i.
            todo = [(value, had, used, removals)]
            known = set(todo)
            while todo:
                value, had, used, removals = todo.pop()
                for k in under_way:
                    spent = None if k in had else needs(certain[k], at, value, used, removals)
                    if spent is None:
                        continue
                    if k == i:
                        found.add((certain[k].value, had, *spent))
                        continue
                    then = (certain[k].value, had | {k}, *spent)
                    if then not in known:
                        known.add(then)
                        todo.append(then)
        under_way.remove(i)
        if not found:
            return certain[i]
        configurations = found
    return None


# --------------------------------------------------------------------- the patterns

class Fault(collections.namedtuple("Fault", "kind name operations")):
    def __str__(self):
        return f"{self.kind}: {self.name}: " + ", then ".join(map(str, self.operations))


def missed_by(read, puts, acked, removals):
    """The put that a read saw, and the acknowledged write that it should have
    seen instead, or one behind that; None if it is right. acked is in the order
    of beginnings."""
    source = puts[read.value] if read.value is not ABSENT else None
    for w in reversed(acked[:bisect.bisect_left(acked, read.began, key=lambda w: w.began)]):
        if source and w.began <= source.ended:
            break  # so it may be older than what was read
        if w.ended >= read.began:
            continue
        if source:
            # Overwritten after it had been acknowledged, and before the read
            # began. A put whose outcome is unknown may have come later.
            return source, w
        if w.what == "put":
            # Absent, though there was a put, and no removal at it or behind it.
            if any(r.ended > w.began and r.began < read.ended for r in removals):
                break
            return None, w
    return source, None


def faults_of(name, operations):
    """All that is wrong with the history of one name."""
    found = []
    puts = {o.value: o for o in operations if o.what == "put" and o.writes()}
    acked = sorted((o for o in operations if o.writes() and o.outcome == OK), key=lambda o: o.began)
    removals = [o for o in operations if o.what == "rm" and o.writes()]
    reads = sorted((o for o in operations if o.reads()), key=lambda o: o.began)
    for read in reads:
        if read.value is not ABSENT and (read.value not in puts or puts[read.value].began > read.ended):
            found.append(Fault("invented", name, (read,)))
    reads = [r for r in reads if r.value is ABSENT or r.value in puts]
    missed = [missed_by(read, puts, acked, removals) for read in reads]
    for i, read in enumerate(reads):
        source, lost = missed[i]
        if not lost:
            continue
        shown = tuple(filter(None, (source, lost, read)))
        if lost.what == "rm":
            found.append(Fault("resurrected", name, shown))
            continue
        # Was it seen again before somebody wrote anew?
        anew = min((w.began for w in acked if w.began > read.ended), default=NEVER)
        again = any(r.began > read.ended and r.began < anew and not m[1] for r, m in zip(reads[i:], missed[i:]))
        found.append(Fault("stale" if again else "lost", name, shown))
    for r in acked:
        # A removal that found something, behind a removal, and no put since.
        earlier = [e for e in acked if e.what == "rm" and e.ended < r.began] if r.what == "rm" else []
        if earlier and not any(p.ended > earlier[-1].began and p.began < r.ended for p in puts.values()):
            found.append(Fault("resurrected", name, (earlier[-1], r)))
    stuck = None if found else linearize(operations)
    if stuck:
        near = sorted((o for o in operations if o.ended > stuck.began - 2 and o.began < stuck.ended),
                      key=lambda o: o.began)[-12:]
        found.append(Fault("disorder", name, (*(o for o in near if o is not stuck), stuck)))
    return found


KINDS = "lost", "stale", "resurrected", "invented", "disorder"


def judge(history):
    """All faults of a history, by kind; a name is reported once for each kind."""
    found = {kind: [] for kind in KINDS}
    for name, operations in sorted(history.names().items()):
        mine = set()
        for fault in faults_of(name, operations):
            if fault.kind not in mine:
                found[fault.kind].append(fault)
            mine.add(fault.kind)
    return found
