"""What a disk may hold after a power cut.

disk_tracer logs every call of a command that changes files. Here the log is
replayed on a model of a disk that promises only what POSIX does:

- what was written to a file lasts from an fsync of that file on; before, each
  piece of it (4 KiB, or 512 bytes where it is torn) may be there or not, in
  any order, and a hole in the middle reads as zeros;
- a name that was made, moved or taken away lasts from an fsync of its folder
  on; before, each such change may be there or not, whatever became of the
  bytes of the file and of other names. So a rename may be on disk before the
  data, a common surprise, and one name before an older one;
- changes of one name, and of one file's same bytes, do not overtake each
  other.

A folder that was made lasts with its name in its own folder, and no sync of
what is in it helps before.
"""
import dataclasses
import os
import random

PAGE, SECTOR = 4096, 512
O_CREAT, O_TRUNC, O_TMPFILE = os.O_CREAT, os.O_TRUNC, os.O_TMPFILE

# Calls that change files in ways the model does not know. If the command
# begins to use one, the model has to learn it.
UNKNOWN = {"pwritev", "pwritev2", "copy_file_range", "sendfile", "splice",
           "truncate", "symlink", "symlinkat", "setxattr"}
RENAMES = {"rename", "renameat", "renameat2"}
LINKS = {"link", "linkat"}
UNLINKS = {"unlink", "unlinkat", "rmdir"}
MKDIRS = {"mkdir", "mkdirat"}
SYNCS = {"fsync", "fdatasync", "syncfs"}


def read_log(path):
    """The calls of a log, each a dict; numbers as such."""
    calls = []
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            call = dict(part.split("=", 1)
                        for part in line.rstrip("\n").split("\t"))
            for key in ("n", "result", "inode", "had", "flags", "mode", "at",
                        "size", "how", "shared", "anonymous"):
                if key in call:
                    call[key] = int(call[key])
            calls.append(call)
    return calls


@dataclasses.dataclass(eq=False)
class Inode:
    """A file or a folder. `before` is what it held when the command began."""
    before: bytes = b""
    folder: bool = False
    mapped: bool = False     # written to by memory: nobody knows when and what
    touched: bool = False    # something was written


@dataclasses.dataclass(eq=False)
class Change:
    """One thing that may or may not have reached the disk. Of data: inode and
    (at, bytes) or (size,); of names: folder and {name: Inode or None}."""
    inode: Inode = None
    data: tuple = ()
    folder: str = None
    names: dict = None
    since: int = 0
    lasts: int = None        # the step from which on it is certain


class Disk:
    """The history of a folder: `steps` moments at which the power may go."""

    def __init__(self, root, before, calls):
        self.root = os.path.realpath(root)
        self.calls = [c for c in calls if self.concerns(c)]
        self.start, self.inodes, self.changes = {}, {}, []
        self.ended = None     # the step from which on the command is done
        self.status = None
        for path, (content, number) in before.items():
            node = Inode(content or b"", folder=content is None)
            self.start[os.path.normpath(os.path.join(self.root, path))] = node
            self.inodes[number] = node
        self.steps = 0
        for call in self.calls:
            if call["call"] == "exit" or call["result"] >= 0:
                self.steps += 1
                self.steps -= not self.take(call)

    def concerns(self, call):
        def inside(path):
            return path == self.root or path.startswith(self.root + "/")
        return call["call"] == "exit" or inside(call["path"]) or \
            inside(call["to"])

    @staticmethod
    def split(path):
        path = path.rstrip("/")
        folder, name = os.path.split(path)
        return os.path.realpath(folder), name

    def node(self, number):
        return self.inodes.setdefault(number, Inode())

    def write(self, inode, *data):
        inode.touched = True
        self.changes.append(Change(inode=inode, data=data, since=self.steps))

    def rename(self, folder, names):
        self.changes.append(Change(folder=folder, names=names,
                                   since=self.steps))

    def sync(self, what):
        for c in self.changes:
            if c.lasts is None and (c.inode is what or c.folder == what):
                c.lasts = self.steps

    def take(self, call):
        """Whether the call makes a difference: it is then a step."""
        name, known = call["call"], len(self.changes)
        if name == "exit":
            self.ended, self.status = self.steps, call["result"]
            return True
        if name in UNKNOWN:
            raise AssertionError(f"the model of a disk does not know {name}")
        if name in ("open", "openat", "creat"):
            self.opened(call)
        elif name in ("write", "pwrite64", "writev") and "data" in call:
            self.write(self.node(call["inode"]), call["at"],
                       bytes.fromhex(call["data"]))
        elif name == "ftruncate":
            self.write(self.node(call["inode"]), call["size"])
        elif name == "mmap" and call["shared"]:
            self.node(call["inode"]).mapped = True
        elif name in LINKS:
            folder, last = self.split(call["to"])
            self.rename(folder, {last: self.node(call["inode"])})
        elif name in RENAMES:
            folder, last = self.split(call["to"])
            source, first = self.split(call["path"])
            assert folder == source, "the model moves nothing between folders"
            self.rename(folder, {last: self.node(call["inode"]), first: None})
        elif name in UNLINKS:
            folder, last = self.split(call["path"])
            self.rename(folder, {last: None})
        elif name in MKDIRS:
            folder, last = self.split(call["path"])
            self.inodes[call["inode"]] = Inode(folder=True)
            self.rename(folder, {last: self.inodes[call["inode"]]})
        elif name == "syncfs":
            for c in self.changes:
                c.lasts = self.steps if c.lasts is None else c.lasts
        elif name in SYNCS:
            self.sync(self.node(call["inode"]))
            self.sync(os.path.realpath(call["path"]))
        return len(self.changes) > known or name in SYNCS

    def opened(self, call):
        flags, number = call["flags"], call["inode"]
        if call["call"] == "creat":
            flags = O_CREAT | O_TRUNC
        if flags & O_TMPFILE == O_TMPFILE:
            self.inodes[number] = Inode()
        elif flags & O_CREAT and not call["had"]:
            self.inodes[number] = Inode()     # numbers are used again
            folder, last = self.split(call["path"])
            self.rename(folder, {last: self.inodes[number]})
        elif flags & O_TRUNC:
            self.write(self.node(number), 0)

    # ------------------------------------------------------------- states

    def pending(self, step):
        """Changes made by then, of which nobody knows."""
        return [c for c in self.changes
                if c.since <= step and (c.lasts is None or c.lasts > step)]

    def certain(self, step):
        return [c for c in self.changes
                if c.lasts is not None and c.lasts <= step]

    @staticmethod
    def pieces(change, size):
        """A write as writes of pieces that a disk takes whole."""
        if len(change.data) != 2:
            return [change.data]
        at, data = change.data
        out = []
        while data:
            n = size - at % size
            out.append((at, data[:n]))
            at, data = at + n, data[n:]
        return out

    def state(self, step, names, data):
        """Files by path, {path: bytes or None for a folder}, where of what is
        pending those changes of names are on disk, and of data those pieces:
        a function from change to a list of pieces."""
        certain = set(map(id, self.certain(step)))
        contents = {}

        def content(node):
            if node not in contents:
                contents[node] = bytearray(node.before)
            return contents[node]

        entries = dict(self.start)
        for c in self.changes:
            if c.since > step:
                break
            if c.inode is not None:
                pieces = [c.data] if id(c) in certain else data(c)
                for piece in pieces:
                    to = content(c.inode)
                    if len(piece) == 1:
                        size = piece[0]
                        del to[size:]
                        to.extend(bytes(size - len(to)))
                    else:
                        at, new = piece
                        if len(to) < at:
                            to.extend(bytes(at - len(to)))
                        to[at:at + len(new)] = new
            elif id(c) in certain or c in names:
                for name, node in c.names.items():
                    path = os.path.join(c.folder, name)
                    entries.pop(path, None)
                    if node is not None:
                        entries[path] = node
        out = {}
        for path, node in entries.items():
            parent = os.path.dirname(path)
            if path != self.root and not self.reaches(parent, entries):
                continue
            if node.mapped:
                out[path] = b"?"
            elif node.touched:
                out[path] = bytes(content(node))
            else:
                out[path] = None if node.folder else node.before
        return {os.path.relpath(p, self.root): v for p, v in out.items()}

    def reaches(self, folder, entries):
        """Whether a folder and those it is in are on disk."""
        while folder != self.root:
            if folder not in entries or not entries[folder].folder:
                return False
            folder = os.path.dirname(folder)
        return True

    def states(self, seed=0, sample=20):
        """(step, state) for every step: all and nothing of what is pending,
        all names without data, data without names, each change of names
        alone and without it, and a sample of mixtures with torn writes."""
        rng = random.Random(seed)
        for step in range(self.steps + 1):
            pending = self.pending(step)
            names = [c for c in pending if c.folder is not None]
            some = any(c.inode is not None for c in pending)

            def whole(c):
                return [c.data]

            def none(c):
                return []

            yield step, self.state(step, names, whole)
            if not pending:
                continue
            yield step, self.state(step, [], none)
            yield step, self.state(step, names, none)
            yield step, self.state(step, [], whole)
            for c in names[-8:]:
                yield step, self.state(step, [c], whole)
                yield step, self.state(step, [x for x in names if x is not c],
                                       whole)
            for _ in range(sample if some or len(names) > 1 else 0):
                size = rng.choice((PAGE, SECTOR, SECTOR))
                chance = rng.choice((0.1, 0.5, 0.9))

                def torn(c):
                    return [p for p in self.pieces(c, size)
                            if rng.random() < chance]

                yield step, self.state(
                    step, [c for c in names if rng.random() < 0.5], torn)


def snapshot(folder):
    """{path: (bytes, or None for a folder; number of the inode)}"""
    out = {}
    root = os.path.realpath(folder)
    for at, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            if os.path.islink(path):
                continue       # the command makes none, and moves none
            content = None if name in folders else open(path, "rb").read()
            out[os.path.relpath(path, root)] = content, st.st_ino
    return out
