"""Beyond the devices that are here: time and memory of six workloads on 8 to 4,096 devices, told by the cost model, and
what there is to check it with.

    python bench/many_more_devices.py laws     rows that travel: counted relations beside lists of real ones
    python bench/many_more_devices.py fit      processor time and memory on 1 to 8 virtual devices, measured and told
    python bench/many_more_devices.py hlo      communications in XLA's code for 256 devices, and those told
    python bench/many_more_devices.py curves   10⁹ to 10¹² pairs on an H100 and on a TPU v5p; writes the pictures

Nothing of the size of the data is made for the last: arrays are broadcast zeros, relations are counted ones.
"""

# ruff: noqa: E402  (the number of virtual devices comes before JAX)
from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

WHAT = sys.argv[1] if len(sys.argv) > 1 else "curves"
VIRTUAL = {"fit": 8, "hlo": 256}
if WHAT in VIRTUAL:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={VIRTUAL[WHAT]}"
    os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

import riesz as rz
from riesz.backends.devices.machines import MACHINES, Link, Machine
from riesz.relations import Lattice, Near, Uniform, counted

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
DEGREE, WIDTH = 16, 16
LOCAL = Near(100)
MODEL = 8
"""devices: of which each has a part of the network's hidden layer."""


def power_law(mean: float = DEGREE, most: int = 100_000) -> tuple[tuple[int, float], ...]:
    """Degrees d with a share of about d^−2.2, from one degree on, of the mean that is asked for."""
    first = next(k for k in range(1, most) if _mean(_shares(k, most)) >= mean)
    return tuple(_shares(first, most))


def _shares(first: int, most: int) -> list[tuple[int, float]]:
    bounds = np.unique(np.geomspace(first, most, 60).astype(int))
    weight = bounds[:-1] ** -1.2 - bounds[1:] ** -1.2
    return [(int(d), float(w)) for d, w in zip((bounds[:-1] + bounds[1:]) // 2, weight / weight.sum(), strict=True)]


def _mean(shares: Any) -> float:
    return sum([d * share for d, share in shares])


HUBS = Uniform(power_law())


def z_order(side: int) -> Any:
    """For each point of a cube its number along a Z-order curve."""
    bits = side.bit_length() - 1
    spread = np.zeros(side, np.intp)
    for k in range(bits):
        spread |= ((np.arange(side) >> k) & 1) << (3 * k)
    return spread[:, None, None] << 2 | spread[:, None] << 1 | spread


def ends(law: Any, nodes: int) -> Any:
    """Random pairs as a law says."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(nodes), DEGREE)
    if type(law) is Lattice:
        at = z_order(round(nodes ** (1 / 3)))
        near = [np.roll(at, way, axis) for axis in range(3) for way in (1, -1)]
        return np.stack([np.stack([x.ravel(), at.ravel()], 1) for x in near]).reshape(-1, 2)
    if type(law) is Near:
        source = (target + rng.integers(-law.reach, law.reach + 1, target.size)).clip(0, nodes - 1)
    elif law.degrees:
        chance = rng.choice([d for d, _ in law.degrees], nodes, p=[share for _, share in law.degrees]).astype(float)
        source = rng.choice(nodes, target.size, p=chance / chance.sum())
    else:
        source = rng.integers(0, nodes, target.size)
    return np.stack([source, target], 1)


def graph(law: Any, nodes: int, real: bool) -> Any:
    """A relation of a graph, with pairs or counted."""
    N = rz.seg(nodes)
    return rz.relation(N, N, ends(law, nodes)) if real else counted(N, N, nodes * _degree(law), law)


def _degree(law: Any) -> int:
    return 6 if type(law) is Lattice else DEGREE


class Workload(NamedTuple):
    function: Any
    args: tuple[Any, ...]
    place: dict[Any, str]
    axes: dict[str, int]


def array(real: bool, *shape: int) -> Any:
    """Numbers, or as many zeros that take no memory."""
    if not real:
        return np.broadcast_to(np.float32(0), shape)
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def sums(law: Any, pairs: int, devices: int, real: bool) -> Workload:
    n = pairs // DEGREE
    R = graph(law, n, real)
    f = rz.grad(lambda v: np.sum(np.tanh(rz.red(R)(v)) ** 2))
    return Workload(f, (array(real, n, WIDTH),), {rz.seg(n): "data"}, {"data": devices})


def rounds(law: Any, pairs: int, devices: int, real: bool) -> Workload:
    n = pairs // DEGREE
    R = graph(law, n, real)

    def loss(V, W, x):
        return np.sum(np.tanh(rz.red(R)(np.tanh(rz.red(R)(x) @ V)) @ W) ** 2)

    weights = array(real, WIDTH, WIDTH)
    return Workload(
        rz.grad(loss, argnums=(0, 1)), (weights, weights, array(real, n, WIDTH)), {rz.seg(n): "data"}, {"data": devices}
    )


def gauss_newton(law: Any, pairs: int, devices: int, real: bool) -> Workload:
    """JᵀJ v, the product of a step of conjugate gradients."""
    n = pairs // 6 // 2**13 * 2**13
    if pairs < 2**24:  # a cube
        n = 1 << (3 * round((pairs // 6).bit_length() / 3))
    R = graph(law, n, real)
    residual = lambda x: 6.0 * x - rz.red(R)(x) + x**3  # noqa: E731

    def product(x, v):
        return rz.vjp(residual, x)[1](rz.jvp(residual, (x,), (v,))[1])

    return Workload(product, (array(real, n), array(real, n)), {rz.seg(n): "data"}, {"data": devices})


def network(pairs: int, devices: int, real: bool) -> Workload:
    """Of 128 features; a pair is a number of the data."""
    n, d, h = pairs // 128, 128, 1024
    model = min(MODEL, max(devices // 2, 1))

    def loss(V, W, X, Y):
        return np.mean((np.tanh(X @ V) @ W - Y) ** 2)

    given = array(real, d, h), array(real, h, d), array(real, n, d), array(real, n, d)
    place = {rz.seg(n): "data", rz.seg(h): "model"}
    return Workload(rz.grad(loss, argnums=(0, 1)), given, place, {"data": devices // model, "model": model})


def mixture(pairs: int, devices: int, real: bool) -> Workload:
    """Of 32 normal distributions; a pair is an example and a distribution."""
    n, k, d = pairs // 32, 32, 16

    def likelihood(a, m, s, X):
        t = a - 0.5 * np.sum(((X[:, None, :] - m) * np.exp(s)) ** 2, -1) + np.sum(s, -1)
        top = np.max(t, 1, keepdims=True)
        return np.sum(np.log(np.sum(np.exp(t - top), 1)) + top[:, 0])

    given = array(real, k), array(real, k, d), array(real, k, d), array(real, n, d)
    return Workload(rz.grad(likelihood, argnums=(0, 1, 2)), given, {rz.seg(n): "data"}, {"data": devices})


WORKLOADS = {
    "sums along a local graph": lambda *size: sums(LOCAL, *size),
    "sums along a random graph": lambda *size: sums(Uniform(), *size),
    "network, data and model": network,
    "mixture model": mixture,
    "graph network, power law": lambda *size: rounds(HUBS, *size),
    "Gauss–Newton on a lattice": lambda *size: gauss_newton(Lattice(3), *size),
}


# -- rows that travel --------------------------------------------------------------------------------------------------


def laws() -> None:
    from riesz.relations.jax.mesh_plan import form_of, room_of

    print(f"{'law':24}{'nodes':>10}{'devices':>9}{'rows that come':>16}{'told':>10}{'ratio':>7}")
    for name, law in {"local": LOCAL, "random": Uniform(), "power law": HUBS, "lattice": Lattice(3)}.items():
        for nodes, devices in ((2**12, 8), (2**15, 8), (2**15, 64), (2**18, 64)):
            if nodes // devices < LOCAL.reach and type(law) is Near:
                continue
            room = room_of(form_of(graph(law, nodes, True), devices))
            told = graph(law, nodes, False).traffic(devices).rows
            print(f"{name:24}{nodes:10,}{devices:9}{room:16,}{told:10,}{told / room:7.2f}", flush=True)


# -- measured on virtual devices ---------------------------------------------------------------------------------------


def placed(work: Workload) -> Any:
    """The workload on virtual devices, and its arguments there."""
    import jax
    from jax.sharding import AxisType

    count = int(np.prod(list(work.axes.values())))
    kinds = (AxisType.Auto,) * len(work.axes)
    mesh = jax.make_mesh(tuple(work.axes.values()), tuple(work.axes), axis_types=kinds, devices=jax.devices()[:count])
    g = rz.compile(work.function, *work.args, mesh=mesh, place=work.place)
    there = [jax.device_put(x, s) for x, s in zip(work.args, g.shardings, strict=True)]
    return g, jax.jit(lambda *xs: g(*xs)).lower(*there).compile(), there


def processor_time(run: Any, args: Any) -> float:
    """Seconds of processor time of a run, all virtual devices together: the least of several."""
    import jax

    jax.block_until_ready(run(*args))
    found = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(3):
            jax.block_until_ready(run(*args))
        found.append((time.process_time() - start) / 3)
    return min(found)


NAMES = ("products", "numbers", "bandwidth", "link", "latency", "start", "message")


def core(values: Any) -> Machine:
    """A virtual device: a core of this machine, whose numbers are found by `fit`."""
    products, numbers, bandwidth, link, latency, start, message = map(float, values)
    near = Link(link, latency)
    return Machine("core", products, numbers, bandwidth, 1e12, near, near, 1 << 20, 64, start, message)


def fit() -> None:
    """Fitted on one and two devices; eight are told."""
    from scipy.optimize import least_squares

    rows = []
    for name, make in WORKLOADS.items():
        for pairs in (2**16, 2**19):
            for devices in (1, 2, 8):
                g, run, there = placed(make(pairs, devices, True))
                stats = run.memory_analysis()
                held = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
                seconds = processor_time(run, there)
                rows.append((name, pairs, devices, g, seconds, held))
                print(f"{name:28}{pairs:9,}{devices:3}{1e3 * seconds:9.2f} ms", file=sys.stderr, flush=True)
    known = [row for row in rows if row[2] < 8]
    start = np.log([2e10, 1e9, 5e9, 2e9, 1e-5, 1e-5, 1e-5])

    def error(logs: Any, of: Any) -> Any:
        machine = core(np.exp(logs))
        return np.array([np.log(d * g.forecast(machine).seconds / seconds) for _, _, d, g, seconds, _ in of])

    def pulled(logs: Any) -> Any:
        """What the runs do not tell stays near where it began."""
        return np.concatenate([error(logs, known), 0.2 * (logs - start)])

    found = least_squares(pulled, start, loss="soft_l1", f_scale=0.3)
    machine = core(np.exp(found.x))
    print("fitted: " + ", ".join([f"{k} {v:.3g}" for k, v in zip(NAMES, np.exp(found.x), strict=True)]))
    for words, of in (("fitted", known), ("told", [row for row in rows if row not in known])):
        off = np.exp(np.abs(error(found.x, of)))
        print(f"{words}: {len(of)} runs, off by a factor of {np.median(off):.2f} (median), {off.max():.2f} (most)")
    head = f"{'':28}{'pairs':>9}{'devices':>8}{'ms of processors':>18}{'told':>8}{'XLA holds MB':>14}{'told':>8}"
    print(head)
    for name, pairs, devices, g, seconds, held in rows:
        told = g.forecast(machine)
        times = f"{1e3 * seconds:18.2f}{1e3 * devices * told.seconds:8.2f}"
        print(f"{name:28}{pairs:9,}{devices:8}{times}{held / 1e6:14.2f}{told.memory / 1e6:8.2f}")


# -- in XLA's code -----------------------------------------------------------------------------------------------------

SIZES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1}
COLLECTIVES = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"


def in_code(text: str) -> tuple[int, int]:
    """How many communications there are in XLA's code, and the bytes that come to each device."""
    count = total = 0
    for row in text.splitlines():
        m = re.search(rf"= (.*?) ({COLLECTIVES})(?:-start)?\(", row)
        count += m is not None
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", m.group(1)) if m else []:
            total += SIZES[kind] * int(np.prod([int(k) for k in shape.split(",") if k]))
    return count, total


def hlo() -> None:
    """The code is written for a mesh without devices and compiled for virtual ones; nothing is run."""
    import jax
    from jax.sharding import AbstractMesh, NamedSharding

    head = ("communications", "bytes", "told", "told by counts")
    print(f"{'256 devices':28}{'pairs':>11}" + "".join([f"{x:>16}" for x in head]))
    pairs = 2**17
    for name, make in WORKLOADS.items():
        work = make(pairs, 256, True)
        sizes, names = tuple(work.axes.values()), tuple(work.axes)
        mesh = jax.make_mesh(sizes, names, axis_types=(jax.sharding.AxisType.Auto,) * len(names))
        g = rz.compile(work.function, *work.args, mesh=AbstractMesh(sizes, names), place=work.place)
        places = [NamedSharding(mesh, one.spec) for one in g.shardings]
        given = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=p) for x, p in zip(work.args, places, strict=True)]
        count, total = in_code(jax.jit(lambda *xs, g=g: g(*xs)).lower(*given).compile().as_text())
        other = make(pairs, 256, False)
        h = rz.compile(other.function, *other.args, backend="steps").forecast("H100", other.axes, other.place)
        print(f"{name:28}{pairs:11,}{count:16}{total:16,}{g.cost.moved:16,}{h.moved:16,}", flush=True)


# -- on paper ----------------------------------------------------------------------------------------------------------

PAIRS = {"10⁹": 2**30, "10¹⁰": 2**33, "10¹¹": 2**37, "10¹²": 2**40}
DEVICES = [2**k for k in range(3, 13)]
SHARE = 0.5
"""of the published rates: what programs are taken to reach."""


def told(machine: Machine) -> dict[str, dict[str, list[Any]]]:
    """For each workload and size a forecast for each number of devices."""
    found: dict[str, dict[str, list[Any]]] = {}
    for name, make in WORKLOADS.items():
        for size, pairs in PAIRS.items():
            rows = []
            for devices in DEVICES:
                work = make(pairs, devices, False)
                g = rz.compile(work.function, *work.args, backend="steps") if not rows else g  # noqa: F821
                rows.append(g.forecast(machine, work.axes, work.place))
            found.setdefault(name, {})[size] = rows
    return found


def curves() -> None:
    for name in ("H100", "TPU v5p"):
        machine = MACHINES[name].scaled(SHARE)
        found = told(machine)
        for workload, sizes in found.items():
            for size, rows in sizes.items():
                for devices, one in zip(DEVICES, rows, strict=True):
                    if devices in (8, 64, 512, 4096):
                        print(f"{name:8} {workload:28}{size:>6}{devices:6}  {one}", flush=True)
        drawn(found, machine, PICTURES / f"forecast-{name.lower().replace(' ', '-')}.png")


def drawn(found: Any, machine: Machine, path: Path) -> None:
    """A panel for each workload: seconds against devices; hollow where memory does not do, dotted what is computed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    figure, axes = pyplot.subplots(2, 3, figsize=(10.5, 6), layout="constrained", sharex=True)
    for ax, (workload, sizes) in zip(axes.flat, found.items(), strict=True):
        for colour, (size, rows) in zip(("#3b6ea8", "#4f9d69", "#c9a227", "#b03a2e"), sizes.items(), strict=True):
            seconds = [one.seconds for one in rows]
            ax.plot(DEVICES, seconds, color=colour, label=f"{size} pairs")
            ax.plot(DEVICES, [one.computing for one in rows], ":", color=colour, lw=1)
            face = [colour if one.fits else "white" for one in rows]
            ax.scatter(DEVICES, seconds, c=face, edgecolors=colour, s=16, zorder=3)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_title(workload, fontsize=9)
        ax.grid(alpha=0.3)
        ax.tick_params(labelsize=8)
    for ax in axes[1]:
        ax.set_xlabel("devices", fontsize=8)
    for ax in axes[:, 0]:
        ax.set_ylabel(f"seconds on {machine.name}", fontsize=8)
    axes.flat[0].legend(fontsize=7)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    with Image.open(path) as picture:  # in a quarter of the bytes
        small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    {"laws": laws, "fit": fit, "hlo": hlo, "curves": curves}[WHAT]()
