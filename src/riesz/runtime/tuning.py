"""Numbers that were measured, not derived: from which size on a way pays, how many at a time, how many bytes.

Code reads `tuning.NAME` where it decides: an attribute of a module, which costs nothing, and which tests can change
(`with tuning.override(NAME=…)`). A value is not copied to another name when a module is loaded.

Under each constant stand its unit, what it decides, and where it was measured ("Chosen": no measurement is
recorded). One constant has one meaning: two that happen to be equal stay two.

Not here are numbers that belong to a format or to mathematics, and those compiled into loops that Numba keeps on disk
(relations/cpu/numba_loops.py): it compiles again only when the file of the loop itself changes.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

# -- the processor ------------------------------------------------------------------------------------------

CACHE_LINE_BYTES = 64
"""bytes: what memory hands over at a time. Large arrays begin at a multiple, so that no row of up to a line lies across
two. Measured: docs/design.md, "Memory" (rows across two lines cost a scatter half as much again)."""

CORE_CACHE_BYTES = 1 << 20
"""bytes: what stays in the caches of one core. Sources and results that are larger are fetched ahead of time.
Measured: bench/relations.py, scatter and gather at random."""

SHARED_CACHE_BYTES = 1 << 24
"""bytes: what stays in the cache that cores share. Rows are added in any order up to here.
Measured: bench/relations.py, scatter."""

# -- threads ------------------------------------------------------------------------------------------------

PAIR_NUMBERS_PER_THREAD = 1 << 16
"""numbers: how many a sum over pairs must move for each further thread.
Measured: docs/notes/threads.md and bench/relations.py, scatter and gather."""

WAITING_CALLS = 64
"""calls: with more of them waiting for workers, those that are over are dropped. Chosen."""

SPIN_LOOKS = 1 << 16
"""looks at a number in memory, before a thread that spins goes to sleep: about a tenth of a millisecond.
Measured: bench/relations.py, waking (with RIESZ_SPIN=1)."""

SPIN_PAUSE_LOOKS = 1 << 12
"""looks at a number in memory, from the bell until the interpreter's lock is asked for, about 5 µs: whoever rang has
it, and a thread that finds it taken sleeps. Measured: bench/relations.py, waking (with RIESZ_SPIN=1)."""

PINNED_WORKERS_BELOW = 8
"""threads: with RIESZ_SPIN=1 fewer workers than this are kept off the caller's core; for more, the system finds idle
cores itself. Measured: docs/notes/threads.md, on two and on sixteen cores."""

# -- memory that is used again ------------------------------------------------------------------------------

REUSED_ARRAY_BYTES = 1 << 17
"""bytes: smaller arrays are made anew, for the allocator keeps such memory itself.
Measured: docs/design.md, "Memory"."""

KEPT_MEMORY_BYTES = 1 << 29
"""bytes: how much memory is kept for later, in all; larger arrays are made anew. Chosen."""

KEPT_BUFFERS_SEARCHED = 64
"""buffers: how many are looked at for one that is free, the latest first. Chosen."""

# -- sums over pairs ----------------------------------------------------------------------------------------

COMPILED_PAIR_LOOPS_FROM = 1 << 19
"""numbers: how many must move before Numba's loops are used for pairs; loading them takes half a second, once.
Measured: docs/design.md, "Numba"."""

GROUPED_TARGET_BYTES = 1 << 12
"""bytes: numbers added up in so small a result wait for each other, and are grouped by target instead.
Measured: docs/design.md, "Which way a function is summed" (10 targets: 0.5 ms, strips 2.4)."""

ONE_THREAD_TARGET_BYTES = 1 << 9
"""bytes: rows added up in so small a result are left to one thread: several would wait for each other.
Measured: docs/design.md, "Which way a function is summed"."""

STRIP_ROW_BYTES = 128
"""bytes: how long rows may be that two threads add in strips, and that one adds in any order in a far result.
Measured: docs/design.md, "Which way a function is summed", table of widths."""

SCATTERED_ROW_BYTES = 1024
"""bytes: longer rows are always grouped by target. Measured: bench/relations.py, scatter of width 64 and more."""

UNROLLED_ROW_NUMBERS = 16
"""numbers: rows of up to so many have a compiled loop for each length; longer ones are cut in parts of as many.
Measured: docs/design.md, "Random rows"."""

WIDE_ROW_STEP_NUMBERS = 64
"""numbers: rows of at least so many are cut in parts of this length. Measured: docs/design.md, "Random rows"."""

SCATTERED_STEP_NUMBERS = 8
"""numbers: longer rows than unrolled ones are added in any order in steps of so many. Chosen: a cache line of
float64."""

CHAINED_ROW_NUMBERS = 4
"""numbers: rows of up to so many may be summed pair after pair. Measured: docs/design.md, "Where groups end"."""

CHAINED_PAIRS_PER_TARGET = 8
"""pairs: below so many for a target on average, groups are summed pair after pair, for where such groups end is hard to
guess. Measured: docs/design.md, "Where groups end" (one pair a group: 3.4 → 0.7 ms)."""

THIN_ROW_RATIO = 8
"""numbers per nonzero one: rows are thin, and only nonzero numbers multiplied, from this ratio on.
Measured: docs/design.md, "Thin rows"."""

THREADS_PER_THIN_SUM = 2
"""threads: so many do as well with whole rows as one thread with thin ones. Measured: docs/design.md, "Thin rows"."""

# -- backends ------------------------------------------------------------------------------------------------------

COMPILED_STEPS = 20_000
"""steps: programs with more steps are run step by step: source takes some 30 µs to compile for each. Chosen; the row
to watch: bench/scoreboard.py, layers."""

# -- backends/jax --------------------------------------------------------------------------------------------------

JAX_STACKED_INPUTS = 16
"""arrays: from so many on inputs are stacked, and outputs taken apart, outside of the compiled function. Chosen; the
row to watch: bench/gpu.py, first calls."""

JAX_NESTING = 12
"""levels: how many loops and branches may be inside each other. Chosen."""

JAX_LINES = 3_000
"""lines: programs with more lines than this, loops written once, are not given to XLA: it would take minutes. Chosen;
the row to watch: bench/gpu.py, first calls."""

JAX_STACKED_AT_ONCE = 32
"""arrays: so many arrays are stacked at once: XLA takes long over a thousand. Chosen; the row to watch: bench/gpu.py,
first calls."""

REPEATED_ROUNDS = 6
"""rounds: read in backends/jax/repeated_steps.py. Chosen."""

REPEATED_STEPS_SAVED = 32
"""steps: a loop is written from so many rounds on, and where it saves so many steps. Chosen."""

REPEATED_PERIOD = 1024
"""steps: longer periods are not looked for. Chosen."""

# -- backends/numba ------------------------------------------------------------------------------------------------

NEST_SHORT_AXIS = 12
"""numbers: axes up to this length, and sums over so many numbers, are written out, if there is a long axis beside
them. Chosen; the row to watch: bench/scoreboard.py, bundle adjustment."""

NEST_LONG_AXIS_RATIO = 64
"""ratio: how much longer that axis must be. Chosen; the row to watch: bench/scoreboard.py, bundle adjustment."""

NEST_NUMBERS = 1 << 10
"""numbers: steps on fewer numbers are lines of array code. Chosen; the row to watch: bench/scoreboard.py,
elementwise."""

NEST_BODY_OPERATIONS = 600
"""operations: how many operations a loop body has at most: compilers take long over longer ones, and longer for each
operation. Chosen; the row to watch: bench/scoreboard.py, bundle adjustment."""

NEST_ARRAYS = 11
"""arrays: how many arrays a loop nest touches at most where groups are joined: compilers use vector instructions up
to about so many. Chosen; the row to watch: bench/scoreboard.py, elementwise."""

NEST_STORE_COST = 12.0
"""sums or products: what writing a number down and reading it again costs, in sums and products. Chosen; the row to
watch: bench/scoreboard.py, elementwise."""

NEST_INLINE_SUM = 16
"""numbers: sums over so few numbers are computed where they are needed. Chosen; the row to watch:
bench/scoreboard.py, bundle adjustment."""

NEST_PRODUCT_REUSE = 12
"""uses of a number: a sum of products in which each number is used more often is left to matrix products. Chosen; the
row to watch: bench/scoreboard.py, mixture model."""

NEST_SCATTER_NUMBERS = 1 << 16
"""numbers: terms are added up at places of an array where they are computed if it has at most so many numbers, which
stay in the cache. Chosen; the row to watch: bench/scoreboard.py, bundle adjustment."""

NEST_SCATTER_RATIO = 8
"""terms for each place: from so many terms for each place on. Chosen; the row to watch: bench/scoreboard.py,
bundle adjustment."""

NEST_GROUPS_LOOKED_AT = 400
"""groups: how many groups are looked at to see whether two depend on each other. Chosen."""

NEST_CHUNK_NUMBERS = 1 << 14
"""numbers: how many numbers each part of a sum over the divided axis takes at least. Chosen; the row to watch:
bench/scoreboard.py, elementwise."""

NEST_VECTOR_NUMBERS = 256
"""numbers: how many numbers a part of the innermost loop has at least, for its vectors to pay. Chosen; the row to
watch: bench/scoreboard.py, elementwise."""

NEST_CHUNKS = 64
"""parts: how many parts there are at most. Chosen."""

NEST_COPIED_OPERATIONS = 128
"""operations for each number: how many operations there are at least for each number of the results that every part
has for itself. Chosen."""

NEST_OPERATIONS_PER_THREAD = 1 << 16
"""operations: how many operations there must be for each further thread. Chosen; the row to watch:
bench/scoreboard.py, elementwise."""

NUMBA_SINGLE_STEP_NUMBERS = 1 << 16
"""numbers: a single step on fewer numbers is left to a line of array code, which does as well. Chosen; the row to
watch: bench/scoreboard.py, elementwise."""

NUMBA_GROUP_OPERATIONS = 1 << 13
"""operations: so are groups of fewer operations. Chosen; the row to watch: bench/scoreboard.py, elementwise."""

NUMBA_COMPILED_OPERATIONS = 4000
"""operations: how many operations are compiled at most, in all loop nests that differ: each takes a few milliseconds.
Chosen; the row to watch: first calls of bench/scoreboard.py."""

# -- backends/numpy ------------------------------------------------------------------------------------------------

OVERWRITTEN_NUMBERS = 1 << 13
"""numbers: from how many numbers on results go into arrays that are there already. Chosen; the row to watch:
bench/scoreboard.py, chain."""

NUMPY_TILED_OPERATIONS = 1 << 22
"""operations: from how many operations on numbers in all on a program is run on tiles of a long axis. Chosen; the row
to watch: bench/scoreboard.py, bundle adjustment."""

NUMPY_MATRIX_NUMBERS = 64
"""numbers: products with matrices of so many numbers are left to BLAS. Chosen; the row to watch: bench/scoreboard.py,
mixture model."""

# -- backends/python -----------------------------------------------------------------------------------------------

PYTHON_OPERATIONS = 200
"""operations: up to so many operations arrays are taken apart into numbers. Chosen; the row to watch:
bench/scoreboard.py, tiny."""

FLOATS_PER_ARRAY_STEP = 12
"""operations on floats: so many operations on floats take about the time of one on arrays. Chosen; the row to watch:
bench/scoreboard.py, tiny."""

PYTHON_SOURCE_OPERATIONS = 20_000
"""operations: up to so many operations on numbers source is written. Chosen."""

INLINE_CHARACTERS = 60
"""characters: expressions used once are written into their user up to so many characters. Chosen."""

# -- backends ------------------------------------------------------------------------------------------------------

SMALL_PROGRAM_SLOTS = 48
"""slots: up to how many slots a program is small. Chosen; the row to watch: bench/numpy_in.py."""

SMALL_PROGRAM_NUMBERS = 1 << 20
"""numbers: from how many numbers in a slot on the interpreter's time does not count. Chosen; the row to watch:
bench/numpy_in.py."""

LIGHT_PROGRAM_NUMBERS = 1 << 12
"""numbers: up to how many numbers any backend may be chosen; beyond, none that takes seconds to compile. Chosen; the
row to watch: bench/numpy_in.py."""

SMALL_MAPS_KEPT = 256
"""kinds of programs: how many kinds of programs are remembered. Chosen."""

UNPACKED_CONTAINERS = 100
"""containers: up to how many containers are opened so. Chosen."""

# -- calculus ------------------------------------------------------------------------------------------------------

SPLIT_LOOP_ROUNDS = 4
"""rounds: loops of fewer rounds stay as they are. Chosen."""

SPLIT_LOOP_NUMBERS = 1 << 25
"""numbers: how many numbers may be kept for all rounds. Chosen."""

# -- functions -----------------------------------------------------------------------------------------------------

COMPARED_STEPS = 100
"""steps: up to how many steps a trace is compared: beyond, running the function once more would count beside tracing
it. Chosen; the row to watch: bench/numpy_in.py, first gradients."""

COMPARED_NUMBERS = 1 << 14
"""numbers: up to how many numbers in all its steps. Chosen; the row to watch: bench/numpy_in.py, first gradients."""

COMPARED_SECONDS = 0.02
"""seconds: a function of few steps that took longer to trace does something else besides, which is not done twice.
Chosen; the row to watch: bench/numpy_in.py, first gradients."""

COMPARED_TYPE_QUESTIONS = 100
"""ratio: how many times that, where code names what a traced array cannot answer. Chosen."""

CHECKPOINTED_NUMBERS = 2**26
"""numbers: a loop that would keep more numbers than this for its derivative (half a gigabyte) is checkpointed unless
told otherwise. Chosen."""

TRACES_KEPT = 128
"""traces: how many traces of one function are kept. Chosen."""

# -- maps ----------------------------------------------------------------------------------------------------------

JAX_MATRIX_NUMBERS = 1 << 24
"""numbers: a matrix with more numbers than this is not made: JAX calls back. Chosen."""

# -- maps/gradients ------------------------------------------------------------------------------------------------

FACTORED_TERMS = 1024
"""terms: a sum of more terms than this is one array. Chosen."""

FACTORED_COMPARED_TERMS = 64
"""terms: up to so many terms are compared with each other, to be added. Chosen."""

# -- maps ----------------------------------------------------------------------------------------------------------

NORMAL_FORM_OPERATIONS = 1 << 22
"""operations: from how many operations on it is looked whether the normal form takes fewer. Chosen."""

PLANNED_PRODUCTS = 1 << 24
"""rows · columns · right-hand sides: from how many rows times columns times right-hand sides on a plan is made for
several right-hand sides. Chosen."""

# -- maps/matrices -------------------------------------------------------------------------------------------------

FILLED_LABEL = 1024
"""numbers: how long a label must be to be run through in tiles. Chosen; the row to watch: bench/scoreboard.py, bundle
adjustment."""

GATHERED_NUMBERS = 1 << 20
"""numbers: up to so many numbers, a few of which meet, are taken in the order of the data: of more, in no order, a
sum by slot is as quick. Chosen; the row to watch: bench/scoreboard.py, bundle adjustment."""

# -- maps/normal_form ----------------------------------------------------------------------------------------------

COMPARED_CONSTANT_NUMBERS = 1 << 16
"""numbers: up to so many numbers of a constant are compared to find out along which axes it varies. Chosen."""

MANY_PARTS_RATIO = 16
"""ratio: parts that a step acts on are many if they are so many times the numbers of one. Chosen."""

SPLIT_OFFSETS = 32
"""offsets: a window meets a slice one offset at a time, if it has no more offsets than this. Chosen."""

UNMULTIPLIED_PRODUCTS = 4
"""products: so many products between the same labels are left as they are; more of them are multiplied out if their
sum is smaller. Chosen."""

COMPARED_DIAGONALS = 32
"""diagonals: so many diagonals of one frame that do not become one are compared with another; after that only those
at its own place. Chosen."""

ENTRY_FACTORS = 8
"""factors: an entry with more factors than this is not made: the step between stays. Chosen."""

HUB_TRIES = 4
"""times: how often a step that stays is looked at again when a neighbour has gone. Chosen."""

HUB_COMPOSITIONS = 256
"""compositions: a step with more compositions than this around it stays. Chosen."""

HUB_MORE_ENTRIES = 4
"""entries: a step stays if without it there would be so many more entries. Chosen."""

BLOCK_ENTRIES = 64
"""entries: more entries than this between two arrays are not multiplied out for a matrix. Chosen."""

HUB_LISTED_RATIO = 2
"""ratio: hubs are removed for a matrix until index arrays list so many times more positions than there were; then
sparse matrices are multiplied instead. Chosen; the row to watch: bench/scoreboard.py, tangent matrix."""

COLUMN_BY_COLUMN = 256
"""columns: up to so many columns a matrix is computed column by column. Chosen."""

SYMMETRIC_MULTIPLICATIONS = 1 << 22
"""multiplications: from how many multiplications on only one half is computed. Chosen; the row to watch:
bench/scoreboard.py, logistic Hessian."""

# -- maps/solvers --------------------------------------------------------------------------------------------------

DENSE_UNKNOWNS = 2048
"""unknowns: up to so many unknowns a matrix without better structure is factorised as it is. Chosen."""

# -- programs/axis -------------------------------------------------------------------------------------------------

COMPONENT_TILE_BYTES = 1 << 21
"""bytes: how many bytes the numbers at work in a tile may take. Chosen; the row to watch: bench/scoreboard.py, bundle
adjustment."""

COMPONENT_OPERATIONS = 20_000
"""operations: how many scalar operations are written at most. Chosen."""

COMPONENT_OPERATIONS_PER_THREAD = 1 << 18
"""operations: how many scalar operations must be carried out for each further thread. Chosen; the row to watch:
bench/scoreboard.py, bundle adjustment."""

COMPONENT_COMPILED_OPERATIONS = 2000
"""operations: up to so many operations `auto` compiles: each takes some milliseconds to compile. Chosen."""

COMPONENT_WORK_TO_COMPILE = 1 << 25
"""operations: from how many operations in all on `auto` compiles. Chosen; the row to watch: bench/scoreboard.py,
bundle adjustment."""

TILE_SUM_GROUPS = 16
"""groups: tiles are added up in so many groups at most, whatever the number of threads: the same sums in the same
order. Chosen."""

TILE_SUM_BYTES = 1 << 22
"""bytes: how many bytes the sums of all groups may take. Chosen."""

TILE_BYTES = 1 << 20
"""bytes: how many bytes the arrays of a tile may take: what a core has of the second-level cache. Chosen; the row to
watch: bench/scoreboard.py, mixture model."""

TILE_ROWS = 80
"""rows: matrix products of fewer rows are slow. Chosen; the row to watch: bench/scoreboard.py, mixture model."""

TILE_SAVED_BYTES = 1 << 22
"""bytes: how many bytes of temporaries a loop must save, and how large one must be to count: smaller ones stay in the
cache anyway. Chosen; the row to watch: bench/scoreboard.py, mixture model."""

TILE_RESULT_RATIO = 8
"""ratio: how many times smaller than its arguments a result is that matters less than they do. Chosen."""

TILE_CANDIDATES = 3
"""axes: read in programs/axis/tiling.py. Chosen."""

TILE_ROUNDS = 4
"""rounds: read in programs/axis/tiling.py. Chosen."""

# -- programs/passes -----------------------------------------------------------------------------------------------

COLLECTED_NUMBERS = 1 << 12
"""numbers: how many numbers are worth a step of their own. Chosen."""

DEFERRED_MASK_STEPS = 32
"""steps: a mask of more steps than this is computed in any case: nothing is looked at again and again. Chosen."""

FOLDED_NUMBERS = 1 << 12
"""numbers: constants of so many numbers are always computed beforehand. Chosen."""

FUSED_NUMBERS = 1 << 12
"""numbers: how many numbers a step must have before it is looked at: small programs run as they were written.
Chosen."""

ORDERED_READERS = 4
"""networks: a value that more networks read is not written into them. Chosen."""

ORDERED_FACTORS = 8
"""factors: nor is one that would give a network more factors than this. Chosen."""

ORDERED_SUMMANDS = 8
"""summands: nor a sum that would make more networks of one than this. Chosen."""

ORDERED_SWEEPS = 4
"""sweeps: read in programs/passes/ordering.py. Chosen."""

# -- programs ------------------------------------------------------------------------------------------------------

DROPPED_SLOT_NUMBERS = 1 << 14
"""numbers: from so many numbers on, a slot is let go of as soon as nothing reads it any more. Chosen; the row to
watch: bench/scoreboard.py, peaks."""

# -- relations -----------------------------------------------------------------------------------------------------

COMPOSED_PIECES = 32
"""pieces: how many pieces a composition may fall into before it is joined explicitly. Chosen."""

COMPOSED_PAIRS = 4096
"""pairs: up to so many pairs are made without asking what it saves. Chosen."""

# -- relations/jax -------------------------------------------------------------------------------------------------

GPU_BLOCK_NUMBERS = 512
"""numbers of the result for each block: read in relations/jax/gpu_rows.py. Chosen; the row to watch:
bench/relations_gpu.py."""

GPU_BLOCK_TARGETS = 32
"""targets for each block: read in relations/jax/gpu_rows.py. Chosen; the row to watch: bench/relations_gpu.py."""

GPU_BLOCK_COLUMNS = 64
"""columns for each block: read in relations/jax/gpu_rows.py. Chosen; the row to watch: bench/relations_gpu.py."""

GPU_PAIRS_AT_ONCE = 4
"""pairs fetched together; of narrow rows half as many: read in relations/jax/gpu_rows.py. Chosen; the row to watch:
bench/relations_gpu.py."""

JAX_TABLE_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""pairs for each target in a table: read in relations/jax/reduction_in_jax.py. Chosen; the row to watch:
bench/relations.py."""

# -- relations -----------------------------------------------------------------------------------------------------

STAGED_WINDOW_PIECES = 8
"""pieces: how many pieces a window has at least before it is run in stages. Chosen; the row to watch:
bench/relations.py, windows."""

SLICE_TILE_NUMBERS = 1 << 16
"""numbers: how many numbers of the target are finished before going on: they stay in the cache while all pieces are
added. Chosen; the row to watch: bench/relations.py, windows."""

# -- spaces --------------------------------------------------------------------------------------------------------

ORDER_EXACT_ARRAYS = 8
"""arrays: up to how many arrays all orders are compared. Chosen."""

ORDER_WINDOW = 5
"""parts: how many parts of a longer product are put in the best order at a time. Chosen."""

ORDER_CHAIN_ARRAYS = 32
"""arrays: up to how many arrays all parentheses of a chain are compared. Chosen."""

ORDER_SWEEPS = 8
"""sweeps: read in spaces/contraction_order.py. Chosen."""

ORDER_NEAR = 8
"""neighbours: read in spaces/contraction_order.py. Chosen."""

ORDERS_KEPT = 64
"""orders: read in spaces/contraction_order.py. Chosen."""

# -- tracing -------------------------------------------------------------------------------------------------------

STAND_IN_NUMBERS = 1 << 16
"""numbers: up to how many numbers a stand-in has memory. Chosen."""

NUMPY_ASKED_NUMBERS = 1 << 20
"""numbers: from arrays of so many numbers, and integers of that size, on NumPy is not asked: its answer might take
long. Chosen."""

# -- tracing/surroundings ------------------------------------------------------------------------------------------

KEPT_TWICE_BYTES = 1 << 20
"""bytes: up to so many bytes are kept a second time, to be compared without a detour. Chosen."""

WATCHED_THINGS = 10_000
"""things: how many things are looked at, at most: a function that reaches more is traced at each call. Chosen."""

WATCHED_ARRAY_NUMBERS = 256
"""numbers: arrays up to this size are compared by their contents at each call, larger ones where a trace depends on
their numbers. Chosen."""


@contextmanager
def override(**values: int) -> Generator[None]:
    """Other constants for a while, in all threads: for tests.

    >>> from riesz.runtime import tuning
    >>> with tuning.override(CACHE_LINE_BYTES=128):
    ...     print(tuning.CACHE_LINE_BYTES)
    128
    >>> tuning.CACHE_LINE_BYTES
    64
    """
    space = globals()
    unknown = [name for name in values if not name.isupper() or name not in space]
    if unknown:
        raise AttributeError(f"riesz.runtime.tuning has no constant {', '.join(unknown)}; {__file__} lists them")
    before = {name: space[name] for name in values}
    space.update(values)
    try:
        yield
    finally:
        space.update(before)
