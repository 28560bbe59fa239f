"""Arguments taken apart: array leaves, trees, and values that a trace is made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...errors import VectorError
from ...spaces.layout import held, own_arithmetic
from ...tracing.argument_trees import LEAF, Tree, flatten, unflatten
from ...tracing.traced import FLOAT, Traced
from .records import Aval


def _array_leaf(x: Any) -> Aval | None:
    """What is known of a leaf that is an array or a float; None for static leaves."""
    kind = cast(Any, type(x))
    if kind is np.ndarray and x.dtype is FLOAT:
        return Aval(x.shape, FLOAT, False if x.shape else None)
    if kind is float:
        return _PYTHON_FLOAT
    if kind is Traced:
        return Aval(x.shape, x.dtype, x.weak)
    if kind is np.float64 or kind is np.float32 or kind is np.float16:
        return Aval((), x.dtype, False)
    x = held(x)
    kind = cast(Any, type(x))
    like_array = hasattr(kind, "__array__") and hasattr(x, "shape") and not isinstance(x, (np.generic, type))
    like_array = like_array and not _opaque(x)
    if isinstance(x, np.ndarray) or like_array:
        if (problem := own_arithmetic(x)) is not None:
            raise VectorError(f"an argument is {problem}")
        dtype = getattr(x, "dtype", None)
        dtype = dtype if isinstance(dtype, np.dtype) else np.asarray(x).dtype
        if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize not in (2, 4, 8)):
            complex_parts = "complex arrays are not supported: pass real and imaginary parts"
            advice = complex_parts if dtype.kind == "c" else "use float64, float32 or float16"
            advice += "" if isinstance(x, np.ndarray) else f", as x.to_numpy(dtype=float) gives of a {kind.__name__}"
            raise VectorError(f"an argument is an array of {dtype}; {advice}")
        shape = tuple(cast(Any, x).shape)
        return Aval(shape, FLOAT if dtype == FLOAT else dtype, False if shape else None)
    return None


def _opaque(x: Any) -> bool:
    """Whether an array holds something else than numbers: keys of JAX's random numbers."""
    return type(x).__module__.startswith("jax") and not isinstance(x.dtype, np.dtype)


_PYTHON_FLOAT = Aval((), FLOAT, True)


def _static_key(x: Any) -> Any:
    """A static value by what it is: arrays and containers by their contents, numbers with their bits."""
    if isinstance(x, np.ndarray):
        return (np.ndarray, x.shape, x.dtype.str, x.tobytes()) if x.dtype != object else (object(),)
    if isinstance(x, float):
        return (type(x), x.hex())
    if isinstance(x, (list, tuple)):
        return (type(x), *[_static_key(v) for v in cast("list[Any]", x)])
    if isinstance(x, dict):
        return (dict, *[(_static_key(k), _static_key(v)) for k, v in cast("dict[Any, Any]", x).items()])
    try:
        hash(x)
    except Exception:  # a TypeError as a rule, but a memoryview has a ValueError
        return (object(),)  # nothing to know it by: traced each time
    return (type(x), x)


class Given:
    """Arguments taken apart: array leaves, trees, static leaves, and which array leaves belong to which argument."""

    __slots__ = ("arrays", "avals", "key", "kwargs", "leaves", "owners", "point", "trees")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], static: frozenset[Any]) -> None:
        self.leaves: list[list[Any]] = []  # all leaves, argument by argument
        self.trees: list[Tree] = []
        self.arrays: list[Any] = []
        self.avals: list[Aval] = []
        self.owners: list[list[int]] = []  # positions among the array leaves, argument by argument
        self.point = True  # whether this is where the function is wanted, not an example of such arguments
        self.kwargs = tuple(sorted(kwargs))
        key: list[Any] = [self.kwargs]
        for name, value in (*enumerate(args), *[(k, kwargs[k]) for k in self.kwargs]):
            owned: list[int] = []
            if name in static or (isinstance(name, int) and name - len(args) in static):
                leaves, tree = [value], (LEAF,)
                key.append(_static_key(value))
            else:
                leaves, tree = ([value], (LEAF,)) if type(value) in _SIMPLE else flatten(value)
                key.append(tree)
                for i, x in enumerate(leaves):
                    aval = _array_leaf(x)
                    if aval is None:
                        key.append(_static_key(x))
                        continue
                    key.append((aval.shape, aval.dtype, aval.weak))
                    owned.append(len(self.arrays))
                    self.arrays.append(x)
                    self.avals.append(aval)
                    leaves[i] = aval
            self.owners.append(owned)
            self.leaves.append(leaves)
            self.trees.append(tree)
        self.key = tuple(key)

    @property
    def statics(self) -> list[Any]:
        """The leaves that are no arrays."""
        return [x for leaves in self.leaves for x in leaves if type(x) is not Aval]

    @property
    def decides(self) -> bool:
        """Whether conditions on the arguments can be decided: Note [Guards]."""
        return self.point and all([x.home.decides for x in self.arrays if type(x) is Traced])

    def rebuilt(self, arrays: Sequence[Any], answered: Any = lambda x: x) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with other array leaves; the others as `answered` gives them."""
        rest = iter(arrays)
        filled = [[next(rest) if type(x) is Aval else answered(x) for x in leaves] for leaves in self.leaves]
        values = list(map(unflatten, self.trees, filled))
        count = len(values) - len(self.kwargs)
        return values[:count], dict(zip(self.kwargs, values[count:], strict=True))


_SIMPLE = {float, np.ndarray, np.float64, np.float32, np.float16, Traced}
