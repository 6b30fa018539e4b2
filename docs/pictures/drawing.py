"""Draws SVG pictures that are right in light and in dark, without any font of their own.

A Picture collects boxes, arrows and text. It measures its text with the widths of a wide sans-serif
font and refuses a picture whose text leaves its box, leaves the picture, or covers other text.
"""

from html import escape

SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

# Hue: fill, stroke and text colour; first in light, then in dark.
HUES = {
    "grey": (("#f3f5f7", "#8b949e", "#57606a"), ("#21262d", "#6e7681", "#a9b3bd")),
    "blue": (("#dcebfb", "#2f6db5", "#1d5496"), ("#15304f", "#5b9bdf", "#8fc1f2")),
    "orange": (("#fde6d0", "#c46412", "#96490a"), ("#4a2c10", "#e08e45", "#f0b27c")),
    "green": (("#dbf1dd", "#2f8a3d", "#1f6b2b"), ("#123a1b", "#4fae5e", "#86d493")),
    "purple": (("#e9e0f8", "#7a4fc0", "#5f38a0"), ("#33224f", "#a684e0", "#c6aef2")),
    "red": (("#fbdcdc", "#c0392f", "#9c281f"), ("#4d1a1a", "#e5706a", "#f5a19c")),
    "teal": (("#d5f0f0", "#1c8285", "#116467"), ("#0d3a3c", "#45b3b6", "#86d6d8")),
}
PAPER = ("#ffffff", "#0d1117")
INK = ("#1f2328", "#e6edf3")
EDGE = ("#57606a", "#9aa4af")
RULE = ("#d0d7de", "#30363d")

# Width of characters in hundredths of the font size.
WIDTHS = {28: "'IJijl", 32: " ,./:;\\|", 36: "-f", 40: "!()[]rt", 44: '"', 48: "*_`", 52: "?sz",
          56: "FLck", 60: "PTYaeovxy", 68: "ABCRVXZ", 72: "U", 76: "&DGHN", 80: "OQw",
          84: "#+<=>^~→←", 88: "M", 96: "%m", 100: "@W"}
WIDTH_OF = {character: width / 100 for width, characters in WIDTHS.items() for character in characters}


def number(value):
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def width_of(words, size, mono=False, bold=False):
    if mono:
        return 0.61 * size * len(words)
    return sum(WIDTH_OF.get(each, 0.64) for each in words) * size * (1.1 if bold else 1)


def rules_of(classes, shade):
    """The style sheet of the used classes: shade 0 is light, 1 is dark."""
    known = {"paper": f"fill:{PAPER[shade]}", "ink": f"fill:{INK[shade]}",
             "edge": f"stroke:{EDGE[shade]};fill:none", "tip": f"fill:{EDGE[shade]}",
             "rule": f"stroke:{RULE[shade]};fill:none",
             "halo": f"stroke:{PAPER[shade]};stroke-width:4;stroke-linejoin:round;paint-order:stroke"}
    for hue, colours in HUES.items():
        fill, stroke, text = colours[shade]
        known |= {hue: f"fill:{fill};stroke:{stroke}", f"{hue}-line": f"stroke:{stroke};fill:none",
                  f"{hue}-tip": f"fill:{stroke}", f"{hue}-text": f"fill:{text}"}
    return "".join(f".{name}{{{known[name]}}}" for name in sorted(classes))


class Picture:
    """A picture of width x height; title and description are for readers who do not see it."""

    def __init__(self, width, height, title, description):
        self.width, self.height = width, height
        self.title, self.description = title, description
        self.parts, self.texts, self.classes = [], [], {"paper", "ink"}

    # ---- Shapes -----------------------------------------------------------------------------

    def add(self, element, names):
        self.classes.update(names.split())
        self.parts.append(element)

    def rect(self, x, y, width, height, hue="grey", radius=4, dash=False, stroke=1.2):
        more = ' stroke-dasharray="5 4"' if dash else ""
        self.add(f'<rect class="{hue}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
                 f'height="{number(height)}" rx="{radius}" stroke-width="{stroke}"{more}/>', hue)

    def frame(self, x, y, width, height, words, hue="grey", size=13, dash=False):
        """A large box with a heading inside its upper left corner."""
        self.rect(x, y, width, height, hue, 8, dash)
        self.text(x + 12, y + 16, words, size, hue=None if hue == "grey" else hue, bold=True,
                  room=width - 20)

    def box(self, x, y, width, height, words="", hue="grey", size=13, radius=6, dash=False,
            bold=False, mono=False):
        """A box with centred text of one line or more."""
        self.rect(x, y, width, height, hue, radius, dash)
        lines = words.split("\n") if words else []
        step = size * 1.25
        if len(lines) * step > height + 2:
            raise ValueError(f"{self.title}: {words!r} is higher than its box")
        for index, line in enumerate(lines):
            at = y + height / 2 + (index - (len(lines) - 1) / 2) * step
            self.text(x + width / 2, at, line, size, "middle", bold=bold, mono=mono, room=width - 4)

    def text(self, x, y, words, size=13, anchor="start", hue=None, bold=False, mono=False,
             room=None, halo=False):
        """Text whose vertical middle is y. `room` is the width that it may have."""
        if not words:
            return
        width = width_of(words, size, mono, bold)
        if room is not None and width > room:
            raise ValueError(f"{self.title}: {words!r} takes {width:.0f} of {room:.0f}")
        begin = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        self.texts.append((begin, y - size * 0.5, begin + width, y + size * 0.5, words))
        names = (f"{hue}-text" if hue else "ink") + (" halo" if halo else "")
        more = ' font-weight="600"' if bold else ""
        more += f' font-family="{MONO}"' if mono else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += ' xml:space="preserve"' if "  " in words or words[0] == " " else ""
        self.add(f'<text class="{names}" x="{number(x)}" y="{number(y + size * 0.35)}" '
                 f'font-size="{number(size)}"{more}>{escape(words)}</text>', names)

    def note(self, x, y, words, size=12, anchor="start", hue="grey", **more):
        """Secondary text of one line or more; y is the middle of the first line."""
        for index, line in enumerate(words.split("\n")):
            self.text(x, y + index * size * 1.3, line, size, anchor, hue, **more)

    def line(self, points, hue=None, dash=False, width=1.4, rule=False):
        name = "rule" if rule else f"{hue}-line" if hue else "edge"
        more = ' stroke-dasharray="5 4"' if dash else ""
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.add(f'<path class="{name}" d="{path}" stroke-width="{width}"{more}/>', name)

    def arrow(self, points, hue=None, dash=False, width=1.4, both=False):
        """A line along points with a tip at its end."""
        self.line(points, hue, dash, width)
        self.tip(points[-2], points[-1], hue)
        if both:
            self.tip(points[1], points[0], hue)

    def tip(self, start, end, hue=None):
        (x0, y0), (x, y) = start, end
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5 or 1
        dx, dy = (x - x0) / length, (y - y0) / length
        corners = [(x + dx, y + dy), (x - 8 * dx + 3.6 * dy, y - 8 * dy - 3.6 * dx),
                   (x - 8 * dx - 3.6 * dy, y - 8 * dy + 3.6 * dx)]
        path = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        name = f"{hue}-tip" if hue else "tip"
        self.add(f'<polygon class="{name}" points="{path}"/>', name)

    def circle(self, x, y, radius, hue="grey", words="", size=12, stroke=1.2):
        self.add(f'<circle class="{hue}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" '
                 f'stroke-width="{stroke}"/>', hue)
        self.text(x, y, words, size, "middle", bold=True)

    def dot(self, x, y, hue, shape=0, size=4.5):
        """A filled mark: circle, square, triangle or diamond."""
        s, name = size, f"{hue}-tip"
        if shape == 0:
            element = f'<circle class="{name}" cx="{number(x)}" cy="{number(y)}" r="{s}"/>'
        else:
            corners = {1: [(-s, -s), (s, -s), (s, s), (-s, s)], 2: [(0, -s - 1), (s + 1, s), (-s - 1, s)],
                       3: [(0, -s - 1.5), (s + 1.5, 0), (0, s + 1.5), (-s - 1.5, 0)]}[shape]
            path = " ".join(f"{number(x + a)},{number(y + b)}" for a, b in corners)
            element = f'<polygon class="{name}" points="{path}"/>'
        self.add(element, name)

    def cells(self, x, y, size, columns, rows, hue_of):
        """A grid of cells; hue_of(column, row) is a hue."""
        for row in range(rows):
            for column in range(columns):
                self.rect(x + column * size, y + row * size, size, size, hue_of(column, row), 0, stroke=0.8)

    def axis(self, x, y, width, top, ticks, unit, at):
        """A horizontal axis at y with a faint line up to `top` at each tick: (value, words)."""
        for value, words in ticks:
            self.line([(at(value), top), (at(value), y)], rule=True, width=1)
            self.text(at(value), y + 12, words, 11, "middle", "grey")
        self.line([(x, y), (x + width, y)], width=1.2)
        self.text(x + width, y + 28, unit, 11, "end", "grey")

    # ---- Result -----------------------------------------------------------------------------

    def check(self):
        for index, (x0, y0, x1, y1, words) in enumerate(self.texts):
            if x0 < 2 or y0 < 0 or x1 > self.width - 2 or y1 > self.height:
                raise ValueError(f"{self.title}: {words!r} leaves the picture")
            for a0, b0, a1, b1, other in self.texts[:index]:
                if x0 < a1 and a0 < x1 and y0 + 1 < b1 and b0 + 1 < y1:
                    raise ValueError(f"{self.title}: {words!r} covers {other!r}")

    def svg(self):
        self.check()
        light, dark = rules_of(self.classes, 0), rules_of(self.classes, 1)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img" '
                f'aria-labelledby="title description" font-family="{SANS}">\n'
                f'<title id="title">{escape(self.title)}</title>\n'
                f'<desc id="description">{escape(self.description)}</desc>\n'
                f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>\n"
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="6"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")
