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

# the processor
CACHE_LINE_BYTES = 64
"""bytes: what memory hands over at a time. Large arrays begin at a multiple, so that no row of up to a line lies across
two. Measured: docs/design.md, "Memory" (rows across two lines cost a scatter half as much again)."""
CORE_CACHE_BYTES = 1 << 20
"""bytes: in the caches of one core; more is fetched ahead. Measured: bench/relations.py, scatter, gather at random."""
SHARED_CACHE_BYTES = 1 << 24
"""bytes: in the cache cores share; up to here rows are added in any order. Measured: bench/relations.py, scatter."""

# threads
PAIR_NUMBERS_PER_THREAD = 1 << 16
"""numbers: moved in a sum over pairs for each thread. Measured: docs/notes/threads.md, bench/relations.py, scatter."""
WAITING_CALLS = 64
"""calls: with more of them waiting for workers, those that are over are dropped. Chosen."""
SPIN_LOOKS = 1 << 16
"""looks: before a thread that spins sleeps, a tenth of a millisecond. Measured: bench/relations.py, waking."""
SPIN_PAUSE_LOOKS = 1 << 12
"""looks at a number in memory, from the bell until the interpreter's lock is asked for, about 5 µs: whoever rang has
it, and a thread that finds it taken sleeps. Measured: bench/relations.py, waking (with RIESZ_SPIN=1)."""
PINNED_WORKERS_BELOW = 8
"""threads: with RIESZ_SPIN=1 fewer workers than this are kept off the caller's core; for more, the system finds idle
cores itself. Measured: docs/notes/threads.md, on two and on sixteen cores."""

# memory that is used again
REUSED_ARRAY_BYTES = 1 << 17
"""bytes: smaller arrays are made anew: the allocator keeps such memory itself. Measured: docs/design.md, "Memory"."""
KEPT_MEMORY_BYTES = 1 << 29
"""bytes: how much memory is kept for later, in all; larger arrays are made anew. Chosen."""
KEPT_BUFFERS_SEARCHED = 64
"""buffers: how many are looked at for one that is free, the latest first. Chosen."""

# sums over pairs
COMPILED_PAIR_LOOPS_FROM = 1 << 19
"""numbers: from how many on Numba's loops, half a second to load, sum over pairs. Measured: docs/design.md, "Numba"."""
GROUPED_TARGET_BYTES = 1 << 12
"""bytes: numbers added up in so small a result wait for each other: they are grouped. Measured: docs/design.md,
"Which way a function is summed" (10 targets: 0.5 ms, strips 2.4)."""
ONE_THREAD_TARGET_BYTES = 1 << 9
"""bytes: in so small a result one thread adds rows: several would wait. Measured: docs/notes/reductions.md."""
STRIP_ROW_BYTES = 128
"""bytes: of rows that two threads add in strips, that one adds in any order in a far result. Measured: docs/design.md,
"Which way a function is summed", table of widths."""
SCATTERED_ROW_BYTES = 1024
"""bytes: longer rows are always grouped by target. Measured: bench/relations.py, scatter of width 64 and more."""
UNROLLED_ROW_NUMBERS = 16
"""numbers: rows up to this length have loops of their own, others are cut. Measured: docs/design.md, "Random rows"."""
WIDE_ROW_STEP_NUMBERS = 64
"""numbers: rows of at least so many are cut in parts of this length. Measured: docs/design.md, "Random rows"."""
SCATTERED_STEP_NUMBERS = 8
"""numbers: rows longer than unrolled ones are added in steps of so many. Chosen: a cache line of float64."""
CHAINED_ROW_NUMBERS = 4
"""numbers: rows of up to so many may be summed pair after pair. Measured: docs/design.md, "Where groups end"."""
CHAINED_PAIRS_PER_TARGET = 8
"""pairs: below so many for a target on average, groups are summed pair after pair, for where such groups end is hard to
guess. Measured: docs/design.md, "Where groups end" (one pair a group: 3.4 → 0.7 ms)."""
THIN_ROW_RATIO = 8
"""numbers per nonzero one: from here on only nonzero ones are multiplied. Measured: docs/design.md, "Thin rows"."""
THREADS_PER_THIN_SUM = 2
"""threads: so many do as well with whole rows as one thread with thin ones. Measured: docs/design.md, "Thin rows"."""

# backends
COMPILED_STEPS = 20_000
"""steps: longer programs run step by step: source takes 30 µs a step. Chosen; see bench/scoreboard.py, layers."""
SMALL_PROGRAM_SLOTS = 48
"""slots: up to how many slots a program is small. Chosen; see bench/numpy_in.py."""
DIRECTED_PROGRAM_SLOTS = 512
"""slots: the same for jvp and hvp of such a program, which have several times as many. Chosen."""
SMALL_PROGRAM_NUMBERS = 1 << 20
"""numbers: linear maps with a larger slot are no small maps. Chosen; see bench/numpy_in.py."""
PLAIN_NUMBERS_PER_STEP = 1 << 16
"""numbers: programs with so many in a step, on average, run as generated code in plain calls, however many steps they
have: the interpreter takes longer for a few calls than to write it. Measured: docs/notes/loops.md."""
LIGHT_PROGRAM_NUMBERS = 1 << 12
"""numbers: beyond, no backend that takes seconds to compile is chosen. Chosen; see bench/numpy_in.py."""
SMALL_MAPS_KEPT = 256
"""kinds of programs: how many kinds of programs are remembered. Chosen."""
UNPACKED_CONTAINERS = 100
"""containers: up to how many containers are opened so. Chosen."""
JAX_STACKED_INPUTS = 16
"""arrays: from so many on, stacked and taken apart outside of the compiled function. Chosen; see bench/gpu.py."""
JAX_NESTING = 12
"""levels: how many loops and branches may be inside each other. Chosen."""
JAX_LINES = 3_000
"""lines: longer programs, loops written once, XLA does not get: it would take minutes. Chosen; see bench/gpu.py."""
JAX_BLOCK_USES = 4
"""calls: a function of JAX's that is called less often is written out where it is called. Chosen."""
JAX_BLOCK_STEPS = 2_000
"""steps: calls of one function of JAX's with fewer in all are written out. Chosen."""
JAX_PADDED_ARRAYS = 16
"""arrays: up to so many that go to slices are padded and added, in one kernel; more are added one by one. Chosen."""
JAX_UNROLLED_LINES = 128
"""lines: on a GPU, rounds of a loop are written out up to so many. Measured: bench/gpu.py, stencil, with --first."""
JAX_STACKED_AT_ONCE = 32
"""arrays: so many arrays are stacked at once: XLA takes long over a thousand. Chosen; see bench/gpu.py, first calls."""
REPEATED_ROUNDS = 6
"""rounds: read in backends/jax/repeated_steps.py. Chosen."""
REPEATED_STEPS_SAVED = 32
"""steps: a loop is written from so many rounds on, and where it saves so many steps. Chosen."""
REPEATED_PERIOD = 1024
"""steps: longer periods are not looked for. Chosen."""
NEST_SHORT_AXIS = 12
"""numbers: axes and sums up to here are written out beside a long axis. Chosen; see bench/scoreboard.py."""
NEST_LONG_AXIS_RATIO = 64
"""ratio: how much longer that axis must be. Chosen; see bench/scoreboard.py, bundle adjustment."""
NEST_NUMBERS = 1 << 10
"""numbers: steps on fewer numbers are lines of array code. Chosen; see bench/scoreboard.py, elementwise."""
NEST_BODY_OPERATIONS = 600
"""operations: in a loop body at most: compilers take ever longer for each. Chosen; see bench/scoreboard.py."""
NEST_ARRAYS = 11
"""arrays: in a nest of joined groups at most, for compilers to use vectors. Chosen; see bench/scoreboard.py."""
NEST_STORE_COST = 12.0
"""sums or products: what writing a number and reading it again costs. Chosen; see bench/scoreboard.py, elementwise."""
NEST_INLINE_SUM = 16
"""numbers: sums over so few are computed where needed. Chosen; see bench/scoreboard.py, bundle adjustment."""
NEST_PRODUCT_REUSE = 6
"""uses of a number: beyond, sums of products are left to BLAS. Measured: bench/rows/physics.py, a layer of convolutions
(8 uses: a seventh of the time), gmm.py (level)."""
NEST_SCATTER_NUMBERS = 1 << 16
"""numbers: into arrays up to here, which stay in the cache, loops add up. Chosen; see bench/scoreboard.py."""
NEST_SCATTER_RATIO = 8
"""terms for each place: from so many terms for each place on. Chosen; see bench/scoreboard.py, bundle adjustment."""
NEST_GROUPS_LOOKED_AT = 400
"""groups: how many groups are looked at to see whether two depend on each other. Chosen."""
NEST_CHUNK_NUMBERS = 1 << 14
"""numbers: in each part of a sum over the divided axis at least. Chosen; see bench/scoreboard.py, elementwise."""
NEST_VECTOR_NUMBERS = 256
"""numbers: in a part of the innermost loop at least, for vectors. Chosen; see bench/scoreboard.py, elementwise."""
NEST_CHUNKS = 64
"""parts: how many parts there are at most. Chosen."""
NEST_COPIED_OPERATIONS = 128
"""operations: at least so many for each number of results that every part has for itself. Chosen."""
NEST_OPERATIONS_PER_THREAD = 1 << 16
"""operations: so many there must be for each further thread. Chosen; see bench/scoreboard.py, elementwise."""
NUMBA_SINGLE_STEP_NUMBERS = 1 << 16
"""numbers: a single step on fewer is a line of array code. Chosen; see bench/scoreboard.py, elementwise."""
NUMBA_GROUP_OPERATIONS = 1 << 13
"""operations: so are groups of fewer operations. Chosen; see bench/scoreboard.py, elementwise."""
NUMBA_COMPILED_OPERATIONS = 4000
"""operations: in all nests that differ, a few milliseconds each. Chosen; see bench/scoreboard.py, first calls."""
OVERWRITTEN_NUMBERS = 1 << 13
"""numbers: from here on results go into arrays that are there already. Chosen; see bench/scoreboard.py, chain."""
NUMPY_TILED_OPERATIONS = 1 << 22
"""operations: from here on programs run on tiles. Chosen; see bench/scoreboard.py, bundle adjustment."""
NUMPY_MATRIX_NUMBERS = 64
"""numbers: products with such matrices are left to BLAS. Chosen; see bench/scoreboard.py, mixture model."""
PYTHON_OPERATIONS = 200
"""operations: up to so many operations arrays are taken apart into numbers. Chosen; see bench/scoreboard.py, tiny."""
FLOATS_PER_ARRAY_STEP = 12
"""operations on floats: as long as one on arrays. Chosen; see bench/scoreboard.py, tiny."""
PYTHON_SOURCE_OPERATIONS = 20_000
"""operations: up to so many operations on numbers source is written. Chosen."""
NATIVE_LOOPS = 1
"""loops on small states that run as functions of numbers: all of them, or 0. RIESZ_NATIVE=0 says so for the whole
process. Chosen."""
NATIVE_ROUNDS = 8
"""rounds: shorter loops are interpreted: writing their function takes longer than a few calls. Chosen."""
NATIVE_STEPS_PER_SLOT = 3
"""steps of the interpreter in a call: for fewer, statements for a slot are not worth writing.
Measured: docs/notes/loops.md."""
NATIVE_MACHINE_STEPS = 500
"""steps of the interpreter, 4 µs each: from so many on in a call machine code, a tenth of a second, pays within a few
dozen calls; fewer run as Python on floats. Measured: docs/notes/loops.md."""
NATIVE_SLOT_NUMBERS = 64
"""numbers: slots of so many are expressions; larger ones are memory. Chosen."""
NATIVE_WRITTEN_PRODUCTS = 512
"""products: of a contraction written out number by number. Chosen."""
NATIVE_READ_NUMBERS = 16
"""numbers: an array of so few in memory is read whole, as numbers. Chosen."""
NATIVE_CALLED_NUMBERS = 1024
"""numbers: functions without vector instructions here are called for so many; array code has such instructions.
Chosen."""
NATIVE_CHOICES = 256
"""numbers: sums at computed positions choose between so many; for more they are memory. Chosen."""
NATIVE_SORTED_NUMBERS = 16
"""numbers: put in order by comparing each with each. Chosen."""
NATIVE_STACK_NUMBERS = 4096
"""numbers: memory of a function's own that lies on the stack, in all. Chosen."""
NATIVE_FLOATS_PER_STEP = 30
"""operations on floats: faster than a line of array code in a loop. Measured: docs/notes/loops.md."""
NATIVE_JOINED_STATEMENTS = 2_500
"""statements: in longer functions LLVM does not look for vector instructions, which takes longer than linear time (3 s
in a Kalman filter of 6 states, for 7 percent). Measured: docs/notes/loops.md."""
NATIVE_OPERATIONS_PER_STEP = 20_000
"""operations on numbers: for more in a step of the interpreter BLAS and array code are as fast.
Measured: docs/notes/loops.md (RNN of width 100)."""
NATIVE_STATEMENTS = 6_000
"""statements: longer functions are not written, for machine code takes a quarter of a millisecond a statement.
Measured: docs/notes/loops.md."""
NATIVE_STRAIGHT_STATEMENTS = 40_000
"""statements: before loops are joined; a second of compiling for some thousands that are left. Chosen."""
NATIVE_STRAIGHT_NUMBERS = 1 << 16
"""numbers: larger arrays outside of loops are left to array code and to loop nests. Chosen."""
INLINE_CHARACTERS = 60
"""characters: expressions used once are written into their user up to so many characters. Chosen."""

# calculus
SPLIT_LOOP_ROUNDS = 4
"""rounds: loops of fewer rounds stay as they are. Chosen."""
SPLIT_LOOP_NUMBERS = 1 << 25
"""numbers: how many numbers may be kept for all rounds. Chosen."""

# functions
COMPARED_STEPS = 100
"""steps: longer traces are not compared: it would count beside tracing. Chosen; see bench/numpy_in.py."""
COMPARED_NUMBERS = 1 << 14
"""numbers: up to how many numbers in all its steps. Chosen; see bench/numpy_in.py, first gradients."""
COMPARED_SECONDS = 0.02
"""seconds: what takes longer to trace does something else too, not done twice. Chosen; see bench/numpy_in.py."""
COMPARED_TYPE_QUESTIONS = 100
"""ratio: how many times that, where code names what a traced array cannot answer. Chosen."""
CHECKPOINTED_NUMBERS = 2**26
"""numbers: a loop that keeps more for its derivative (half a gigabyte) is checkpointed unless told otherwise.
Chosen."""
TRACES_KEPT = 128
"""traces: how many traces of one function are kept. Chosen."""
GUARDED_TRACES_KEPT = 16
"""traces: how many of them for one kind of arguments, where conditions on numbers decide. Chosen."""
RECOGNISED_BYTES = 1 << 26
"""bytes: a function with larger arrays is traced again when it is written anew: they are not kept. Chosen."""
RECOGNISED_BYTES_TOGETHER = 1 << 17
"""bytes: what other functions of the same code may hold beside the newest. Chosen."""
RECOGNISED_ALIKE = 8
"""functions: how many functions of the same code are recognised, beside the newest. Chosen."""
SADDLE_CHECKED_UNKNOWNS = 200
"""unknowns: of a minimum that is told from a saddle by the eigenvalues of its Hessian. Chosen."""

# maps
JAX_MATRIX_NUMBERS = 1 << 24
"""numbers: a matrix with more numbers than this is not made: JAX calls back. Chosen."""
NORMAL_FORM_OPERATIONS = 1 << 22
"""operations: from how many operations on it is looked whether the normal form takes fewer. Chosen."""
PLANNED_PRODUCTS = 1 << 24
"""rows · columns · right-hand sides: from here on a plan is made for several right-hand sides. Chosen."""
FACTORED_TERMS = 1024
"""terms: a sum of more terms than this is one array. Chosen."""
FACTORED_COMPARED_TERMS = 64
"""terms: up to so many terms are compared with each other, to be added. Chosen."""
FILLED_LABEL = 1024
"""numbers: how long a label must be to be run through in tiles. Chosen; see bench/scoreboard.py, bundle adjustment."""
GATHERED_NUMBERS = 1 << 20
"""numbers: up to so many numbers, a few of which meet, are taken in the order of the data: of more, in no order, a sum
by slot is as quick. Chosen; see bench/scoreboard.py, bundle adjustment."""
SORTED_TOGETHER = 1 << 18
"""numbers: positions of a matrix that are sorted at a time; of many, an eighth of them: sorting takes ten times their
memory. Chosen; see bench/solve.py, memory."""
CODED_NUMBERS = 1 << 18
"""numbers: matrices with more of them are filled in tiles, or entry by entry, not by generated code. Chosen."""
COMPILED_MATRIX_NUMBERS = 1 << 15
"""numbers: in all steps of a matrix at least, for machine code. Chosen."""
COMPILED_MATRIX_STEPS = 200
"""steps: of such a matrix at most: compiling takes a tenth of a second. Chosen."""
LISTED_PAIRS = 1 << 21
"""pairs: of numbers that products of sparse matrices multiply, listed once for all points at most. Chosen."""
COMPARED_CONSTANT_NUMBERS = 1 << 16
"""numbers: up to so many numbers of a constant are compared to find out along which axes it varies. Chosen."""
MANY_PARTS_RATIO = 16
"""ratio: parts that a step acts on are many if they are so many times the numbers of one. Chosen."""
SPLIT_OFFSETS = 32
"""offsets: a window meets a slice one offset at a time, if it has no more offsets than this. Chosen."""
UNMULTIPLIED_PRODUCTS = 4
"""products: more between the same labels are multiplied out if their sum is smaller. Chosen."""
COMPARED_DIAGONALS = 32
"""diagonals: so many of one frame are compared with another; after that those at its own place. Chosen."""
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
sparse matrices are multiplied instead. Chosen; see bench/scoreboard.py, tangent matrix."""
COLUMN_BY_COLUMN = 256
"""columns: up to so many columns a matrix is computed column by column. Chosen."""
SYMMETRIC_MULTIPLICATIONS = 1 << 22
"""multiplications: from here on one half is computed. Chosen; see bench/scoreboard.py, logistic Hessian."""
DENSE_UNKNOWNS = 2048
"""unknowns: up to so many unknowns a matrix without better structure is factorised as it is. Chosen."""
WRITTEN_UNKNOWNS = 32
"""unknowns: up to so many unknowns a system inside a trace is solved by its dense matrix, written out. Chosen."""
KEPT_SOLVERS = 2
"""numbers: at how many points a solve inside a trace keeps its factorisation. Chosen."""
CONNECTED_BLOCK_ROWS = 32
"""rows: connected parts of a sparse matrix up to this size are solved as dense blocks. Chosen."""
SUMMED_DIAGONALS = 16
"""diagonals: a matrix with numbers on no more is written as a sum of them. Chosen."""
DENSE_DETERMINANT_UNKNOWNS = 64
"""unknowns: at traced points determinants of smaller maps are those of dense matrices. Chosen."""
BAND_BLOCK_ROWS = 8
"""rows: of the blocks of a band matrix in a determinant, at least. Chosen."""
INVERSE_COLUMNS = 256
"""columns: of a sparse matrix's inverse computed at a time. Chosen."""
INVERSE_BLOCK_ROWS = 2048
"""rows: the widest block of a matrix whose inverse is computed block by block. Chosen."""

# programs
COMPONENT_TILE_BYTES = 1 << 21
"""bytes: how many bytes the numbers at work in a tile may take. Chosen; see bench/scoreboard.py, bundle adjustment."""
COMPONENT_OPERATIONS = 20_000
"""operations: how many scalar operations are written at most. Chosen."""
COMPONENT_OPERATIONS_PER_THREAD = 1 << 18
"""operations on scalars for each further thread. Chosen; see bench/scoreboard.py, bundle adjustment."""
COMPONENT_COMPILED_OPERATIONS = 2000
"""operations: up to so many operations `auto` compiles: each takes some milliseconds to compile. Chosen."""
COMPONENT_WORK_TO_COMPILE = 1 << 25
"""operations: from how many in all on `auto` compiles. Chosen; see bench/scoreboard.py, bundle adjustment."""
TILE_SUM_GROUPS = 16
"""groups: of tiles added up, for any number of threads: the same sums in the same order. Chosen."""
TILE_SUM_BYTES = 1 << 22
"""bytes: how many bytes the sums of all groups may take. Chosen."""
TILE_BYTES = 1 << 20
"""bytes: arrays of a tile take: the second-level cache of a core. Chosen; see bench/scoreboard.py, mixture model."""
TILE_ROWS = 80
"""rows: matrix products of fewer rows are slow. Chosen; see bench/scoreboard.py, mixture model."""
TILE_SAVED_BYTES = 1 << 22
"""bytes: how many bytes of temporaries a loop must save, and how large one must be to count: smaller ones stay in the
cache anyway. Chosen; see bench/scoreboard.py, mixture model."""
TILE_RESULT_RATIO = 8
"""ratio: how many times smaller than its arguments a result is that matters less than they do. Chosen."""
TILE_CANDIDATES = 3
"""axes: read in programs/axis/tiling.py. Chosen."""
TILE_ROUNDS = 4
"""rounds: read in programs/axis/tiling.py. Chosen."""
COLLECTED_NUMBERS = 1 << 12
"""numbers: how many numbers are worth a step of their own. Chosen."""
DEFERRED_MASK_STEPS = 32
"""steps: a mask of more steps than this is computed in any case: nothing is looked at again and again. Chosen."""
FOLDED_NUMBERS = 1 << 12
"""numbers: constants of so many numbers are always computed beforehand. Chosen."""
FOLDED_REPEATED = 1 << 26
"""numbers: longer arrays that are one number, repeated, are not written out to compute with them beforehand. Chosen."""
FUSED_NUMBERS = 1 << 12
"""numbers: smaller steps are not looked at: small programs run as they were written. Chosen."""
ORDERED_READERS = 4
"""networks: a value that more networks read is not written into them. Chosen."""
ORDERED_FACTORS = 8
"""factors: nor is one that would give a network more factors than this. Chosen."""
ORDERED_SUMMANDS = 8
"""summands: nor a sum that would make more networks of one than this. Chosen."""
ORDERED_SWEEPS = 4
"""sweeps: read in programs/passes/ordering.py. Chosen."""
DROPPED_SLOT_NUMBERS = 1 << 14
"""numbers: larger slots go as soon as nothing reads them any more. Chosen; see bench/scoreboard.py, peaks."""

# relations
COMPOSED_PIECES = 32
"""pieces: how many pieces a composition may fall into before it is joined explicitly. Chosen."""
COMPOSED_PAIRS = 4096
"""pairs: up to so many pairs are made without asking what it saves. Chosen."""
STAGED_WINDOW_PIECES = 8
"""pieces: how many pieces a window has at least before it is run in stages. Chosen; see bench/relations.py, windows."""
SLICE_TILE_NUMBERS = 1 << 16
"""numbers: of the target, finished together while they are in the cache. Chosen; see bench/relations.py, windows."""
GPU_BLOCK_NUMBERS = 512
"""numbers of the result for each block: read in relations/jax/gpu_rows.py. Chosen; see bench/relations_gpu.py."""
GPU_BLOCK_TARGETS = 32
"""targets for each block: read in relations/jax/gpu_rows.py. Chosen; see bench/relations_gpu.py."""
GPU_BLOCK_COLUMNS = 64
"""columns for each block: read in relations/jax/gpu_rows.py. Chosen; see bench/relations_gpu.py."""
GPU_PAIRS_AT_ONCE = 4
"""pairs fetched together; of narrow rows half as many. Chosen; see bench/relations_gpu.py."""
EXCHANGED_SHIFTS = 4
"""calls: so few neighbours get one message each, more if that halves the rows. Chosen."""
BLOCKS_RATIO = 4
"""ratio: blocks on devices hold up to so many times as many numbers as the map has. Chosen."""
SAME_PRODUCT = 1e-5
"""ratio: what blocks leave of a product, relative to it, if they are all there is; of float32 too. Chosen."""
SPLIT_OWNERS_RATIO = 0.95
"""ratio: pairs are owned by both sides where so many times fewer rows travel, or less. Chosen."""
EXCHANGED_ROUNDS = 128
"""devices: up to so many, lists of unequal length are packed into rounds. Chosen."""
HALO_SHIFTS = 64
"""offsets: windows of up to so many shifts run on blocks with their neighbours' rims. Chosen."""
BYTE_OPERATIONS = 100
"""operations: what a byte from another device counts where placements are compared. Chosen."""
EXPLAINED_STEPS = 200
"""steps: of longer programs on devices only steps that communicate are listed behind these. Chosen."""
PLACED_PAIRS = 256
"""pairs for each source and target: relations with more are not listed for devices. Chosen."""
JAX_TABLE_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""pairs for each target in a table: read in relations/jax/reduction_in_jax.py. Chosen; see bench/relations.py."""

# spaces
ORDER_EXACT_ARRAYS = 8
"""arrays: up to how many arrays all orders are compared. Chosen."""
ORDER_CHAIN_ARRAYS = 32
"""arrays: up to how many arrays all parentheses of a chain are compared. Chosen."""
ORDER_NEAR = 8
"""neighbours: read in spaces/contraction_order.py. Chosen."""
ORDERS_KEPT = 64
"""orders: read in spaces/contraction_order.py. Chosen."""

# tracing
STAND_IN_NUMBERS = 1 << 16
"""numbers: up to how many numbers a stand-in has memory. Chosen."""
NUMPY_ASKED_NUMBERS = 1 << 20
"""numbers: of larger arrays, or integers, NumPy is not asked: its answer might take long. Chosen."""
KEPT_TWICE_BYTES = 1 << 20
"""bytes: up to so many bytes are kept a second time, to be compared without a detour. Chosen."""
WATCHED_THINGS = 10_000
"""things: how many things are looked at, at most: a function that reaches more is traced at each call. Chosen."""
WATCHED_ARRAY_NUMBERS = 256
"""numbers: larger arrays are compared only where a trace depends on their numbers. Chosen."""

# least squares
BLOCK_CHOLESKY_PRODUCTS = 1 << 17
"""multiplications: of JᵀJ, from which on Numba's block Cholesky, half a second to load, is used. Chosen."""
FACTOR_NUMBERS = 1 << 28
"""numbers: a factor of JᵀJ with more of them is not made; iterations are. Chosen."""


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
