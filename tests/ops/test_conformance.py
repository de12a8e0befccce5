"""One suite over the whole registry: every operator and composite, on every sample it brings.

-k "[exp]"        one operator
-k "test_values"  one property
"""

from __future__ import annotations

import inspect
import re
import sys
from contextlib import suppress

import numpy as np
import pytest

import weft as wf
from tests.ops import conformance as c
from tests.ops.by_operator import over
from weft.autodiff.check import check_grads
from weft.autodiff.reverse import gradients
from weft.core.dispatch import apply, canonical, group
from weft.core.errors import WeftError
from weft.core.facade import public_function
from weft.core.op import composites, registry

CASES = c.cases()
ERROR_CASES = c.cases(c.error_rule)


def has_floats(case, kinds=("float64",)):
    return any(a.dtype.name in kinds for a in c.Arguments.of(case.sample).arrays())


all_cases = over(CASES)
double_cases = over([case for case in CASES if has_floats(case)])
differentiable_cases = over(
    [case for case in CASES if case.sample.grad and has_floats(case, ("float32", "float64"))]
)
operator_cases = over([case for case in CASES if case.op is not None])
error_cases = over(ERROR_CASES)


# -- completeness ----------------------------------------------------------------------------------


def test_every_module_of_operators_is_imported_by_weft():
    assert not c.IMPORT_FAILURES
    loaded = {name for name in sys.modules if name.startswith("weft.ops")}
    assert loaded == c.IMPORTED_BY_WEFT, "weft/ops/__init__.py does not import them all"


def test_reference_modules_load_and_do_not_overlap():
    assert not c.REFERENCES.problems


def test_references_name_known_operators():
    known = {*registry, *composites}
    assert set(c.REFERENCES.values) <= known
    assert set(c.REFERENCES.samples) <= set(composites)
    assert set(c.REFERENCES.error_samples) <= set(composites)
    assert set(c.REFERENCES.grad_calls) <= known


def test_all_have_samples():
    assert not [name for name in c.names() if c.sample_rule(name) is None]


def test_all_but_random_ones_have_references():
    """In tests/ops/references/."""
    fixed = [n for n in c.names() if n in composites or registry[n].kind != "random"]
    assert not [name for name in fixed if name not in c.REFERENCES.values]


def test_all_have_kernels_and_documentation():
    assert not [name for name, record in registry.items() if record.kernel is None]
    assert not [name for name, record in registry.items() if not record.doc.strip()]


# -- values ----------------------------------------------------------------------------------------


@all_cases
def test_values(case):
    """The value is the reference's; inputs, read-only here, are left as they were."""
    given = c.Arguments.of(case.drawn())
    kept = given.map(np.copy)
    found = given.map(c.to_tensor).call(case.function)
    if case.reference is not None:
        c.assert_same_values(found, given.map(np.copy).call(case.reference), case.id)
    if case.is_random:
        again = given.map(c.to_tensor).call(case.function)
        c.assert_identical(found, again, f"{case.id} drawn twice")
    for array, before in zip(given.arrays(), kept.arrays(), strict=True):
        np.testing.assert_array_equal(array, before, err_msg=f"{case.id} changed an input")


ALWAYS_DOUBLE = {"float_power"}  # to compute in float64 is all that it adds to pow


@double_cases
def test_values_in_float32(case):
    """float32 inputs give the reference's value, in float32 wherever float64 gave float64."""
    double = c.Arguments.of(case.drawn())
    single = double.map(c.to_single)
    found = single.map(c.to_tensor).call(case.function)
    in_double = double.map(c.to_tensor).call(case.function)
    if case.reference is not None:
        c.assert_same_values(found, single.map(c.to_double).call(case.reference), case.id)
    if case.name not in ALWAYS_DOUBLE and not _names_float64(case.sample):
        for a, b in zip(c.outputs_of(found), c.outputs_of(in_double), strict=True):
            kept = c.as_array(b).dtype != np.float64 or c.as_array(a).dtype == np.float32
            assert kept, f"{case.id} makes {c.as_array(a).dtype} of float32"


def _names_float64(sample):
    """Tell whether an argument asks for the dtype float64."""
    named = [
        v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, (np.dtype, type, str))
    ]
    return any(v in (np.float64, "float64", "double", "d") for v in named)


# -- the paths an operation can take ---------------------------------------------------------------


@operator_cases
def test_shape_rule_and_canonical_attributes(case):
    arguments = c.Arguments.of(case.drawn()).map(c.to_tensor)
    for variant in (arguments, c.Arguments.of(case.sample).map(c.to_single).map(c.to_tensor)):
        recorder, result = c.record_call(case.op, variant)
        types, attrs = recorder.types(), recorder.attrs
        hash(attrs)
        again = canonical(case.op, c.flat(case.op, types), attrs)
        assert again == attrs, f"canon of {case.name} is not idempotent: {attrs} -> {again}"
        c.assert_types_match(case.op.type_rule(types, attrs), result, case.name)


@operator_cases
def test_every_path_gives_the_same_result(case):
    """The specialised call, the general path and the rules' raw path agree to the last bit."""
    arguments = c.Arguments.of(case.drawn()).map(c.to_tensor)
    expected = arguments.call(case.function)
    inputs, attrs = c.parameters(case.op, arguments)
    with np.errstate(all="ignore"):
        general = apply(case.op, tuple(inputs), attrs)
    c.assert_identical(general, expected, f"{case.id} by dispatch.apply")
    recorder, interpreted = c.record_call(case.op, arguments)
    c.assert_identical(interpreted, expected, f"{case.id} by an interpreter")
    raw = [None if x is None else c.as_array(x) for x in recorder.inputs]
    named = dict(zip(case.op.inputs, group(case.op, raw), strict=True))
    named |= dict(zip(case.op.attrs, recorder.attrs, strict=True))
    with np.errstate(all="ignore"):
        result = case.op.specialized.poly(**named)
    c.assert_identical(result, expected, f"{case.id} on raw arrays")


# -- derivatives -----------------------------------------------------------------------------------


@differentiable_cases
def test_gradients(case):
    """Derivatives agree with differences up to the order that the sample asks for."""
    sample = case.drawn()
    fn, given = case.differentiated(), c.Arguments.of(sample).map(c.to_tensor)
    check_grads(
        lambda args, kwargs: fn(*args, **kwargs),
        [given.args, given.kwargs],
        order=sample.grad,
        modes=("fwd", "rev"),
    )


@differentiable_cases
def test_gradients_keep_shape_and_dtype(case):
    sample = case.drawn()
    for convert in (np.copy, c.to_single):
        leaves = []

        def to_leaf(array, leaves=leaves):
            leaves.append(c.to_leaf(array))
            return leaves[-1]

        result = c.Arguments.of(sample).map(convert).map(to_leaf).call(case.function)
        ys = [y for y in c.outputs_of(result) if c.is_recorded(y)]
        xs = [x for x in leaves if x.requires_grad]
        kept = [x.numpy().copy() for x in xs]
        for x, g in zip(xs, gradients(ys, xs), strict=True):
            if g is not None:
                assert (g.shape, g.dtype) == (x.shape, x.dtype), f"gradient in {case.id}"
        for x, before in zip(xs, kept, strict=True):
            np.testing.assert_array_equal(x.numpy(), before, err_msg=f"{case.id} changed an input")


def test_operands_given_as_lists_of_tensors_have_the_same_gradients():
    seen, lost = set(), {}
    for case in CASES:
        if not case.sample.grad or case.is_random:
            continue
        for place, value in [*enumerate(case.sample.args), *case.sample.kwargs.items()]:
            is_rows = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim
            if not is_rows or not value.size or (case.name, place) in seen:
                continue
            seen.add((case.name, place))
            whole, rows = (_gradient_to(case, place, value, as_rows) for as_rows in (False, True))
            if whole is not None and (rows is None or not np.array_equal(whole, rows, True)):
                lost[case.id, place] = rows
    assert not lost


def _gradient_to(case, place, value, as_rows):
    """Return the gradient to one argument of a call, given whole or as the list of its rows."""
    leaf = c.to_leaf(value)
    arguments = c.Arguments.of(case.sample).map(c.to_tensor)
    given = {**dict(enumerate(arguments.args)), **arguments.kwargs}
    given[place] = list(leaf) if as_rows else leaf
    args = [given.pop(i) for i in range(len(arguments.args))]
    function = case.function if case.op is not None else public_function(case.name)
    results = [y for y in c.outputs_of(function(*args, **given)) if c.is_recorded(y)]
    grads = gradients(results, [leaf]) if results else [None]
    return None if grads[0] is None else grads[0].numpy()


# What chooses among kinds, moves the result in steps, or does not enter it in every call.
NO_VALUES = {
    ("batch_norm", "momentum"),
    ("cond", "p"),
    ("cumulative_trapezoid", "dx"),
    ("fractional_max_pool2d", "output_ratio"),
    ("histc", "max"),
    ("histc", "min"),
    ("instance_norm", "momentum"),
    ("nanquantile", "q"),
    ("quantile", "q"),
    ("tensordot", "axes"),
    ("trapezoid", "dx"),
}


def test_numbers_given_as_tensors_are_differentiated_or_refused():
    lost = set()
    for case in CASES:
        function = case.function if case.op is not None else public_function(case.name)
        bound = _bound(case, function)
        for name, value in list(bound.arguments.items()):
            is_whole = bound.signature.parameters[name].annotation in ("int", "int | None")
            if is_whole or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            bound.arguments[name] = wf.tensor(float(value), dtype="float64", requires_grad=True)
            with suppress(WeftError):
                outputs = c.outputs_of(function(*bound.args, **bound.kwargs))
                floats = [y for y in outputs if isinstance(y, wf.Tensor) and y.dtype.kind == "f"]
                if floats and not any(map(c.is_recorded, floats)):
                    lost.add((case.name, name))
            bound.arguments[name] = value
    assert lost <= NO_VALUES


def _bound(case, function):
    declared = case.op.declaration if case.op is not None else inspect.unwrap(function)
    signature = inspect.signature(declared)
    given = c.Arguments.of(case.sample).map(c.to_tensor)
    names = {k: k if k in signature.parameters else c.ALIASES[k] for k in given.kwargs}
    bound = signature.bind(*given.args, **{names[k]: v for k, v in given.kwargs.items()})
    bound.apply_defaults()
    return bound


def test_rules_on_arrays_give_arrays():
    """A tensor among the arrays of a backward walk would end it at the next operator."""
    found = {}
    for case in (case for case in CASES if case.op is not None and case.op.outputs == 1):
        if not case.sample.grad:
            continue
        result = c.Arguments.of(case.sample).map(c.to_leaf).call(case.function)
        node = result._node
        if node is not None:
            with np.errstate(all="ignore"):
                grads = case.op.backward(node, node.saved, np.ones(result.shape, result.dtype))
            found[case.name] = any(isinstance(g, wf.Tensor) for g in grads)
    assert not [name for name, gave_tensors in found.items() if gave_tensors]


# -- errors ----------------------------------------------------------------------------------------


@error_cases
def test_errors(case):
    """Bad input raises the stated builtin family, as a WeftError that names the operator."""
    sample = case.drawn()
    arguments = c.Arguments.of(sample).map(c.to_tensor)
    with pytest.raises(sample.error) as caught:
        arguments.call(case.function)
    message = str(caught.value)
    assert isinstance(caught.value, WeftError), f"{type(caught.value).__name__}: {message}"
    assert re.search(sample.match, message), f"{message!r} does not match {sample.match!r}"
    assert message.startswith(f"{case.name}: "), f"{message!r} does not begin with the name"
