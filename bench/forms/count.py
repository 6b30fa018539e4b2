#!/usr/bin/env python3
"""Counts what each form of the two programs in this folder asks of its author.

    count.py                  print the tables
    count.py --json           print the counts
    count.py --check PAGE...  compare the tables in pages with what is counted
    count.py --update PAGE... write them there
    count.py --self-test      check the counter on texts whose counts are known

Every form of a program is one file, PROGRAM_FORM.cpp or .cu, laid out by clang-format; it begins with
data in host memory and ends with the results there. Counted is the whole file, without marks:

* Lines: those that are not blank, not a comment and no #include. *Extra* lines are those beyond the
  sequential form's, which has the same frame.
* Calls: the places in the text that call a function of the interface, whose error check is in the
  same line. In C a call is a name with the interface's prefix before a parenthesis, and with CUDA
  each <<<>>>. In C++ it is a function or constructor of its namespace, a definition of one of its
  objects without an initialiser (arrays aside), and each call of a member function. With OpenMP it is
  a directive, and a call of omp_*. Types, constants and the work of destructors do not count. A call in a
  helper of the form counts once, as does one in a loop.
* Unique functions: the different names among the calls. For OpenMP a combined directive is one name.
* Variables: the different names of variables, constants, helpers and parameters that the form defines
  and the sequential form does not.

Not counted above, because both programs of a form share them: the wrappers that turn the kernels of
kernels.h into what the runtime calls, with the check of status codes. Their lines are in a column.
"""

import argparse
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ("pipeline", "cholesky")

# Member functions that are the problem's or the C++ library's.
OTHERS = {"tile", "tiles", "tile_order", "tile_bytes", "bytes", "offset", "push_back", "back", "size",
          "data", "begin", "end"}


class Form:
    """How the calls of an interface look, what wraps its kernels and how far it was tried."""

    def __init__(self, title, wrappers, tried, prefix=None, namespace=None, members=(), launch=False,
                 directives=False, suffix="cpp"):
        self.title, self.wrappers, self.tried = title, wrappers, tried
        self.prefix, self.namespace, self.members = prefix, namespace, set(members)
        self.launch, self.directives, self.suffix = launch, directives, suffix


WEIR = ("domain", "place", "stream", "wrap", "kernel", "elements", "queue", "upload", "download",
        "compute", "submit", "synchronize")
FORMS = {
    "cuda": Form("CUDA streams", ("cuda_kernels.cuh",),
                 "compiled by nvcc; run by a model of the runtime, which reorders streams", prefix="cuda[A-Z]",
                 launch=True, suffix="cu"),
    "opencl": Form("OpenCL", ("opencl_text.hpp.in", "opencl_kernels.cl"), "run by PoCL", prefix="cl[A-Z]"),
    "hstreams": Form("hStreams", ("hstreams_kernels.hpp",), "run by weir's layer, on a simulated device",
                     prefix="hStreams_"),
    "starpu": Form("StarPU 1.3", ("starpu_kernels.hpp",), "run on host cores", prefix="starpu_"),
    "openmp": Form("OpenMP 5 tasks with target", ("openmp_kernels.hpp",),
                   "run by GCC, target regions on the host", prefix="omp_", directives=True),
    "sycl": Form("SYCL 2020", (), "no compiler; run by a model of the calls it uses, which reorders commands", namespace="sycl",
                 members=("memcpy", "parallel_for", "single_task", "wait_and_throw")),
    "weir_streams": Form("weir streams", ("weir_kernels.hpp",), "run on a simulated device", namespace="weir",
                         members=WEIR),
    "weir_queue": Form("weir queue", ("weir_kernels.hpp",), "run on the host and a simulated device",
                       namespace="weir", members=WEIR),
}

# What paper 001 counted on its slides: of a form over hStreams.
SLIDES = {"cuda": {"lines": 2.25, "unique": 2.0, "calls": 1.9},
          "opencl": {"lines": 2.0, "unique": 1.65, "calls": 1.75}}
MEASURES = {"lines": "extra lines", "unique": "unique functions", "calls": "calls",
            "variables": "variables"}

# ---- Counting -----------------------------------------------------------------------------------

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
TEMPLATE = r"(?:<[^;(){}]*>)?"
DIRECTIVE = re.compile(r"^[ \t]*#pragma omp ((?:(?:parallel|single|masked|target|teams|distribute|for|loop|"
                       r"enter|exit|data|task|taskgroup|taskwait)\b(?!\s*\()\s*)+)", re.M)
NOT_TYPES = r"(?!(?:return|else|using|namespace|void|new|delete|throw|case|template|extern)\b)"
DEFINITION = re.compile(r"(?:for\s*\()?\s*(?:(?:const|static|constexpr)\s+)*" + NOT_TYPES +
                        r"(?:\w+::)*\w+" + TEMPLATE + r"(?:\s+const)?\s*"
                        r"(?:\s|[*&])\s*(?:const\s+)?(\w+)\s*(?=[=;,\[:(]|$)(.*)", re.S)
LATER = re.compile(r"\s*[*&]*\s*(?:const\s+)?(\w+)\s*(?:[=\[(]|$)", re.S)
BINDING = re.compile(r"\bauto&*\s*\[([\w, ]+)\]")
LAMBDA = re.compile(r"\[[=&\w, ]*\]\s*\(([^()]*)\)")
PARAMETER = re.compile(r"(\w+)\s*$")


def plain(text):
    """A text without comments and without what is in strings."""
    return SKIPPED.sub(lambda match: '""' if match[1] else "", text)


def code_lines(text):
    return sum(1 for line in plain(text).splitlines()
               if line.strip() and not line.lstrip().startswith("#include"))


def calls_of(text, form):
    """The names of the functions that a text calls, one for each call."""
    text = plain(text)
    found = []
    if form.prefix:
        found += re.findall(rf"\b({form.prefix}\w*)\s*\(", text)
    if form.launch:
        found += re.findall("<<<", text)
    if form.directives:
        found += [" ".join(match.split()) for match in DIRECTIVE.findall(text)]
    if form.namespace:
        own = rf"\b{form.namespace}::"
        found += re.findall(rf"{own}(\w+){TEMPLATE}\s*[({{]", text)
        found += re.findall(rf"{own}(\w+){TEMPLATE}\s+\w+\s*[({{;]", text)
        for name in re.findall(rf"(?:\.|->)(\w+){TEMPLATE}\(", text):
            if name in form.members:
                found.append(name)
            elif name not in OTHERS:
                raise SystemExit(f"count.py: '{name}()' is not known: add it to the members of a form or "
                                 "to OTHERS")
    return found


def at_top(text):
    """Splits a text at the commas outside all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def variables_of(text):
    """The names that a text defines, functions of files aside."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", plain(text), flags=re.M)
    names = set()
    for names_bound in BINDING.findall(text):
        names.update(name.strip() for name in names_bound.split(","))
    for parameters in LAMBDA.findall(text):
        names.update(match[1] for each in at_top(parameters) if (match := PARAMETER.search(each)))
    for statement in re.split(r"[;{}]", text):
        first = DEFINITION.match(statement.strip())
        if not first:
            continue
        names.add(first[1])
        if not statement.strip().startswith("for"):
            later = (LATER.match(part) for part in at_top(first[2])[1:])
            names.update(match[1] for match in later if match)
    return names


def counts_of(text, sequential, form):
    calls = calls_of(text, form)
    return {"lines": code_lines(text) - code_lines(sequential), "unique": len(set(calls)),
            "calls": len(calls), "variables": len(variables_of(text) - variables_of(sequential))}


def read(name):
    return (HERE / name).read_text(encoding="utf-8")


def count_all():
    """Counts by form and program, with the lines of the wrappers beside."""
    counted = {}
    for name, form in FORMS.items():
        counted[name] = {program: counts_of(read(f"{program}_{name}.{form.suffix}"),
                                            read(f"{program}_sequential.cpp"), form)
                         for program in PROGRAMS}
        counted[name]["wrappers"] = sum(code_lines(read(wrapper)) for wrapper in form.wrappers)
    return counted


# ---- Tables -------------------------------------------------------------------------------------

def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def program_table(counted, program):
    rows = [[FORMS[name].title, *(each[program][measure] for measure in MEASURES), each["wrappers"],
             FORMS[name].tried] for name, each in counted.items()]
    return table(["form", *MEASURES.values(), "lines of wrappers", "tried here"], rows)


def ratio(counted, over, under, program, measure):
    return f"{counted[over][program][measure] / counted[under][program][measure]:.2f}"


def ratio_table(counted):
    head = ["of", "over", "measure", "slides", "pipeline", "Cholesky"]
    rows = [[FORMS[over].title, FORMS[under].title, said,
             f"{SLIDES[over][measure]:.2f}" if under == "hstreams" and measure in SLIDES[over] else "",
             *(ratio(counted, over, under, program, measure) for program in PROGRAMS)]
            for over in SLIDES for under in ("hstreams", "weir_streams", "weir_queue")
            for measure, said in MEASURES.items()]
    return table(head, rows)


def summary_table(counted):
    head = ["form"] + [f"{program}: {MEASURES[measure]}" for program in ("pipeline", "Cholesky")
                       for measure in ("lines", "calls")]
    rows = [[FORMS[name].title] + [each[program][measure] for program in PROGRAMS
                                   for measure in ("lines", "calls")]
            for name, each in counted.items()]
    return table(head, rows)


def tables():
    counted = count_all()
    return {"pipeline": program_table(counted, "pipeline"), "cholesky": program_table(counted, "cholesky"),
            "ratios": ratio_table(counted), "summary": summary_table(counted)}


BLOCK = re.compile(r"(<!-- forms: (\w+) -->\n\n)(.*?)(\n\n<!-- forms: end -->)", re.S)


def rewritten(page, made):
    """A page with the tables that are made; raises where it asks for another, or for none."""
    wanted = [name for _, name, _, _ in BLOCK.findall(page)]
    if not wanted or set(wanted) - set(made):
        raise SystemExit(f"count.py: a page names the tables {wanted}: choose from {', '.join(made)}")
    return BLOCK.sub(lambda match: match[1] + made[match[2]] + match[4], page)


def check(pages):
    made, wrong = tables(), 0
    for page in map(Path, pages):
        text = page.read_text(encoding="utf-8")
        if rewritten(text, made) != text:
            print(f"{page}: the tables are not what is counted: run bench/forms/count.py --update {page}")
            wrong += 1
    print(f"forms: {len(pages)} pages, {wrong} to update")
    return 1 if wrong else 0


def update(pages):
    made = tables()
    for page in map(Path, pages):
        page.write_text(rewritten(page.read_text(encoding="utf-8"), made), encoding="utf-8")
    return 0


# ---- Self-test ----------------------------------------------------------------------------------

SEQUENTIAL = "#include <a>\n\nvoid f(int n) {\n  for (int i = 0; i < n; ++i) g(i);\n}\n"
# Text, form, and its lines, calls and variables beyond the sequential text.
SAMPLES = [
    (SEQUENTIAL, "cuda", 0, [], set()),
    ("// cudaMalloc()\n/* a\n b */\n" + SEQUENTIAL, "cuda", 0, [], set()),
    ('void f(int n) {\n  double* d;  // cudaFree(d)\n  check(cudaMalloc(&d, n), "cudaMalloc(");\n'
     "  g<<<1, 1, 0, s[n]>>>(d);\n  check(cudaFree(d));\n}\n", "cuda", 3,
     ["cudaFree", "cudaMalloc", "<<<"], {"d"}),
    ("void f(int n) {\n  cl_int code, again = 0;\n  std::vector<cl_event> waits(n);\n"
     "  const auto helper = [&](cl_mem one, std::pair<int, int> two) {\n    clFinish(one);\n  };\n"
     "  for (const auto& [row, column] : pairs) clFinish(row);\n}\n", "opencl", 5,
     ["clFinish", "clFinish"], {"code", "again", "waits", "helper", "one", "two", "row", "column"}),
    ("void f(int n) {\n  hStreams_app_init(1, 1);\n  std::uint64_t arguments[] = {1, 2};\n}\n", "hstreams",
     1, ["hStreams_app_init"], {"arguments"}),
    ("void f(int n) {\n  check_starpu(starpu_init(nullptr));\n"
     "  static starpu_codelet codelet = {.nbuffers = 1, .name = \"n\"};\n}\n", "starpu", 1,
     ["starpu_init"], {"codelet"}),
    ("void f(int n) {\n#pragma omp parallel\n#pragma omp target teams distribute \\\n    map(to : x[0 : n])\n"
     "  for (int i = 0; i < n; ++i) g(i);\n#pragma omp target enter data map(to : x[0 : n])\n}\n",
     "openmp", 4, ["parallel", "target enter data", "target teams distribute"], set()),
    ("void f(int n) {\n  sycl::queue queue;\n  sycl::event ready[3];\n"
     "  const sycl::range<1> rows(n), columns(n);\n  double *const d = sycl::malloc_device<double>(n, queue);\n"
     "  queue.parallel_for(rows, [=](sycl::id<1> item) { g(item); });\n}\n", "sycl", 4,
     ["malloc_device", "parallel_for", "queue", "range"],
     {"queue", "ready", "rows", "columns", "d", "item"}),
    ("void f(int n) {\n  weir::Runtime runtime;\n  const weir::Place place = runtime.domain(0).place();\n"
     "  weir::Region part = x.elements<double>(n, n);\n  s.compute(k, {weir::read(part)});\n}\n",
     "weir_streams", 3, ["Runtime", "compute", "domain", "elements", "place", "read"],
     {"runtime", "place", "part"}),
]
PAGE = "# A\n\n<!-- forms: one -->\n\nold\n\n<!-- forms: end -->\n\nb\n"


def self_test():
    wrong = 0
    for text, name, lines, calls, variables in SAMPLES:
        counts = counts_of(text, SEQUENTIAL, FORMS[name])
        new = variables_of(text) - variables_of(SEQUENTIAL)
        found = (counts["lines"], sorted(calls_of(text, FORMS[name])), new)
        if found != (lines, sorted(calls), variables) or counts["unique"] != len(set(calls)):
            print(f"self-test: {name}: found {found} instead of {(lines, sorted(calls), variables)}")
            wrong += 1
    if rewritten(PAGE, {"one": "new"}) != PAGE.replace("old", "new"):
        print("self-test: a table was not written into its page")
        wrong += 1
    for text, form in (("x.unheard_of();", FORMS["sycl"]), ("# A page without tables", None)):
        try:
            _ = calls_of(text, form) if form else rewritten(text, {})
            print(f"self-test: '{text}' was not refused")
            wrong += 1
        except SystemExit:
            pass
    print(f"self-test: {len(SAMPLES) + 3} samples, {wrong} misjudged")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the counts")
    parser.add_argument("--check", nargs="+", metavar="PAGE", help="compare the tables in pages")
    parser.add_argument("--update", nargs="+", metavar="PAGE", help="write the tables into pages")
    parser.add_argument("--self-test", action="store_true", help="check the counter")
    given = parser.parse_args()
    if given.self_test:
        return self_test()
    if given.check:
        return check(given.check)
    if given.update:
        return update(given.update)
    if given.json:
        print(json.dumps(count_all()))
        return 0
    for name, text in tables().items():
        print(f"{name}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
