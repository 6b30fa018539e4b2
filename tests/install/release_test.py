#!/usr/bin/env python3
"""Checks scripts/release.py: what a bump writes, and each reason to refuse one.

    release_test.py ROOT
"""

import importlib.util
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
ENTRIES = "## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n"

module = importlib.util.spec_from_file_location("release", ROOT / "scripts/release.py")
release = importlib.util.module_from_spec(module)
module.loader.exec_module(release)
FILES = ("include/weir/version.h", "CHANGELOG.md", release.SPACK, *release.COPIES)
failures = []


def tree(changelog=ENTRIES, version="0.1.0"):
    root = Path(tempfile.mkdtemp(dir=work))
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    spack = root / release.SPACK
    spack.write_text(re.sub(r' *version\("\d.*\n', "", spack.read_text()))
    release.write_version(root, version)
    if changelog is not None:
        (root / "CHANGELOG.md").write_text(changelog)
    return root


def expect(what, found, wanted):
    if found != wanted:
        failures.append(f"{what}: {found!r} instead of {wanted!r}")


def expect_refusal(words, root, version):
    before = [(root / file).read_text() for file in FILES]
    try:
        release.bump(version, root)
        failures.append(f"{version} was not refused, with '{words}'")
    except release.Refused as why:
        if words not in str(why):
            failures.append(f"{version}: refused with '{why}', which lacks '{words}'")
    expect(f"files after the refusal '{words}'", [(root / file).read_text() for file in FILES], before)


with tempfile.TemporaryDirectory() as work:
    release.check(ROOT)

    root = tree()
    release.bump("0.2.0", root)
    expect("version", release.version_of(root), "0.2.0")
    expect("versions of Spack", re.findall(r'version\("(\d[^"]*)", tag="v(\d[^"]*)"\)', (root / release.SPACK).read_text())[:2],
           [("0.2.0", "0.2.0"), ("0.1.0", "0.1.0")])
    expect("entries after the bump", release.unreleased(root), {})
    expect("sections", [line.split(" - ")[0] for line in (root / "CHANGELOG.md").read_text().splitlines()
                        if line.startswith("## ")], ["## [Unreleased]", "## [0.2.0]", "## [0.1.0]"])
    expect("what was added", "## [0.2.0]" in (root / "CHANGELOG.md").read_text().split("- A thing.")[0], True)
    expect_refusal("nothing under [Unreleased]", root, "0.3.0")
    root = tree(None)
    if release.unreleased(root):  # not in the commit of a release
        release.bump("9.8.7", root)
        expect("version of the real tree", release.version_of(root), "9.8.7")

    expect_refusal("does not come after 0.1.0", tree(), "0.1.0")
    expect_refusal("does not come after 0.10.0", tree(version="0.10.0"), "0.9.0")
    expect_refusal("is not MAJOR.MINOR.PATCH", tree(), "0.2")
    expect_refusal("no section", tree("## 0.1.0\n"), "0.2.0")
    expect_refusal("choose from Added", tree(ENTRIES.replace("Added", "News")), "0.2.0")
    expect_refusal("is empty", tree(ENTRIES.replace("- A thing.\n", "")), "0.2.0")
    expect_refusal("raise MINOR", tree(ENTRIES.replace("Added", "Removed")), "0.1.1")
    root = tree()
    (root / "fortran/fpm.toml").write_text('version = "0.0.9"\n')
    expect_refusal("fortran/fpm.toml has version 0.0.9", root, "0.2.0")

for failure in failures:
    print(failure)
sys.exit(bool(failures))
