#!/usr/bin/python3
"""Runs the commands of the documentation with the built tool.

    check_commands.py ROOT TOOL [PAGE...]    run them; PAGE: pages below ROOT, default README.md,
                                             docs/tutorials/*.md and docs/reference/command-line.md
    check_commands.py --list ROOT            print each command, and what is run instead
    check_commands.py --self-test            check that the check finds planted mistakes

It takes the ```sh blocks. Of them it runs the lines that start weir: "weir ...", "mpirun -n N weir ..." and
"VARIABLE=value weir ...". Each page has a scratch folder with the input files of INPUTS; its commands run there
in their order. A command must end with status 0 within SECONDS and write the files that it names. On the
line before a block one may write

    <!-- weir: no-run REASON -->     before commands that are not to run

Sizes are reduced: REDUCED and SMALL say how, so that pages may show sizes that are worth a run. An option
of a page is always kept, with a smaller value.
"""

import os
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SECONDS = 200  # on a machine that is busy with other tests, too
NO_RUN = re.compile(r"<!--\s*weir:\s*no-run\s+(\S.*?)\s*-->")
NO_REASON = re.compile(r"<!--\s*weir:\s*no-run\s*-->")
ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=\S*$")
OUTPUTS = ("--output", "--trace", "--report", "--solution", "--labels", "--permutation", "-o")

# The largest value of an option that is run.
REDUCED = {"--tile": 64, "--width": 160, "--height": 90, "--pictures": 3, "--repeat": 1, "--sweeps": 2,
           "--kmer": 5, "--generations": 3, "--ranks": 2}
LARGEST_N = {"wave": 24, "laplacian": 24, "asian-option": 4, "sparse-cholesky": 6, "scatter": 2000,
             "gene-alignment": 20000, "kmeans": 2000, "nn": 2000, "prefixsum": 10000, "dotproduct": 10000}
USUAL_N = 128
# What is added to a command that does not say it.
SMALL = {
    "run": "--repeat 1",
    "run asian-option": "--n 4", "run cholesky": "--n 128 --tile 64", "run matmul": "--n 128 --tile 64",
    "run lu": "--n 128 --tile 64", "run sparse-cholesky": "--n 6", "run wave": "--n 24 --tile 6",
    "run hotspot": "--size tiny", "run srad": "--size tiny", "run dct": "--size tiny",
    "run kmeans": "--size tiny", "run nn": "--size tiny", "run prefixsum": "--size tiny",
    "run dotproduct": "--size tiny", "run stencil": "--n 128", "run evolution": "--n 128 --generations 2",
    "run gene-alignment": "--n 20000", "run raster": "--pictures 3 --width 160 --height 90",
    "run reyes": "--width 160 --height 90", "run laplacian": "--n 24 --iterations 3",
    "run rtm": "--n 32", "run scatter": "--n 2000", "run face-detection": "",
    "bench": "--repeat 1", "bench overlap": "--size 256KiB --blocks 4 --iterations 1",
    "bench balance": "--n 4 --chunks 1 --ranks 1", "bench spatial": "", "bench transfers": "--size 64KiB",
    "bench overhead": "", "tune": "--budget 1s --evaluations 2",
}
# Options of SMALL that go with none of these.
INSTEAD = {"--n": ("--input", "--size"), "--size": ("--input", "--n"), "--tile": ("--tiles", "--input")}
LEFT_OUT = (  # a pattern, and why
    (re.compile(r"weir paper\b"), "measures for minutes"),
    (re.compile(r"--input \S+\.mp4\b"), "needs a film and ffmpeg"),
)


# ---- Commands -----------------------------------------------------------------------------------

class Command:
    def __init__(self, page, line, text):
        self.page, self.line, self.text = page, line, text

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def commands_of(page, text):
    """Returns the commands of a page that start weir, and what is wrong with its comments."""
    found, wrong = [], []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if not re.match(r"\s*```", lines[number]):
            number += 1
            continue
        is_shell = re.match(r"\s*```(sh|bash|console)\s*$", lines[number])
        before = lines[number - 1] if number else ""
        start = number = number + 1
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        if is_shell and NO_REASON.search(before):
            wrong.append(f"{page}:{start - 1}: no-run without a reason")
        elif is_shell and not NO_RUN.search(before):
            found += commands_in(page, start, lines[start:number])
        number += 1
    return found, wrong


def commands_in(page, start, lines):
    number = 0
    while number < len(lines):
        at, text = number, lines[number].strip()
        while text.endswith("\\") and number + 1 < len(lines):
            number += 1
            text = text[:-1] + lines[number].strip()
        number += 1
        text = text.removeprefix("$ ")
        if starts_weir(text):
            yield Command(page, start + at + 1, text)


def starts_weir(text):
    return program_at(words_of(text)) is not None


def words_of(text):
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return []


def program_at(words):
    """The index of "weir" in a command, None if it starts something else."""
    index = 0
    while index < len(words) and ASSIGNMENT.match(words[index]):
        index += 1
    if index < len(words) and words[index] in ("mpirun", "mpiexec"):
        index += 1
        while index < len(words) and words[index] != "weir":
            if not words[index].startswith("-") and not words[index].isdigit():
                return None
            index += 1
    return index if index < len(words) and words[index] == "weir" else None


def reduced(words):
    """The words of a command with small sizes; words after a pipe stay."""
    at = program_at(words)
    end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";")), len(words))
    before, given, after = words[:at + 1], words[at + 1:end], words[end:]
    if not given or {"-h", "--help", "models"} & set(given):
        return words
    command = " ".join(given[:2]) if given[0] in ("run", "bench", "tune") and len(given) > 1 else given[0]
    application = given[1] if len(given) > 1 else ""
    for index, word in enumerate(given[:-1]):
        if word == "--n":
            given[index + 1] = str(min(int(given[index + 1]), LARGEST_N.get(application, USUAL_N)))
        elif word == "--size" and given[0] != "bench":
            given[index + 1] = "tiny"
        elif word in REDUCED and given[index + 1].isdigit():
            given[index + 1] = str(min(int(given[index + 1]), REDUCED[word]))
    kinds = [given[0], f"run {application}" if given[0] == "tune" else command]
    for kind in dict.fromkeys(kinds):
        more = SMALL.get(kind, "").split()
        if given[0] == "tune" and kind != "tune":
            more = more[:2]  # it chooses tiles itself
        for name, value in zip(more[::2], more[1::2]):
            if name not in given and not set(INSTEAD.get(name, ())) & set(given):
                given += [name, value]
    return before + given + after


def files_of(words):
    """The files that a command says it writes."""
    return [words[index + 1] for index, word in enumerate(words[:-1]) if word in OUTPUTS]


# ---- Input files --------------------------------------------------------------------------------

def matrix(size=6):
    """A diagonally dominant matrix, symmetric, in the whole."""
    entries = [(i, j, 4.0 if i == j else -1.0) for i in range(1, size + 1) for j in range(1, size + 1)
               if abs(i - j) <= 1]
    return "".join([f"%%MatrixMarket matrix coordinate real general\n{size} {size} {len(entries)}\n",
                    *(f"{i} {j} {value}\n" for i, j, value in entries)]).encode()


def vector(size=6):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{size}d", *range(1, size + 1)))


def picture(width=64, height=48):
    rows = b"".join(b"\0" + bytes((x * y + x) % 251 for x in range(width)) for y in range(height))
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows))
            + part(b"IEND", b""))


def letters(count, seed=1):
    found = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        found.append("ACGT"[seed >> 16 & 3])
    return "".join(found)


def inputs(root):
    """File name in commands -> contents. A picture is a PNG whatever its name: weir looks at the contents."""
    corpus = root / "tests/corpus"
    genome = letters(4000)
    return {
        "A.mtx": matrix(), "stiffness.mtx": matrix(), "b.npy": vector(), "load.npy": vector(),
        "photo.jpg": picture(), "ultrasound.png": picture(),
        "table.csv": "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(60)).encode(),
        "places.csv": "".join(f"{40 + i % 20},{5 + i % 15}\n" for i in range(60)).encode(),
        "genome.fa": f">genome\n{genome}\n".encode(), "gene.fa": f">gene\n{genome[1000:1400]}\n".encode(),
        "genome.fa.gz": gzipped(f">genome\n{genome}\n".encode()),
        "book.csv": (corpus / "book/words").read_bytes(),
        "faces.xml": (corpus / "cascade/small.xml").read_bytes(),
    }


def gzipped(data):
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


# ---- Running ------------------------------------------------------------------------------------

def environment(tool, scratch):
    path = f"{Path(tool).resolve().parent}:{os.environ.get('PATH', '')}"
    return os.environ | {
        "PATH": path, "XDG_CACHE_HOME": str(scratch / "cache"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # the same for Open MPI 5
        "WEIR_RANK_CORES": "all"}


def run(command, words, folder, variables):
    """Returns what is wrong with a command, "" if nothing is."""
    line = " ".join(word if word in ("|", ">", "&&", ";") else shlex.quote(word) for word in words)
    line = re.sub(r"^((?:'[A-Z_]+=[^']*' )+)", lambda match: match[1].replace("'", ""), line)
    for name in files_of(words):
        (folder / name).unlink(missing_ok=True)
    try:
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=variables, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"runs for more than {SECONDS} s"
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return f"status {done.returncode}: {said[-1] if said else 'no message'}"
    absent = [name for name in files_of(words) if not (folder / name).exists()]
    return f"wrote no {', '.join(absent)}" if absent else ""


def check_pages(root, tool, pages, scratch):
    """Returns (commands run, left out, what is wrong)."""
    variables, wrong, count, left_out = environment(tool, scratch), [], 0, 0
    for page in pages:
        commands, mistakes = commands_of(page.relative_to(root).as_posix(), page.read_text())
        wrong += mistakes
        folder = scratch / page.stem
        folder.mkdir()
        for name, contents in inputs(root).items():
            (folder / name).write_bytes(contents)
        for command in commands:
            words = words_of(command.text)
            launcher = words[0] if words[0] in ("mpirun", "mpiexec") else None
            if (launcher and not shutil.which(launcher)) or any(each.search(command.text) for each, _ in LEFT_OUT):
                left_out += 1
                continue
            words = reduced(words)
            count += 1
            problem = run(command, words, folder, variables)
            if problem:
                wrong.append(f"{command.place}: {command.text.split('  #')[0].strip()}\n"
                             f"  run as: {shlex.join(words)}\n  {problem}")
    return count, left_out, wrong


def default_pages(root):
    return [root / "README.md", *sorted((root / "docs/tutorials").glob("*.md")),
            root / "docs/reference/command-line.md"]


def check(root, tool, pages):
    with tempfile.TemporaryDirectory(prefix="weir-commands-") as scratch:
        count, left_out, wrong = check_pages(root, tool, pages or default_pages(root), Path(scratch))
    for each in wrong:
        print(each)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"commands: {count} run, {left_out} left out, {len(wrong)} wrong,"
          f" {used.ru_utime + used.ru_stime:.0f} s of processor time")
    return 1 if wrong or count == 0 else 0


def list_commands(root):
    for page in default_pages(root):
        for command in commands_of(page.relative_to(root).as_posix(), page.read_text())[0]:
            print(f"{command.place}: {shlex.join(reduced(words_of(command.text)))}")
    return 0


# ---- Self-test ----------------------------------------------------------------------------------

TOOL_OF_TEST = """#!/bin/sh
[ "$1" = fail ] && { echo "no such thing" >&2; exit 3; }
[ "$1" = slow ] && exec sleep 5
while [ $# -gt 1 ]; do
  [ "$1" = --output ] && [ "$2" != lost.png ] && touch "$2"
  shift
done
exit 0
"""

PAGE_OF_TEST = """# Page

```sh
weir info                         # it's "this" one
make test
VARIABLE=1 weir run cholesky --n 4096
weir run reyes \\
  --output a.png
```

```cpp
weir fail
```

<!-- weir: no-run it fails -->
```sh
weir fail
```
"""

MISTAKES = {
    "```sh\nweir fail\n```\n": "status 3: no such thing",
    "```sh\nweir run reyes --output lost.png\n```\n": "wrote no lost.png",
    "```sh\nweir slow\n```\n": "runs for more than",
    "<!-- weir: no-run -->\n```sh\nweir info\n```\n": "no-run without a reason",
}

REDUCTIONS = {
    "weir run cholesky --n 4096 --tile 256": "weir run cholesky --n 128 --tile 64 --repeat 1",
    "mpirun -n 4 weir run wave --n 256": "mpirun -n 4 weir run wave --n 24 --repeat 1 --tile 6",
    "weir run lu --input A.mtx": "weir run lu --input A.mtx --repeat 1",
    "weir run nn --size paper": "weir run nn --size tiny --repeat 1",
    "weir info --json | jq .machine": "weir info --json | jq .machine",
}


def self_test():
    global SECONDS
    failures = []

    def expect(what, wanted, got):
        if wanted != got:
            failures.append(f"{what}: {got} instead of {wanted}")

    for given, wanted in REDUCTIONS.items():
        expect(given, wanted.split(), reduced(words_of(given)))
    for text in ("make", "pip install weir", "cd weir", "mpirun -n 2 ./program weir", "sudo weir"):
        expect(text, False, starts_weir(text))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path in ("tests/corpus/book/words", "tests/corpus/cascade/small.xml"):
            (root / path).parent.mkdir(parents=True)
            (root / path).touch()
        tool = root / "bin/weir"
        tool.parent.mkdir()
        tool.write_text(TOOL_OF_TEST)
        tool.chmod(0o755)
        page = root / "page.md"
        page.write_text(PAGE_OF_TEST)
        (root / "good").mkdir()
        expect("page", (3, 0, []), check_pages(root, tool, [page], root / "good"))
        expect("lines", [4, 6, 7], [each.line for each in commands_of("page.md", PAGE_OF_TEST)[0]])
        for number, (text, message) in enumerate(MISTAKES.items()):
            page.write_text(text)
            scratch = root / str(number)
            scratch.mkdir()
            usual, SECONDS = SECONDS, 2
            wrong = check_pages(root, tool, [page], scratch)[2]
            SECONDS = usual
            expect(text, True, len(wrong) == 1 and message in wrong[0])
    for each in failures:
        print(each)
    print(f"self-test: {len(MISTAKES)} mistakes, {len(REDUCTIONS)} reductions, {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 2 and arguments[0] == "--list":
        return list_commands(Path(arguments[1]).resolve())
    if len(arguments) < 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    root = Path(arguments[0]).resolve()
    return check(root, arguments[1], [root / each for each in arguments[2:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
