#!/usr/bin/python3
"""Compiles the code of the documentation and runs its programs.

    check_docs.py ROOT LIBRARY C_COMPILER CXX_COMPILER [NAME=VALUE...]
    check_docs.py --self-test ROOT LIBRARY C_COMPILER CXX_COMPILER [NAME=VALUE...]

    sanitize=LIST              sanitizers of the compilers
    python=PROGRAM package=FOLDER     the interpreter, and where the Python package is
    fortran=COMPILER modules=FOLDER   the compiler, and where weir.mod is
    pages=TEXT                 only pages whose path contains TEXT

A block with a main is a program. It is run when a ```text or ```output block comes next, which is
then its exact output. A block without main is declarations or the body of a function that sees
<weir/weir.h> or <weir/weir.hpp>; it is compiled. A block of Python is run when its output comes next,
else compiled; one of Fortran is a program. Without Python or Fortran these are left out. A program with hStreams' names gets that library. On the line before a block one may write

    <!-- weir: no-compile REASON -->    before code that is not to compile
    <!-- weir: output varies -->        before output that is not compared
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FENCE = re.compile(r"^(\s*)```\s*([\w+-]*)")
INCLUDE = re.compile(r"^\s*#\s*include\b")
MAIN = re.compile(r"\bint\s+main\s*\(|^\s*program\s+\w+\s*$", re.MULTILINE)
NO_COMPILE = re.compile(r"<!--\s*weir:\s*no-compile\s+(\S.*?)\s*-->")
NO_REASON = re.compile(r"<!--\s*weir:\s*no-compile\s*-->")
VARIES = re.compile(r"<!--\s*weir:\s*output varies\s*-->")
BASED_ON_IT = re.compile(r"<weir/(weir|conveyor|fabric|grid|pipeline)\.hpp>")  # include weir.hpp
SECONDS = 60
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable",
         "-Wno-unused-function"]
LANGUAGES = {
    # word of the fence: suffix, header that bodies see, flags
    "c": (".c", "weir/weir.h", ["-std=gnu99", *WARNINGS]),
    "cpp": (".cpp", "weir/weir.hpp", ["-std=c++20", "-pthread", *WARNINGS]),
    "fortran": (".f90", None, ["-std=f2018", "-Wall", "-Werror"]),
    "python": (".py", None, []),
}


class Block:
    def __init__(self, page, line, language, text, before):
        self.page, self.line, self.language = page, line, language
        self.text, self.before = text, before
        self.output = None  # block of its expected output

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        if self.language == "python":
            return self.output is not None
        return MAIN.search(self.text) is not None


def blocks_of(page, text):
    """Yields the fenced blocks of a page."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if not opening:
            continue
        indent, start = opening[1], number
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        body = [line.removeprefix(indent) for line in lines[start:number]]
        before = lines[start - 2] if start >= 2 else ""
        yield Block(page, start, opening[2], "\n".join(body) + "\n", before)
        number += 1


def follows_directly(lines, first, second):
    """Whether nothing but blank lines and comments lie between two blocks."""
    end = first.line + first.text.count("\n") + 1
    between = lines[end:second.line - 1]
    return all(not line.strip() or line.lstrip().startswith("<!--") for line in between)


def code_of(page, text):
    """Returns the blocks of code of a page, programs with their output."""
    lines = text.splitlines()
    found = list(blocks_of(page, text))
    for block, after in zip(found, found[1:]):
        if after.language in ("text", "output") and follows_directly(lines, block, after):
            block.output = after
    return [block for block in found if block.language in LANGUAGES]


class DocsTest:
    def __init__(self, root, library, cc, cxx, scratch, sanitize="", python="", package="",
                 fortran="", modules="", pages=""):
        self.only = pages
        self.root, self.library = Path(root).resolve(), Path(library)
        self.compilers = {"c": cc, "cpp": cxx, "fortran": fortran, "python": python}
        self.includes = {"fortran": [f"-I{modules}"]}
        self.precompiled = Path(scratch) / "precompiled"
        self.sanitize = [f"-fsanitize={sanitize}"] if sanitize else []
        self.package = package
        self.scratch = Path(scratch)

    def knows(self, block):
        """Whether there is a compiler for a block."""
        return bool(self.compilers[block.language])

    def includes_of(self, language):
        return self.includes.get(language, [f"-I{folder}" for folder in (
            self.precompiled, self.root / "include", self.root / "include/hstreams")])

    def precompile(self):
        """Reads the header of C++ once for all blocks that include it. GCC takes it only where it is
        compiled with the same options."""
        _, name, standard = LANGUAGES["cpp"]
        header = self.precompiled / name
        header.parent.mkdir(parents=True)
        header.write_text(f'#include "{self.root.resolve() / "include" / name}"\n')
        subprocess.run([self.compilers["cpp"], *standard, *self.sanitize, "-x", "c++-header",
                        *self.includes_of("cpp"), str(header), "-o", f"{header}.gch"], check=True)

    def compile(self, block, name, text, *flags):
        """Returns what the compiler said, "" when it is content."""
        suffix, header, standard = LANGUAGES[block.language]
        if block.language == "cpp" and BASED_ON_IT.search(text):
            flags = ["-include", header, *flags]  # first, or it is not taken from the precompiled one
        source = self.scratch / (name + suffix)
        source.write_text(text)
        command = [self.compilers[block.language], *standard, *self.sanitize,
                   *self.includes_of(block.language), str(source), *flags]
        done = subprocess.run(command, text=True, capture_output=True, cwd=self.scratch)
        return done.stderr if done.returncode != 0 else ""

    def build(self, block, name):
        """Makes a program of a block; returns the command that runs it, and what went wrong."""
        program = self.scratch / name
        folder = self.library.parent
        libraries = ["-Wl,--export-dynamic", "-lhstreams_source"] if "hStreams_" in block.text else []
        line = f'#line {block.line + 1} "{block.page}"\n'
        if block.language == "fortran":
            libraries, line = ["-lweir_fortran"], ""
        errors = self.compile(block, name, line + block.text, "-o", str(program), f"-L{folder}",
                              *libraries, "-lweir", "-lm", "-pthread", f"-Wl,-rpath,{folder}")
        return [program], errors

    def check_program(self, block, name):
        if block.language == "python":
            source = self.scratch / (name + ".py")
            source.write_text("\n" * block.line + block.text)
            command, errors = [self.compilers["python"], "-B", source], ""
        else:
            command, errors = self.build(block, name)
        if errors or block.output is None:
            return errors
        environment = {**os.environ, "WEIR_DOMAINS": "", "PYTHONPATH": self.package,
                       "XDG_CACHE_HOME": str(self.scratch / "cache")}
        try:
            done = subprocess.run(command, text=True, capture_output=True, timeout=SECONDS,
                                  cwd=self.scratch, env=environment)
        except subprocess.TimeoutExpired:
            return f"the program did not end within {SECONDS} s"
        if done.returncode != 0:
            return f"the program ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        if VARIES.search(block.output.before) or done.stdout == block.output.text:
            return ""
        return f"the program printed\n{done.stdout}but {block.output.place} says\n{block.output.text}"

    def check_script(self, block):
        """Compiles Python that is not run."""
        try:
            compile("\n" * block.line + block.text, block.page, "exec")
        except SyntaxError as error:
            return str(error)
        return ""

    def check_part(self, block, name):
        """Compiles the body of a function, or else declarations."""
        header = f"#include <{LANGUAGES[block.language][1]}>\n"
        line = f'#line {block.line + 1} "{block.page}"\n'
        lines = block.text.splitlines()
        includes = "".join(each + "\n" for each in lines if INCLUDE.match(each))
        rest = "".join(("" if INCLUDE.match(each) else each) + "\n" for each in lines)
        body = f"void part(void);\nvoid part(void) {{\n{line}{rest}}}\n"
        errors = self.compile(block, name, header + includes + body, "-fsyntax-only")
        if errors and not self.compile(block, name, header + line + block.text, "-fsyntax-only"):
            return ""
        return errors

    def check(self, numbered):
        number, block = numbered
        if NO_COMPILE.search(block.before):
            return ""
        if NO_REASON.search(block.before):
            return "no-compile wants a reason"
        name = f"block{number}"
        if block.language == "python" and not block.is_program:
            return self.check_script(block)
        if block.language == "fortran" and not block.is_program:
            return "Fortran in the documentation is a whole program"
        return (self.check_program if block.is_program else self.check_part)(block, name)

    def pages(self):
        pages = (self.root / "README.md", self.root / "ARCHITECTURE.md",
                 *sorted((self.root / "docs").rglob("*.md")))
        return [page for page in pages if page.is_file() and self.only in page.as_posix()]

    def run(self):
        """Returns {place: problem} and the number of blocks."""
        blocks = []
        for page in self.pages():
            found = code_of(page.relative_to(self.root).as_posix(), page.read_text())
            blocks += [block for block in found if self.knows(block)]
        self.precompile()
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            problems = list(workers.map(self.check, enumerate(blocks)))
        return {block.place: problem for block, problem in zip(blocks, problems) if problem}, blocks


def check_tree(root, *toolchain, **options):
    with tempfile.TemporaryDirectory(prefix="weir-docs-") as scratch:
        problems, blocks = DocsTest(root, *toolchain, scratch, **options).run()
    for place, problem in problems.items():
        print(f"{place}: {problem}")
    programs = [block for block in blocks if block.is_program]
    compared = [block for block in programs if block.output]
    print(f"docs: {len(blocks)} blocks, {len(programs)} programs, {len(compared)} of them run, "
          f"{len(problems)} broken")
    return 1 if problems else 0


# ---- Self-test ----------------------------------------------------------------------------------

HELLO = "#include <cstdio>\nint main() { std::puts(\"hello\"); }\n"
SAMPLES = [
    # language, code, output, comment before, whether it is broken
    ("cpp", HELLO, "hello\n", "", False),
    ("cpp", HELLO, "good bye\n", "", True),
    ("cpp", HELLO, None, "", False),
    ("cpp", "int main() { return 3; }\n", "", "", True),
    ("cpp", "#include <vector>\nweir::Runtime runtime;\nstd::vector<int> v;\n", None, "", False),
    ("cpp", "weir::Runtime runtime;\nruntime.no_such_thing();\n", None, "", True),
    ("cpp", "nonsense\n", None, "<!-- weir: no-compile pseudo code -->", False),
    ("cpp", "nonsense\n", None, "<!-- weir: no-compile -->", True),
    ("c", "weir_runtime* runtime;\nweir_runtime_create(NULL, &runtime);\n", None, "", False),
    ("c", "static int twice(int x) { return 2 * x; }\n", None, "", False),
    ("c", "weir_runtime_create(NULL);\n", None, "", True),
    ("sh", "no such command\n", None, "", False),
]
PYTHON_SAMPLES = [
    ("python", "print('hello')\n", "hello\n", "", False),
    ("python", "print('hello')\n", "good bye\n", "", True),
    ("python", "import weir\nprint(weir.no_such_thing)\n", "\n", "", True),
    ("python", "for x in range(3)\n", None, "", True),
    ("python", "no_such_name + 1\n", None, "", False),
]
FORTRAN_SAMPLES = [
    ("fortran", "program p\n  use weir\n  print '(a)', 'hello'\nend program\n", "hello\n", "", False),
    ("fortran", "program p\n  print '(a)', 'hello'\nend program\n", "good bye\n", "", True),
    ("fortran", "program p\n  use no_such_module\nend program\n", None, "", True),
    ("fortran", "call something\n", None, "", True),
]


def self_test(root, *toolchain, **options):
    page, wanted = "", {}
    samples = SAMPLES + (PYTHON_SAMPLES if options.get("python") else []) + (
        FORTRAN_SAMPLES if options.get("fortran") else [])
    for language, code, output, comment, broken in samples:
        page += f"Text.\n{comment}\n```{language}\n"
        wanted[page.count("\n")] = broken
        page += f"{code}```\n"
        if output is not None:
            page += f"\n```text\n{output}```\n"
    with tempfile.TemporaryDirectory(prefix="weir-docs-") as folder:
        tree = Path(folder)
        (tree / "docs").mkdir()
        (tree / "docs/page.md").write_text(page)
        (tree / "include").symlink_to(Path(root).resolve() / "include")
        (tree / "scratch").mkdir()
        problems, _ = DocsTest(tree, *toolchain, tree / "scratch", **options).run()
    found = {int(place.rpartition(":")[2]) for place in problems}
    wrong = [line for line, broken in wanted.items() if broken != (line in found)]
    for line in wrong:
        print(f"block at line {line} is {'broken' if wanted[line] else 'good'}, not found so:\n"
              f"{problems.get(f'docs/page.md:{line}', '')}")
    print(f"self-test: {len(wanted)} blocks, {sum(wanted.values())} broken, {len(wrong)} misjudged")
    return 1 if wrong else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    run = check_tree
    if arguments[:1] == ["--self-test"]:
        run, arguments = self_test, arguments[1:]
    if len(arguments) < 4 or not all("=" in each for each in arguments[4:]):
        sys.exit(__doc__)
    options = dict(each.split("=", 1) for each in arguments[4:])
    sys.exit(run(*arguments[:4], **options))
