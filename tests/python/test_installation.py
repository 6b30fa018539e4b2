"""Where the package is, and what the import says when it cannot be loaded."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weir
from weir._installation import explained


def test_the_folder_of_the_headers_has_them():
    assert (Path(weir.get_include()) / "weir/weir.h").exists()


@pytest.mark.parametrize("said, words", [
    ("/lib/libc.so.6: version `GLIBC_2.99' not found (required by _weir.so)", "needs glibc 2.99, the system has"),
    ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.99' not found (required by _weir.so)", "needs a newer libstdc++"),
    ("libstdc++.so.6: cannot open shared object file: No such file or directory", "libstdc++ is missing: apt install"),
    ("libweir.so.0: cannot open shared object file: No such file or directory", "libweir.so.0 is missing: reinstall"),
    ("/x/_weir.so: wrong ELF class: ELFCLASS32", "is for another machine or Python than"),
    ("No module named 'weir._weir'", "is for another machine or Python than"),
])
def test_an_error_of_the_loader_is_explained(said, words):
    error = explained(ImportError(said, name="weir._weir"))
    assert words in str(error) and said in str(error)


def test_other_errors_stay_as_they_are():
    error = ImportError("something else")
    assert explained(error) is error


def test_the_import_names_a_package_that_shares_the_folder(tmp_path):
    shutil.copytree(Path(weir.__file__).resolve().parent, tmp_path / "weir")
    (tmp_path / "weir-0.18.1.dist-info").mkdir()
    done = subprocess.run([sys.executable, "-c", "import weir"], cwd=tmp_path, text=True, capture_output=True,
                          env={"PYTHONPATH": str(tmp_path), "PATH": ""}, check=False)
    assert done.returncode == 1
    assert "the project 'weir' of PyPI" in done.stderr and "pip uninstall -y weir" in done.stderr


def test_python_m_weir_is_the_tool(tmp_path, monkeypatch):
    from weir import __main__ as main
    tool = tmp_path / "weir"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main.tool() == str(tool)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="apt install weir-tools"):
        main.tool()
