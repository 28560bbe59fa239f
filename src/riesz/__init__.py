"""riesz: the derivative of a function is an object you can look at.

>>> import riesz as rz
>>> print(rz.derive(rz.ln @ rz.sin).derivative)
(y⁻¹ ·) • (cos x ·)
  where y = sin x
"""

from . import relations
from .api import derive, grad, hessian, hvp, jacobian, jvp, linearize, linearize_adjoint, value_and_grad, vjp
from .errors import IndexSetError, LinearityError, RelationError, RieszError, SpaceError, VectorError
from .maps.linear_map import LinearMap
from .relations import Relation
from .sets import Set, seg
from .show.explain import explain
from .spaces import R, Space, direct_sum, space_of
from .spaces import zero_space as Zero
from .terms.combinators import (
    add,
    assoc,
    bilinear,
    block_diag,
    bra,
    const,
    contract,
    contract_left,
    contract_right,
    distrib,
    dup,
    fork,
    hadamard,
    id,
    inj,
    inner,
    join,
    ket,
    left,
    linear,
    matmul,
    matvec,
    outer,
    par,
    proj,
    red,
    rep,
    right,
    scalar_mul,
    scan,
    total,
    total_over,
    transpose,
    unassoc,
    unbra,
    undistrib,
    unket,
    unzip,
    zero,
    zip,
)
from .terms.primitives import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    divide,
    exp,
    expm1,
    ln,
    log,
    log1p,
    power,
    primitive,
    reciprocal,
    relu,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    step,
    tan,
    tanh,
)

__version__ = "0.1.0"
