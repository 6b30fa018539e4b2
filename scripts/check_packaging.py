#!/usr/bin/env python3
"""Checks the files of packaging/ with what a machine without Spack, conda and root has.

    check_packaging.py recipes [ROOT]
        compares versions, licences, CMake options and dependencies of the Spack and the conda recipe
        with those of the build; renders the conda recipe where py-rattler-build is installed;
        compares the steps of the Containerfile with those of the Apptainer definition
    check_packaging.py module BUILD CMAKE CXX [SANITIZERS]
        installs BUILD into a folder, loads the module file from there with environment-modules or
        Lmod, and builds and runs programs in that environment
    check_packaging.py --self-test [ROOT]
        damages copies of the recipes, and sees that each damage is found

Ends with 77 where what it needs is not installed: PyYAML, environment-modules or Lmod.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import run_container

ROOT = Path(__file__).resolve().parent.parent
SPACK = "packaging/spack/spack_repo/weir/packages/weir/package.py"
CONDA = "packaging/conda/recipe.yaml"
VARIANTS = "packaging/conda/variants.yaml"
CONTAINERFILE = "packaging/container/Containerfile"
DEFINITION = "packaging/container/weir.def"
SKIPPED = 77

# What CMake or a source looks for, and its package in Debian, Spack and conda-forge. None: nothing of
# that kind there.
DEPENDENCIES = [
    ("hwloc", "libhwloc-dev", "hwloc", "libhwloc"),
    ("fmt", "libfmt-dev", "fmt", "fmt"),
    ("spdlog", "libspdlog-dev", "spdlog", "spdlog"),
    ("nlohmann_json", "nlohmann-json3-dev", "nlohmann-json", "nlohmann_json"),
    ("protozero", "libprotozero-dev", "protozero", "protozero"),
    ("CLI11", "libcli11-dev", "cli11", "cli11"),
    ("CL/cl.h", "opencl-c-headers", "opencl-c-headers", "opencl-headers"),
    ("cblas.h", "libopenblas-dev", "openblas", "openblas"),
    ("PNG", "libpng-dev", "libpng", "libpng"),
    ("libturbojpeg", "libturbojpeg0-dev", "libjpeg-turbo", "libjpeg-turbo"),
    ("ZLIB", "zlib1g-dev", "zlib-api", "zlib"),
    ("ompi-c", "libopenmpi-dev", "openmpi", "openmpi"),
    ("mpich", "libmpich-dev", "mpich", "mpich"),
    ("ucx", "libucx-dev", "ucx", "ucx"),
    ("Python", "python3-dev", "python", "python"),
    ("nanobind", None, "py-nanobind", "nanobind"),
    ("cuda.h", None, "cuda", None),
    ("mpi_abi.h", None, None, None),
]
# Of every CMake build; and what weir opens at run time.
SPACK_OTHERS = {"c", "cxx", "fortran", "cmake", "pkgconfig", "mpi", "opencl", "py-numpy"}
CONDA_OTHERS = {"cmake", "ninja", "pkg-config", "numpy", "libopenblas"}
FOUND_WITHOUT_PACKAGE = {"Threads", "PkgConfig"}


class Build:
    """What the build itself says."""

    def __init__(self, root):
        def text(path):
            return (root / path).read_text()

        files = [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]
        for folder in ("src", "apps", "tools", "python", "fortran"):
            files += sorted((root / folder).rglob("CMakeLists.txt"))
        cmake = "\n".join(re.sub(r"#.*", "", file.read_text()) for file in files)
        self.cmake = cmake
        self.options = set(re.findall(r"option\((\w+)|set\((\w+)[^()]*\bCACHE\b|find_path\((\w+)", cmake))
        self.options = {name for names in self.options for name in names if name}
        self.found = set(re.findall(r"find_package\((\w+)", cmake))
        self.found |= set(re.findall(r"find_path\(\w+ ([\w/.]+)", cmake))
        for modules in re.findall(r"pkg_check_modules\(\S+([^()]*)\)", cmake):
            self.found |= {word for word in modules.split() if re.fullmatch(r"[a-z][\w-]*", word)}
        self.found -= FOUND_WITHOUT_PACKAGE
        if "#include <protozero/" in text("src/trace/export_perfetto.cpp"):
            self.found.add("protozero")
        self.version = re.search(r'VERSION_STRING "([\d.]+)"', text("include/weir/version.h")).group(1)
        self.licence = "Apache-2.0" if re.search(r"Apache License\s+Version 2\.0", text("LICENSE")) else "?"
        project = text("pyproject.toml")
        self.name = re.search(r'^name = "([^"]+)"', project, re.M).group(1)
        self.minima = {
            "cmake": re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", cmake).group(1),
            "nanobind": re.search(r'"nanobind>=([\d.]+)"', project).group(1),
            "numpy": re.search(r'"numpy>=([\d.]+)"', project).group(1),
            "python": re.search(r"find_package\(Python ([\d.]+)", cmake).group(1),
        }
        setup = text("scripts/setup.sh")
        self.debian = set(re.findall(r"[\w.+-]+", " ".join(
            re.findall(r'"debian (?:build|test)"\) echo "([^"]*)"', setup))))

    def has(self, option):
        """Tells whether the build knows an option that a recipe passes."""
        return option in self.options or (not option.startswith("WEIR_") and (
            option in self.cmake or option in ("CMAKE_BUILD_TYPE", "CMAKE_UNITY_BUILD")))


class SpackRecipe:
    """The directives of a package.py, read without Spack."""

    def __init__(self, path):
        tree = ast.parse(path.read_text())
        self.body = next(node for node in tree.body if isinstance(node, ast.ClassDef))
        self.variants = [self.first(call) for call in self.calls("variant")]
        self.licence = [self.first(call) for call in self.calls("license")]
        self.versions = {self.first(call): self.keyword(call, "tag") for call in self.calls("version")}
        self.conditions = " ".join(filter(None, (
            self.keyword(call, "when") for name in ("depends_on", "extends") for call in self.calls(name))))
        self.depends, self.minima = set(), {}
        for call in [*self.calls("depends_on"), *self.calls("extends"), *self.calls("requires")]:
            for argument in call.args:
                spec = re.sub(r"^\^(\[[^]]*\])? *", "", argument.value)
                name, _, minimum = spec.partition("@")
                self.depends.add(name)
                if minimum:
                    self.minima[name.removeprefix("py-")] = minimum.rstrip(":")
        self.options, self.switches = set(), {}
        for call in self.calls("define", "define_from_variant"):
            self.options.add(self.first(call))
            if len(call.args) > 1 and call.func.attr == "define_from_variant":
                self.switches[call.args[1].value] = self.first(call)
        self.text = ast.unparse(self.body)

    def calls(self, *names):
        for node in ast.walk(self.body):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in names:
                yield node

    @staticmethod
    def first(call):
        return call.args[0].value

    @staticmethod
    def keyword(call, name):
        return next((word.value.value for word in call.keywords if word.arg == name), None)


class CondaRecipe:
    """The parts of a recipe.yaml."""

    def __init__(self, path, yaml):
        recipe = yaml.safe_load(path.read_text())
        self.schema = recipe.get("schema_version")
        self.context = recipe["context"]
        self.licence = recipe["about"]["license"]
        self.licence_file = recipe["about"]["license_file"]
        self.script = " ".join(recipe["build"]["script"])
        self.options = set(re.findall(r"-D(\w+)=", self.script))
        self.source = recipe["source"]["path"]
        self.depends, self.minima, self.compilers = set(), {}, set()
        for group in recipe["requirements"].values():
            for item in group:
                self.add(item["then"] if isinstance(item, dict) else item)

    def add(self, item):
        if function := re.match(r'\$\{\{ (\w+)\("(\w+)"\) \}\}', item):
            self.compilers.add(function.group(2))
        elif not item.startswith("${{"):
            name, _, minimum = item.partition(" >=")
            self.depends.add(name)
            if minimum:
                self.minima[name] = minimum


def check_dependencies(build, kind, depends, column, others):
    """Yields what a recipe needs and the build does not, or the other way round."""
    known = {row[column] for row in DEPENDENCIES} - {None}
    for name in sorted(known - depends):
        yield f"{kind}: {name} is missing, which the build needs or can use"
    for name in sorted(depends - known - others):
        yield f"{kind}: nothing in the build needs {name}"


def check_build(build):
    """Yields what DEPENDENCIES does not know of the build."""
    rows = {row[0] for row in DEPENDENCIES}
    for name in sorted(build.found - rows):
        yield f"CMake looks for {name}: give it a line in DEPENDENCIES of scripts/check_packaging.py"
    for name in sorted(rows - build.found):
        if not re.search(rf"\b{re.escape(name)}\b", build.cmake):
            yield f"nothing looks for {name}, which is in DEPENDENCIES of scripts/check_packaging.py"
    for name in sorted({row[1] for row in DEPENDENCIES} - {None} - build.debian):
        yield f"scripts/setup.sh does not install {name} for Debian"


def check_minima(kind, minima, build):
    for name, minimum in minima.items():
        if name in build.minima and minimum != build.minima[name]:
            yield f"{kind}: {name} from {minimum} on, while the build says {build.minima[name]}"


def check_spack(root, build):
    """Yields what is wrong with the Spack recipe."""
    recipe = SpackRecipe(root / SPACK)
    if recipe.versions.get(build.version) != f"v{build.version}":
        yield f"Spack: version {build.version} with the tag v{build.version} is missing: {recipe.versions}"
    if recipe.licence != [build.licence]:
        yield f"Spack: licence {recipe.licence}, while LICENSE is {build.licence}"
    for option in sorted(recipe.options):
        if not build.has(option):
            yield f"Spack: the build has no option {option}"
    for variant in recipe.variants:
        if variant not in recipe.switches and f"+{variant}" not in recipe.conditions:
            yield f"Spack: the variant {variant} has no effect"
    for variant in sorted(set(re.findall(r"[+~](\w+)", recipe.conditions)) - set(recipe.variants)):
        yield f"Spack: a condition names the variant {variant}, which does not exist"
    yield from check_dependencies(build, "Spack", recipe.depends, 2, SPACK_OTHERS)
    yield from check_minima("Spack", recipe.minima, build)
    protozero = SpackRecipe(root / SPACK.replace("packages/weir", "packages/protozero"))
    for version, tag in protozero.versions.items():
        if tag != f"v{version}":
            yield f"Spack: protozero {version} has the tag {tag}"


def check_conda(root, build, yaml):
    """Yields what is wrong with the conda recipe."""
    recipe = CondaRecipe(root / CONDA, yaml)
    if recipe.schema != 1:
        yield f"conda: schema_version is {recipe.schema}, not 1"
    if recipe.context["version"] != build.version:
        yield f"conda: version {recipe.context['version']}, while version.h says {build.version}"
    if recipe.context["name"] != build.name:
        yield f"conda: name {recipe.context['name']}, while pyproject.toml says {build.name}"
    if recipe.licence != build.licence or not (root / recipe.licence_file).is_file():
        yield f"conda: licence {recipe.licence} in {recipe.licence_file}, while LICENSE is {build.licence}"
    source = ((root / CONDA).parent / recipe.source).resolve()
    if source != root.resolve():
        yield f"conda: the source is {source}, not this checkout"
    for option in sorted(recipe.options):
        if not build.has(option):
            yield f"conda: the build has no option {option}"
    kinds = set(yaml.safe_load((root / VARIANTS).read_text())["mpi"])
    if recipe.compilers != {"c", "cxx", "fortran"}:
        yield f"conda: compilers for {sorted(recipe.compilers)}, not for c, cxx and fortran"
    yield from check_dependencies(build, "conda", recipe.depends | kinds - {"nompi"}, 3, CONDA_OTHERS)
    yield from check_minima("conda", recipe.minima, build)


def render_conda(root):
    """Renders the recipe for each MPI by rattler-build itself; returns a sentence on it."""
    try:
        import rattler_build
    except ImportError:
        return "the conda recipe is not rendered: py-rattler-build is not installed"
    variants = rattler_build.VariantConfig.from_file(str(root / VARIANTS))
    # What conda-forge pins for all packages.
    pinned = rattler_build.VariantConfig.from_yaml(
        'c_stdlib: [sysroot]\nc_stdlib_version: ["2.28"]\npython: ["3.13.* *_cp313"]\n')
    merged = variants.merge(pinned)
    recipe = rattler_build.Stage0Recipe.from_file(str(root / CONDA))
    rendered = recipe.render(merged if merged is not None else variants)
    return f"rattler-build renders the conda recipe to {len(rendered)} packages"


def steps_of(stage):
    """Returns what a stage does, in the same form for both kinds of file."""
    steps = [stage.image.removeprefix("docker.io/library/")]
    for step in stage.steps:
        if step[0] == "copy":
            steps.append(f"copy {step[2]} of {step[1] or 'the context'} to {step[3]}")
        else:
            steps += [f"in {step[1]}: {command}" for command in re.split(r" && |\n", step[3])]
    return steps


def check_containers(root):
    """Yields where the two files for containers differ."""
    try:
        oci = run_container.read_containerfile((root / CONTAINERFILE).read_text())
        sif = run_container.read_definition((root / DEFINITION).read_text())
    except run_container.Failure as failure:
        yield f"containers: {failure}"
        return
    for number, (one, other) in enumerate(zip(oci, sif, strict=True)):
        for left, right in zip(steps_of(one), steps_of(other), strict=False):
            if left != right:
                yield f"containers: stage {number}: '{left}' in the Containerfile, '{right}' in weir.def"
        if len(steps_of(one)) != len(steps_of(other)):
            yield f"containers: stage {number} has more steps in one file than in the other"
    for name, value in re.findall(r"export (\w+)=(\S+)", sif[-1].setup):
        value = run_container.expand(value, {"PATH": run_container.PATH})
        if oci[-1].environment.get(name) != value:
            yield f"containers: {name} is {oci[-1].environment.get(name)} and {value}"
    if not (root / oci[0].steps[-1][3].split()[0]).is_file():
        yield f"containers: {oci[0].steps[-1][3]} is not in the checkout"


def check_recipes(root):
    """Returns what is wrong with the recipes, and sentences on what was not checked."""
    build = Build(root)
    problems = [*check_build(build), *check_spack(root, build), *check_containers(root)]
    try:
        import yaml
    except ImportError:
        return problems, ["the conda recipe is not checked: PyYAML is not installed"], True
    problems += check_conda(root, build, yaml)
    try:
        notes = [render_conda(root)]
    except Exception as error:  # whatever type rattler-build has for a recipe that it refuses
        problems.append(f"conda: rattler-build refuses the recipe: {error}")
        notes = []
    return problems, notes, False


def recipes(root):
    problems, notes, skipped = check_recipes(root)
    print(*problems, *notes, f"packaging: {len(problems)} problems", sep="\n")
    return 1 if problems else SKIPPED if skipped else 0


DAMAGE = [  # file, what, becomes, what is said
    (SPACK, 'version("{version}", tag="v{version}")', 'version("0.0.9", tag="v0.0.9")', "Spack: version"),
    (SPACK, 'license("Apache-2.0")', 'license("MIT")', "Spack: licence"),
    (SPACK, '"WEIR_BUILD_MPI", "mpi"', '"WEIR_USE_MPI", "mpi"', "Spack: the build has no option"),
    (SPACK, 'depends_on("hwloc@2:")', "", "Spack: hwloc is missing"),
    (SPACK, 'depends_on("hwloc@2:")', 'depends_on("hwloc")\n    depends_on("boost")', "needs boost"),
    (SPACK, "cmake@3.25:", "cmake@3.16:", "Spack: cmake from"),
    (SPACK, 'depends_on("opencl", when="+opencl")', 'depends_on("opencl")', "opencl has no effect"),
    (SPACK, 'when="+fortran"', 'when="+fortan"', "variant fortan"),
    (CONDA, 'version: "{version}"', 'version: "0.0.9"', "conda: version"),
    (CONDA, "license: Apache-2.0", "license: MIT", "conda: licence"),
    (CONDA, "-DWEIR_BUILD_TESTS=", "-DWEIR_TESTS=", "conda: the build has no option"),
    (CONDA, "    - libhwloc\n", "", "conda: libhwloc is missing"),
    (CONDA, "numpy >=1.22", "numpy >=1.20", "conda: numpy from"),
    (VARIANTS, "  - mpich\n", "", "conda: mpich is missing"),
    (CONTAINERFILE, "build.sh /opt/weir", "build.sh /usr/local", "containers: stage 0"),
    (CONTAINERFILE, "LD_LIBRARY_PATH=/opt/weir/lib", "LD_LIBRARY_PATH=/opt/weir", "containers: LD_LIBRARY_PATH"),
    (DEFINITION, "    rm -rf /var/lib/apt/lists/*\n", "", "containers: stage 1 has more steps"),
    ("apps/CMakeLists.txt", "find_package(ZLIB)", "find_package(ZLIB)\nfind_package(TIFF)", "looks for TIFF"),
    ("include/weir/version.h", 'STRING "', 'STRING "1', "conda: version"),
]


def self_test(root):
    """Damages copies, one at a time."""
    failed = 0
    version = re.search(r'STRING "([^"]+)"', (root / "include/weir/version.h").read_text())[1]
    for file, pattern, becomes, said in DAMAGE:
        what = pattern.replace("{version}", version)
        with tempfile.TemporaryDirectory(prefix="weir-packaging-") as scratch:
            copy = Path(scratch) / "weir"
            for path in ("CMakeLists.txt", "LICENSE", "pyproject.toml", "include/weir/version.h",
                         "scripts/setup.sh", "src/trace/export_perfetto.cpp"):
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / path, copy / path)
            shutil.copytree(root / "packaging", copy / "packaging")
            shutil.copytree(root / "cmake", copy / "cmake")
            for folder in ("src", "apps", "tools", "python", "fortran"):
                for path in (root / folder).rglob("CMakeLists.txt"):
                    target = copy / path.relative_to(root)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, target)
            text = (copy / file).read_text()
            if what not in text:
                print(f"self-test: {file} does not have {what!r}")
                failed += 1
                continue
            (copy / file).write_text(text.replace(what, becomes))
            problems, _, skipped = check_recipes(copy)
            if not any(said in problem for problem in problems) and not (skipped and "conda" in said):
                print(f"self-test: {what!r} as {becomes!r} in {file} is not found: {problems}")
                failed += 1
    print(f"self-test: {len(DAMAGE)} damages, {failed} not found")
    return 1 if failed else 0


MODULE_SYSTEMS = ["/usr/share/modules/init/bash", "/usr/share/lmod/lmod/init/bash"]
SHOWN = "PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH MANPATH PYTHONPATH"

# Arguments: init script, prefix, version, CMake, compiler, flags, source, scratch.
MODULE_SCRIPT = r"""set -eu
init=$1 prefix=$2 version=$3 cmake=$4 cxx=$5 flags=$6 source=$7 scratch=$8
fail() { echo "module: $*" >&2; exit 1; }
show() { for name in $SHOWN; do echo "$name=${!name-unset}"; done; }
expect() { [ "$("$1")" = "vector[999] = 1998" ] || fail "$1 printed something else"; }
set +u
. "$init"
module use "$prefix/share/modulefiles"
show >"$scratch/before"
module load weir
command -v weir >"$scratch/weir" || [ ! -x "$prefix/bin/weir" ] || fail "weir is not in PATH"
if [ -x "$prefix/bin/weir" ]; then
  [ "$(cat "$scratch/weir")" = "$prefix/bin/weir" ] || fail "PATH has another weir"
  weir --version | grep -q "^weir $version" || fail "weir --version: $(weir --version)"
  # Without man-db the path itself is what can be seen.
  [ ! -x /usr/bin/man ] || [ ! -e "$prefix/share/man/man1/weir.1" ] ||
    [ "$(man -w weir)" = "$prefix/share/man/man1/weir.1" ] || fail "man does not find weir"
fi
[ "$(pkg-config --modversion weir)" = "$version" ] || fail "pkg-config finds another weir"
"$cxx" $flags -std=c++20 "$source/tests/install/consumer.cpp" $(pkg-config --cflags --libs weir) \
  -o "$scratch/by_pkg_config"
expect "$scratch/by_pkg_config"
"$cmake" -S "$source/tests/install/cpp" -B "$scratch/by_cmake" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >/dev/null
grep -q "weir_DIR:PATH=$prefix/" "$scratch/by_cmake/CMakeCache.txt" || fail "CMake finds another weir"
"$cmake" --build "$scratch/by_cmake" >/dev/null
expect "$scratch/by_cmake/consumer"
case ":${PYTHONPATH-}:" in
  *":$prefix/"*) python3 -c "import weir; print('module: import weir: ok, from', weir.__file__)" ;;
  *) echo "module: the Python package is not installed, so not tested" ;;
esac
module unload weir
show >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail "unloading leaves something behind"
module unuse "$prefix/share/modulefiles"
mkdir -p "$scratch/links/weir" "$scratch/copies/weir"
ln -s "$prefix/share/modulefiles/weir/$version" "$scratch/links/weir/$version"
module use "$scratch/links"
module load weir
[ "$(pkg-config --variable=prefix weir | xargs readlink -f)" = "$prefix" ] || fail "a link leads elsewhere"
module unload weir
module unuse "$scratch/links"
cp "$prefix/share/modulefiles/weir/$version" "$scratch/copies/weir"
module use "$scratch/copies"
module load weir 2>"$scratch/refused" || true
grep -q "libweir.so is missing" "$scratch/refused" || fail "a copy does not say what is wrong"
"""


def module(build, cmake, cxx, sanitizers=""):
    """Loads the module file of an installation that was moved."""
    init = next((path for path in MODULE_SYSTEMS if os.path.exists(path)), None)
    if init is None:
        print("packaging: neither environment-modules nor lmod is installed, so the module file is not loaded")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-module-") as scratch:
        first, prefix, work = (Path(scratch).resolve() / name for name in ("first", "weir", "work"))
        done = subprocess.run([cmake, "--install", build, "--prefix", first], text=True, capture_output=True)
        if done.returncode:
            print(f"{done.stderr}packaging: {build} cannot be installed: build all of it first")
            return 1
        first.rename(prefix)
        work.mkdir()
        names = ("HOME", "LANG", "XDG_CACHE_HOME", "CCACHE_DIR")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHOWN": SHOWN}
        flags = f"-fsanitize={sanitizers}" if sanitizers else ""
        done = subprocess.run(["bash", "-c", MODULE_SCRIPT, "module", init, prefix, Build(ROOT).version, cmake,
                               cxx, flags, ROOT, work], env=environment, text=True, capture_output=True)
    print(done.stdout, done.stderr, f"packaging: the module file, by {init}: ended with {done.returncode}", sep="")
    return 1 if done.returncode else 0


def main(arguments):
    if arguments[:1] == ["recipes"] and len(arguments) <= 2:
        return recipes(Path(arguments[1]) if arguments[1:] else ROOT)
    if arguments[:1] == ["--self-test"] and len(arguments) <= 2:
        return self_test(Path(arguments[1]) if arguments[1:] else ROOT)
    if arguments[:1] == ["module"] and len(arguments) in (4, 5):
        return module(*arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
