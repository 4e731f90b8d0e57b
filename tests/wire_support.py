"""The plain side of wire/session.h, written a second time: hellos and frames of
peers that tests make, and a proxy that stands between two that are real."""
import functools
import socket
import struct
import sys
import threading

TABLE = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


@functools.lru_cache(64)
def crc32c(data):
    c, table = 0xFFFFFFFF, TABLE
    for x in data:
        c = c >> 8 ^ table[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF


def greeting(protocol, secret=False):
    return protocol + (b"2" if secret else b"0") + bytes(32)


HELLO = greeting(b"blysync")


def frame(*parts, number=0):
    """A message, type and body, as a frame."""
    body = b"".join(parts)
    text = struct.pack("<IBBHIQ", len(body) + 19, 1, body[0], 0, number, 0) + body[1:]
    return text + struct.pack("<I", crc32c(text))


def take(read):
    """The next message, by a function that reads n bytes; b"": there is none."""
    head = read(4)
    if len(head) < 4:
        return b""
    rest = read(struct.unpack("<I", head)[0])
    return rest[1:2] + rest[16:-4]


def told(line):
    return take(lambda n: line.recv(n, socket.MSG_WAITALL))


def speak(at, hello=HELLO):
    """A connection to a real server, once both have said hello."""
    line = socket.create_connection(at)
    line.sendall(hello)
    assert line.recv(len(hello), socket.MSG_WAITALL)[:8] == hello[:8]
    return line


class Proxy:
    """Stands between a client and the server at `at`: change(number, from_client, bytes) says
    what is sent on of a piece, or None: both are cut off."""

    def __init__(self, at, change):
        host, port = at.rsplit(":", 1)
        self.to, self.change = (host, int(port)), change
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.seen = {True: b"", False: b""}

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def serve(self):
        try:
            client, _ = self.socket.accept()
        except OSError:
            return
        with client, socket.create_connection(self.to) as server:
            pumps = [threading.Thread(target=self.pump, args=ends, daemon=True)
                     for ends in ((client, server, True), (server, client, False))]
            for p in pumps:
                p.start()
            for p in pumps:
                p.join()

    def pump(self, source, to, from_client):
        try:
            while piece := source.recv(65536):
                before = len(self.seen[from_client])
                self.seen[from_client] += piece
                piece = self.change(before, from_client, piece)
                if piece is None:
                    break
                to.sendall(piece)
        except OSError:
            pass
        for end in source, to:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __exit__(self, *_):
        self.socket.close()
        self.thread.join(60)


def relay(program, command, change="pass", asks="pass"):
    """The text of a script that runs `command`, a server on standard input and
    output, and says what both sides say but for what `change` makes of an
    answer, Python with `kind` and `answer`, and `asks` of a question `m`."""
    return f"""
import subprocess, sys
sys.path[:0] = {[p for p in sys.path if p]!r}
from wire_support import frame, take
p = subprocess.Popen({[program, *command]!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(f, m):
    f.write(m)
    f.flush()
send(p.stdin, sys.stdin.buffer.read(40))
send(sys.stdout.buffer, p.stdout.read(40))
while m := bytearray(take(sys.stdin.buffer.read)):
    {asks}
    send(p.stdin, frame(bytes(m)))
    kind, answer = m[0], take(p.stdout.read)
    {change}
    send(sys.stdout.buffer, frame(answer))
p.stdin.close()
sys.exit(p.wait())
"""
