#!/usr/bin/python3
"""Checks that the messages which docs/guide/troubleshooting.md quotes are in the sources.

    check_messages.py ROOT
    check_messages.py --self-test

In a table whose first column is "message", each code span of that column is a message or a part of
one. The sign … in it stands for what the program fills in: a placeholder of fmt or printf, or a value
between two strings. Everything else is as in the sources.
"""

import re
import sys
import tempfile
from pathlib import Path

PAGE = "docs/guide/troubleshooting.md"
FOLDERS = ("src", "tools", "apps", "python", "include", "fortran")
C_FAMILY = {".h", ".hpp", ".c", ".cpp"}
SHORTEST = 10  # characters of a quoted message, besides …: a shorter one says nothing

TOKEN = re.compile(
    r"""(?P<raw>R"(?P<mark>[^(\s]{0,16})\((?:.|\n)*?\)(?P=mark)"|\"{3}(?:.|\n)*?\"{3})"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)"""
    r"""|(?P<number>\b\d[\w.']*)"""
    r"""|(?P<character>'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<end>[;])"""
    r"""|(?P<space>\s+)"""
    r"""|(?P<code>[A-Za-z_]\w*|.)""")
PYTHON_TOKEN = re.compile(
    r"""(?P<raw>[rR]?\"{3}(?:.|\n)*?\"{3})"""
    r"""|(?P<string>[fFrR]{0,2}"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<comment>\#[^\n]*)"""
    r"""|(?P<character>'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<end>\n(?=\S)|\braise\b|\breturn\b)"""
    r"""|(?P<space>\s+)"""
    r"""|(?P<code>[A-Za-z_]\w*|.)""")
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[-+#0]*[\d.*]*(?:hh|h|ll|l|z|j|t)?[diuoxXfFeEgGcsp]")
ESCAPE = re.compile(r"\\(.)")
CELL = re.compile(r"^\|\s*(.*?)\s*\|")
SPAN = re.compile(r"`([^`]+)`")


def plain(text):
    """A message with … for each thing that is filled in, and one space between words."""
    text = re.sub(r"\s+", " ", text)
    return re.sub("…+", "…", text)


def words_of(literal):
    """What a string literal says, with … for its placeholders."""
    text = literal[literal.index('"') + 1:-1]
    text = ESCAPE.sub(lambda found: found[1] if found[1] not in "nt" else " ", text)
    return PLACEHOLDER.sub("…", text.replace("{{", "\0").replace("}}", "\1"))


def messages_of(text, token=TOKEN):
    """Yields what the strings of each statement say, with … for the code between two of them."""
    said, between = "", False
    for found in token.finditer(text):
        kind = found.lastgroup if found.lastgroup != "mark" else "raw"
        if kind == "string":
            said += "…" * between + words_of(found[0])
            between = False
        elif kind == "end":
            yield plain(said)
            said, between = "", False
        elif kind not in ("comment", "space"):
            between = bool(said)
    yield plain(said)


def sources_of(root):
    """All that the strings of the sources say, one statement a line."""
    lines = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in C_FAMILY:
                lines += messages_of(path.read_text())
            elif path.suffix == ".py":
                lines += messages_of(path.read_text(), PYTHON_TOKEN)
    return "\n".join(lines)


def quotes_of(page):
    """Yields line and messages of each row in the tables of messages."""
    in_table = False
    for number, line in enumerate(page.splitlines(), 1):
        cell = CELL.match(line)
        if not cell:
            in_table = False
        elif cell[1].lower() == "message":
            in_table = True
        elif in_table and not re.fullmatch(r":?-+:?", cell[1]):
            yield number, SPAN.findall(cell[1])


def check(root):
    """Returns the number of messages and what is wrong."""
    said = sources_of(root)
    seen, problems = {}, []
    for number, quotes in quotes_of((root / PAGE).read_text()):
        where = f"{PAGE}:{number}"
        if not quotes:
            problems.append(f"{where}: this row has no message in its first column")
        for quote in quotes:
            if len(quote.replace("…", "").strip()) < SHORTEST:
                problems.append(f"{where}: '{quote}' is too short to be found")
            elif plain(quote).strip("… ") not in said:
                problems.append(f"{where}: the sources do not say '{quote}'")
            if quote in seen:
                problems.append(f"{where}: '{quote}' is in line {seen[quote]}, too")
            seen.setdefault(quote, number)
    return len(seen), problems


# ---- Self-test ----------------------------------------------------------------------------------

SOURCE = r'''
// fail("this is only a comment");
void check(int n) {
  fail(WEIR_STATUS_BUSY, "core {} of domain '{}' is "  // the rest
       "in another place; set {:.2f}{}", n, name, 1'000, what);
  throw Error("operand " + std::to_string(n) + " is not contiguous");
  std::fprintf(stderr, "weir: rank %u: left within %5.1f s\n", rank, time);
  log("one half of it"); log("and the other half");
  help(R"(text "in a raw string")");
}
'''
PYTHON = '''
"""A docstring says nothing."""
def check(name):
    raise TypeError(f"policy '{name}' has no function, "
                    "nor a name")
'''
# A cell of the first column, and a part of each problem that it makes.
SAMPLES = [
    ("`core … of domain '…' is in another place; set …`", []),
    ("`is in another place; set`", []),
    ("`core … of domain '…'`, `operand … is not contiguous`", []),
    ("`weir: rank …: left within … s`", []),
    ("`policy '…' has no function, nor a name`", []),
    ("`core 1 of domain '…' is in another place`", ["do not say"]),
    ("`core … of domain '…' was in another place`", ["do not say"]),
    ("`operand is not contiguous`", ["do not say"]),
    ("`this is only a comment`", ["do not say"]),
    ("`one half of it and the other half`", ["do not say"]),
    ("`A docstring says nothing.`", ["do not say"]),
    ("`text \"in a raw string\"`", ["do not say"]),
    ("`… of … is …`", ["too short"]),
    ("no message", ["no message"]),
    ("`in another place`, `in another place`", ["line 3, too"]),
]


def found_in(cell):
    """What the check says of a page with one row."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("src/check.cpp", SOURCE), ("python/check.py", PYTHON),
                           (PAGE, f"| message | cause |\n| --- | --- |\n| {cell} | it |\n\n"
                                  "| symptom | cause |\n| --- | --- |\n| `no message at all` | it |\n")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check(root)[1]


def self_test():
    wrong = 0
    for cell, wanted in SAMPLES:
        problems = found_in(cell)
        if len(problems) != len(wanted) or not all(map(str.__contains__, problems, wanted)):
            print(f"{cell}: found {problems} instead of {wanted}")
            wrong += 1
    print(f"self-test: {len(SAMPLES)} rows, {wrong} misjudged")
    return 1 if wrong else 0


def main(root):
    count, problems = check(Path(root).resolve())
    print(*problems, f"messages: {count}, {len(problems)} problems", sep="\n")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main(sys.argv[1]))
