#!/usr/bin/python3
"""Checks that the links between the pages of the checkout lead somewhere, headings included.

    check_links.py ROOT
    check_links.py --self-test
"""

import re
import sys
import tempfile
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)


def anchors_of(text):
    """The names that GitHub gives the headings of a page."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(FENCE.sub("", text))}


def problems_of(page, root):
    """Yields what is wrong with the links of a page."""
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue  # elsewhere: nothing is fetched
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        where = f"{page.relative_to(root)}: {target}"
        if not file.exists():
            yield f"{where}: there is no such file"
        elif anchor and anchor not in anchors_of(file.read_text()):
            yield f"{where}: there is no such heading"


def pages_of(root):
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")),
            *sorted((root / "examples").rglob("*.md")),
            *(page for folder in ("src", "tools", "python", "fortran")
              for page in sorted((root / folder).rglob("README.md")))]


def check(root):
    pages = pages_of(root)
    problems = [problem for page in pages for problem in problems_of(page, root)]
    return pages, problems


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "docs").mkdir()
        (root / "docs/other.md").write_text("# One `two`, three\n")
        (root / "README.md").write_text(
            "# Top\n[a](docs/other.md) [b](docs/other.md#one-two-three) [c](#top) [d](https://x.y)\n"
            "[e](docs/none.md) [f](docs/other.md#four) [g](#five)\n```\n[h](none.md)\n```\n")
        _, problems = check(root)
    found = sorted(problem.split(": ")[1] for problem in problems)
    good = found == ["#five", "docs/none.md", "docs/other.md#four"]
    print("self-test:", "ok" if good else f"found {found}")
    return 0 if good else 1


def main(root):
    pages, problems = check(Path(root).resolve())
    print(*problems, f"links: {len(pages)} pages, {len(problems)} links that lead nowhere", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main(sys.argv[1]))
