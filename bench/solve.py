"""Least squares beside the solvers people use: pose graphs (GTSAM), bundle adjustment (Ceres by pycolmap, jaxls is told
where it is missing), ten thousand small fits (optimistix), one small fit (SciPy), optimal control (CasADi).

    python bench/solve.py [row …] [--rounds 5]

Data are generated. Contestants take turns in one process; the ratio is the median of riesz ÷ peer over the rounds, and
costs are compared. `cold` is the first solution in the process, with tracing and compilation. One thread each.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import argparse
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402

import numpy as np  # noqa: E402
from optimal_control import cart, clock, derivatives, landing, shooting  # noqa: E402

import riesz as rz  # noqa: E402

m = rz.manifolds


def compared(name, riesz, peer, aim, rounds, who, unit=1.0):
    """Print a row. Contestants give (seconds, cost)."""
    start = clock()
    riesz()
    cold = clock() - start
    peer()
    pairs = [(riesz(), peer()) for _ in range(rounds)]
    ratio = statistics.median([a[0] / b[0] for a, b in pairs])
    mine, theirs = [statistics.median([p[k][0] for p in pairs]) for k in (0, 1)]
    costs = pairs[-1][0][1], pairs[-1][1][1]
    same = "same cost" if abs(costs[0] - costs[1]) <= 1e-3 * abs(costs[1]) else f"COSTS {costs[0]:.6g}, {costs[1]:.6g}"
    line = f"{name:<46} riesz {unit * mine:9.3f}  {who} {unit * theirs:9.3f}  ratio {ratio:5.2f}  aim {aim}"
    print(f"{line}  cold {cold:.1f} s  {same}", flush=True)


# -- pose graphs -------------------------------------------------------------------------------------------------


def manhattan(n=3500, seed=0, noise=0.01):
    """A walk on a grid that meets itself: poses (x, y, angle), edges, measurements, the start by odometry."""
    rng = np.random.default_rng(seed)
    poses, seen, heading, at = np.zeros((n, 3)), {(0, 0): 0}, 0, np.zeros(2, int)
    edges = [(k, k + 1) for k in range(n - 1)]
    for k in range(1, n):
        if k % 4 == 0:
            heading = (heading + rng.choice([-1, 0, 1])) % 4
        move = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)][heading])
        if np.abs(at + move).max() > 18:
            heading, move = (heading + 2) % 4, -move
        at = at + move
        poses[k] = [*at, heading * np.pi / 2]
        before = seen.get(tuple(at))
        if before is not None and k - before > 10:
            edges.append((before, k))
        seen[tuple(at)] = k
    E = np.array(edges)
    Z = relative(poses[E[:, 0]], poses[E[:, 1]]) + noise * rng.normal(size=(len(E), 3))
    return poses, E, Z, poses + 0.02 * rng.normal(size=poses.shape)


def relative(a, b):
    """Poses b seen from poses a."""
    c, s, d = np.cos(a[:, 2]), np.sin(a[:, 2]), b - a
    return np.stack([c * d[:, 0] + s * d[:, 1], -s * d[:, 0] + c * d[:, 1], d[:, 2]], axis=1)


def pose_graph_2d(rounds):
    """Seconds per iteration of Gauss–Newton."""
    import gtsam

    poses, E, Z, start = manhattan()
    i, j = E[:, 0], E[:, 1]

    def residual(p):
        r = relative(p[i], p[j]) - Z
        return r[:, :2], m.wrap_angle(r[:, 2]), p[0] - poses[0]

    def riesz():
        begun = clock()
        found = rz.gauss_newton(residual, start, cost_tolerance=1e-6)
        return (clock() - begun) / found.iterations, found.cost

    unit = gtsam.noiseModel.Unit.Create(3)
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for (a, b), z in zip(E.tolist(), Z, strict=True):
        graph.add(gtsam.BetweenFactorPose2(a, b, gtsam.Pose2(*z), unit))
    graph.add(gtsam.PriorFactorPose2(0, gtsam.Pose2(*poses[0]), unit))
    for k, p in enumerate(start):
        values.insert(k, gtsam.Pose2(*p))

    def peer():
        settings = gtsam.GaussNewtonParams()
        settings.setRelativeErrorTol(1e-6)
        begun = clock()
        solver = gtsam.GaussNewtonOptimizer(graph, values, settings)
        solver.optimizeSafely()
        return (clock() - begun) / solver.iterations(), solver.error()

    compared("pose graph 2-D, 3,500 poses, ms per iteration", riesz, peer, "1.0", rounds, "GTSAM", 1e3)


def sphere(n=2500, rings=50, seed=0, noise=0.05):
    """Poses on a sphere in rings, tied to neighbours along and across; the start by odometry."""
    rng, k, per = np.random.default_rng(seed), np.arange(n), n // rings
    polar, angle = np.pi * (k / per + 0.5) / (rings + 1), 2 * np.pi * (k % per) / per
    flat = np.stack([np.sin(polar) * np.cos(angle), np.sin(polar) * np.sin(angle), np.cos(polar)], axis=1)
    zero = np.zeros(n)
    turns = [np.stack([zero, zero, angle], axis=1), np.stack([zero, polar, zero], axis=1)]
    poses = np.concatenate([50 * flat, m.quaternion_product(*map(m.quaternion_exp, turns))], axis=1)
    E = np.concatenate([np.stack([k[:-1], k[1:]], axis=1), np.stack([k[:-per], k[per:]], axis=1)])
    scale = noise * np.array([1, 1, 1, 0.2, 0.2, 0.2])
    Z = m.SE3.retract(m.pose_between(poses[E[:, 0]], poses[E[:, 1]]), scale * rng.normal(size=(len(E), 6)))
    start = [poses[0]]
    for e in range(n - 1):
        start.append(m.pose_product(start[-1], Z[e]))
    return poses, E, Z, np.array(start)


def pose_graph_3d(rounds):
    """Seconds to convergence."""
    import gtsam

    poses, E, Z, start = sphere()
    i, j = E[:, 0], E[:, 1]

    def residual(p):
        return m.SE3.local(Z, m.pose_between(p[i], p[j])), m.SE3.local(poses[0], p[0])

    def pose(p):
        return gtsam.Pose3(gtsam.Rot3.Quaternion(p[6], *p[3:6]), p[:3])

    unit = gtsam.noiseModel.Unit.Create(6)
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for (a, b), z in zip(E.tolist(), Z, strict=True):
        graph.add(gtsam.BetweenFactorPose3(a, b, pose(z), unit))
    graph.add(gtsam.PriorFactorPose3(0, pose(poses[0]), unit))
    for k, p in enumerate(start):
        values.insert(k, pose(p))
    for damped, name in ((False, "Gauss–Newton"), (True, "Levenberg–Marquardt")):
        fit = rz.levenberg_marquardt if damped else rz.gauss_newton
        kinds = (gtsam.LevenbergMarquardtParams, gtsam.LevenbergMarquardtOptimizer)
        kinds = kinds if damped else (gtsam.GaussNewtonParams, gtsam.GaussNewtonOptimizer)

        def riesz(fit=fit):
            begun = clock()
            found = fit(residual, start, manifold=m.SE3, cost_tolerance=1e-6)
            return clock() - begun, found.cost

        def peer(kinds=kinds):
            settings = kinds[0]()
            settings.setRelativeErrorTol(1e-6)
            begun = clock()
            solver = kinds[1](graph, values, settings)
            solver.optimizeSafely()
            return clock() - begun, solver.error()

        compared(f"pose graph 3-D, 2,500 poses, {name}, ms", riesz, peer, "2.0", rounds, "GTSAM", 1e3)


# -- bundle adjustment -------------------------------------------------------------------------------------------


def scene(cameras=50, points=5000, tracks=10, seed=0):
    """Cameras (rotation vector, shift, focal length, k₁, k₂) around points, each seen by some; a start nearby."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(points, 3)) * [2.0, 2.0, 1.0]
    C = np.zeros((cameras, 9))
    C[:, :3], C[:, 3:6] = 0.1 * rng.normal(size=(cameras, 3)), 0.5 * rng.normal(size=(cameras, 3)) + [0, 0, 10]
    C[:, 6], C[:, 7:] = 500.0, 1e-2 * rng.normal(size=(cameras, 2))
    ci = np.concatenate([np.sort(rng.choice(cameras, tracks, replace=False)) for _ in range(points)])
    pi = np.repeat(np.arange(points), tracks)
    pixels = project(C[ci], X[pi]) + 0.5 * rng.normal(size=(len(ci), 2))
    size = 1e-3 * np.array([1, 1, 1, 10, 10, 10, 1000, 1, 1])
    return ci, pi, pixels, C + size * rng.normal(size=C.shape), X + 0.05 * rng.normal(size=X.shape)


def project(c, x):
    """Points in the images of cameras."""
    y = m.rotate(c[:, :3], x) + c[:, 3:6]
    return c[:, 6:7] * m.radial(y[:, :2] / y[:, 2:], c[:, 7:8], c[:, 8:9])


def bundle_riesz(given):
    """A function that solves."""
    ci, pi, pixels, C, X = given

    def residual(p):
        return project(p["cameras"][ci], p["points"][pi]) - pixels

    def run():
        begun = clock()
        found = rz.levenberg_marquardt(residual, {"cameras": C, "points": X}, cost_tolerance=1e-6)
        return (clock() - begun) / found.iterations, found.cost

    return run


def bundle_ceres(given):
    """The same by Ceres: derivatives in C++ by pycolmap, dense Schur complement."""
    import pyceres
    import pycolmap

    ci, pi, pixels, C, X = given

    def run():
        scene = pycolmap.Reconstruction()
        seen = [np.flatnonzero(ci == k) for k in range(len(C))]
        place = np.empty(len(ci), int)
        for k, c in enumerate(C):
            place[seen[k]] = np.arange(len(seen[k]))
            params = [c[6], 0.0, 0.0, c[7], c[8]]
            camera = pycolmap.Camera(camera_id=k + 1, model="RADIAL", width=1000, height=1000, params=params)
            scene.add_camera_with_trivial_rig(camera)
            points = [pycolmap.Point2D(xy) for xy in pixels[seen[k]]]
            image = pycolmap.Image(name=str(k), points2D=points, camera_id=k + 1, image_id=k + 1)
            pose = pycolmap.Rigid3d(pycolmap.Rotation3d(m.quaternion_exp(c[:3])), c[3:6])
            scene.add_image_with_trivial_frame(image, pose)
        order, ends = np.argsort(pi, kind="stable"), np.cumsum(np.bincount(pi, minlength=len(X)))
        for k, x in enumerate(X):
            mine = order[ends[k - 1] if k else 0 : ends[k]]
            elements = [pycolmap.TrackElement(int(ci[o]) + 1, int(place[o])) for o in mine]
            scene.add_point3D(x, pycolmap.Track(elements))
        config = pycolmap.BundleAdjustmentConfig()
        for k in range(len(C)):
            config.add_image(k + 1)
        options = pycolmap.BundleAdjustmentOptions()
        options.print_summary = False
        options.ceres.auto_select_solver_type = False
        solver = options.ceres.solver_options
        solver.linear_solver_type = pyceres.LinearSolverType.DENSE_SCHUR
        solver.num_threads, solver.function_tolerance = 1, 1e-6
        solver.logging_type = pyceres.LoggingType.SILENT
        adjuster = pycolmap.create_default_ceres_bundle_adjuster(options, config, scene)
        begun = clock()
        summary = adjuster.solve().ceres_summary
        spent = (clock() - begun) * summary.minimizer_time_in_seconds / summary.total_time_in_seconds
        steps = summary.num_successful_steps + summary.num_unsuccessful_steps - 1  # the first is the start
        return spent / max(steps, 1), summary.final_cost

    return run


BUNDLES = {"50,000": {}, "200,000": {"cameras": 100, "points": 20_000}}


def bundle(rounds):
    """Seconds per iteration, and the memory each takes in a process of its own, beyond its imports."""
    for name, sizes in BUNDLES.items():
        given = scene(**sizes)
        riesz, peer = bundle_riesz(given), bundle_ceres(given)
        compared(f"bundle adjustment, {name} observations, ms per iteration", riesz, peer, "0.7", rounds, "Ceres", 1e3)
        used = {}
        for who in ("riesz", "ceres"):
            command = [sys.executable, __file__, "--memory", who, name]
            used[who] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
        shown = f"riesz {used['riesz']:9.0f}  Ceres {used['ceres']:9.0f}  ratio {used['riesz'] / used['ceres']:5.2f}"
        print(f"{'  MB beyond imports and data':<46} {shown}  aim 2.0", flush=True)


def memory(who, name):
    """Print the megabytes one solution takes."""
    small, given = scene(points=200), scene(**BUNDLES[name])
    make = bundle_riesz if who == "riesz" else bundle_ceres
    make(small)()
    before = _kilobytes("VmRSS")
    make(given)()
    print((_kilobytes("VmHWM") - before) / 1024)


def _kilobytes(what):
    """Of this process, now (VmRSS) or at most so far (VmHWM): a child's ru_maxrss begins at its parent's."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(what))


# -- small fits --------------------------------------------------------------------------------------------------


def many(rounds, count=10_000):
    """Microseconds a fit."""
    import jax
    import jax.numpy as jnp
    import optimistix

    jax.config.update("jax_enable_x64", True)
    rng, t = np.random.default_rng(0), np.linspace(0.0, 3.0, 30)
    p = np.stack([rng.uniform(1, 3, count), rng.uniform(0.5, 2, count), rng.uniform(-0.5, 0.5, count)], axis=1)
    y = p[:, :1] * np.exp(-p[:, 1:2] * t) + p[:, 2:] + 0.02 * rng.normal(size=(count, 30))
    start = np.tile([1.0, 1.0, 0.0], (count, 1))
    fit = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))

    def residual(p, y):
        return p[0] * np.exp(-p[1] * t) + p[2] - y

    def riesz():
        begun = clock()
        found = fit(residual, start, y)
        assert found.converged.all()
        return (clock() - begun) / count, found.cost

    method = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)

    def in_jax(p, y):
        f = lambda p, y: p[0] * jnp.exp(-p[1] * t) + p[2] - y  # noqa: E731
        return optimistix.least_squares(f, method, p, args=y, max_steps=256, throw=False).value

    compiled = jax.jit(jax.vmap(in_jax))

    def peer():
        begun = clock()
        q = np.asarray(compiled(start, y))
        spent = clock() - begun
        return spent / count, 0.5 * float(np.sum((q[:, :1] * np.exp(-q[:, 1:2] * t) + q[:, 2:] - y) ** 2))

    compared("10,000 fits of 3 parameters, µs a fit", riesz, peer, "0.7", rounds, "optimistix", 1e6)


def small(rounds):
    """One fit of 50 numbers by 3 unknowns."""
    import scipy.optimize

    t = np.linspace(0.0, 3.0, 50)
    y = 2.0 * np.exp(-1.1 * t) + 0.3 + 0.02 * np.random.default_rng(0).normal(size=50)
    start = np.array([1.0, 1.0, 0.0])

    def residual(p):
        return p[0] * np.exp(-p[1] * t) + p[2] - y

    def slopes(p):
        e = np.exp(-p[1] * t)
        return np.stack([e, -p[0] * t * e, np.ones_like(t)], axis=1)

    def of(run):
        def timed():
            begun = clock()
            for _ in range(50):
                found = run()
            return (clock() - begun) / 50, found.cost

        return timed

    riesz, peer = [
        of(lambda: rz.levenberg_marquardt(residual, start)),
        of(lambda: scipy.optimize.least_squares(residual, start, slopes)),
    ]
    compared("one fit, 50 × 3, µs", riesz, peer, "0.67", rounds, "SciPy, Jacobian by hand", 1e6)


ROWS = {"pose2": pose_graph_2d, "pose3": pose_graph_3d, "bundle": bundle, "many": many, "small": small}
ROWS |= {"cart-pole": cart, "rocket": landing, "quadrotor": shooting, "derivatives": derivatives}


def main():
    """Run the rows that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", nargs=2, metavar=("WHO", "SIZE"))
    given = parser.parse_args()
    if given.memory:
        return memory(*given.memory)
    for name in given.rows or ROWS:
        try:
            ROWS[name](given.rounds)
        except ImportError as missing:
            print(f"{name}: {missing.name} is not installed", flush=True)


if __name__ == "__main__":
    main()
