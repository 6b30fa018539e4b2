"""What the package says about its types: all of it, and names that exist."""

import ast
import importlib
import inspect
import types
import typing
from pathlib import Path

import numpy as np
import pytest
import weir
from weir import _weir

PACKAGE = Path(weir.__file__).parent
MODULES = ("_device", "_errors", "_events", "_fabric", "_html", "_pipelines", "_portable", "_runtime", "_trace")
SAYS_NOTHING = {"__init__", "__exit__", "__await__"}  # of these the return, or all, is known


@pytest.fixture(scope="module")
def stub():
    """The stub of the module as a module. Its annotations are evaluated when they are asked for."""
    text = "from __future__ import annotations\n" + (PACKAGE / "_weir.pyi").read_text()
    made = types.ModuleType("_weir")
    exec(compile(text, "_weir.pyi", "exec"), made.__dict__)
    return made


def functions_of(space):
    for name, value in vars(space).items():
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if inspect.isfunction(value):
            yield name, value


def classes_of(module):
    return [each for each in vars(module).values()
            if inspect.isclass(each) and each.__module__ == module.__name__]


def test_the_stub_has_every_name_of_the_module(stub):
    tree = ast.parse((PACKAGE / "_weir.pyi").read_text())
    written = {each.name: each for each in tree.body
               if isinstance(each, (ast.ClassDef, ast.FunctionDef))}
    for name, value in vars(_weir).items():
        if name.startswith("__"):
            continue
        assert name in written, f"{name} is missing in the stub"
        if inspect.isclass(value):
            body = {each.name for each in written[name].body if hasattr(each, "name")}
            missing = {each for each in vars(value) if not each.startswith("__")} - body
            assert not missing, f"{name} lacks {missing} in the stub"


def test_all_types_in_the_stub_can_be_resolved(stub):
    seen = 0
    for space in [stub, *(each for each in vars(stub).values() if inspect.isclass(each))]:
        if getattr(space, "__module__", "_weir") not in ("_weir", "builtins"):
            continue
        for name, function in functions_of(space):
            hints = typing.get_type_hints(function, vars(stub))
            seen += 1
            if not name.startswith("__"):
                assert "return" in hints, f"{space.__name__}.{name} says not what it returns"
    assert seen > 150


@pytest.mark.parametrize("name", MODULES)
def test_python_functions_have_types_for_all_parameters_and_results(stub, name):
    module = importlib.import_module(f"weir.{name}")
    spaces = [module, *classes_of(module)]
    for space in spaces:
        for function_name, function in functions_of(space):
            if function.__module__ != module.__name__ or function_name in ("__exit__", "<lambda>"):
                continue
            hints = typing.get_type_hints(function, {"numpy": np, **vars(module), "_weir": stub})
            parameters = [each for each in inspect.signature(function).parameters
                          if each not in ("self", "cls")]
            missing = [each for each in parameters if each not in hints]
            assert not missing, f"{function.__qualname__}: {missing} have no type"
            if function_name not in SAYS_NOTHING:
                assert "return" in hints, f"{function.__qualname__} says not what it returns"


def test_every_public_name_of_the_package_is_exported_in_all():
    assert len(weir.__all__) == len(set(weir.__all__))
    for name in weir.__all__:
        assert getattr(weir, name) is not None
    public = {name for name, value in vars(weir).items()
              if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public <= set(weir.__all__), public - set(weir.__all__)
    assert (PACKAGE / "py.typed").exists()
