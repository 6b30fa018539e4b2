#!/usr/bin/python3
"""Checks the pictures of the documents: docs/pictures/draw.py wrote them, and pages show them well.

    check_pictures.py ROOT
    check_pictures.py --self-test

draw.py refuses text that leaves its box or covers other text, and has to write the files that are there.
A picture that it writes has a title, a description and colours for dark pages, loads nothing, has at most
60 KB and a width of 720 to 960. A page shows only images that exist, each with alternative text.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
LOADS = re.compile(r"@import|@font-face|url\(|(?:href|src)\s*=|<script|<image|<foreignObject")
MOST_BYTES, WIDTHS, LEAST_WORDS = 60_000, (720, 960), 4
NEEDED = ("docs/pictures", "docs/concepts", "docs/measurements", "tests/layers")


def picture_problems(text):
    """Yields what is wrong with the text of a picture."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        yield f"not XML: {error}"
        return
    for name in ("title", "desc"):
        if not (root.findtext(SVG + name) or "").strip():
            yield f"no <{name}>"
    if "prefers-color-scheme:dark" not in text:
        yield "no colours for dark pages"
    if loaded := LOADS.search(text):
        yield f"loads something: {loaded[0]}"
    if not WIDTHS[0] <= float(root.get("width", "0")) <= WIDTHS[1]:
        yield f"the width is {root.get('width')}, not {WIDTHS[0]} to {WIDTHS[1]}"
    if len(text.encode()) > MOST_BYTES:
        yield f"{len(text.encode())} bytes are more than {MOST_BYTES}"


def image_problems(page):
    """Yields what is wrong with the images of a page."""
    for words, target in IMAGE.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            yield f"{target}: there is no such file"
        if len(words.split()) < LEAST_WORDS:
            yield f"{target}: the alternative text '{words}' does not say what it shows"


def pages_of(root):
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")),
            *sorted((root / "src").rglob("README.md"))]


def run_draw(root, *arguments):
    return subprocess.run([sys.executable, root / "docs/pictures/draw.py", *arguments], text=True,
                          capture_output=True, check=False)


def check(root):
    """Returns the number of pictures and what is wrong."""
    listed, checked = run_draw(root, "--list"), run_draw(root, "--check")
    if listed.returncode or checked.returncode not in (0, 1) or checked.stderr:
        return 0, [f"docs/pictures/draw.py: {(checked.stderr or listed.stderr).strip()}"]
    names = listed.stdout.split()
    problems = checked.stdout.splitlines()[:-1]
    for name in names:
        if (root / name).exists():
            text = (root / name).read_text(encoding="utf-8")
            problems += [f"{name}: {problem}" for problem in picture_problems(text)]
    problems += [f"{page.relative_to(root)}: {problem}" for page in pages_of(root)
                 for problem in image_problems(page)]
    return len(names), problems


# ---- Self-test ----------------------------------------------------------------------------------

GOOD = ('<svg xmlns="http://www.w3.org/2000/svg" width="800"><title>One</title><desc>Two</desc>'
        "<style>@media(prefers-color-scheme:dark){}</style></svg>")
# The text of a picture, and a part of what is found.
PICTURES = [
    (GOOD, ""),
    (GOOD.replace("</svg>", ""), "not XML"),
    (GOOD.replace("<title>One</title>", ""), "no <title>"),
    (GOOD.replace("Two", " "), "no <desc>"),
    (GOOD.replace("prefers-color-scheme:dark", "print"), "dark pages"),
    (GOOD.replace("{}", "{}@import 'a.css';"), "loads something"),
    (GOOD.replace("</svg>", '<image href="a.png"/></svg>'), "loads something"),
    (GOOD.replace("800", "600"), "the width is 600"),
    (GOOD.replace("Two", "x" * MOST_BYTES), "more than"),
]
# What is done to a copy of the tree, and a part of each problem that is found.
CHANGES = [
    (lambda root: None, []),
    (lambda root: (root / "docs/pictures/model.svg").unlink(), ["model.svg: missing"]),
    (lambda root: (root / "docs/pictures/model.svg").write_text(GOOD), ["model.svg: differs"]),
    (lambda root: (root / "docs/pictures/more.svg").write_text(GOOD), ["does not write it"]),
    (lambda root: (root / "README.md").write_text("![what a picture shows](docs/none.svg)\n"),
     ["no such file"]),
    (lambda root: (root / "README.md").write_text("![model](docs/pictures/model.svg)\n"),
     ["alternative text"]),
    (lambda root: (root / "README.md").write_text("```\n![](none.svg)\n```\n"), []),
    (lambda root: change(root / "docs/measurements/core.json", '"cpu": "', '"cpu": "other '),
     ["plot-actions.svg: differs", "plot-factorisations.svg: "]),
    (lambda root: change(root / "docs/pictures/streams.py", "instance of x", "the newest instance of x"),
     ["'the newest instance of x' takes"]),
    (lambda root: change(root / "docs/pictures/streams.py", "1 enqueue", "1 enqueue, then the next action"),
     ["covers"]),
    (lambda root: change(root / "tests/layers/check_layers.py", '"src/grid"', '"src/mesh"'),
     ["differ in"]),
]


def change(path, words, others):
    text = path.read_text(encoding="utf-8")
    if words not in text:
        raise SystemExit(f"self-test: {path} has no {words}")
    path.write_text(text.replace(words, others), encoding="utf-8")


def self_test():
    wrong = 0
    for text, wanted in PICTURES:
        found = list(picture_problems(text))
        if len(found) != bool(wanted) or (wanted and wanted not in found[0]):
            print(f"{text[:80]}: found {found} instead of {wanted!r}")
            wrong += 1
    tree = Path(__file__).resolve().parents[3]
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder).resolve() / "clean"
        for name in NEEDED:
            shutil.copytree(tree / name, clean / name, ignore=shutil.ignore_patterns("*.md"))
        shutil.copy(tree / "docs/measurements/paper-001.md", clean / "docs/measurements")
        drawn = run_draw(clean)
        if drawn.returncode:
            print(drawn.stderr)
            return 1
        for number, (planted, wanted) in enumerate(CHANGES):
            root = clean.parent / str(number)
            shutil.copytree(clean, root)
            planted(root)
            problems = check(root)[1]
            if len(problems) != len(wanted) or not all(map(str.__contains__, problems, wanted)):
                print(f"found {problems} instead of {wanted}")
                wrong += 1
    print(f"self-test: {len(PICTURES)} pictures, {len(CHANGES)} trees, {wrong} misjudged")
    return 1 if wrong else 0


def main(root):
    count, problems = check(Path(root).resolve())
    print(*problems, f"pictures: {count}, {len(problems)} problems", sep="\n")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main(sys.argv[1]))
