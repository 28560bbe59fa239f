"""What `derive` gives: value, derivative and adjoint of a function as programs, for every point at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..calculus.derive import Derivative, derive_program, lower, weighted_adjoint
from ..calculus.linearity import specialised
from ..ops.number_domains import NUMBERS
from ..ops.op import Reduction, contraction
from ..programs.passes.fusing import runnable
from ..programs.program import Program, outputs
from ..relations.index_sets import Seg
from ..relations.kinds import Function, Gather
from ..runtime import later
from ..runtime.warnings_off import quietly
from ..spaces.space import Space, real_space
from ..terms.open import frozen
from ..terms.term import Term
from .instances import Instance, kept
from .leaves import IN_TRACES, any_traced, fixed, opened, present, written
from .linear_map import LinearMap, as_element
from .structured import Shown

if TYPE_CHECKING:
    from ..forms.closed_form import ClosedForm

Names = tuple[str, ...] | None
Arrays = Callable[[Sequence[Any]], tuple[tuple[str, Any], ...]] | None


class Family(Shown):
    """A linear map that depends on a point: x ↦ f'(x). `family(x)` is the LinearMap there; `len` counts steps.

    This is what the `Instance` of a map is an instance of: a program of a point and a vector, linear in the vector.
    Here it comes with the spaces of both; an instance has the leaves of one point instead.
    """

    _arrays: Arrays = None
    mirror: Family | None = None  # the derivative, of an adjoint: its picture is the mirror image

    def __init__(
        self, program: Program, point: Space, domain: Space, codomain: Space, names: Names = None, arrays: Arrays = None
    ) -> None:
        self.program, self.point, self.domain, self.codomain = program, point, domain, codomain
        self.names = names  # of the arguments, in print
        self._arrays = arrays

    def __call__(self, *args: Any) -> LinearMap:
        value = as_element(args, self.point)
        traced = any_traced(value)
        leaves = fixed(opened(self.point, value)) if traced else frozen(self.point.open(value))

        def instance() -> Instance:
            return Instance(self.program, leaves, self.captured(leaves))

        def there() -> Program:
            with quietly():
                return kept(specialised(self.program, leaves))

        if traced:
            return LinearMap(self.domain, self.codomain, None, instance=instance, leaves=IN_TRACES)
        return LinearMap(self.domain, self.codomain, there, instance=instance)

    def captured(self, point: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
        """Arrays with the names they have outside, the leaves of a point among them."""
        return () if self._arrays is None else self._arrays(point)

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_arrays": None}  # captured arrays lose their names

    def __len__(self) -> int:
        return len(self.program)


def map_of_entries(rows: Any, columns: Any, data: Any, shape: tuple[int, int]) -> LinearMap:
    """The map of a sparse matrix by its entries, whose numbers may be traced: v ↦ red_row(data ⊛ gather_column v)."""
    m, n = [int(k) for k in shape]
    program, count = Program(), len(rows)
    numbers, vector = program.input((count,)), program.input((n,))
    taken = program.step(Reduction((Gather(Seg(n), Seg(count), columns),), 0), (vector,))
    weighted = program.step(contraction(((0,), (0,)), (0,)), (numbers, taken))
    program.outputs = [program.step(Reduction((Function(Seg(count), Seg(m), rows),), 0), (weighted,))]
    found = Family(program, real_space((count,)), real_space((n,)), real_space((m,)))(data)
    found.dtype = np.result_type(np.float32, data.dtype)
    return found


class Value(Shown):
    """A function as a program. `value(x)` evaluates it; `len` counts steps."""

    def __init__(self, program: Program, domain: Space, codomain: Space, names: Names = None) -> None:
        self.program, self.names, self.domain, self.codomain = program, names, domain, codomain

    def __call__(self, *args: Any) -> Any:
        value = as_element(args, self.domain)
        if any_traced(value):
            return present(self.codomain, written(self.program, [], opened(self.domain, value), np.dtype(float)))
        leaves = self.domain.open(value)
        found = outputs(runnable(self.program), NUMBERS, leaves)
        return self.codomain.wrap(found, self.program.held | {id(x) for x in leaves})

    def __len__(self) -> int:
        return len(self.program)


class Origin(NamedTuple):
    """What was derived, at which spaces, and the closed forms of it that were asked for."""

    function: Any
    spaces: tuple[Space, ...]
    forms: dict[str, Any]


class Derivation(Shown):
    """The symbolic derivative of a function: `function`, `value`, `derivative`, `adjoint`, `size`. Printing shows all
    with their lets.

    `D.derivative(x)` and `D.adjoint(x)` are the LinearMaps f'(x) and f'(x)*; `D(x)` is (f(x), f'(x)).
    """

    _at = _adjoint_at = None  # pickles of families of version 0.1 ask for them

    def __init__(
        self, term: Term, names: Names = None, arrays: Arrays = None, source: Any = None, spaces: tuple[Space, ...] = ()
    ) -> None:
        self.function, self.names, self._arrays = term, names, arrays
        self._origin = Origin(term if source is None else source, spaces or (term.domain,), {})
        self.programs: Derivative = derive_program(lower(term))

    @cached_property
    def value(self) -> Value:
        """f as a program.

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.value)
        Σ x³
        """
        return Value(self.programs.value, self.function.domain, self.function.codomain, self.names)

    @cached_property
    def derivative(self) -> Family:
        """x ↦ f'(x).

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.derivative)
        Σ • Δ((3 · x²) ·)
        """
        V, W = self.function.domain, self.function.codomain
        return Family(self.programs.derivative, V, V, W, self.names, self._arrays)

    @cached_property
    def adjoint(self) -> Family:
        """x ↦ f'(x)*.

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.adjoint)
        Δ((3 · x²) ·) • rep
        """
        V, W = self.function.domain, self.function.codomain
        transpose = self.programs.adjoint
        program = transpose if V.plain and W.plain else weighted_adjoint(transpose, len(V.leaves), V, W)
        found = Family(program, V, W, V, self.names, self._arrays)
        found.mirror = self.derivative if V.plain and W.plain else None
        return found

    def origin(self) -> Origin:
        """What was derived, for closed forms."""
        return self._origin

    @cached_property
    def gradient(self) -> ClosedForm:
        """∇f as a closed form, for functions into ℝ; a tuple of one for each of several arguments.

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.gradient)
        3x²
        """
        return later.closed_form("gradient", self)

    @cached_property
    def jacobian(self) -> ClosedForm:
        """f' as a closed form.

        >>> import numpy as np, riesz as rz
        >>> print(rz.derive(lambda x: np.tanh(x), rz.R ** 4).jacobian)
        diag(1 − tanh(x)²)
        """
        return later.closed_form("jacobian", self)

    @cached_property
    def hessian(self) -> ClosedForm:
        """∇²f as a closed form, for functions into ℝ.

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.hessian)
        6 diag(x)
        """
        return later.closed_form("hessian", self)

    @property
    def hvp(self) -> Callable[..., Any]:
        """(x, v) ↦ ∇²f(x) v.

        >>> import numpy as np, riesz as rz
        >>> D = rz.derive(lambda x: np.sum(x**3), rz.R ** 4)
        >>> print(D.hvp)
        6(x ∘ v)
        """
        return later.product_with_hessian(self)

    def __getstate__(self) -> Any:
        kept: dict[str, Any] = {name: getattr(self, name) for name in ("function", "names", "programs")}
        # captured arrays lose their names; a Python function is its term from then on
        return {**kept, "_arrays": None, "_origin": Origin(self.function, (self.function.domain,), {})}

    def __setstate__(self, state: Any) -> None:
        origin = Origin(state["function"], (state["function"].domain,), {})  # there was none in version 0.1
        self.__dict__.update({"_origin": origin, **state})

    @property
    def size(self) -> int:
        """The number of steps of value, derivative and adjoint together."""
        return len(self.value) + len(self.derivative) + len(self.adjoint)

    def __call__(self, *args: Any) -> tuple[Any, LinearMap]:
        return self.value(*args), self.derivative(*args)
