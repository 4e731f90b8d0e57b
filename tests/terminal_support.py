"""Programs on a terminal, typed into."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

# Seconds until something that was waited for is missed; none takes one.
MISSED = 600


class Terminal:
    """A program on a terminal, typed into."""

    def __init__(self, argv, cwd, env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 80, 0, 0))
        self.child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=slave,
                                      stdout=slave, stderr=slave,
                                      start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(
                                          0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, pattern, shown=None):
        """What comes until the pattern is seen, without escapes."""
        shown = shown or self.text
        end = time.monotonic() + MISSED
        while not re.search(pattern, shown()):
            assert time.monotonic() < end, (pattern, shown())
            if select.select([self.master], [], [], 1)[0]:
                self.seen += os.read(self.master, 65536).decode(
                    errors="replace")
        return shown()

    def shows(self, pattern):
        """The same for what stands on the screen, line by line."""
        return self.until(pattern, self.screen)

    def screen(self):
        """What was drawn, by the moves that editing a line takes; nothing
        scrolls away."""
        rows, row, column = [[]], 0, 0
        for move in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[=>]|(.)",
                                self.seen, re.S):
            count, letter, char = move.groups()
            n = int(count) if count and count.isdigit() else 1
            line = rows[row]
            if char == "\r":
                column = 0
            elif char == "\n":
                row += 1
                if row == len(rows):
                    rows.append([])
            elif char == "\t":
                column += 8 - column % 8
            elif char == "\b":
                column = max(0, column - 1)
            elif char and char >= " ":
                line += [" "] * (column - len(line))
                line[column:column + 1] = [char]
                column += 1
            elif letter == "C":
                column += n
            elif letter == "G":
                column = n - 1
            elif letter == "D":
                column = max(0, column - n)
            elif letter == "A":
                row = max(0, row - n)
            elif letter == "K":
                del line[column:]
            elif letter == "P":
                del line[column:column + n]
            elif letter == "@":
                line[column:column] = [" "] * n
            elif letter == "J":
                del line[column:], rows[row + 1:]
        return "\n".join("".join(line) for line in rows)

    def line(self, typed):
        """The line after keys of which the last one tells it in brackets."""
        self.seen = ""
        self.type(typed)
        return re.search(r"\[\[(.*)\]\]",
                         self.until(r"\[\[.*\]\]")).group(1)

    def text(self):
        return re.sub(r"\x1b\][^\x07]*\x07|\x1b[\[(][0-9;?>=]*[A-Za-z]|\x1b[=>]"
                      r"|[\x07\x0f]", "", self.seen)

    def end(self):
        os.close(self.master)
        self.child.kill()
        self.child.wait()

    def ended(self):
        """Wait for the end, reading what still comes: the exit status."""
        end = time.monotonic() + MISSED
        while self.child.poll() is None:
            assert time.monotonic() < end, self.text()
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode(
                        errors="replace")
                except OSError:  # the other end is closed
                    pass
        return self.child.returncode
