#!/usr/bin/env python3
"""Writes a page of the documents from what `weir paper NUMBER` measured.

    paper_page.py FILE.json FOLDER    FOLDER/paper-NUMBER.md and .svg
"""

import json
import sys
from html import escape
from pathlib import Path

WIDTH, HEIGHT, COLUMNS = 340, 220, 3
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 26, 34
COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626", "#0891b2", "#64748b")
STYLE = ("text{font:10px sans-serif;fill:#334155}.head{font-weight:bold}.axis{stroke:#cbd5e1}"
         "@media(prefers-color-scheme:dark){text{fill:#cbd5e1}.axis{stroke:#475569}}")


def words(value):
    if value is None:
        return "-"
    if isinstance(value, (str, int)):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def points_of(series):
    return [(x, y) for x, y in zip(series["x"], series["values"]) if y is not None]


def has_numbers(figure):
    return all(isinstance(x, (int, float)) for series in figure["series"] for x in series["x"])


def is_drawn(figure):
    return len({str(x) for series in figure["series"] for x in series["x"]}) > 1


def bars(figure, left, top):
    """A chart of a figure whose points have names: of each the values of all series, as shares of
    the largest one."""
    names = figure["series"][0]["x"]
    wide = (WIDTH - LEFT - RIGHT) / len(names)
    each = wide * 0.8 / len(figure["series"])
    bottom = top + HEIGHT - BOTTOM
    title = f"{figure['figure']}: {figure['title']}"
    parts = [f'<text class="head" x="{left + 6}" y="{top + 14}">{escape(title[:56])}</text>']
    for share in (0, 0.5, 1):
        y = bottom - share * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line class="axis" x1="{left + LEFT}" x2="{left + WIDTH - RIGHT}" y1="{y:.0f}" y2="{y:.0f}"/>'
                     f'<text x="{left + LEFT - 4}" y="{y + 3:.0f}" text-anchor="end">{share:.0%}</text>')
    for i, name in enumerate(names):
        values = [series["values"][i] for series in figure["series"]]
        most = max((value for value in values if value), default=1)
        begin = left + LEFT + i * wide + wide * 0.1
        for number, value in enumerate(values):
            high = (value or 0) / most * (HEIGHT - TOP - BOTTOM)
            parts.append(f'<rect x="{begin + number * each:.1f}" y="{bottom - high:.1f}" width="{each:.1f}" '
                         f'height="{high:.1f}" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(f'<text x="{begin + wide * 0.4:.0f}" y="{bottom + 14}" text-anchor="middle">{escape(name)}</text>')
    legend = "".join(f'<tspan fill="{COLOURS[number % len(COLOURS)]}">{escape(series["name"])} </tspan>'
                     for number, series in enumerate(figure["series"]))
    parts.append(f'<text x="{left + LEFT}" y="{top + HEIGHT - 7}">time: {legend}</text>')
    return "".join(parts)


def panel(figure, left, top):
    """A chart of a figure, whose vertical axis begins at 0."""
    xs = [x for series in figure["series"] for x in series["x"]]
    low, high = min(xs), max(xs)
    most = max(y for series in figure["series"] for _, y in points_of(series))

    def at(x, y):
        return (left + LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT),
                top + TOP + (1 - y / most) * (HEIGHT - TOP - BOTTOM))

    title = f"{figure['figure']}: {figure['title']}"
    parts = [f'<text class="head" x="{left + 6}" y="{top + 14}">{escape(title[:56])}</text>']
    for share in (0, 0.5, 1):
        (x1, y), (x2, _) = at(low, share * most), at(high, 0)
        parts.append(f'<line class="axis" x1="{x1:.0f}" x2="{x2:.0f}" y1="{y:.0f}" y2="{y:.0f}"/>'
                     f'<text x="{x1 - 4:.0f}" y="{y + 3:.0f}" text-anchor="end">{words(share * most)}</text>')
    for x, anchor in ((low, "start"), (high, "end")):
        parts.append(f'<text x="{at(x, 0)[0]:.0f}" y="{top + HEIGHT - 20}" text-anchor="{anchor}">{x}</text>')
    parts.append(f'<text x="{left + WIDTH / 2:.0f}" y="{top + HEIGHT - 20}" text-anchor="middle">'
                 f'{escape(figure["x_name"])}</text>')
    names = []
    for number, series in enumerate(figure["series"]):
        colour = COLOURS[number % len(COLOURS)]
        line = [at(x, y) for x, y in points_of(series)]
        if len(line) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        else:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in line]
        names.append(f'<tspan fill="{colour}">{escape(series["name"])} </tspan>')
    parts.append(f'<text x="{left + LEFT}" y="{top + HEIGHT - 7}">{escape(figure["unit"])}: {"".join(names)}</text>')
    return "".join(parts)


def picture(figures):
    rows = -(-len(figures) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT
    panels = "\n".join((panel if has_numbers(figure) else bars)(figure, i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT)
                       for i, figure in enumerate(figures))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
            f"<style>{STYLE}</style>\n{panels}\n</svg>\n")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def values_of(figure):
    xs = []
    for series in figure["series"]:
        xs += [x for x in series["x"] if x not in xs]
    found = [dict(zip(map(str, series["x"]), series["values"])) for series in figure["series"]]
    rows = [[words(x), *(words(each[str(x)]) if str(x) in each else "" for each in found)] for x in xs]
    return table([figure["x_name"], *(f"{series['name']} [{figure['unit']}]" for series in figure["series"])], rows)


def verdict(judgement):
    if judgement["holds"]:
        return "holds"
    return "differs: " + judgement.get("known", "unknown why")


def section(figure):
    text = f"\n## {figure['figure']}: {figure['title']}\n\nThe paper: {figure['says']}\n"
    if figure["differs"]:
        text += f"\n{figure['differs']}\n"
    if not has_numbers(figure) or len(figure["series"][0]["x"]) <= 4:
        text += "\n" + values_of(figure)
    if figure["expectations"]:
        text += "\n" + table(["", "paper", "here", "expected", ""],
                             [[each["words"], words(each["paper"]), words(each["ours"]), each["expected"],
                               verdict(each)] for each in figure["expectations"]])
    return text


def page(facts):
    figures = facts["papers_figures"]
    judged = [each for figure in figures for each in figure["expectations"]]
    held = sum(each["holds"] for each in judged)
    name = f"paper-{facts['paper']}"
    holding = (f"All {held} expectations hold." if held == len(judged)
               else f"{held} of {len(judged)} expectations hold; the others say why.")
    return (f"# {facts['title']}\n\n{facts['platform']}\n\n"
            f"Measured by `weir paper {facts['paper']}`, which also writes a page with all plots, and each value "
            f"with the command that measured it. {holding}\n\n"
            f"![The figures of the paper as measured here]({name}.svg)\n"
            + "".join(map(section, figures)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    facts = json.loads(Path(sys.argv[1]).read_text())
    folder, name = Path(sys.argv[2]), f"paper-{facts['paper']}"
    (folder / f"{name}.md").write_text(page(facts))
    (folder / f"{name}.svg").write_text(picture([each for each in facts["papers_figures"] if is_drawn(each)]))


if __name__ == "__main__":
    main()
