"""docs/coverage.md is what the code says, and the code covers what autograd covers."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from riesz.tracing.rules import coverage

PAGE = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text()
ROWS = coverage.rows()

# The differentiable functions of autograd.numpy, .linalg, .fft and .scipy (version 1.9).
AUTOGRAD = """
abs absolute amax amin angle arccos arccosh arcsin arcsinh arctan arctanh array_split atleast_1d atleast_2d atleast_3d broadcast_to clip
conj conjugate cos cosh cumsum deg2rad degrees diag diff dot dsplit einsum exp exp2 expand_dims expm1 fabs fliplr flipud full_like gradient
hsplit imag inner kron log log10 log1p log2 matmul max mean min moveaxis nan_to_num negative outer pad partition prod rad2deg radians ravel
real real_if_close reciprocal repeat reshape roll rollaxis rot90 sin sinc sinh sort split sqrt square squeeze std sum swapaxes tan tanh
tensordot tile trace transpose tril triu var vsplit where add subtract multiply divide true_divide power maximum minimum fmax fmin logaddexp
logaddexp2 mod remainder arctan2 hypot concatenate stack vstack hstack column_stack append array select cross trace select linalg.cholesky
linalg.det linalg.eigh linalg.inv linalg.norm linalg.pinv linalg.slogdet linalg.solve linalg.svd fft.fft fft.fft2 fft.fftn fft.ifft
fft.ifft2 fft.ifftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn fft.fftshift fft.ifftshift
""".split()  # noqa: SIM905
AUTOGRAD_SCIPY = """
special.digamma special.psi special.polygamma special.erf special.erfc special.erfinv special.erfcinv special.expit special.logit
special.gamma special.gammaln special.gammainc special.gammaincc special.gammasgn special.rgamma special.multigammaln special.i0 special.i1
special.iv special.ive special.j0 special.j1 special.jn special.y0 special.y1 special.yn special.logsumexp special.beta special.betainc
special.betaln linalg.solve_banded linalg.solve_sylvester linalg.solve_triangular linalg.sqrtm
""".split()  # noqa: SIM905


def test_the_page_is_generated_from_the_code():
    listed = {line for line in PAGE.splitlines() if line.startswith("| `")}
    for name, what, rule in ROWS:
        assert f"| `{name}` | {what} | {rule} |".replace("\\|", "|") in {line.replace("\\|", "|") for line in listed}, (
            name
        )


def test_the_page_lists_nothing_else():
    known = {name for name, _, _ in ROWS}
    for name in re.findall(r"^\| `([\w.]+)`", PAGE, re.M):
        if name not in known:  # only functions that this version of NumPy or SciPy lacks
            home, _, last = name.rpartition(".")
            module = np if home == "np" else pytest.importorskip(home.replace("np.", "numpy."))
            assert not hasattr(module, last), name


KNOWN = """
from riesz.tracing import registry
from riesz.tracing.rules import all_rules
tables = [registry.FUNCTIONS, registry.UFUNCS, registry.WRITERS, registry.BY_NAME]
before = [{*table} for table in tables]
all_rules.load_rules()
from riesz.tracing.writing import written
late = [key for table in tables for key, rule in table.items() if type(rule) is registry.Later]
known = {"as_type", "part", "plus", "refuse_marked", "refuse_number", "settled"}  # there in each trace
print(late, [{*table} - keys - known for table, keys in zip(tables, before)])
"""


def test_files_loaded_later_answer_for_the_functions_that_the_table_names():
    printed = subprocess.run([sys.executable, "-c", KNOWN], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == f"[] {[set[str]()] * 4}"


def test_every_rule_has_a_line():
    assert not coverage.unnoted()


@pytest.mark.parametrize("name", AUTOGRAD)
def test_numpy_functions_of_autograd(name):
    function = np
    for part in name.split("."):
        function = getattr(function, part)
    note = coverage.NOTES.get(function)
    assert note is not None and note[0] != "refused", name


@pytest.mark.parametrize("name", AUTOGRAD_SCIPY)
def test_scipy_functions_of_autograd(name):
    import scipy.linalg
    import scipy.special

    module, last = name.split(".")
    function = getattr({"special": scipy.special, "linalg": scipy.linalg}[module], last)
    note = coverage.NOTES.get(function)
    assert note is not None and note[0] != "refused", name
