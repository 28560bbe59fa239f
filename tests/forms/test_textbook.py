"""Closed forms beside the formulas of textbooks: as short, and the same numbers however they are read."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from sampling import sampled
from textbook import MACHINERY, Row, rows

import riesz as rz

TABLE = rows()
CHOSEN = sampled(range(len(TABLE)), 3)
NAMES = [f"{k} {row[0]}: {row[1]}".replace("\n", " ") for k, row in enumerate(TABLE)]


@functools.cache
def row(k: int) -> Row:
    return Row(*TABLE[k])


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        one = np.asarray(one, float)
        np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", CHOSEN, ids=lambda k: NAMES[k])
def test_a_form_and_the_book_say_the_derivative(k):
    given = row(k)
    expected = given.expected()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # logarithms beside where(…)
        same(given.said(given.book), expected)
        if given.form.written().problem:
            return
        same(given.said(given.text), expected)
        space: dict = {}
        exec(compile(given.form.code("numpy"), "<closed form>", "exec"), space)
        several = given.kind == "gradient" and len(given.at) > 1
        found = space[given.kind](*given.arguments)
        same(found if several else [found], expected)
        try:
            text = given.form.code("text")
        except rz.ExpressionError:
            return
        found = rz.function(text)(*given.arguments)
        same(found if several else [found], expected)


def test_nearly_all_forms_are_as_short_as_the_book():
    others = [NAMES[k] for k in CHOSEN if not row(k).like_the_book]
    assert len(TABLE) >= 920
    assert len(others) <= 0.08 * len(CHOSEN), others


def test_no_form_has_raw_entries():
    shown = [row(k) for k in CHOSEN if not row(k).form.written().problem]
    assert not [given.text for given in shown if MACHINERY.search(given.text)]
    assert len(shown) >= 0.97 * len(CHOSEN)
