"""A client of a ring, in Python on plain sockets: what wire/frame.h and
chord_wire.h say, written a second time from the pages alone. For measurements,
and for tests that say what no honest peer would.
"""
import hashlib
import socket
import struct

PING, STATE, NOTIFY, STEP, GET, PUT, DEL, RANGE, LIST, LEAVING = range(1, 11)
STATUS = 32
OWNER, CANDIDATE, NEARER, BACK = 1, 2, 3, 4
ANSWER, ERROR = 1, 2
REFUSED, BUSY, NOT_FOUND, NOT_MINE, STALE, FULL, WRONG = range(1, 8)
HELLO = b"blyring0" + bytes(32)

TABLE = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


def crc32c(data):
    c = 0xFFFFFFFF
    for x in data:
        c = c >> 8 ^ TABLE[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF


def number(digest):
    """The place of a digest on the ring."""
    return int.from_bytes(digest[:8], "big")


def ring_id(name="ring", r=8, copies=3):
    text = f"{name} bits=64 sha256 r={r} R={copies} names=2".encode()
    return number(hashlib.sha256(text).digest())


RING = ring_id()


def node_id(at, v=0):
    return number(hashlib.sha256(b"%s:%d#%d" % (at[0].encode(), at[1], v)).digest())


def descriptor(at, v=0, id=None):
    """Of virtual node v at an address; `id` is that of a liar."""
    host = socket.inet_aton(at[0]) + bytes(12)
    return struct.pack("<QHB16sHQ", node_id(at, v) if id is None else id, v, 4, host, at[1], 1)


def question(to=0, sender=None, flags=0, target=0, dead=(), peers=()):
    """The body of a question about the ring."""
    return (struct.pack("<QB", to, sender is not None) + (sender or b"") + struct.pack("<BQB", flags, target, len(dead))
            + b"".join(struct.pack("<Q", d) for d in dead) + bytes([len(peers)]) + b"".join(peers))


def frame(kind, body, request=1, flags=0, ring=RING, version=1):
    head = struct.pack("<IBBHIQ", len(body) + 20, version, kind, flags, request, ring) + body
    return head + struct.pack("<I", crc32c(head))


def receive(s, n):
    parts = []
    while n:
        part = s.recv(n)
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def receive_frame(s):
    """Type, flags, request and body."""
    n, = struct.unpack("<I", receive(s, 4))
    rest = receive(s, n)
    _, kind, flags, request, _ = struct.unpack_from("<BBHIQ", rest)
    return kind, flags, request, rest[16:-4]


def connect(at, timeout=None):
    s = socket.create_connection(at, timeout=timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(HELLO)
    receive(s, 40)
    return s


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Refused(Exception):
    """Its code and its text."""


class Client:
    """Of the ring that a member belongs to; it remembers ranges if told to."""

    def __init__(self, entry):
        self.entry, self.lines, self.ranges, self.asked = entry, {}, [], 0
        self.first = node_id(entry)

    def ask(self, at, kind, body):
        if at not in self.lines:
            self.lines[at] = connect(at)
        s = self.lines[at]
        s.sendall(frame(kind, body))
        _, flags, _, answer = receive_frame(s)
        self.asked += 1
        if flags & ERROR:
            raise Refused(answer[0], answer[1:].decode())
        return answer

    def peers(self, body):
        """Ids and addresses in the answer to a question about the ring."""
        found = []
        for i in range(body[1]):
            id, _, _, host, port, _ = struct.unpack_from("<QHB16sHQ", body, 2 + 37 * i)
            found.append((id, (socket.inet_ntoa(host[:4]), port)))
        return found

    def state(self, at, node=0):
        """The predecessor and the list."""
        return self.peers(self.ask(at, STATE, question(node)))

    def owner(self, key, cached=False):
        if cached:
            for a, b, at, node in self.ranges:
                if (a < key <= b) if a < b else (key > a or key <= b):
                    return at, node
        at, node, named = self.entry, self.first, 0
        for _ in range(200):
            body = self.ask(at, STEP, question(node, flags=named, target=key))
            peers = self.peers(body)
            if body[0] == OWNER:
                if cached:
                    self.ranges.append((peers[0][0], node, at, node))
                return at, node
            node, at = peers[0]
            named = 0 if body[0] == NEARER else 2
        raise RuntimeError("no owner")

    def get(self, digest, cached=False):
        at, node = self.owner(number(digest), cached)
        return self.ask(at, GET, struct.pack("<Q", node) + digest + b"\1")[57:]

    def put(self, digest, data):
        at, node = self.owner(number(digest))
        self.put_at(at, node, digest, data)

    def put_at(self, at, node, digest, data, counter=1, kind=0, replica=0):
        """kind is 0 of a block, 1 of a manifest, 2 of a tombstone."""
        self.ask(at, DEL if kind == 2 else PUT, struct.pack("<QB", node, replica) + digest
                 + struct.pack("<QQQB", counter, 0, 0, kind) + data)
