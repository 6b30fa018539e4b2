#!/usr/bin/python3
"""Checks that no class of the library has more than 40 methods or 25 fields.

    check_classes.py ROOT         check the classes in ROOT/src
    check_classes.py --update     lower the counts in classes.json to what is there
    check_classes.py --list ROOT  print all classes with their counts
    check_classes.py --self-test  check that the check counts right

classes.json has the classes that are above, with their counts, which may only fall: split such a class
by its modes, or move what belongs together into a class of its own.

Reads headers and sources as .clang-format lays them out: a class ends with `};` where it began, and
its members are two columns further in.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXCEPTIONS = HERE / "classes.json"
LIMITS = {"methods": 40, "fields": 25}

HEAD = re.compile(r"^( *)(?:template <.*> )?(?:class|struct) (?:WEIR_\w+(?:\([^)]*\))? )?"
                  r"(?:alignas\(\w+\) )?([A-Za-z_:]\w*(?:::\w+)*)[^;]*\{$")
OTHER = re.compile(r"^(using|friend|static_assert|typedef|enum|class|struct|union|public|private|"
                   r"protected|template <[^>]*>$)")
ANNOTATION = re.compile(r" ?WEIR_(?:GUARDED_BY|PT_GUARDED_BY|REQUIRES|EXCLUDES|ACQUIRE|RELEASE|"
                        r"TRY_ACQUIRE|NOT_ANALYSED)(?:\([^)]*\))?")


def strip_nested(text, opening, closing):
    """Removes what is between brackets, so that commas and parentheses there do not count."""
    kept, depth = [], 0
    for character in text:
        if character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def count(statement):
    """Returns (methods, fields) of a member declaration."""
    text = ANNOTATION.sub("", re.sub(r"\s+", " ", statement)).strip()
    text = re.sub(r"^(public|private|protected):\s*", "", text)
    text = re.sub(r"^template <[^;{]*?> (?=\S)", "", text)
    if not text or OTHER.match(text) or text.endswith(("= delete;", "= default;")):
        return 0, 0
    declared = re.split(r"(?<![=<>!])=(?!=)|\{", re.sub(r"operator\W+\(", "operator(", text))[0]
    flat = strip_nested(declared.replace("->", "").replace("operator(", "operator ("), "<", ">")
    if re.search(r"[\w\]]\(|operator \(|operator\W+\(", flat.replace("decltype(", "")):
        return 1, 0
    names = strip_nested(strip_nested(strip_nested(text, "<", ">"), "{", "}"), "(", ")")
    return 0, 1 + names.count(",")


def members(lines, indent):
    """Yields the member declarations of a class whose members begin at this indent."""
    statement = ""
    for line in lines:
        code = re.sub(r"\s*//.*$", "", line)
        if not code.strip():
            continue
        depth = len(code) - len(code.lstrip())
        if depth == indent and code.strip() in ("}", "};"):
            continue
        if statement == "" and depth != indent:
            continue  # the body of an inline function, or a nested class
        statement += " " + code.strip()
        if statement.endswith((";", "{", "}")):
            yield statement
            statement = ""


def classes(root):
    for path in sorted([*(root / "src").rglob("*.hpp"), *(root / "src").rglob("*.cpp")]):
        lines = path.read_text().split("\n")
        for number, line in enumerate(lines):
            head = HEAD.match(line)
            if head is None:
                continue
            indent = len(head[1])
            end = next((i for i in range(number + 1, len(lines))
                        if lines[i].startswith(head[1] + "}")), number)
            counts = [count(each) for each in members(lines[number + 1:end], indent + 2)]
            name = f"{path.relative_to(root / 'src')}:{head[2]}"
            yield name, {"methods": sum(each[0] for each in counts),
                         "fields": sum(each[1] for each in counts)}


def above(root):
    return {name: counts for name, counts in classes(root)
            if any(counts[kind] > LIMITS[kind] for kind in LIMITS)}


def check(root, exceptions):
    found, wrong = above(root), []
    for name, counts in sorted(found.items()):
        for kind, limit in LIMITS.items():
            allowed = max(limit, exceptions.get(name, {}).get(kind, 0))
            if counts[kind] > allowed:
                wrong.append(f"src/{name} has {counts[kind]} {kind}, {allowed} allowed: split it")
    for name, counts in sorted(exceptions.items()):
        if name not in found or any(found[name][kind] < counts[kind] for kind in LIMITS):
            wrong.append(f"src/{name} has become smaller: run tests/layers/check_classes.py --update")
    return wrong


def update(root):
    """Lowers counts and drops classes; a count that would rise stays, and fails the check."""
    old = json.loads(EXCEPTIONS.read_text()) if EXCEPTIONS.exists() else None
    found = above(root)
    new = {name: {kind: min(counts[kind], old[name][kind]) if old else counts[kind]
                  for kind in LIMITS}
           for name, counts in sorted(found.items()) if old is None or name in old}
    EXCEPTIONS.write_text(json.dumps(new, indent=1) + "\n")


def self_test():
    text = """
template <class T>
class WEIR_CAPABILITY("mutex") Sample final : public Base<T> {
 public:
  Sample() = default;
  explicit Sample(int value) : value_(value) {}
  int get() const noexcept { return value_; }
  bool operator==(const Sample& other) const;
  template <class Act>
  void each(Act&& act,
            int times) const WEIR_REQUIRES(mutex_);
  using Pair = std::pair<int, int>;
  friend Other;

 private:
  struct Inner {
    int not_counted = 0;
  };
  sys::Mutex mutex_;
  int value_ WEIR_GUARDED_BY(mutex_) = make(1, 2), other_ = 0;  ///< f(x)
  std::map<int, std::function<void(int)>> calls_;
  std::vector<int> list_{1, 2};
};
"""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src").mkdir()
        (root / "src" / "sample.hpp").write_text(text)
        counts = dict(classes(root))
        assert counts["sample.hpp:Sample"] == {"methods": 4, "fields": 5}, counts
        many = "class Large {\n" + "".join(f"  void f{i}();\n" for i in range(41)) + "};\n"
        (root / "src" / "large.hpp").write_text(many)
        assert len(check(root, {})) == 1
        assert check(root, {"large.hpp:Large": {"methods": 41, "fields": 0}}) == []
        assert len(check(root, {"large.hpp:Large": {"methods": 42, "fields": 0}})) == 1
    print("classes: the check counts right")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] == ["--update"]:
        update(HERE.parent.parent)
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        for name, counts in sorted(classes(Path(sys.argv[2])), key=lambda each: -each[1]["methods"]):
            print(counts["methods"], counts["fields"], name)
        return 0
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    exceptions = json.loads(EXCEPTIONS.read_text())
    wrong = check(root, exceptions)
    print("\n".join(wrong + [f"classes: {len(exceptions)} above the budget, {len(wrong)} violations"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
