"""SVG pictures of the command, read back: where texts stand and how wide they
are, what is drawn in each panel.

Widths are those of DejaVu Sans, the widest of the usual sans-serif fonts, from
the font's own table, in thousandths of its size; bold ones are taken as 15 %
wider.
"""
import itertools
import math
import re
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = """318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636
636 636 636 636 636 636 636 636 636 337 337 838 838 838 531 1000 684 686 698
770 632 575 775 752 295 295 656 557 863 748 787 603 787 695 635 611 732 684 989
685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 579
278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636 337 636
838""".split()
SIZES = {"t": 17, "u": 13, "f": 11}


def width(text, size):
    return size / 1000 * sum(
        int(WIDTHS[ord(c) - 32]) if " " <= c <= "~" else 838 for c in text)


class Text:
    """One <text>: what it says, its class and its box, turned boxes as the
    upright ones around them."""

    def __init__(self, element, down):
        self.kind = element.get("class", "")
        names = self.kind.split()
        size = next((SIZES[n] for n in names if n in SIZES), 12)
        parts = [(element.text or "", size)]
        for child in element:
            if child.tag == SVG + "tspan":
                parts.append((child.text or "",
                              float(child.get("font-size", size))))
            parts.append((child.tail or "", size))
        self.text = "".join(text for text, _ in parts)
        wide = sum(width(*part) for part in parts)
        wide *= 1.15 if "t" in names else 1
        left = -wide if "e" in names else -wide / 2 if "m" in names else 0
        corners = list(itertools.product((left, left + wide),
                                         (-size * 0.76, size * 0.24)))
        turn = re.match(r"translate\((\S+) (\S+)\) rotate\((\S+)\)",
                        element.get("transform", ""))
        if turn:
            x, y, angle = map(float, turn.groups())
            sin, cos = (f(math.radians(angle)) for f in (math.sin, math.cos))
            corners = [(a * cos - b * sin, a * sin + b * cos)
                       for a, b in corners]
        else:
            x, y = float(element.get("x")), float(element.get("y"))
        self.left, self.right = (f(x + c[0] for c in corners)
                                 for f in (min, max))
        self.top, self.bottom = (f(y + down + c[1] for c in corners)
                                 for f in (min, max))
        self.turned = bool(turn)

    def meets(self, left, top, right, bottom, slack=1):
        return (self.left < right - slack and left < self.right - slack and
                self.top < bottom - slack and top < self.bottom - slack)

    def __repr__(self):
        return (f"{self.text!r} at {self.left:.0f}..{self.right:.0f}, "
                f"{self.top:.0f}..{self.bottom:.0f}")


class Panel:
    """A plot, or one of several below each other."""

    def __init__(self, element, down):
        self.down = down
        self.texts = [Text(t, down) for t in element.findall(SVG + "text")]
        self.series = {}  # name: the element
        for g in element.findall(SVG + "g"):
            if "s" in g.get("class", "").split() and g.find(SVG + "title") \
                    is not None:
                self.series[g.find(SVG + "title").text] = g
        # The frame, if this is a plot and not an array of cells.
        self.frame = None
        for path in element.findall(SVG + "path"):
            sides = re.match(r"M(\S+) (\S+)V([\d.]+)H([\d.]+)",
                             path.get("d", ""))
            if path.get("class") == "axis" and sides:
                left, top, bottom, right = map(float, sides.groups())
                self.frame = left, top + down, right, bottom + down

    def ticks(self):
        """The labels of the x and of the y axis."""
        left, top, right, bottom = self.frame
        across = [t for t in self.texts
                  if t.kind.split()[:1] in (["m"], ["e"]) and
                  (t.turned or abs(t.bottom - bottom - 20.9) < 1)]
        up = [t for t in self.texts if t.kind == "e" and not t.turned and
              abs(t.right - left + 7) < 0.1]
        return across, up

    def places(self, name):
        """Where a series is drawn: the corners of its lines and bars, and the
        beginnings of its markers, which are at most 6 away from their middle;
        with that distance."""
        for path in self.series[name].iter(SVG + "path"):
            kinds = path.get("class", "").split()
            slack = 6 if {"dot", "open", "hit"} & set(kinds) else 0.5
            x = y = None
            for letter, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)",
                                              path.get("d")):
                at = [float(n) for n in numbers.split()]
                if letter in "ML":
                    x, y = at
                elif letter == "H":
                    x, = at
                elif letter == "V":
                    y, = at
                else:
                    continue
                yield x, y + self.down, slack

    def markers(self, name):
        """How many measured points of a series are seen: markers, bars, and
        what shows a value when pointed at."""
        return sum(1 for path in self.series[name].iter(SVG + "path")
                   if path.get("class").rstrip("12") in
                   ("dot", "open", "hit", "bar"))

    def legend(self):
        """What says which line is which, and all other words beside the plot:
        names without a class."""
        return {t.text for t in self.texts if not t.kind}


class Picture:
    def __init__(self, path):
        self.source = path.read_text()
        self.root = root = xml.fromstring(self.source)
        _, _, self.width, self.height = map(float, root.get("viewBox").split())
        self.title = root.find(SVG + "title").text
        panels = [g for g in root.findall(SVG + "g")
                  if g.get("class") == "panel"]
        self.panels = [
            Panel(g, float(re.fullmatch(r"translate\(0 (\S+)\)",
                                        g.get("transform"))[1]))
            for g in panels] or [Panel(root, 0)]
        self.texts = [t for p in self.panels for t in p.texts]
        if panels:
            self.texts += [Text(t, 0) for t in root.findall(SVG + "text")]

    def colours(self):
        """The colours of series on light and on dark paper, paper first."""
        style = self.root.find(SVG + "style").text
        light, dark = style.split("@media")
        return [[re.search(r"\.paper\{color:(#\w+)", part)[1]] +
                re.findall(r"\.c\d\{color:(#\w{6})\}", part)
                for part in (light, dark)]


# ------------------------------------------------------------------- colours

# Machado, Oliveira and Fernandes 2009, on linear RGB: nothing lacking, then
# without the cones for long, middle and short waves.
EYES = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
     [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
     [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
     [0.004733, 0.691367, 0.303900]],
]


def linear(colour):
    digits = colour[1:] if len(colour) == 7 else \
        "".join(2 * c for c in colour[1:])
    values = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for v in values]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def oklab(rgb):
    cones = times([[0.4122214708, 0.5363325363, 0.0514459929],
                   [0.2119034982, 0.6806995451, 0.1073969566],
                   [0.0883024619, 0.2817188376, 0.6299787005]],
                  [min(1, max(0, c)) for c in rgb])
    return times([[0.2104542553, 0.7936177850, -0.0040720468],
                  [1.9779984951, -2.4285922050, 0.4505937099],
                  [0.0259040371, 0.7827717662, -0.8086757660]],
                 [c ** (1 / 3) for c in cones])


def distance(a, b):
    """The least in hundredths of Oklab units, for any eye."""
    return min(100 * math.dist(*(oklab(times(eye, linear(c)))
                                 for c in (a, b))) for eye in EYES)


def contrast(a, b):
    low, high = sorted(sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722),
                                                 linear(c))) for c in (a, b))
    return (high + 0.05) / (low + 0.05)
