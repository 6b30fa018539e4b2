#!/usr/bin/env python3
"""Makes a release: bumps the version, builds what users install, and proves each in an empty root.

    release.py check                  check that the tree is one that a release can be made of
    release.py bump VERSION           write VERSION and its section of the changelog; commit
    release.py build                  dist/VERSION/: wheel, packages, source archive, SHA256SUMS
    release.py prove [RELEASE...]     install and run each of them in empty roots of Debian (bookworm,
                                      trixie); default: the release of this system
    release.py all VERSION            bump, build, prove on this system's release, tag vVERSION

`make release VERSION=0.2.0` does the last. Nothing is pushed: `git push --follow-tags` publishes.
A step that fails leaves the commit of the bump; mend, and go on with build, prove and `git tag`.
"""

import argparse
import datetime
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# Files that repeat the version of include/weir/version.h -> where.
COPIES = {"CITATION.cff": r"^version: (\S+)$",
          "fortran/fpm.toml": r'^version = "([^"]+)"',
          "packaging/conda/recipe.yaml": r'^  version: "([^"]+)"',
          "docs/concepts/papers.md": r"^  version = \{([^}]+)\}"}
SPACK = "packaging/spack/spack_repo/weir/packages/weir/package.py"
PACKAGES = ("libhstreams", "libweir-dev", "libweir-fortran", "libweir-mpi", "libweir0", "python3-weir", "weir-tools")
CATEGORIES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


class Refused(Exception):
    """A release cannot be made; the message says of what, and what to do."""


def run(*command, **more):
    return subprocess.run(command, **{"cwd": ROOT, "check": True, **more})


def output(*command):
    return run(*command, capture_output=True, text=True).stdout.strip()


# ---- Version ------------------------------------------------------------------------------------

def version_of(root):
    header = (root / "include/weir/version.h").read_text()
    text = re.search(r'WEIR_VERSION_STRING "([^"]+)"', header)[1]
    parts = [re.search(rf"WEIR_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    if text != ".".join(parts):
        raise Refused(f"include/weir/version.h: WEIR_VERSION_STRING is {text}, its parts are {'.'.join(parts)}")
    for file, place in COPIES.items():
        copy = re.search(place, (root / file).read_text(), re.M)[1]
        if copy != text:
            raise Refused(f"{file} has version {copy}, include/weir/version.h {text}")
    return text


def write_version(root, version):
    numbers = VERSION.fullmatch(version).groups()
    path = root / "include/weir/version.h"
    text = re.sub(r'(WEIR_VERSION_STRING) "[^"]+"', rf'\1 "{version}"', path.read_text())
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), numbers):
        text = re.sub(rf"(WEIR_VERSION_{part}) \d+", rf"\1 {number}", text)
    path.write_text(text)
    for file, place in COPIES.items():
        path = root / file
        text = path.read_text()
        start, end = re.search(place, text, re.M).span(1)
        path.write_text(text[:start] + version + text[end:])
    path = root / SPACK  # which keeps the earlier versions, too
    path.write_text(re.sub(r'^( *)version\("main".*\n', rf'\g<0>\1version("{version}", tag="v{version}")\n',
                           path.read_text(), flags=re.M))


# ---- Changelog ----------------------------------------------------------------------------------

def unreleased(root):
    """Returns the entries under [Unreleased], by category."""
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        raise Refused("CHANGELOG.md has no section '## [Unreleased]'")
    entries, category = {}, None
    for line in section[1].splitlines():
        if line.startswith("### "):
            category = line[4:]
            if category not in CATEGORIES:
                raise Refused(f"CHANGELOG.md: '{line}': choose from {', '.join(sorted(CATEGORIES))}")
            if category in entries:
                raise Refused(f"CHANGELOG.md: '{line}' is there twice under [Unreleased]")
            entries[category] = 0
        elif line.startswith("- "):
            if category is None:
                raise Refused(f"CHANGELOG.md: '{line}' is under no category")
            entries[category] += 1
    for category, count in entries.items():
        if count == 0:
            raise Refused(f"CHANGELOG.md: '### {category}' is empty: remove it")
    return entries


def date_changelog(root, version, date):
    path = root / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {date}\n", 1))


def check_next(root, version):
    """Refuses a version that does not follow that of the tree, or that has no entries."""
    if not VERSION.fullmatch(version):
        raise Refused(f"'{version}' is not MAJOR.MINOR.PATCH")
    now = version_of(root)
    order = [tuple(map(int, each.split("."))) for each in (now, version)]
    if order[0] >= order[1]:
        raise Refused(f"version {version} does not come after {now}")
    entries = unreleased(root)
    if not entries:
        raise Refused("CHANGELOG.md has nothing under [Unreleased]: a release says what changed")
    if "Removed" in entries and order[0][:2] == order[1][:2]:
        raise Refused(f"CHANGELOG.md says that something was removed: {version} may only mend {now}; "
                      "raise MINOR")


# ---- Steps --------------------------------------------------------------------------------------

def check(root=ROOT):
    version = version_of(root)
    entries = unreleased(root)
    what = ", ".join(f"{count} {category.lower()}" for category, count in entries.items())
    print(f"release: version {version}; since then {what or 'nothing'}")


def bump(version, root=ROOT):
    check_next(root, version)
    write_version(root, version)
    date_changelog(root, version, datetime.date.today().isoformat())


def refuse_changes():
    changed = output("git", "status", "--porcelain")
    if changed:
        raise Refused(f"the tree has changes: commit or remove them first\n{changed}")


def folder():
    return ROOT / "dist" / version_of(ROOT)


def build():
    refuse_changes()
    version = version_of(ROOT)
    here = folder()
    here.mkdir(parents=True, exist_ok=True)
    for old in here.iterdir():
        old.unlink()
    for old in [*ROOT.glob("dist/*.whl"), *ROOT.glob("dist/*.deb")]:
        old.unlink()
    print("release: source archive", flush=True)
    run("git", "archive", f"--prefix=weir-{version}/", "-o", here / f"weir-{version}.tar.gz", "HEAD")
    print("release: wheel", flush=True)
    run("scripts/wheel.sh")
    print("release: packages", flush=True)
    run("scripts/packages.sh", "--lint")
    missing = [package for package in PACKAGES if not any(ROOT.glob(f"dist/{package}_*.deb"))]
    if missing:
        raise Refused(f"{', '.join(missing)}: not built; build/packages.configure.log says what is not installed")
    for made in [*ROOT.glob("dist/*.whl"), *ROOT.glob("dist/*.deb")]:
        made.rename(here / made.name)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
             for path in sorted(here.iterdir())]
    (here / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def prove(releases):
    here = folder()
    if not (here / "SHA256SUMS").exists():
        raise Refused(f"{here} has no SHA256SUMS: run scripts/release.py build first")
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=here)
    wheel, = here.glob("*.whl")
    archive, = here.glob("*.tar.gz")
    for release in releases or [output("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME")]:
        for what, given in (("wheel", wheel), ("packages", here), ("archive", archive)):
            run("scripts/roots.sh", what, release, given)


def commit_bump(version):
    refuse_changes()
    bump(version)
    run("git", "commit", "--quiet", "-a", "-m", f"release: version {version}")


def all_steps(version):
    commit_bump(version)
    build()
    prove([])
    run("git", "tag", "-a", f"v{version}", "-m", f"weir {version}")
    print(f"release: dist/{version} is proven and tagged v{version}; publish with git push --follow-tags")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["check", "bump", "build", "prove", "all"])
    parser.add_argument("rest", nargs="*", metavar="VERSION or RELEASE")
    arguments = parser.parse_args()
    step, rest = arguments.step, arguments.rest
    if step in ("bump", "all") and len(rest) != 1:
        parser.error(f"{step} needs one VERSION")
    if step in ("check", "build") and rest:
        parser.error(f"{step} takes no '{rest[0]}'")
    try:
        if step == "bump":
            commit_bump(rest[0])
        else:
            {"check": check, "build": build, "prove": lambda: prove(rest), "all": lambda: all_steps(rest[0])}[step]()
    except Refused as why:
        print(f"release: {why}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"release: '{' '.join(map(str, failed.cmd))}' failed with {failed.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
