"""The records of scalar functions, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from weft.backends.cpu.codegen.scalars import WRITERS, ByDType, mathematics
from weft.core.scalar.builder import ScalarBuilder, is_defined
from weft.core.scalar.functions import EXACT, FUNCTIONS, ROUNDED

STRUCTURAL = {"bits", "cast", "select"}  # written where they stand


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_there_is_one_writer(name):
    record = FUNCTIONS[name]
    if name in STRUCTURAL or record.composed is not None:
        assert name not in WRITERS
        return
    writer = WRITERS.get(name)
    if isinstance(writer, ByDType):
        assert writer.floats is not None or "f" not in record.on or mathematics(name)
        assert set(record.on) & set("iub")
    elif writer is None:
        assert mathematics(name)


def test_writers_are_of_known_functions():
    assert set(WRITERS) <= set(FUNCTIONS)


SAMPLES = {"f": "float32", "i": "int32", "u": "uint64", "b": "bool"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - STRUCTURAL))
def test_numpy_gives_the_dtype_that_the_builder_says(name):
    record = FUNCTIONS[name]
    for kind in record.on:
        dtype = np.dtype(SAMPLES["u" if name == "upper_product" else kind])
        arrays = [np.ones(3, dtype), np.array(1, dtype)][: record.arity]
        with np.errstate(divide="ignore"):
            found = record.numpy(*arrays)
        if (name, kind) == ("square", "b"):
            continue  # NumPy's is int8
        assert found.dtype == (np.bool_ if record.result == "bool" else dtype), (name, kind)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_are_defined_where_they_say(name):
    record, b = FUNCTIONS[name], ScalarBuilder()
    if name in STRUCTURAL or record.composed is not None:
        return
    for kind, sample in SAMPLES.items():
        args = tuple(b.load(i, np.dtype(sample)) for i in range(record.arity))
        assert is_defined(b.make(name, args, np.dtype(sample))) == (kind in record.on)


def test_what_is_rounded_once_is_what_numpy_gives():
    rounded = {n for n, r in FUNCTIONS.items() if r.ulps == ROUNDED}
    assert {"add", "sub", "mul", "div", "sqrt", "reciprocal", "square"} <= rounded
    assert {n for n, r in FUNCTIONS.items() if r.ulps == EXACT} & rounded == set()


def test_an_unknown_function_is_refused():
    with pytest.raises(AttributeError, match="no function 'softer'"):
        ScalarBuilder().softer(1)
