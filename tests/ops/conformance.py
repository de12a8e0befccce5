"""What the conformance suite works with: every operator, its samples, and its reference.

`load` imports every module of weft.ops. Reference modules (tests/ops/references/*.py) hold

    REFERENCES               operator or composite name -> independent computation on NumPy arrays
    COMPOSITE_SAMPLES        composite name -> rule that yields Samples from a Sampler
    COMPOSITE_ERROR_SAMPLES  likewise for ErrorSamples (optional)
    GRAD_CALLS               name -> call(fn, *args, **kwargs) to differentiate in place of fn,
                             where inputs are constrained or outputs unique only up to a choice:
                             symmetrise a matrix first, drop the sign of a vector (optional)
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weft
import weft.ops
from weft.core import op as op_module
from weft.core.dispatch import group
from weft.core.methods import attach_operators
from weft.core.modes import interpret_with
from weft.core.op import Op, load_all
from weft.core.samples import ErrorSample, Sample, Sampler
from weft.core.shape import TensorType, type_of
from weft.core.tensor import Tensor, make_leaf

OPERATOR_DIR = Path(weft.ops.__path__[0])
REFERENCE_DIR = Path(__file__).parent / "references"
ALIASES = {"dim": "axis", "keepdim": "keepdims"}


# -- loading --------------------------------------------------------------------------------------


def load() -> dict[str, str]:
    """Import every module of weft.ops; return the errors of those that fail, by module name."""
    failures = {}
    before = len(sys.modules)
    for path in sorted(OPERATOR_DIR.rglob("*.py")):
        name = ".".join(path.relative_to(OPERATOR_DIR.parent.parent).with_suffix("").parts)
        try:
            importlib.import_module(name.removesuffix(".__init__"))
        except Exception as error:  # one broken module must not hide all others
            failures[name] = f"{type(error).__name__}: {error}"
    if len(sys.modules) != before:
        attach_operators()
    return failures


load_all()
importlib.import_module("weft.signal")  # public, and loaded with its windows when it is asked for
IMPORTED_BY_WEFT = frozenset(name for name in sys.modules if name.startswith("weft.ops"))
IMPORT_FAILURES = load()


class References:
    """The merged contents of all reference modules."""

    def __init__(self) -> None:
        self.values: dict[str, Callable[..., Any]] = {}
        self.samples: dict[str, Callable[[Sampler], Any]] = {}
        self.error_samples: dict[str, Callable[[Sampler], Any]] = {}
        self.grad_calls: dict[str, Callable[..., Any]] = {}
        self.problems: dict[str, str] = {}
        for path in sorted(REFERENCE_DIR.glob("*.py")):
            self._read(path.stem)

    def _read(self, stem: str) -> None:
        try:
            module = importlib.import_module(f"tests.ops.references.{stem}")
        except Exception as error:  # reported as a failing test
            self.problems[stem] = f"{type(error).__name__}: {error}"
            return
        self._merge(stem, self.values, getattr(module, "REFERENCES", {}))
        self._merge(stem, self.samples, getattr(module, "COMPOSITE_SAMPLES", {}))
        self._merge(stem, self.error_samples, getattr(module, "COMPOSITE_ERROR_SAMPLES", {}))
        self._merge(stem, self.grad_calls, getattr(module, "GRAD_CALLS", {}))

    def _merge(self, stem: str, into: dict[str, Any], new: dict[str, Any]) -> None:
        repeated = sorted(into.keys() & new.keys())
        if repeated:
            self.problems[stem] = f"{stem}.py gives again what another module gives: {repeated}"
        into.update(new)


REFERENCES = References()


# -- cases ----------------------------------------------------------------------------------------


class Case:
    """One sample of one operator or composite; `sample` is an error if it could not be drawn."""

    def __init__(self, name: str, sample: Any, index: int) -> None:
        self.name = name
        self.sample = sample
        self.index = index
        self.id = f"{name}-{index}"
        self.op: Op | None = op_module.registry.get(name)

    @property
    def function(self) -> Callable[..., Any]:
        return self.op.function if self.op is not None else op_module.composites[self.name]

    @property
    def reference(self) -> Callable[..., Any] | None:
        return REFERENCES.values.get(self.name)

    @property
    def is_random(self) -> bool:
        return self.op is not None and self.op.kind == op_module.random

    def drawn(self) -> Any:
        """Return the sample, or raise what its rule raised."""
        if isinstance(self.sample, Exception):
            raise self.sample
        return self.sample

    def differentiated(self) -> Callable[..., Any]:
        """Return the function whose derivatives are checked."""
        call = REFERENCES.grad_calls.get(self.name)
        fn = self.function
        return fn if call is None else lambda *args, **kwargs: call(fn, *args, **kwargs)


def names() -> list[str]:
    """Return the names of all operators and composites."""
    return [*op_module.registry, *op_module.composites]


def sample_rule(name: str) -> Callable[[Sampler], Any] | None:
    """Return the rule that draws samples of an operator or composite."""
    record = op_module.registry.get(name)
    return record.sample_rule if record is not None else REFERENCES.samples.get(name)


def error_rule(name: str) -> Callable[[Sampler], Any] | None:
    """Return the rule that draws bad inputs of an operator or composite."""
    record = op_module.registry.get(name)
    if record is None:
        return REFERENCES.error_samples.get(name)
    return _with_common_errors(record) if _takes_tensors_alone(record) else record.error_rule


def _takes_tensors_alone(record: Any) -> bool:
    """Tell whether an elementwise operator can be called with one or two tensors and no more."""
    parameters = inspect.signature(record.declaration).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty]
    return record.kind == "elementwise" and len(needed) < 3 and needed == list(record.inputs)


def _with_common_errors(record: Any) -> Callable[[Sampler], Any]:
    """Return bad inputs that no elementwise operator takes, and those of one of them."""

    def draw(s: Sampler) -> Iterator[ErrorSample]:
        no_tensor = f"{record.inputs[-1]} must be a tensor.*text"
        if len(record.inputs) == 1:
            yield ErrorSample("text", error=TypeError, match=no_tensor)
            yield ErrorSample([[1.0], [2.0, 3.0]], error=ValueError, match="ragged")
        else:
            two, three = s.integers(2), s.integers(3)  # which all of them take
            yield ErrorSample(two, three, error=ValueError, match=r"\(2,\) and \(3,\)")
            yield ErrorSample(two, "text", error=TypeError, match=no_tensor)
        yield from record.error_rule(s) if record.error_rule is not None else ()

    return draw


def cases(rule_of: Callable[[str], Callable[[Sampler], Any] | None] = sample_rule) -> list[Case]:
    """Return all samples of all operators and composites."""
    return [
        Case(name, sample, i) for name in names() for i, sample in enumerate(_draw(rule_of(name)))
    ]


def _draw(rule: Callable[[Sampler], Any] | None) -> Iterator[Any]:
    try:
        yield from rule(Sampler()) if rule is not None else ()
    except Exception as error:  # shown by the tests of this case
        yield error


# -- arguments ------------------------------------------------------------------------------------


def map_arrays(fn: Callable[[np.ndarray], Any], value: Any) -> Any:
    """Return an argument with `fn` applied to each array in it, also in lists and tuples."""
    if isinstance(value, np.ndarray):
        return fn(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map_arrays(fn, item) for item in value)
    return value


class Arguments:
    """Arguments of one call."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    @classmethod
    def of(cls, sample: Sample) -> Arguments:
        return cls(sample.args, sample.kwargs)

    def map(self, fn: Callable[[np.ndarray], Any]) -> Arguments:
        """Return the arguments with `fn` applied to each array."""
        args = tuple(map_arrays(fn, a) for a in self.args)
        return Arguments(args, {k: map_arrays(fn, v) for k, v in self.kwargs.items()})

    def arrays(self) -> list[np.ndarray]:
        """Return all arrays."""
        found: list[np.ndarray] = []
        self.map(found.append)
        return found

    def call(self, fn: Callable[..., Any]) -> Any:
        """Call a function; a NaN or infinity is a value here, not an occasion to warn."""
        with np.errstate(all="ignore"):
            return fn(*self.args, **self.kwargs)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return an array (same strides, same memory) that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def to_single(array: np.ndarray) -> np.ndarray:
    """Return float64 arrays as float32, others as they are."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


def to_double(array: np.ndarray) -> np.ndarray:
    """Return float32 arrays as float64, others as they are."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def to_tensor(array: np.ndarray) -> Tensor:
    """Return an array as a tensor that shares its memory."""
    return make_leaf(read_only(array), False, None)


def to_leaf(array: np.ndarray) -> Tensor:
    """Return an array as a tensor, differentiable if it is floating."""
    return make_leaf(read_only(array), array.dtype.kind == "f", None)


def parameters(record: Op, arguments: Arguments) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the flat inputs and all attributes of a call, defaults filled in."""
    kwargs = {
        ALIASES.get(k, k) if k not in record.attrs else k: v for k, v in arguments.kwargs.items()
    }
    bound = inspect.signature(record.declaration).bind(*arguments.args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    fixed = record.inputs[:-1] if record.variadic else record.inputs
    inputs = [given[name] for name in fixed]
    if record.variadic:
        inputs += list(given[record.inputs[-1]])
    return inputs, tuple(given[name] for name in record.attrs)


# -- what an operator was given -------------------------------------------------------------------


class Recorder:
    """An interpreter that runs eagerly and keeps the promoted operands of one operator."""

    def __init__(self, record: Op) -> None:
        self.record = record
        self.inputs: tuple[Any, ...] | None = None
        self.attrs: tuple[Any, ...] = ()

    def apply(self, record: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if record is self.record:
            self.inputs, self.attrs = inputs, attrs
        return record.specialized.execute(inputs, attrs)

    def types(self) -> tuple[Any, ...]:
        """Return the operands' types, as the shape rule receives them."""
        assert self.inputs is not None, "the operator was not run"
        return group(self.record, [None if x is None else type_of(x) for x in self.inputs])


def record_call(record: Op, arguments: Arguments) -> tuple[Recorder, Any]:
    """Call an operator and return what reached its kernel, and the result."""
    recorder = Recorder(record)
    with interpret_with(recorder):
        result = arguments.call(record.function)
    return recorder, result


# -- results --------------------------------------------------------------------------------------


def outputs_of(result: Any) -> list[Any]:
    """Return a result as a list of outputs; numbers and other plain values stay as they are."""
    if isinstance(result, (tuple, list)):
        return [output for part in result for output in outputs_of(part)]
    return [result]


def is_recorded(output: Any) -> bool:
    """Tell whether gradients flow through an output."""
    return getattr(output, "requires_grad", False)


def as_array(value: Any) -> np.ndarray:
    """Return an output as an array."""
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def assert_types_match(inferred: Any, result: Any, what: str) -> None:
    """Assert that a shape rule foretold the outputs; None is a size that depends on the data."""
    rule = [inferred] if isinstance(inferred, TensorType) else list(inferred)
    found = [type_of(output) for output in outputs_of(result)]
    assert len(rule) == len(found), f"the shape rule of {what} gives {len(rule)} outputs"
    for i, (t, actual) in enumerate(zip(rule, found, strict=True)):
        message = f"the shape rule of {what} gives {t} for output {i}, which is {actual}"
        assert t.dtype == actual.dtype, message
        assert len(t.shape) == len(actual.shape), message
        assert all(n in (None, m) for n, m in zip(t.shape, actual.shape, strict=True)), message


def flat(record: Op, grouped: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an operator's parameters as flat operands: the inverse of `dispatch.group`."""
    return (*grouped[:-1], *grouped[-1]) if record.variadic else grouped


TOLERANCES = {"float64": 1e-10, "float32": 2e-5, "float16": 2e-2, "bfloat16": 2e-2}


def assert_same_values(found: Any, expected: Any, what: str) -> None:
    """Assert that outputs agree with the reference's within the precision of their dtype."""
    founds, expecteds = outputs_of(found), outputs_of(expected)
    assert len(founds) == len(expecteds), f"{what}: {len(founds)} outputs, not {len(expecteds)}"
    for i, pair in enumerate(zip(founds, expecteds, strict=True)):
        _assert_close(*map(as_array, pair), f"{what}, output {i}")


def _assert_close(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    kinds = found.dtype.kind.replace("u", "i"), expected.dtype.kind.replace("u", "i")
    assert kinds[0] == kinds[1], f"{what}: dtype {found.dtype}, but the reference {expected.dtype}"
    tolerance = TOLERANCES.get(found.dtype.name, 0)
    wide = expected.astype(np.float64) if tolerance else expected
    finite = np.abs(wide[np.isfinite(wide)]) if tolerance else ()
    scale = max(1.0, float(np.max(finite))) if len(finite) else 1.0
    np.testing.assert_allclose(
        found.astype(np.float64) if tolerance else found,
        wide,
        rtol=tolerance * 10,
        atol=tolerance * scale,
        err_msg=what,
    )


def assert_identical(found: Any, expected: Any, what: str) -> None:
    """Assert that two results are equal to the last bit."""
    pairs = zip(outputs_of(found), outputs_of(expected), strict=True)
    for i, (a, b) in enumerate((as_array(a), as_array(b)) for a, b in pairs):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{what}, output {i}"
        np.testing.assert_array_equal(a, b, err_msg=f"{what}, output {i}", strict=True)
