"""`help` shows a docstring with an example that runs for every public name; `dir(rz)` shows the public names only."""

import doctest
import inspect
import pydoc
import subprocess
import sys
import types

import pytest

import riesz as rz

NAMES = sorted(rz.__all__)


def own_doc(x) -> str:
    """The docstring of a thing itself, not of its class."""
    doc = x.__doc__ or ""
    return doc if isinstance(x, (type, types.FunctionType, types.ModuleType)) or doc != type(x).__doc__ else ""


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(name):
    if name == "from_torch":
        pytest.importorskip("torch", reason="the example is one of PyTorch")
    doc = own_doc(getattr(rz, name))
    assert doc.strip(), f"rz.{name} has no docstring"
    assert len(doc.strip().splitlines()[0]) > 10
    examples = doctest.DocTestParser().get_doctest(doc, {}, f"rz.{name}", None, None)
    assert examples.examples, f"the docstring of rz.{name} has no example"
    assert f"rz.{name}" in doc or not callable(getattr(rz, name)) or isinstance(getattr(rz, name), type), doc
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", sorted(rz.manifolds.__all__))
def test_every_name_for_manifolds_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(rz.manifolds, name))


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_it(name):
    shown = pydoc.plain(pydoc.render_doc(getattr(rz, name)))
    first = own_doc(getattr(rz, name)).strip().splitlines()[0]
    assert first in shown, shown[:500]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("total", "Σ : V^X ⊸ V"),
        ("matvec", "a matrix times a vector"),
        ("sin", "sin' = cos"),
        ("R", "the space of real numbers"),
    ],
)
def test_help_of_an_instance_explains_it_and_not_its_class(name, words):
    shown = pydoc.plain(pydoc.render_doc(getattr(rz, name)))
    assert words in shown and ">>> " in shown
    assert "Method resolution order" not in shown


def test_dir_shows_the_public_names_only():
    assert dir(rz) == sorted([*rz.__all__, "__version__"])
    assert all(hasattr(rz, name) for name in dir(rz))
    code = "import riesz; assert not {'Any', 'importlib', 'moved', 'TYPE_CHECKING'} & set(dir(riesz))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_docstring_of_its_own_is_no_part_of_a_node():
    """Interning and pickling do not see it."""
    import pickle

    assert pickle.loads(pickle.dumps(rz.total)) is rz.total
    assert rz.power(-1) is rz.reciprocal
    with pytest.raises(AttributeError, match="immutable"):
        rz.total.__doc__ = "something else"
