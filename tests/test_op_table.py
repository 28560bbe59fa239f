"""Every op has a rule, or a word why it has none, in every interpretation; docs/ops.md shows them."""

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest
from test_layout import FILES

import riesz as rz
from riesz.calculus.batching import BATCHED, Lane, Mapped
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Linear, Op, contraction
from riesz.ops.op_rules import LATE, OpRules
from riesz.programs.cost import flops
from riesz.programs.passes.deferring import Deferred
from riesz.programs.passes.fusing import SparseProduct
from riesz.programs.program import Program
from riesz.relations import Function, Gather
from riesz.relations.index_sets import seg

op_table = pytest.importorskip("riesz.checking.op_table")
pytest.importorskip("jax")
PAGE = Path(__file__).parent.parent / "docs" / "ops.md"
TABLES = {rules.where: rules for group in op_table.tables().values() for rules in group.values()}


class Unheard(Op):
    """An op that no table knows."""

    def run(self, *xs):
        return xs[0]


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == op_table.page(), "write it again: python -m riesz.checking.op_table > docs/ops.md"


def test_no_cell_is_empty():
    assert op_table.lacking(op_table.ops()) == []
    assert {"float", "Contraction", "Loop", "SparseProduct", "HermitianFourier"} <= {
        kind.__name__ for kind in op_table.ops()
    }


def test_an_op_without_a_row_is_told_what_to_write():
    found = op_table.lacking([Unheard])
    assert len(found) == len(TABLES)
    line = '@FLOPS("a few words", Unheard) over one, in src/riesz/programs/cost.py or beside the class'
    assert f"Unheard has no rule in programs.cost.FLOPS: put {line}" in found
    with pytest.raises(NotImplementedError, match=r"Unheard has no rule in programs\.cost\.FLOPS"):
        flops(Unheard(), [(3,)], (3,))


@pytest.mark.parametrize("where", sorted(TABLES))
def test_tables_are_where_they_say(where):
    file, _, name = where.rpartition(".")
    assert getattr(importlib.import_module(f"riesz.{file}"), name) is TABLES[where]
    assert Op not in TABLES[where].words, "a rule of all ops is a silent default"
    assert all(TABLES[where].words.values())


def test_all_tables_are_shown():
    """Each `NAME = OpRules[…](…)` of the source is a column."""
    made = [node for f in FILES for node in ast.parse(f.read_text()).body if isinstance(node, ast.Assign)]
    made = [node for node in made if isinstance(node.value, ast.Call) and "OpRules" in ast.dump(node.value.func)]
    assert len(made) == len(TABLES)


def test_a_class_has_the_rule_of_its_nearest_parent():
    rules = OpRules("somewhere.RULES")
    rules("linear", Linear)(lambda: 1)
    rules("unheard of", Unheard)(lambda: 2)
    small, late = type("Small", (Unheard,), {}), type("Late", (Op,), {"made_to_run": True})
    assert (rules[small](), rules.word(small), rules.word(late), rules.word(Op)) == (2, "unheard of", LATE, None)
    with pytest.raises(NotImplementedError, match=r"Late has no rule in somewhere\.RULES"):
        rules[late]


def test_ops_made_to_run_are_not_batched():
    """They ran on arrays with an axis too many, which SciPy complained about where it could."""
    op = SparseProduct(Gather(seg(3), seg(3), np.array([1, 2, 0])), Function(seg(3), seg(3), np.array([0, 0, 2])))
    assert BATCHED.word(SparseProduct) == LATE
    with pytest.raises(NotImplementedError, match="SparseProduct has no rule"):
        Mapped(NUMBERS, 3).step(op, [Lane(np.ones((3, 3)), True), Lane(np.ones(3), False)])


def test_a_deferred_guard_costs_its_product():
    """It cost as many operations as its largest array has numbers."""
    guarded = contraction(((0, 1), (1,), (0,)), (0,), None, (2,), 1)
    assert flops(Deferred(guarded, Program()), [(5, 7), (7,), (5,)], (5,)) == 2 * 5 * 7


def test_functions_called_like_a_comparison_are_printed_as_functions():
    @rz.custom_derivative
    def less(x, y):
        return x * y

    less.derivative(lambda x, y: lambda dx, dy: dx * y + x * dy)
    assert "less(x" in str(rz.derive(lambda x: less(x, x + 1.0), rz.R).programs.affine)
