"""Curves of efficiency over the length of tasks, as SVG."""

import math
from html import escape

WIDTH, HEIGHT = 800, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 290, 36, 48
COLOURS = ("#1f5fbf", "#0f9d8a", "#7a4fc9", "#2a9d2a", "#d1495b", "#e07b00", "#8c564b", "#b5179e",
           "#6c757d", "#a68a00", "#3a3a3a")


class Axes:
    """Length on a logarithmic axis, efficiency from 0 to 100 %."""

    def __init__(self, lengths):
        self.low = math.floor(math.log10(min(lengths)))
        self.high = max(math.ceil(math.log10(max(lengths))), self.low + 1)

    def x(self, length):
        part = (math.log10(length) - self.low) / (self.high - self.low)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, efficiency):
        return HEIGHT - BOTTOM - min(efficiency, 1.05) / 1.05 * (HEIGHT - TOP - BOTTOM)

    def decades(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#ddd", more=""):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>')


def grid(axes, title):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [text(LEFT, 20, title)]
    for length in axes.decades():
        parts.append(line(axes.x(length), TOP, axes.x(length), bottom))
        parts.append(text(axes.x(length), bottom + 16, f"{length:g}", "middle"))
    for percent in range(0, 101, 25):
        y = axes.y(percent / 100)
        half = (' stroke-dasharray="5 4"', "#555") if percent == 50 else ("", "#ddd")
        parts.append(line(LEFT, y, right, y, half[1], half[0]))
        parts.append(text(LEFT - 6, y + 4, f"{percent} %", "end"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 10, "length of a task: wall time x cores / tasks, us",
                      "middle"))
    return parts


def curve(axes, number, name, points):
    colour = COLOURS[number % len(COLOURS)]
    dash = ' stroke-dasharray="6 3"' if number >= len(COLOURS) else ""
    place = [(axes.x(length), axes.y(efficiency)) for length, efficiency in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    y = TOP + 10 + 18 * number
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in place),
        line(WIDTH - RIGHT + 14, y, WIDTH - RIGHT + 38, y, colour, f' stroke-width="2"{dash}'),
        text(WIDTH - RIGHT + 44, y + 4, name),
    ]


def efficiency_plot(title, curves):
    """Returns a picture of curves: a name and its [length, efficiency] pairs each."""
    axes = Axes([length for points in curves.values() for length, _ in points])
    parts = grid(axes, title)
    for number, (name, points) in enumerate(curves.items()):
        parts += curve(axes, number, name, points)
    height = max(HEIGHT, TOP + 20 + 18 * len(curves))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">')
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"
