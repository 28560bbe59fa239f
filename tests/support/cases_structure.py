"""Cases: products, rearrangements, indexing."""

from __future__ import annotations

from cases import N, P, case, texts

MATRICES = ((0, 4), (3, 0), (1, 4), (3, 1), (1, 1))

# -- products ---------------------------------------------------------------------------------------------

for text in texts("3 3; 23 3; 3 34; 23 34; 234 42; 234 243; 34 243; 2134 342; 234 4; 4 243; 123 531"):
    a, b = [tuple(map(int, word)) for word in text.split()]
    case("np.matmul(x, y)", N(*a), N(*b))
    case("x @ y", N(*a), N(*b))
PRODUCTS = [
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (3, 0)),
    ((1, 1), (1, 1)),
    ((0,), (0,)),
    ((0, 2, 3), (3, 4)),
    ((1, 3), (3, 1)),
]
case("np.matmul(x, y)", N(2, 3), N(3, 4), shapes=(*PRODUCTS, ((1, 2, 3), (0, 3, 4)), ((5, 1, 3), (1, 3, 2))))
case("np.linalg.matmul(x, y)", N(2, 3), N(3, 4))
case("x @ onp.ones((3, 2)) @ y", N(4, 3), N(2))
case("onp.arange(6.0).reshape(2, 3) @ x", N(3, 2))
case("[[1.0, 2.0, 3.0]] @ x", N(3, 2), differences=True)
case("x @ x.T @ x", N(3, 4))
for a, b in (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((2, 3, 4), (2, 4, 3)),
    ((), (3,)),
    ((3, 2), ()),
    ((2, 3), (2, 3, 4)),
    ((), ()),
):
    case("np.dot(x, y)", N(*a), N(*b))
for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((2, 3, 4), (5, 4)), ((), (3,))):
    case("np.inner(x, y)", N(*a), N(*b))
case("np.dot(x, y)", N(3), N(3), shapes=(((0,), (0,)), ((2, 0), (0, 3)), ((1,), (1,)), ((), (0,))))
case("np.inner(x, y)", N(3), N(3), shapes=(((0,), (0,)), ((2, 0), (3, 0)), ((1,), (1,))))
case("np.vdot(x, y)", N(2, 3), N(2, 3), shapes=(((0,), (0,)), ((1,), (1,))))
case("np.vdot(x, y)", N(2, 3), N(6), differences=True)
case("np.outer(x, y)", N(3), N(4), shapes=(((0,), (2,)), ((1,), (1,)), ((), ())))
case("np.outer(x, y)", N(2, 2), N(3))
case("np.outer(x, onp.arange(3.0))", N(2))
case("np.linalg.outer(x, y)", N(3), N(4))
case("np.vecdot(x, y)", N(2, 3), N(3), shapes=(((2, 0), (0,)), ((1,), (1,))))
case("np.linalg.vecdot(x, y)", N(2, 3), N(2, 3))
case("np.linalg.vecdot(x, y, axis=0)", N(2, 3), N(2, 3))
case("np.matvec(x, y)", N(2, 3, 4), N(4))
case("np.matvec(x, y)", N(3, 4), N(5, 4))
case("np.vecmat(x, y)", N(3), N(2, 3, 4))
for axes in ("1", "2", "([1], [0])", "((0, 1), (1, 0))", "(0, 1)", "([-1, 0], [0, 1])"):
    case(f"np.tensordot(x, y, axes={axes})", N(3, 3), N(3, 3))
case("np.tensordot(x, y, 0)", N(2), N(3), shapes=(((0,), (3,)), ((1,), ())))
case("np.tensordot(x, y)", N(2, 3, 4), N(3, 4), shapes=(((2, 0, 4), (0, 4)), ((1, 1, 1), (1, 1))))
case("np.tensordot(x, y, ([0, 2], [1, 0]))", N(2, 3, 4), N(4, 2, 3))
case("np.linalg.tensordot(x, y, axes=1)", N(2, 3), N(3, 4))
case("np.linalg.multi_dot([x, y, z])", N(2, 3), N(3, 4), N(4, 2))
case("np.linalg.multi_dot([x, y, z])", N(3), N(3, 4), N(4))
case("np.linalg.multi_dot([x, y])", N(2, 3), N(3, 4))
case("np.linalg.multi_dot([x, y, z, u])", N(2, 3), N(3, 4), N(4, 2), N(2))

# Subscripts and the lengths of the operands' axes; - is a number.
for text in texts("""
    ij,jk->ik : 23 34; ij,jk : 23 34; i,i : 3 3; i,i->i : 3 3; i,j->ij : 3 4; i,j->ji : 3 4; ij,j-> : 23 3; ij->ji : 23; ij-> : 23; ij->i : 23;
    ij->j : 23; ii : 33; ii->i : 33; iij->j : 332; iij->ij : 332; iii->i : 222; ba : 23; ij : 23; i : 3;  : -; -> : -; ,-> : - -; ,i->i : - 3;
    i...->... : 234; ...i->... : 234; ...ii->...i : 233; ...ij,...jk->...ik : 223 234; ...ij,jk->...ik : 223 34; ...i,...i : 23 3;
    i...,i...->i... : 23 23; ...,... : 23 3; ...,...->... : 21 3; i...j,j->i... : 234 4; ij...,...->ij... : 234 4; bij,bjk->bik : 234 242;
    bhid,bhjd->bhij : 1232 1242; ij,ij-> : 23 23; ij,ij->ij : 23 23; ij,ji-> : 23 32; ii,ij->j : 33 32; ii,ii->i : 33 33; ij,kl-> : 23 42;
    ij,kl->ijkl : 22 22; ijk,jil->kl : 234 325; i j , j k -> i k : 23 34; ij,jk,kl->il : 23 34 42; i,ij,j-> : 2 23 3; i,i,i->i : 3 3 3;
    i,j,k->kij : 2 3 4; ij,ik,il->jkl : 23 22 24; ...i,i...,->... : 23 32 -; Ab,bA->A : 23 32; aB,Bc : 23 34
"""):
    spec, _, sizes = text.rpartition(":")
    shapes = [() if word == "-" else tuple(map(int, word)) for word in sizes.split()]
    case(f"np.einsum({spec.strip()!r}, {', '.join('xyz'[: len(shapes)])})", *[N(*s) for s in shapes])
case(
    "np.einsum('ij,jk->ik', x, y)",
    N(2, 3),
    N(3, 4),
    shapes=(((0, 3), (3, 2)), ((2, 0), (0, 2)), ((1, 1), (1, 1)), ((2, 1), (1, 0))),
)
case("np.einsum('ij,j->i', x, y)", N(2, 3), N(1), differences=True)
case("np.einsum('i,i,i->', x, x, x)", N(3))
case("np.einsum('ij,kj->ik', x, x)", N(2, 3))
case("np.einsum('ij,j->i', onp.arange(6.0).reshape(2, 3), x)", N(3))
case("np.einsum('ij,jk->ik', x, onp.arange(6).reshape(3, 2))", N(2, 3))
case("np.einsum('i,ij,j->', x, y, x, optimize=True)", N(3), N(3, 3))
case("np.einsum('ij,jk,kl->il', x, y, z, optimize='greedy')", N(2, 3), N(3, 4), N(4, 2))
case("np.einsum(x, [0, 1], y, [1, 2], [0, 2])", N(2, 3), N(3, 4))
case("np.einsum(x, [0, 1], y, [1, 2])", N(2, 3), N(3, 4))
case("np.einsum(x, [0, 0])", N(3, 3))
case("np.einsum(x, [0, 0], [0])", N(3, 3))
case("np.einsum(x, [0], y, [1], [1, 0])", N(2), N(3))
case("np.einsum(x, [0, 1, 0], [])", N(2, 3, 2))
case("np.einsum(x, [..., 0], y, [..., 0], [...])", N(2, 3), N(3))
case("np.einsum(x, [0, ...], [..., 0])", N(2, 3, 4))

for a, b in (((2, 3), (3, 2)), ((3,), (2,)), ((2,), (2, 3)), ((2, 1, 2), (3, 2)), ((), (3,))):
    case("np.kron(x, y)", N(*a), N(*b))
case("np.kron(x, y)", N(2, 3), N(2), shapes=(((0, 2), (2, 2)), ((1, 1), (1,))))
case("np.kron(onp.eye(2), x)", N(2, 2))
case("np.cross(x, y)", N(3), N(3))
case("np.cross(x, y)", N(4, 3), N(3), shapes=(((0, 3), (3,)), ((1, 3), (1, 3))))
case("np.cross(x, y, axis=0)", N(3, 2), N(3, 2))
case("np.cross(x, y, axisa=0, axisb=1, axisc=0)", N(3, 4), N(4, 3))
case("np.cross(x, onp.array([1.0, 2.0, 3.0]))", N(2, 3))
case("np.linalg.cross(x, y)", N(4, 3), N(4, 3))
for mode in ("full", "same", "valid"):
    for a, b in ((5, 3), (3, 5), (4, 2), (2, 5), (4, 4), (1, 4), (3, 1)):
        case(f"np.convolve(x, y, {mode!r})", N(a), N(b))
        case(f"np.correlate(x, y, {mode!r})", N(a), N(b))
case("np.convolve(x, y)", N(4), N(3), shapes=(((1,), (1,)), ((0,), (2,))))
case("np.correlate(x, y)", N(4), N(3), shapes=(((1,), (1,)), ((2,), (0,))))
case("np.convolve(onp.array([1.0, -2.0, 1.0]), x, mode='same')", N(5))
case("np.correlate(x, onp.array([1.0, -2.0]), mode='same')", N(5))
case("np.convolve(x, x)", N(4))

# -- diagonals --------------------------------------------------------------------------------------------

for k in (0, 1, -1, 2, -2, 5, -5):
    case(f"np.diag(x, {k})", N(3, 4), shapes=((0, 0), (1, 1)))
    case(f"np.diag(x, k={k})", N(3), shapes=((0,), (1,)))
    case(f"np.diagonal(x, {k})", N(3, 4), shapes=MATRICES)
    case(f"np.trace(x, {k})", N(3, 4), shapes=MATRICES)
    case(f"np.tril(x, {k})", N(3, 4), shapes=MATRICES)
    case(f"np.triu(x, k={k})", N(3, 4), shapes=MATRICES)
case("np.tril(x)", N(3), differences=True)
case("np.triu(x)", N(2, 3, 3), shapes=((0, 2, 2), (1, 1, 1)))
case("np.diagonal(x, 0, 1, 2)", N(2, 3, 4))
case("np.diagonal(x, -1, axis1=-1, axis2=0)", N(3, 2, 4))
case("np.diagonal(x, offset=1, axis1=0, axis2=2)", N(3, 2, 4))
case("np.trace(x)", N(3, 3, 2))
case("np.trace(x, 1, -1, 0)", N(3, 2, 4))
case("np.linalg.trace(x)", N(2, 3, 3))
case("np.linalg.trace(x, offset=1)", N(2, 3, 3))
case("np.linalg.diagonal(x)", N(2, 3, 3))
case("np.linalg.diagonal(x, offset=-1)", N(2, 3, 3))
case("np.diagflat(x)", N(2, 2), shapes=((0,), (1, 1)))
case("np.diagflat(x, 1)", N(3))
case("np.diagflat(x)", N())

# -- shapes and axes --------------------------------------------------------------------------------------

for text in texts("""
    np.transpose(x); np.transpose(x, (1, 0, 2)); np.transpose(x, axes=[2, 0, 1]); np.transpose(x, (-1, 0, 1)); np.permute_dims(x, (2, 1, 0));
    np.matrix_transpose(x); np.linalg.matrix_transpose(x); np.swapaxes(x, 0, 2); np.swapaxes(x, -1, 1); np.moveaxis(x, 0, -1);
    np.moveaxis(x, -1, 0); np.moveaxis(x, (0, 1), (1, 2)); np.moveaxis(x, [0, 2], [-1, 0]); np.rollaxis(x, 2); np.rollaxis(x, 0, 3);
    np.rollaxis(x, 1, 2); np.rollaxis(x, -1, 1); np.reshape(x, -1); np.reshape(x, (4, 6)); np.reshape(x, [-1, 4]);
    np.reshape(x, (2, 2, -1), order='F'); np.reshape(x, (6, 4), 'F'); np.reshape(x, 24); np.ravel(x); np.ravel(x, order='F');
    np.expand_dims(x, 0); np.expand_dims(x, -1); np.expand_dims(x, (0, 2)); np.expand_dims(x, axis=[1, -1]); np.squeeze(x[:1]);
    np.squeeze(x[:1], axis=0); np.squeeze(x[:1, :, :1], axis=(0, -1)); np.atleast_1d(x); np.atleast_2d(x); np.atleast_3d(x);
    np.broadcast_to(x, (2, 2, 3, 4)); np.broadcast_to(x, x.shape); np.copy(x); np.asarray(x); np.array(x); x * np.shape(x)[1] + np.ndim(x);
    x * np.size(x); np.flip(x); np.flip(x, 0); np.flip(x, axis=-1); np.flip(x, (0, 2)); np.fliplr(x); np.flipud(x); np.roll(x, 2); np.roll(x, -3);
    np.roll(x, 1, axis=0); np.roll(x, -1, axis=2); np.roll(x, 5, axis=1); np.roll(x, 0); np.roll(x, (1, 2), axis=(0, 1));
    np.roll(x, 1, axis=(0, 2)); np.roll(x, (1, 1), axis=2); np.rot90(x); np.rot90(x, 2); np.rot90(x, 3); np.rot90(x, -1); np.rot90(x, 4);
    np.rot90(x, 1, (1, 2)); np.rot90(x, 1, (2, 0)); np.rot90(x, k=3, axes=(0, 2)); np.tile(x, 2); np.tile(x, (2, 1)); np.tile(x, (2, 1, 3));
    np.tile(x, (2, 1, 1, 2)); np.tile(x, 0); np.repeat(x, 2); np.repeat(x, 3, axis=1); np.repeat(x, 2, axis=-1); np.repeat(x, 0, axis=0);
    np.repeat(x, onp.array([1, 0, 2]), axis=1); np.resize(x, (5, 7)); np.resize(x, (2, 3)); np.array(x, dtype=onp.float64); np.vstack(x);
    np.concatenate(x); np.concatenate(x, axis=1); np.stack(x, axis=1); np.hstack(x)
"""):
    case(text, N(2, 3, 4))
EMPTY3 = ((0, 3, 4), (2, 0, 4), (2, 3, 0), (1, 1, 1))
for text in texts("""
    np.transpose(x); np.moveaxis(x, 0, -1); np.reshape(x, (x.size,)); np.ravel(x); np.ravel(x, 'F'); np.expand_dims(x, 1); np.atleast_3d(x);
    np.broadcast_to(x, (2, *x.shape)); np.flip(x); np.roll(x, 1); np.roll(x, 1, axis=1); np.rot90(x); np.tile(x, (2, 1)); np.repeat(x, 2, axis=1);
    np.squeeze(x); np.concatenate([x, x], axis=1); np.stack([x, x]); np.pad(x, 1); np.pad(x, ((0, 1), (0, 0), (2, 0))); x[..., ::-1]; x[:1];
    x[:, None]; np.hstack([x, x]); x[onp.zeros(0, int)]; x[:, :, onp.zeros((0, 2), int)]; np.array_split(x, 2);
    np.reshape(x, x.shape[::-1], order='F'); list(x); np.append(x, x)
"""):
    case(text, N(2, 3, 4), shapes=EMPTY3, differences=text == "list(x)")
case("np.atleast_1d(x)", N())
case("np.atleast_2d(x)", N(3))
case("np.atleast_3d(x)", N(3))
case("np.atleast_3d(x)", N(3, 4))
case("np.atleast_3d(x)", N())
case("np.atleast_1d(x, y)", N(), N(2, 2))
case("np.atleast_2d(x, 1.0)", N(3), differences=True)
case("np.broadcast_to(x, 3)", N())
case("np.broadcast_to(x, (2, 3))", N(2, 1), shapes=((1, 3), (1, 1), (3,), ()))
case("np.broadcast_to(x, (0, 3))", N(3))
case("np.broadcast_arrays(x, y)", N(3, 1), N(4))
case("np.broadcast_arrays(x, onp.zeros((2, 1)), 1.0)", N(3), differences=True)
case("np.result_type(x, onp.float32) == onp.float64 and x", N(3), single=False, differences=True)
case("x * (0.0 if np.iscomplexobj(x) else 1.0) * np.isrealobj(x)", N(3), differences=True)
case("np.asanyarray(x) + np.ascontiguousarray(x)", N(3), differences=True)
for text in texts("""
    np.meshgrid(x, y); np.meshgrid(x, y, indexing='ij'); np.meshgrid(x, y, sparse=True); np.meshgrid(x, onp.arange(2.0)); np.meshgrid(x)
"""):
    case(text, N(3), N(4), shapes=(((0,), (2,)), ((1,), (1,))))
case("np.meshgrid(x, y, z)", N(2), N(3), N(4))
case("np.meshgrid(x, y, z, indexing='ij', sparse=True)", N(2), N(3), N(4))

# -- putting together, taking apart -----------------------------------------------------------------------

for axis in ("0", "1", "-1", "None"):
    case(f"np.concatenate([x, y], axis={axis})", N(3, 3), N(3, 3), shapes=(((0, 3), (0, 3)), ((1, 1), (1, 1))))
    case(f"np.concatenate((x, onp.ones((3, 3)), y), {axis})", N(3, 3), N(3, 3))
case("np.concatenate([x, y])", N(2, 3), N(4, 3), shapes=(((0, 3), (1, 3)), ((2, 0), (1, 0)), ((0, 1), (0, 1))))
case("np.concatenate([x, x, x])", N(2))
case("np.concatenate([x])", N(2))
case("np.concatenate([x, [1.0, 2.0]])", N(2), differences=True)
case("np.concatenate([x, onp.array([1, 2])])", N(2))
case("np.concatenate([x, y], axis=0, dtype=onp.float64)", N(2), N(3))
case("np.concat([x, y], axis=0)", N(2), N(3))
for axis in (0, 1, -1, 2):
    case(f"np.stack([x, y], axis={axis})", N(3, 4), N(3, 4), shapes=(((0, 4), (0, 4)), ((1, 1), (1, 1))))
case("np.stack([x, y, z])", N(), N(), N())
case("np.stack([x, 1.0, y])", N(), N(), differences=True)
case("np.stack([x, onp.ones(3)], axis=1)", N(3))
for text in texts("""
    np.vstack([x, y]); np.hstack([x, y]); np.dstack([x, y]); np.column_stack([x, y]); np.append(x, y); np.block([x, y]); np.block([[x], [y]])
"""):
    case(text, N(3), N(3), shapes=(((1,), (1,)), ((0,), (0,))))
    case(text, N(2, 3), N(2, 3))
case("np.vstack([x, y])", N(3), N(2, 3))
case("np.column_stack([x, y])", N(3), N(3, 2))
case("np.dstack([x, y])", N(2, 3, 1), N(2, 3))
case("np.append(x, y, axis=0)", N(2, 3), N(1, 3))
case("np.append(x, 1.0)", N(2))
case("np.append(onp.arange(3.0), x)", N(2))
case("np.block([[x, onp.zeros((2, 1))], [onp.ones((1, 3)), y]])", N(2, 3), N(1, 1))
case("np.block([[x, x.T], [2 * x, y]])", N(2, 2), N(2, 2))
case("np.block([x, 1.0, y])", N(2), N(), differences=True)
for text in texts("""
    np.split(x, 2); np.split(x, [1, 3]); np.split(x, [1, 3], axis=1); np.split(x, [2, 9]); np.split(x, 3, axis=1); np.split(x, [3, 1]);
    np.split(x, [-1]); np.array_split(x, 3); np.array_split(x, 4, axis=1); np.array_split(x, 5); np.array_split(x, [1]); np.vsplit(x, 2);
    np.hsplit(x, 3); np.hsplit(x, [2]); np.unstack(x); np.unstack(x, axis=1); np.split(x, onp.array([1, 2]))
"""):
    case(
        text,
        N(4, 3),
        shapes=((4, 0), (0, 3), (1, 1)),
        differences=text in ("np.split(x, [2, 9])", "np.split(x, [3, 1])", "np.split(x, [-1])"),
    )
case("np.hsplit(x, 2)", N(4))
case("np.dsplit(x, 2)", N(2, 3, 4))
case("[p ** 2 for p in np.split(x, 2)]", N(4))

# -- pad, take, delete, insert ----------------------------------------------------------------------------

for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean", "maximum", "minimum", "empty"):
    if mode == "empty":
        case("np.pad(x, 1, mode='empty')[(slice(1, -1),) * x.ndim]", N(3, 4))
        continue
    known = mode not in ("maximum", "minimum", "mean", "linear_ramp")
    case(f"np.pad(x, 2, mode={mode!r})", N(5), shapes=((1,),))
    case(f"np.pad(x, (1, 2), {mode!r})", N(3, 4))
    case(f"np.pad(x, ((1, 0), (2, 3)), mode={mode!r})", N(3, 4))
    case(f"np.pad(x, ((0, 0), (1, 1)), mode={mode!r})", N(3, 4), shapes=((3, 1), (0, 4)))
    if known:
        case(f"np.pad(x, (7, 5), mode={mode!r})", N(3), differences=True)
case("np.pad(x, 1, constant_values=2.0)", N(3, 4), shapes=((0, 3), (1, 1)))
case("np.pad(x, 1, constant_values=(1.0, 2.0))", N(3, 4))
case("np.pad(x, ((1, 2), (0, 1)), constant_values=((1.0, 2.0), (3.0, 4.0)))", N(3, 4))
case("np.pad(x, 1, constant_values=y)", N(3), N(), differences=True)
case("np.pad(x, 2, mode='reflect', reflect_type='odd')", N(5))
case("np.pad(x, 2, mode='symmetric', reflect_type='odd')", N(5))
case("np.pad(x, 2, mode='linear_ramp', end_values=1.0)", N(3))
case("np.pad(x, 2, mode='mean', stat_length=2)", N(4))
case("np.pad(x, 2, mode='maximum', stat_length=((1, 3),))", N(4))
case("np.pad(x, 1, mode='median')", N(3), differences=True)
case("np.take(x, 1)", N(3, 4))
for axis in ("0", "1", "-1", "None"):
    case(f"np.take(x, 2, axis={axis})", N(3, 4))
    case(f"np.take(x, onp.array([0, 2, 2, -1]), axis={axis})", N(3, 4), shapes=((3, 3),))
    case(f"np.take(x, onp.array([[0, 1], [2, 2]]), axis={axis})", N(3, 4))
case("np.take(x, [0, 2])", N(4), differences=True)
case("np.take(x, onp.array([0, 5, 7]), mode='wrap')", N(4))
case("np.take(x, onp.array([0, 5, 7]), mode='clip')", N(4))
case("np.take(x, np.argmax(x, axis=0))", N(3, 4))
case("np.take(x, np.argmax(x, axis=1), axis=1)", N(3, 4))
case("np.take(onp.arange(4.0), np.argmax(x)) * x", N(4))
case("np.take(x, np.argmin(x) + onp.array([3, 5]), mode='wrap')", N(4))
case("np.take(x, np.argmin(x) + onp.array([3, 5]), mode='clip')", N(4))
case("np.compress(onp.array([True, False, True]), x, axis=0)", N(3, 4), differences=True)
case("np.compress(onp.array([True, False, True]), x)", N(3, 4), differences=True)
for text in texts("""
    np.delete(x, 1); np.delete(x, 1, axis=0); np.delete(x, [0, 2], axis=1); np.delete(x, slice(0, 2), axis=-1);
    np.delete(x, onp.array([True, False, True]), axis=0); np.delete(x, -1, axis=1)
"""):
    case(text, N(3, 4), differences="[0, 2]" in text)
for text in texts("""
    np.insert(x, 1, 5.0); np.insert(x, 1, 5.0, axis=0); np.insert(x, -1, 5.0, axis=1); np.insert(x, 2, onp.arange(3.0), axis=1);
    np.insert(x, [1, 2], 5.0, axis=1); np.insert(x, 1, onp.arange(4.0), axis=0); np.insert(x, 0, x[0], axis=0); np.insert(x, 3, x[1], axis=0);
    np.insert(x, 1, x[:, :1], axis=1); np.insert(x, [1], x[:, :2], axis=1); np.insert(x, [0, 2, 2], onp.arange(3.0), axis=1)
"""):
    case(text, N(3, 4), differences=True)
case("np.insert(x, 1, y)", N(3), N(2))
case("np.insert(onp.arange(4.0), 1, x)", N(), differences=True)

# -- indexing ---------------------------------------------------------------------------------------------

for key in texts("""
    0; -1; 1, 2; 1, -1, 3; ...; ..., 0; 0, ...; None; None, 0; :, None; ..., None; 0, None, ..., None, 1; None, None; :; 1:; :1; ::2; ::-1;
    :, ::-1; :, :, ::-2; ::-1, ::-1, ::-1; -1:; :-1; ..., 1:3; :, 1:3, ::2; 0, 1:3; 0, :, 1; :, 1, 2; ..., 3:0:-1; ..., -1:-4:-2; ..., 10:20; 5:;
    :, 2:1; 0:10; ..., -10:2; slice(0, 2); slice(None), 1; (0, 1); (); onp.int64(1); onp.array(1); onp.array([1, 0]); onp.array([1, 0, 1, 1]);
    [1, 0]; [[0, 1], [1, 1]]; onp.array([[0, 1], [1, 1]]); :, onp.array([0, 2, 2]); :, onp.array([[0, 2], [1, -1]]); ..., onp.array([3, 0]);
    :, :, onp.array([-1, -4]); onp.array([0, 1]), onp.array([2, 0]); onp.array([[0], [1]]), onp.array([2, 0]);
    :, onp.array([0, 1]), onp.array([2, 3]); onp.array([0, 1]), :, onp.array([2, 3]); onp.array([0, 1]), onp.array([2, 0]), onp.array([1, 3]);
    0, onp.array([0, 2]); onp.array([0, 1]), 1; 0, :, onp.array([0, 2]); onp.array([0, 1]), :, 2; :, 0, onp.array([0, 2]);
    :, onp.array([0, 2]), 1; onp.array([0, 1]), 1, onp.array([0, 3]); onp.array([0, 1]), 1:, onp.array([2, 3]); onp.array([0, 1]), 1:, ::2;
    1:, onp.array([0, 1]), ::-1; ::-1, onp.array([0, 1]), onp.array([2, 3]); None, onp.array([0, 1]); onp.array([0, 1]), None, onp.array([0, 1]);
    ..., onp.array([0, 1]), None; onp.array([0, 1]), ..., onp.array([0, 1]); onp.array([[0, 1]]), :, onp.array([[2], [3]]);
    onp.array([True, False]); onp.array([False, False]); :, onp.array([True, False, True]); [True, False];
    ..., onp.array([True, False, True, True]); onp.array([[True, False, True], [False, True, True]]); onp.arange(24).reshape(2, 3, 4) % 3 == 0;
    :, onp.arange(12).reshape(3, 4) % 2 == 0; 0, onp.array([True, False, True]); onp.array([True, True]), onp.array([0, 2]);
    onp.array([True, True]), :, onp.array([0, 2]); onp.array([True, False]), 1:, None; onp.zeros(0, int); :, onp.zeros((0, 2), int);
    0, onp.array(1); onp.ix_([0, 1], [0, 2]); onp.ix_([1, 0], [0, 2], [3, 1, 1]); onp.arange(2), onp.arange(2), onp.arange(2);
    onp.array([0, 1], onp.int32); onp.array([0, 1], onp.uint8), 0; onp.tril_indices(2); onp.diag_indices(2); True; onp.array([1]), onp.array([1]);
    [0, 1], [1, 2]; [0, 1], :, [1, 2]; None, onp.array([0, 1]), None, onp.array([1, 2]); onp.array([0, -1]), onp.array([-1, -2]), ::-1; False
"""):
    case(f"x[{key}]", N(2, 3, 4), differences="[0, 1], [" in key or key.startswith("[") or key.endswith(", [1, 2]"))
for key in (
    "0",
    "::2",
    "onp.array([0])",
    "1:",
    "None",
    "...",
    "onp.array([True])",
    "::-1",
    "onp.array([0, 0])",
    "0:1, ...",
):
    case(f"x[{key}]", N(1), shapes=((0,), (1,)) if key not in ("0:1, ...",) else ())
case("x[()]", N())
case("x[None]", N())
case("x[...]", N())
case("x[..., None]", N())
case("x[np.argmax(x)]", N(4))
case("x[np.argmax(x, axis=0)]", N(3, 4))
case("x[np.argmax(x, axis=0), onp.arange(4)]", N(3, 4))
case("x[onp.arange(3), np.argmax(x, axis=1)]", N(3, 4))
case("x[:, np.argmax(x[0])]", N(3, 4))
case("x[np.argmax(x[:, 0]), 1]", N(3, 4))
case("x[np.argmax(x[:, 0]), 1:3]", N(3, 4))
case("x[1:, np.argmax(x[0])]", N(3, 4))
case("x[np.argmax(x[:, 0]), np.argmin(x[0])]", N(3, 4))
case("x[np.argmax(x[:, 0, 0]), :, np.argmin(x[0, 0])]", N(2, 3, 4))
case("x[0, :, np.argmin(x[0, 0])]", N(2, 3, 4))
case("x[:, np.argmin(x[0, :, 0]), onp.array([0, 3])]", N(2, 3, 4))
case("x[:, None, np.argmin(x[0])]", N(3, 4))
case("x[np.argmin(x[:, 0]), None]", N(3, 4))
case("x[None, np.argmin(x[:, 0])]", N(3, 4))
case("x[np.argmax(x, axis=1) - 4, ...]", N(5, 4))
case("x[np.argmax(y, axis=0)] * y", N(3), N(3, 4))
case("x[(y > 0).astype(int)]", N(2), N(3))
case("y[np.argmax(x)]", N(4), N(4, 2))
case("x[-np.argmax(x)]", N(4))
case("x[np.argmax(x) - 4]", N(4))
case("x[(np.argmax(x[:, 0]),)]", N(3, 4))
case("x[np.argmax(x[:, 0])][np.argmax(x[0])]", N(3, 4))
case("x[::-1][np.argmax(x[:, 0])]", N(3, 4))
case("onp.arange(4.0)[1] * x", N(4))

# -- as sequences, and arrays of traced numbers -----------------------------------------------------------

case("[r * 2 for r in x]", N(3, 4))
case("[a * b for a, b in zip(x, y)]", N(3), N(3, 4))
case("(lambda a, b, c: a * b + c)(*x)", N(3))
case("np.stack([r ** 2 for r in x])", N(3, 4))
case("[v for r in x for v in r]", N(2, 2))
case("max(len(x), 2) * x", N(3))
case("np.array([x[0], x[1] * x[2]])", N(3))
case("np.array([x[0], 1.0, 2])", N(3))
case("np.array([[x[0], x[1]], [x[1], 3.0]])", N(3))
case("np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]])", N())
case("np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) @ y", N(), N(2))
case("np.asarray([x, y])", N(3), N(3))
case("np.array([x, onp.ones(3)])", N(3))
case("np.array((x[0], y))", N(3), N())
case("np.array([r for r in x])", N(3, 4))
case("np.array([x[0], x[1]], dtype=onp.float64)", N(3))
case("np.array(x, ndmin=3)", N(3))
case("np.array([x])", N())
case("np.array([[x[i] * x[j] for j in range(3)] for i in range(3)])", N(3))
case("np.array([x[0]]) * np.array([[x[1]], [x[2]]])", N(3))
case("list(reversed(x))", N(3), differences=True)
case("tuple(x)", N(3))
case("sorted([1.0, 2.0])[0] * x", P(3))
case("{'a': x * 2, 'b': (x, [x ** 2])}", N(3), differences=True)
case("(x, None, x * y)", N(3), N(3), differences=True)

# -- windows and casts --------------------------------------------------------------------------------------

case("np.lib.stride_tricks.sliding_window_view(x, 3)", N(6), differences=True)
case("np.lib.stride_tricks.sliding_window_view(x, (2, 3))", N(4, 5), differences=True)
case("np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)", N(3, 4), differences=True)
case("np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(0, -1))", N(3, 2, 4), differences=True)
case("np.astype(x, x.dtype) * 2.0", N(3, 4))
