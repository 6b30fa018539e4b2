#!/usr/bin/python3
"""Makes the documentation site and checks that its reference has every public name.

C: the functions of tests/symbols. C++: the classes and functions of the namespace weir, as Doxygen finds them.
Python: the names of weir.__all__ and the methods in the sources of the package. Fortran: what the module
declares public. The search index has words of the pages.

    check_site.py ROOT      exit status 77 where Doxygen or Sphinx are missing

Doxygen's and Sphinx' warnings are errors, links among the pages included.
"""

import ast
import html
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PROGRAMS = ("doxygen", "sphinx-build")
MODULES = ("breathe", "myst_parser", "furo")


def missing():
    return ([each for each in PROGRAMS if not shutil.which(each)]
            + [each for each in MODULES if importlib.util.find_spec(each) is None])


def words_of(page):
    """What a page shows, in headings and as code."""
    found = re.findall(r"<h\d>(.*?)<a|<code[^>]*>(.*?)</code>", page, re.S)
    return {html.unescape(re.sub(r"<[^>]*>", "", one)) for pair in found for one in pair if one}


def absent_c(root, _, page):
    names = (root / "tests/symbols/weir.symbols").read_text().split()
    return names, [each for each in names if f'id="c.{each}"' not in page]


def absent_cpp(_, folder, page):
    tree = ElementTree.parse(folder / "xml/namespaceweir.xml")
    names = [each.text.removeprefix("weir::") for each in tree.iter("innerclass")]
    names += [each.findtext("name") for each in tree.iter("memberdef")]
    return names, [each for each in names if not re.search(rf'id="_CPPv4\w*N4weir{len(each)}{each}E', page)]


def python_names(root):
    """(name, the class it is in) of all that is public in the sources of the package."""
    names = []
    for node in ast.parse((root / "python/weir/__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            names = [(each, None) for each in ast.literal_eval(node.value)]
    public = {name for name, _ in names}
    for path in (root / "python/weir").glob("_[a-z]*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name in public:
                names += [(each.name, node.name) for each in node.body
                          if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    for path in (root / "python/src").glob("module*.cpp"):
        for part in re.split(r"nb::class_<", path.read_text())[1:]:
            owner = re.search(r'm,\s*"_?(\w+)"', part)[1]
            names += [(each, owner) for each in re.findall(r'\.def\w*\(\s*"([a-z]\w*)"', part)]
    return sorted(set(names), key=str)


def absent_python(root, _, page):
    names, words = python_names(root), words_of(page)
    shown = {word.split(".")[-1] for word in words}
    absent = [f"{owner}.{name}" if owner else name for name, owner in names
              if f"{owner}.{name}" not in words and name not in shown]
    return names, absent


def absent_fortran(root, _, page):
    text = "".join((root / f"fortran/{name}.f90").read_text() for name in ("weir", "weir_ranks"))
    text = re.sub(r"&\s*\n\s*", "", text)
    names = []
    for line in re.findall(r"\bpublic ::(.*)", text):
        names += re.findall(r"\bweir_\w+", line, re.I)
    words = words_of(page)
    return names, [each for each in names if each not in words]


PAGES = {"c": absent_c, "cpp": absent_cpp, "python": absent_python, "fortran": absent_fortran}


def main(root):
    if missing():
        print(f"skipped: {', '.join(missing())} missing (scripts/setup.sh docs installs all)")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="weir-site-") as name:
        folder = Path(name)
        made = subprocess.run([root / "scripts/docs.sh", folder], text=True, capture_output=True)
        if made.returncode:
            print(made.stderr)
            return 1
        for page, absent_from in PAGES.items():
            text = (folder / f"html/docs/reference/{page}.html").read_text()
            names, absent = absent_from(root, folder, text)
            for each in absent:
                print(f"docs/reference/{page}.md: {each} is not there")
            print(f"site: {page}: {len(names)} names, {len(absent)} absent")
            wrong += len(absent) + (not names)
        index = (folder / "html/searchindex.js").read_text()
    words = ["weir"] + ["slurm"] * (root / "docs/guide/cluster.md").exists()
    for word in words:
        if word not in index:
            print(f"the search index has no {word}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
