#!/usr/bin/python3
"""Checks that the tree uses the words of docs/glossary.md.

    check_words.py ROOT            compare the tree at ROOT with rules.tsv and exceptions.json
    check_words.py --list [RULE]   print where each banned word is, those of one rule if given
    check_words.py --update        lower the counts in exceptions.json to what is there
    check_words.py --self-test     check that the check finds planted words

rules.tsv says what is banned and where. exceptions.json counts what is still there, by rule and
folder. A count may only fall: more than it says is a new use of a banned word, less means that the
file has to follow.
"""

import contextlib
import io
import json
import re
import sys
import tempfile
import tokenize
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = HERE / "rules.tsv"
EXCEPTIONS = HERE / "exceptions.json"
UPDATE = "tests/words/check_words.py --update"

TOPS = ("src", "include", "apps", "tools", "tests", "bench", "python", "docs", "examples", "fuzz")
PAGES = ("CHANGELOG.md", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
# Records of the past, inputs of tests, sources quoted as text, and this folder.
SKIPPED = ("docs/measurements/", "tests/corpus/", "tests/mutants/table.py", "tests/words/")
C_FAMILY = {".h", ".hpp", ".c", ".cpp", ".cu", ".inc"}
SCOPES = ("identifiers", "comments", "strings", "documents")
PROSE = SCOPES[1:]

# "Those who" and the like: people may be "who".
PEOPLE = ("people", "person", "those", "user", "users", "reader", "readers", "programmer",
          "programmers", "anyone", "everyone", "someone", "author", "authors", "maintainer",
          "maintainers", "contributor", "contributors")
NOT_PEOPLE = "".join(f"(?<!{each} )" for each in PEOPLE)

TOKEN = re.compile(
    r"""(?P<raw>R"(?P<mark>[^(\s]{0,16})\((?:.|\n)*?\)(?P=mark)")"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<character>'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)"""
    r"""|(?P<number>\b\d[\w.']*)"""
    r"""|(?P<include>\#\s*include[^\n]*)"""
    r"""|(?P<name>[A-Za-z_]\w*)""")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)


class Rule:
    def __init__(self, line, text):
        fields = text.split("\t")
        if len(fields) not in (3, 4):
            raise SystemExit(f"rules.tsv:{line}: {len(fields)} columns instead of 3 or 4")
        names = PROSE if fields[0] == "prose" else tuple(fields[0].split(","))
        if not set(names) <= set(SCOPES):
            raise SystemExit(f"rules.tsv:{line}: scopes are {', '.join(SCOPES)} and prose")
        self.scopes, self.pattern, self.instead = names, fields[1], fields[2]
        self.not_in = tuple(fields[3].split()) if len(fields) == 4 else ()
        self.identifiers = "identifiers" in names
        self.name = ("name " if self.identifiers else "") + self.pattern
        if not self.identifiers:
            self.regex = re.compile(self.pattern.replace("{not people}", NOT_PEOPLE), re.I)

    def holds(self, path):
        return not path.startswith(self.not_in) if self.not_in else True


def read_rules(path=RULES):
    lines = enumerate(path.read_text().splitlines(), 1)
    return [Rule(number, line) for number, line in lines if line and not line.startswith("#")]


def parts_of(name):
    """Returns the parts of a name: pass_on_ and kPassOn are ("pass", "on")."""
    if len(name) > 1 and name[0] == "k" and name[1].isupper():
        name = name[1:]
    return tuple(part.lower() for part in PART.findall(name))


class Names:
    """The rules of identifiers, prepared so that each distinct name is judged once."""

    def __init__(self, rules):
        self.whole = {}
        self.within = defaultdict(list)
        self.known = {}
        for rule in rules:
            if not rule.identifiers:
                continue
            words = tuple(rule.pattern.lstrip("=").split("_"))
            if rule.pattern.startswith("="):
                self.whole[words] = rule
            else:
                self.within[words[0]].append((words, rule))

    def judge(self, name):
        """Returns the rules that a name breaks: the longest pattern at each part."""
        if name not in self.known:
            self.known[name] = self.find(parts_of(name))
        return self.known[name]

    def find(self, parts):
        found = []
        if parts in self.whole:
            found.append(self.whole[parts])
        at = 0
        while at < len(parts):
            fitting = [(len(words), rule) for words, rule in self.within.get(parts[at], ())
                       if parts[at:at + len(words)] == words]
            if fitting:
                length, rule = max(fitting, key=lambda each: each[0])
                found.append(rule)
                at += length
            else:
                at += 1
        return [rule for rule in found if rule.instead != "fine"]


# ---- Reading files: each yields (scope, line, text) ---------------------------------------------

def read_c(text):
    comment, comment_line, comment_end = [], 0, -1
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        if kind == "comment":
            # Comment lines that follow each other are one text.
            if comment and text[comment_end:match.start()].strip(" \t") not in ("", "\n"):
                yield "comments", comment_line, " ".join(comment)
                comment = []
            if not comment:
                comment_line = line
            comment.append(re.sub(r"^\s*(///?<?|\*/?|/\*+)\s?|\*/$", "", match[0], flags=re.M))
            comment_end = match.end()
            continue
        if comment:
            yield "comments", comment_line, " ".join(comment)
            comment = []
        if kind in ("string", "raw"):
            yield "strings", line, match[0]
        elif kind == "name":
            yield "identifiers", line, match[0]
    if comment:
        yield "comments", comment_line, " ".join(comment)


def read_python(text):
    before = tokenize.NEWLINE
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield "comments", token.start[0], token.string.lstrip("# ")
            elif token.type == tokenize.NAME:
                yield "identifiers", token.start[0], token.string
            elif token.type == tokenize.STRING:
                alone = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL)
                yield "comments" if alone else "strings", token.start[0], token.string
            before = token.type
    except (tokenize.TokenError, IndentationError):
        pass


def read_document(text):
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", prose):
        if paragraph.strip():
            yield "documents", line, re.sub(r"`[^`\n]*`|\]\([^)]*\)", "`", paragraph)
        line += paragraph.count("\n")


READERS = {**{suffix: read_c for suffix in C_FAMILY}, ".py": read_python, ".md": read_document}


def files_of(root):
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in READERS:
                yield path
    yield from (root / page for page in PAGES if (root / page).exists())


def folder_of(path):
    parts = path.split("/")
    if len(parts) == 1:
        return parts[0]
    depth = 2 if parts[0] in ("src", "tests", "docs") else 1
    if parts[:2] == ["src", "backends"]:
        depth = 3
    return "/".join(parts[:min(depth, len(parts) - 1)])


def find_words(root, rules):
    """Returns {(rule, folder): [(path, line, text)]}."""
    names = Names(rules)
    phrases = {scope: [rule for rule in rules if scope in rule.scopes and not rule.identifiers]
               for scope in SCOPES}
    found = defaultdict(list)
    for path in files_of(root):
        relative = path.relative_to(root).as_posix()
        if relative.startswith(SKIPPED) or "/__pycache__/" in relative:
            continue
        folder = folder_of(relative)
        for scope, line, text in READERS[path.suffix](path.read_text(errors="replace")):
            if scope == "identifiers":
                for rule in names.judge(text):
                    if rule.holds(relative):
                        found[rule.name, folder].append((relative, line, text))
                continue
            flat = text if scope == "documents" else re.sub(r"\s+", " ", text)
            if scope == "documents":
                flat = re.sub(r"(?<=\S)[ \t]*\n[ \t]*(?=[^\s\-*#>|])", " ", text)
            for rule in phrases[scope]:
                if not rule.holds(relative):
                    continue
                for match in rule.regex.finditer(flat):
                    around = flat[max(0, match.start() - 30):match.end() + 30].replace("\n", " ")
                    found[rule.name, folder].append((relative, line, around.strip()))
    return found


# ---- Comparing ----------------------------------------------------------------------------------

def read_exceptions(path):
    return json.loads(path.read_text()) if path.exists() else None


def write_exceptions(path, counts):
    path.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")


def counts_of(found):
    counts = defaultdict(dict)
    for (rule, folder), hits in found.items():
        counts[rule][folder] = len(hits)
    return counts


def compare(found, exceptions, rules):
    """Returns what is wrong, in lines."""
    by_name = {rule.name: rule for rule in rules}
    wrong = []
    allowed_keys = {(rule, folder) for rule in exceptions for folder in exceptions[rule]}
    for rule, folder in sorted(set(found) | allowed_keys):
        hits, allowed = found.get((rule, folder), []), exceptions.get(rule, {}).get(folder, 0)
        if rule not in by_name:
            wrong.append(f"{folder}: rules.tsv has no rule '{rule}' any more: run {UPDATE}")
        elif len(hits) > allowed:
            wrong.append(f"{folder}: '{rule}' is there {len(hits)} times, {allowed} allowed; "
                         f"write: {by_name[rule].instead}")
            wrong += [f"  {path}:{line}: {text}" for path, line, text in hits[-12:]]
        elif len(hits) < allowed:
            wrong.append(f"{folder}: '{rule}' is there {len(hits)} times only, {allowed} allowed: "
                         f"run {UPDATE}")
    return wrong


def main_check(root):
    rules = read_rules()
    found = find_words(root, rules)
    wrong = compare(found, read_exceptions(EXCEPTIONS) or {}, rules)
    for line in wrong:
        print(line)
    print(f"words: {len(rules)} rules, {sum(map(len, found.values()))} exceptions, "
          f"{sum(not line.startswith('  ') for line in wrong)} violations")
    return 1 if wrong else 0


def update(root, path=EXCEPTIONS, rules=None):
    """Lowers counts. A rule that the file does not have yet is recorded as it is."""
    rules = rules or read_rules()
    counts, before = counts_of(find_words(root, rules)), read_exceptions(path)
    raised = []
    if before is not None:
        for rule in {each.name for each in rules} & set(before):
            for folder, count in counts.get(rule, {}).items():
                if count > before[rule].get(folder, 0):
                    raised.append((folder, rule, before[rule].get(folder, 0), count))
                    counts[rule][folder] = before[rule].get(folder, 0)
    known = {rule.name: {f: n for f, n in counts.get(rule.name, {}).items() if n} for rule in rules}
    write_exceptions(path, known)
    for folder, rule, old, new in sorted(raised):
        print(f"{folder}: '{rule}' is there {new} times, {old} allowed: not raised")
    return 1 if raised else 0


def list_words(root, only):
    for (rule, folder), hits in sorted(find_words(root, read_rules()).items()):
        if only in (None, rule, rule.removeprefix("name ")):
            for path, line, text in hits:
                print(f"{path}:{line}: {rule}: {text}")
    return 0


# ---- Self-test ----------------------------------------------------------------------------------

WHO = r"{not people}\bwho\b"

RULES_OF_TEST = """\
identifiers\tturn\tpriority
identifiers\tput_off\tdefer
identifiers\tflight\tjob
identifiers\tin_flight\tfine
identifiers\t=over\tcomplete
prose\t{not people}\\bwho\\b\tthe thread
prose\t\\bbut for\\b\texcept
prose\t\\bcards?\\b\tGPU\tsrc/backends/sim
documents\t(?:^|\\n) ?[-*] Let\\b\ta verb
"""

# Path -> contents and the rules that are found in it.
SAMPLES = {
    "src/core/a.hpp": ("int turn_ = 0;  // in turn\n", ["name turn"]),
    "src/core/b.hpp": ("constexpr int kUsualTurn = 1;\nint return_turns();\n", ["name turn"]),
    "src/core/c.cpp": ("bool over_; int overlap; int leftover; bool is_over;\n", ["name over"]),
    "src/core/d.cpp": ("void put_off(); int put; int off;\n", ["name put_off"]),
    "src/core/i.cpp": ("int in_flight_, flights, flight;\n", ["name flight"]),
    "src/core/e.cpp": ("/// Tells\n/// who waits: people who read.\nint x;\n", [WHO]),
    "src/core/f.cpp": ('fail("all but\\n for who");\n', [WHO]),
    "src/core/g.cpp": ("// all, but\n// for one\nint i;\n// all but one\n", [r"\bbut for\b"]),
    "src/core/h.cpp": ('const char* s = R"(turn // who)";\n', [WHO]),
    "src/backends/sim/a.cpp": ("// the card\n", []),
    "src/backends/cuda/a.cpp": ("// the card\n", [r"\bcards?\b"]),
    "tools/a.py": ('"""Who."""\nturn = "who"  # who\n', ["name turn"] + 3 * [WHO]),
    "docs/a.md": ("All but\nfor one.\n\n```cpp\nint turn; // who\n```\n\n- Let it go.\n",
                  [r"\bbut for\b", r"(?:^|\n) ?[-*] Let\b"]),
    "docs/b.md": ("`who` and [text](who.md)\n", []),
    "CHANGELOG.md": ("- Let it go\n- Letters\n", [r"(?:^|\n) ?[-*] Let\b"]),
    "tests/corpus/a.md": ("who\n", []),
}


def self_test():
    failures = []

    def expect(what, wanted, got):
        if wanted != got:
            failures.append(f"{what}: {got} instead of {wanted}")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "rules.tsv").write_text(RULES_OF_TEST)
        rules = read_rules(root / "rules.tsv")
        for path, (text, _) in SAMPLES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        found = find_words(root, rules)
        for path, (_, wanted) in SAMPLES.items():
            wanted = sorted(each.replace("name over", "name =over") for each in wanted)
            got = sorted(rule for (rule, _), hits in found.items()
                         for hit in hits if hit[0] == path)
            expect(path, wanted, got)

        file = root / "exceptions.json"
        expect("first update", 0, update(root, file, rules))
        expect("no change", [], compare(found, read_exceptions(file), rules))
        (root / "src/core/new.cpp").write_text("int turn;\n")
        more = compare(find_words(root, rules), read_exceptions(file), rules)
        message = "'name turn' is there 3 times, 2 allowed; write: priority"
        expect("one more", True, any(message in each for each in more))
        with contextlib.redirect_stdout(io.StringIO()):
            expect("update does not raise", 1, update(root, file, rules))
        more = compare(find_words(root, rules), read_exceptions(file), rules)
        expect("still too many", True, bool(more))
        (root / "src/core/new.cpp").unlink()
        (root / "src/core/a.hpp").unlink()
        less = compare(find_words(root, rules), read_exceptions(file), rules)
        expect("one less", True, any(UPDATE in each for each in less))
        expect("update lowers", 0, update(root, file, rules))
        expect("as it is", [], compare(find_words(root, rules), read_exceptions(file), rules))
    for each in failures:
        print(each)
    print(f"self-test: {len(SAMPLES)} files, {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    root = HERE.parent.parent
    if arguments == ["--self-test"]:
        return self_test()
    if arguments == ["--update"]:
        return update(root)
    if arguments and arguments[0] == "--list":
        return list_words(root, arguments[1] if len(arguments) > 1 else None)
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        return main_check(Path(arguments[0]))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
