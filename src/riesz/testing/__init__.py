"""Tools for tests, ours and yours: random sets, spaces, vectors, linear terms and functions, and checks of the laws.

The checks need NumPy alone. The strategies are for Hypothesis (`pip install riesz[test]`), imported when one is asked
for:

    @given(linear_terms())
    def test_adjoint(t):
        check_adjoint(t)

Everything random is built by a `Builder`, which only ever asks its `pick` for a number below n. Small numbers stand for
simple things, so Hypothesis shrinks what it finds, and `Builder(np.random.default_rng(0).integers)` works without
Hypothesis.
"""

from .law_checks import check_adjoint, check_derivative, check_derivatives, check_taylor
from .random_terms import Builder, smooth_functions
from .strategies import bilinears, functions, index_sets, linear_terms, relations, scalar_functions, spaces, vectors

__all__ = ["Builder", "bilinears", "check_adjoint", "check_derivative", "check_derivatives", "check_taylor"]
__all__ += ["functions", "index_sets", "linear_terms", "relations", "scalar_functions", "smooth_functions"]
__all__ += ["spaces", "vectors"]
