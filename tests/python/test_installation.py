"""Where the package is, and what the import says when it cannot be loaded."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weir
from weir._installation import explained


def test_get_include_returns_the_folder_of_the_headers():
    assert (Path(weir.get_include()) / "weir/weir.h").exists()


@pytest.mark.parametrize("said, words", [
    ("/lib/libc.so.6: version `GLIBC_2.99' not found (required by _weir.so)", "needs glibc 2.99, the system has"),
    ("/lib/libc.so.6: version `GLIBC_ABI_DT_RELR' not found (required by _weir.so)", "needs glibc 2.36, the system"),
    ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.99' not found (required by _weir.so)", "needs a newer libstdc++"),
    ("/lib/libstdc++.so.6: version `CXXABI_1.3.99' not found (required by _weir.so)", "needs a newer libstdc++"),
    ("/lib/libgcc_s.so.1: version `GCC_99.0.0' not found (required by _weir.so)", "newer libgcc_s (GCC_99.0.0): apt"),
    ("libstdc++.so.6: cannot open shared object file: No such file or directory", "libstdc++ is missing: apt install"),
    ("libgcc_s.so.1: cannot open shared object file: No such file or directory", "missing: apt install libgcc-s1"),
    ("libhwloc.so.15: cannot open shared object file: No such file or directory", "missing: apt install libhwloc15"),
    ("libfoo.so.1: cannot open shared object file: No such file or directory", "install the package that contains"),
    ("libweir.so.0: cannot open shared object file: No such file or directory", "libweir.so.0 is missing: reinstall"),
    ("Error loading shared library libstdc++.so.6: No such file or directory (needed by _weir.so)",
     "libstdc++ is missing: apt install"),
    ("Error relocating /x/_weir.so: __printf_chk: symbol not found", "needs glibc, the system has another C library"),
    ("/x/_weir.so: undefined symbol: weir_share_create", "libweir that is loaded is of another version"),
    ("/x/_weir.so: file too short", "/x/_weir.so is damaged: pip install --force-reinstall"),
    ("No module named 'weir._weir'", "is for another machine or Python than"),
])
def test_an_error_of_the_loader_is_explained(said, words):
    error = explained(ImportError(said, name="weir._weir"))
    assert words in str(error) and said in str(error)


@pytest.fixture(name="package")
def copied_package(tmp_path):
    """A copy of the package, to damage."""
    shutil.copytree(Path(weir.__file__).parent, tmp_path / "weir", symlinks=False)
    return tmp_path / "weir"


def compiled_module(package):
    return next(package.glob("_weir*.so"))


def error_of_import(package):
    done = subprocess.run([sys.executable, "-B", "-c", "import weir"], cwd="/", text=True, capture_output=True,
                          env={"PYTHONPATH": str(package.parent), "PATH": ""}, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr.splitlines()[-1]


def replace_text(file, pattern, text):
    """Replaces a text in the table of strings by one of the same length."""
    before = file.read_bytes()
    after = re.sub(pattern, lambda match: text.ljust(len(match[0]), b"9")[:len(match[0])], before)
    assert after != before, f"{file} has no {pattern}"
    file.write_bytes(after)


@pytest.mark.parametrize("pattern, text, words", [
    (rb"\bGLIBC_2[.]\d+(?=\0)", b"GLIBC_2.", "needs glibc 2.9"),
    (rb"\bGLIBCXX_3[.]4[.]\d+(?=\0)", b"GLIBCXX_3.4.", "needs a newer libstdc++ (GLIBCXX_3.4.9"),
    (rb"\blibstdc[+][+][.]so[.]6(?=\0)", b"libstdc++.so.9", "libstdc++ is missing: apt install libstdc++6"),
    (rb"\blibweir[.]so[.]\d(?=\0)", b"libweir.so.9", "libweir.so.9 is missing: reinstall"),
])
def test_a_library_that_the_system_lacks_is_named_by_the_import(package, pattern, text, words):
    replace_text(compiled_module(package), pattern, text)
    error = error_of_import(package)
    assert error.startswith("ImportError: weir cannot be loaded: ") and words in error


def test_a_module_for_another_architecture_is_named_by_the_import(package):
    module = compiled_module(package)
    binary = bytearray(module.read_bytes())
    other, name = (183, "aarch64") if platform.machine() == "x86_64" else (62, "x86_64")
    binary[18:20] = other.to_bytes(2, "little")
    module.write_bytes(binary)
    assert f"{module} is for {name}, this Python for {platform.machine()}" in error_of_import(package)


def test_a_module_of_the_other_word_size_is_named_by_the_import(package):
    module = compiled_module(package)
    binary = bytearray(module.read_bytes())
    binary[4], binary[18:20] = 1, (3).to_bytes(2, "little")
    module.write_bytes(binary)
    assert f"{module} is for i686" in error_of_import(package)


def test_a_module_for_another_python_is_named_by_the_import(package):
    module = compiled_module(package)
    module.rename(package / "_weir.cpython-39-aarch64-linux-gnu.so")
    error = error_of_import(package)
    assert f"Python {platform.python_version()} (it has _weir.cpython-39-aarch64-linux-gnu.so)" in error


def test_other_import_errors_are_not_changed():
    error = ImportError("something else")
    assert explained(error) is error


def test_the_import_names_a_package_that_shares_the_folder(tmp_path):
    shutil.copytree(Path(weir.__file__).parent, tmp_path / "weir")
    (tmp_path / "weir-0.18.1.dist-info").mkdir()
    done = subprocess.run([sys.executable, "-c", "import weir"], cwd=tmp_path, text=True, capture_output=True,
                          env={"PYTHONPATH": str(tmp_path), "PATH": ""}, check=False)
    assert done.returncode == 1
    assert "the project 'weir' of PyPI" in done.stderr and "pip uninstall -y weir" in done.stderr


def test_python_m_weir_finds_the_tool_or_says_how_to_install_it(tmp_path, monkeypatch):
    from weir import __main__ as main
    tool = tmp_path / "weir"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main.tool() == str(tool)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="apt install weir-tools"):
        main.tool()
