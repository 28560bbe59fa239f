"""Columns of tables as codes: a number for each row's key, in the order of keys.

Small ranges of integers are counted. Other numbers are placed in a table by a hash, or sorted where most differ.
Strings of NumPy's are numbers of 64 bits, or hashed to some and compared. Objects go through a dict. pandas, Polars and
Arrow code their own strings. All of them find the same codes and the same keys.
"""

# pyright: basic, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from ..errors import RelationError
from .index_sets import Array

SAMPLE, FEW_ROWS, TABLE_BITS, BLOCK, LONGEST = 1 << 14, 1 << 12, 20, 1 << 15, 64
"""Rows looked at to tell whether most differ; up to how many are sorted; the size of a hash table; rows taken at a
time; the longest string that is as wide as all others."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Coded(NamedTuple):
    """The place of each row's key among the keys, which are sorted; −1 where there is none (NULL, None, nan, NaT)."""

    codes: Array
    keys: Array


def coded(given: Any) -> Coded:
    """A column as codes and keys.

    >>> coded(["b", None, "a", "b"])
    Coded(codes=array([ 1, -1,  0,  1]), keys=array(['a', 'b'], dtype=object))
    """
    room = type(given).__module__.partition(".")[0]
    if room == "pandas" and hasattr(given.dtype, "categories"):
        coding = getattr(given, "cat", given)  # of a column, or the categories themselves
        return _of_categories(np.asarray(coding.codes), _plain(coding.categories))
    if room == "pandas" and getattr(given.dtype, "kind", "") in "biu" and not isinstance(given.dtype, np.dtype):
        kind = given.dtype.numpy_dtype  # whole numbers and truth values, some of which may be missing
        missing = np.asarray(given.isna(), bool)
        return _coded_array(given.to_numpy(kind, na_value=kind.type(0)), missing if missing.any() else None)
    if room == "pandas" and not (isinstance(given.dtype, np.dtype) and given.dtype.kind in "biuf"):
        codes, keys = sys.modules["pandas"].factorize(given)
        return _in_order(codes, _plain(keys))
    if room == "polars" and str(given.dtype).startswith(("String", "Categorical", "Enum")):
        words = given.cast(sys.modules["polars"].String)
        keys = words.drop_nulls().unique().sort()
        codes = words.cast(sys.modules["polars"].Enum(keys)).to_physical().cast(int).fill_null(-1)
        return Coded(codes.to_numpy().astype(np.intp), np.array(keys.to_list(), object))
    if hasattr(given, "dictionary_encode"):  # Arrow
        whole = given.combine_chunks() if hasattr(given, "combine_chunks") else given
        whole = whole if hasattr(whole, "indices") else whole.dictionary_encode()
        codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        keys = coded(whole.dictionary.to_numpy(zero_copy_only=False))
        return _in_order(np.append(keys.codes, -1)[codes], keys.keys)  # nan is no null there
    return _coded_array(*_array(given))


def _of_categories(codes: Array, categories: Array) -> Coded:
    """Those of some categories that occur, in their order."""
    codes, seen = codes.astype(np.intp), np.zeros(len(categories) + 1, bool)
    seen[codes] = True  # what is missing at the end
    used = np.flatnonzero(seen[:-1])
    used = used[_order(categories[used])]
    place = np.full(len(seen), -1)
    place[used] = np.arange(len(used))
    return Coded(place[codes], categories[used])


def _plain(keys: Any) -> Array:
    """Distinct values of pandas' as an array."""
    return np.asarray(keys.to_numpy() if hasattr(keys, "to_numpy") else keys)


class Column(NamedTuple):
    """The values of a column, and which of them are missing (NULL, None, nan, NaT)."""

    values: Array
    missing: Array


def column(given: Any) -> Column:
    """A column as arrays.

    >>> column([1.0, float("nan")]).missing.tolist()
    [False, True]
    """
    values, missing = _array(given)
    gone = _gone(values) if values.dtype.kind != "O" else np.equal(values, None) | np.not_equal(values, values)
    found = [np.asarray(m, bool) for m in (missing, gone) if m is not None]
    return Column(values, np.logical_or.reduce([np.zeros(len(values), bool), *found]))


def _array(given: Any) -> tuple[Array, Array | None]:
    """The values of a column, and which of them are missing, as far as the column says so."""
    missing: Any = None
    if hasattr(given, "fetchnumpy"):  # DuckDB
        found = given.fetchnumpy()
        if len(found) != 1:
            raise RelationError(f"one column is due; got a table with {list(found)}: choose one")
        (given,) = found.values()
    if hasattr(given, "isna"):
        missing = np.asarray(given.isna(), bool)
    elif hasattr(given, "is_null"):
        missing = np.asarray(given.is_null(), bool)
        if missing.any() and hasattr(given, "null_count") and hasattr(given.dtype, "is_numeric"):  # whole numbers stay
            given = given.fill_null(0) if given.dtype.is_numeric() else given
    values: Any = np.ma.asanyarray(np.asarray(given.to_numpy()) if hasattr(given, "to_numpy") else given)
    if values.ndim != 1:
        raise RelationError(f"a column has one axis; got an array of shape {values.shape}")
    if values.dtype.names:
        raise RelationError(f"a key has one column; got records with {values.dtype.names}: give a tuple of columns")
    if np.ma.is_masked(values):
        missing = np.ma.getmaskarray(values) if missing is None else missing | np.ma.getmaskarray(values)
    return np.ma.getdata(values), missing


def _coded_array(values: Array, missing: Array | None) -> Coded:
    gone = _gone(values)
    missing = gone if missing is None else missing if gone is None else missing | gone
    if missing is None or not missing.any():
        return _codes(values)
    codes, keys = _codes(values[~missing])
    found = np.full(len(values), -1)
    found[~missing] = codes
    return Coded(found, keys)


def _gone(values: Array) -> Array | None:
    """Which values are missing by what they are."""
    match values.dtype.kind:
        case "f" | "c":
            return np.isnan(values)
        case "m" | "M":
            return np.isnat(values)
        case _:
            return None  # objects: see `_objects`


def _codes(values: Array) -> Coded:
    """Codes and keys of values none of which is missing, unless they are objects."""
    kind = values.dtype.kind
    if kind in "biu":
        return _counted(values) or _numbers(values, values)
    if kind in "mM":
        codes, keys = _codes(values.view(np.int64))
        return Coded(codes, keys.view(values.dtype))
    if kind == "f" and values.dtype.itemsize <= 8:
        whole = values + values.dtype.type(0)  # −0 is 0
        if (pandas := sys.modules.get("pandas")) is not None and len(values) > FEW_ROWS:
            return _in_order(*pandas.factorize(whole))
        return _numbers(whole, whole.astype(np.float64, copy=False).view(np.uint64))
    if kind == "T":
        longest = int(np.strings.str_len(values).max(initial=0))
        codes, keys = _codes(values.astype(f"U{max(longest, 1)}" if longest <= LONGEST else object))
        return Coded(codes, keys.astype(values.dtype))
    if kind in "US" and values.itemsize:
        return _strings(values)
    if kind == "O":
        return _objects(values)
    keys, codes = np.unique(values, return_inverse=True)
    return Coded(codes.reshape(-1), keys)


def _counted(values: Array) -> Coded | None:
    """Integers of a small range: which of it occur."""
    if not len(values):
        return Coded(np.zeros(0, np.intp), values)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > 4 * len(values) + FEW_ROWS:
        return None
    unsigned = values.dtype.kind == "u"  # these may be too large
    places = (values - values.dtype.type(low)).astype(np.intp) if unsigned else values.astype(np.intp) - low
    seen = np.zeros(span, bool)
    seen[places] = True
    found = np.flatnonzero(seen)
    if len(found) < span:
        places = (np.cumsum(seen) - 1)[places]
    return Coded(places, found.astype(values.dtype) + values.dtype.type(low) if low else found.astype(values.dtype))


def _numbers(values: Array, bits: Array) -> Coded:
    """Numbers, each with its bits: equal numbers have equal bits."""
    bits = bits.astype(np.uint64, copy=False)
    some = bits[:: max(len(bits) // SAMPLE, 1)]
    different = len(np.unique(some)) if len(values) > FEW_ROWS else len(some)
    few = 2 * different < len(some)
    codes = _hashed(bits, min(different.bit_length() + 4, TABLE_BITS)) if few else None
    if codes is not None:
        return _in_order(codes, values[_some(codes, int(codes.max()) + 1)])
    order = np.argsort(values)
    ordered = values[order]
    new = np.ones(len(values), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    codes = np.empty(len(values), np.intp)
    codes[order] = np.cumsum(new) - 1
    return Coded(codes, ordered[new])


def _hashed(bits: Array, size: int) -> Array | None:
    """A number below their count for each value, in no order: values are put into a table of 2^size, those that met
    another one into the next. None where there is no end to it."""
    codes, rest, at, count = np.empty(len(bits), np.intp), bits, np.zeros(0, np.intp), 0
    table, number = np.zeros(1 << size, np.uint64), np.zeros(1 << size, np.intp)
    for turn in range(1, 16, 2):
        places, factor = np.empty(len(rest), np.intp), np.uint64(int(_ODD) * turn % 2**64)
        blocks = [slice(low, low + BLOCK) for low in range(0, len(rest), BLOCK)]  # they stay in the cache
        for block in blocks:
            np.right_shift(rest[block] * factor, np.uint64(64 - size), out=places[block].view(np.uint64))
            table[places[block]] = rest[block]
            number[places[block]] = -1
        slots = np.flatnonzero(number < 0)
        number[slots] = np.arange(count, count + len(slots))
        met: list[Array] = []
        for block in blocks:
            codes[at[block] if turn > 1 else block] = number[places[block]]
            met.append(np.flatnonzero(table[places[block]] != rest[block]) + block.start)
        number[slots], count = 0, count + len(slots)
        where = np.concatenate(met)
        if not len(where):
            return codes
        rest, at = rest[where], at[where] if turn > 1 else where
    return None


def _some(codes: Array, count: int) -> Array:
    """A row for each code."""
    rows = np.empty(count, np.intp)
    rows[codes] = np.arange(len(codes))
    return rows


def _in_order(codes: Any, keys: Array) -> Coded:
    """Codes of distinct keys, sorted; keys that cannot be compared stay as they are."""
    order = _order(keys)
    places = np.empty(len(keys) + 1, np.intp)
    places[order], places[-1] = np.arange(len(keys)), -1
    return Coded(places[codes], keys[order])


def _order(keys: Array) -> Array:
    if keys.dtype.kind == "O":
        given = keys.tolist()
        words = _letters(given) if len(given) > FEW_ROWS else None
        if words is None:
            try:
                return np.array(sorted(range(len(given)), key=given.__getitem__), np.intp)
            except TypeError:
                return np.arange(len(given))
        keys = words
    if keys.dtype.kind in "US" and keys.itemsize:
        return np.lexsort(_words(keys).T[::-1])
    return np.argsort(keys, kind="stable")


def _letters(given: list[Any]) -> Array | None:
    """Short strings of ASCII letters as an array of one width; None for anything else."""
    try:
        whole = "\0".join(given)
    except TypeError:
        return None
    if not whole.isascii():
        return None
    letters = np.frombuffer(whole.encode() + b"\0", np.uint8)
    ends = np.flatnonzero(letters == 0)
    lengths = np.diff(ends, prepend=-1) - 1
    width = int(lengths.max(initial=0))
    if len(ends) != len(given) or not 0 < width <= LONGEST:
        return None
    found = np.zeros((len(given), width), np.uint8)
    found[np.arange(width) < lengths[:, None]] = letters[letters != 0]
    return found.view(f"S{width}").reshape(-1)


def _words(values: Array) -> Array:
    """Strings of one width as rows of numbers in the same order: eight letters in each, if they are bytes."""
    letters = np.ascontiguousarray(values).view(np.uint32 if values.dtype.kind == "U" else np.uint8)
    letters = letters.reshape(len(values), -1)
    if int(letters.max(initial=0)) >= 256:
        return letters
    found = np.zeros((len(values), -(-letters.shape[1] // 8)), np.uint64)
    for low in range(0, len(values), BLOCK):
        block = letters[low : low + BLOCK]
        for j in range(letters.shape[1]):
            part = found[low : low + BLOCK, j // 8]
            part <<= np.uint64(8)
            part |= block[:, j]
    return found


def _strings(values: Array) -> Coded:
    """Strings of one width: as numbers where eight bytes hold them, else by a hash that is checked."""
    words = _words(values)
    if words.shape[1] == 1:
        codes, keys = _numbers(words[:, 0], words[:, 0])
        return Coded(codes, values[_some(codes, len(keys))])
    bits = np.zeros(len(values), np.uint64)
    for low in range(0, len(values), BLOCK):
        part = bits[low : low + BLOCK]
        for j in range(words.shape[1]):
            part ^= words[low : low + BLOCK, j]
            part *= _ODD
            part ^= part >> np.uint64(29)
    codes, keys = _numbers(bits, bits)
    some = _some(codes, len(keys))
    if not (words[some][codes] == words).all():  # two strings with one hash
        keys, codes = np.unique(values, return_inverse=True)
        return Coded(codes.reshape(-1), keys)
    return _in_order(codes, values[some])


def _objects(values: Array) -> Coded:
    """Objects by their hashes, and equality."""
    pandas, some = sys.modules.get("pandas"), values[:: max(len(values) // SAMPLE, 1)].tolist()
    try:
        many = len(values) > FEW_ROWS and 10 * len(set(some)) > 9 * len(some)
        words = _letters(values.tolist()) if many else None
        if words is not None:
            codes, keys = _strings(words)
            return Coded(codes, keys.astype(str).astype(object))
        if pandas is not None and len(values) > FEW_ROWS:
            codes = np.asarray(pandas.factorize(values)[0], np.intp)
            count = int(codes.max(initial=-1)) + 1
        else:
            known: Any = defaultdict(itertools.count().__next__)
            codes = np.fromiter(map(known.__getitem__, values.tolist()), np.intp, len(values))
            count = len(known)
    except TypeError as problem:
        raise RelationError(f"keys are values with a hash, such as numbers and words: {problem}") from None
    first = np.empty(count + 1, np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # those that pandas takes for missing at the end
    keys = values[first[:count]]
    gone = np.equal(keys, None).astype(bool) | np.not_equal(keys, keys).astype(bool)
    if gone.any():
        codes = np.append(np.where(gone, -1, np.cumsum(~gone) - 1), -1)[codes]
    return _in_order(codes, keys[~gone])


def combined(columns: list[Coded]) -> Coded:
    """One code for each row of several columns, in the order of their keys; the keys are rows that have them."""
    flat = columns[0].codes
    for c in columns[1:]:
        missing = (flat < 0) | (c.codes < 0)
        flat = _coded_array(flat * max(len(c.keys), 1) + c.codes, missing).codes
    return Coded(flat, _some_present(flat))


def _some_present(codes: Array) -> Array:
    count = int(codes.max(initial=-1)) + 1
    rows = np.empty(count + 1, np.intp)
    rows[codes] = np.arange(len(codes))  # those without a code at the end
    return rows[:count]
