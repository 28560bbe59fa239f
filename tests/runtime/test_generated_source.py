"""Generated source is executed in one place, and its lines can be shown."""

import ast
import gc
import linecache
import traceback
import types
from pathlib import Path

import numpy as np

import riesz as rz
from riesz.runtime.generated_source import defined

SRC = Path(rz.__file__).parent


def test_source_is_executed_in_one_place():
    found = [
        f"{file.relative_to(SRC)}:{node.lineno}"
        for file in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval")
    ]
    assert [f.partition(":")[0] for f in found] == ["runtime/generated_source.py"], found


def test_a_traceback_shows_the_line():
    f = defined("def f(x):\n    return 1 / x", "f", {})
    g = defined("def f(x):\n    return 2 / x", "f", {})
    for made, line in ((f, "return 1 / x"), (g, "return 2 / x")):
        try:
            made(0)
        except ZeroDivisionError as error:
            assert line in "".join(traceback.format_exception(error))


def test_lines_live_as_long_as_the_function():
    f, g = (defined("def f(x):\n    return x", "f", {}) for _ in range(2))
    first, second = f.__code__.co_filename, g.__code__.co_filename
    assert linecache.getline(first, 2) == linecache.getline(second, 2) == "    return x"
    del f
    gc.collect()
    assert linecache.getline(first, 2) == "" and linecache.getline(second, 2) == "    return x"


def test_names_are_read_from_the_space_that_was_given():
    space = {"number": 2}
    f = defined("def f(x):\n    return number * x", "f", space)
    space["number"] = 3
    assert f(5) == 15 and space["f"] is f


def test_code_of_small_functions_and_of_containers_can_be_shown():
    """The functions that were executed without lines before."""
    g = rz.compile(lambda x: np.sin(x["a"]) * x["b"], backend="numpy")
    g({"a": np.ones(3), "b": np.ones(3)})
    held = [o for o in gc.get_objects() if type(o) is types.FunctionType and o.__name__ == "quick"]
    files = {o.__code__.co_filename for o in held if o.__code__.co_filename.startswith("<riesz")}
    assert files and all("OTHER" in "".join(linecache.getlines(f)) for f in files)
