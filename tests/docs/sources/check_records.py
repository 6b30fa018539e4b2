#!/usr/bin/python3
"""Checks the design records: docs/adr/NNNN-title.md and the list of them, docs/adr/README.md.

    check_records.py ROOT
    check_records.py --self-test

A record has the heading "# N. Title", the file name of that title, and the sections of SECTIONS in
this order. README.md links each record once, with "N. Title" as the text of the link.
"""

import re
import sys
import tempfile
from pathlib import Path

# Name and whether each record has it.
SECTIONS = {"Context": True, "Decision": True, "Rejected": False, "Consequences": True,
            "Since then": False}
FENCE = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"# (\d+)\. (\S.*\S)")
HEADING = re.compile(r"^(#+ .*?)\s*$", re.MULTILINE)
BOLD_HEADING = re.compile(r"^\*\*.*\*\*", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((\d{4}-[^)\s]*)\)")


def name_of(number, title):
    """The file name of a record: the title in lower case, with hyphens between its words."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return f"{number:04d}-{words}.md"


def sections_problem(headings, text):
    """Says what is wrong with the sections of a record, "" if nothing is."""
    wanted = [f"## {name}" for name in SECTIONS if SECTIONS[name] or f"## {name}" in headings]
    if headings != wanted:
        return f"the sections are {headings}, not {wanted}"
    bodies = re.split(HEADING, text)[4::2]
    empty = [heading for heading, body in zip(headings, bodies) if not body.strip()]
    return f"{empty[0]} is empty" if empty else ""


def record_problems(path):
    """Yields what is wrong with one record."""
    text = FENCE.sub("", path.read_text())
    first = TITLE.fullmatch(text.partition("\n")[0])
    if not first:
        yield "the first line is not '# N. Title'"
        return
    if path.name != name_of(int(first[1]), first[2]):
        yield f"the title asks for the file name {name_of(int(first[1]), first[2])}"
    problem = sections_problem(HEADING.findall(text)[1:], text)
    if problem:
        yield problem
    for bold in BOLD_HEADING.findall(text):
        yield f"{bold} is bold: write a heading or italics"


def list_problems(folder, records):
    """Yields what is wrong with the list of the records."""
    page = folder / "README.md"
    links = LINK.findall(page.read_text()) if page.exists() else []
    for text, target in links:
        if target not in records:
            yield f"README.md: {target} is not a record"
        elif f"# {text}" != records[target]:
            yield f"README.md: the link to {target} says '{text}', not its title"
    for name in records:
        count = sum(target == name for _, target in links)
        if count != 1:
            yield f"README.md: {name} is listed {count} times instead of once"


def check(root):
    """Returns the number of records and what is wrong."""
    folder = root / "docs/adr"
    paths = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    problems = [f"{path.name}: {problem}" for path in paths for problem in record_problems(path)]
    numbers = [path.name[:4] for path in paths]
    problems += [f"{path.name}: another record has this number" for path in paths
                 if numbers.count(path.name[:4]) > 1]
    titles = {path.name: path.read_text().partition("\n")[0] for path in paths}
    return len(paths), problems + list(list_problems(folder, titles))


# ---- Self-test ----------------------------------------------------------------------------------

def record(title, sections):
    return f"# {title}\n" + "".join(f"\n## {name}\n\nText.\n" for name in sections)


USUAL = ("Context", "Decision", "Consequences")
GOOD = record("1. Tasks are `bound` early", USUAL)
LIST = "[1. Tasks are `bound` early](0001-tasks-are-bound-early.md)\n"
FILE = "0001-tasks-are-bound-early.md"
# What is planted: files of docs/adr, and a part of each problem that is found.
SAMPLES = [
    ({FILE: GOOD, "README.md": LIST}, []),
    ({FILE: record("1. Tasks are bound early", SECTIONS),
      "README.md": LIST.replace("`", "")}, []),
    ({FILE: GOOD + "```sh\n# no heading\n```\n", "README.md": LIST}, []),
    ({FILE: "# ADR 1: Tasks\n", "README.md": ""}, ["first line", "listed 0 times"]),
    ({"0001-tasks.md": GOOD, "README.md": LIST.replace(FILE, "0001-tasks.md")}, ["file name"]),
    ({FILE: GOOD.replace("1. T", "2. T"), "README.md": LIST.replace("1. T", "2. T")},
     ["file name"]),
    ({FILE: record("1. Tasks are `bound` early", USUAL[:2]), "README.md": LIST}, ["sections"]),
    ({FILE: record("1. Tasks are `bound` early", USUAL[::-1]), "README.md": LIST}, ["sections"]),
    ({FILE: GOOD + "\n## Outlook\n\nText.\n", "README.md": LIST}, ["sections"]),
    ({FILE: GOOD + "\n### Part\n\nText.\n", "README.md": LIST}, ["sections"]),
    ({FILE: GOOD[:-6], "README.md": LIST}, ["is empty"]),
    ({FILE: GOOD.replace("Text.", "", 1), "README.md": LIST}, ["## Context is empty"]),
    ({FILE: GOOD + "\n**Since.** Text.\n", "README.md": LIST}, ["is bold"]),
    ({FILE: GOOD, "README.md": LIST + LIST}, ["listed 2 times"]),
    ({FILE: GOOD}, ["listed 0 times"]),
    ({FILE: GOOD, "README.md": LIST.replace("early]", "late]")}, ["not its title"]),
    ({FILE: GOOD, "README.md": LIST + "[2. More](0002-more.md)\n"}, ["is not a record"]),
    ({FILE: GOOD, "0001-more.md": record("1. More", USUAL),
      "README.md": LIST + "[1. More](0001-more.md)\n"}, ["this number", "this number"]),
]


def self_test():
    wrong = 0
    for files, wanted in SAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "docs/adr").mkdir(parents=True)
            for name, text in files.items():
                (Path(folder) / "docs/adr" / name).write_text(text)
            _, problems = check(Path(folder))
        if len(problems) != len(wanted) or not all(map(str.__contains__, problems, wanted)):
            print(f"{sorted(files)}: found {problems} instead of {wanted}")
            wrong += 1
    print(f"self-test: {len(SAMPLES)} folders, {wrong} misjudged")
    return 1 if wrong else 0


def main(root):
    count, problems = check(Path(root).resolve())
    print(*problems, f"records: {count}, {len(problems)} problems", sep="\n")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main(sys.argv[1]))
