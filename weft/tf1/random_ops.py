"""Random tensors: each operation draws from numbers of its own, which seeds decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import F
from ..ops.random import draw
from .array_ops import shape_tensor
from .dtypes import as_dtype
from .environment import whole_numbers
from .graph import Operation, get_default_graph
from .recording import Tensor, convert_to_tensor, finished, graph_of, is_tensor


class RandomOperation(Operation):
    """An operation that draws random numbers.

    draw   takes the values of the inputs, and the generator by keyword
    """

    effect = True

    def __init__(
        self, type: str, draws: Callable[..., Any], inputs: Sequence[Any], seed: Any, **options: Any
    ) -> None:
        tensors = [convert_to_tensor(x) for x in inputs]
        graph = graph_of(tensors)
        super().__init__(graph, type, tensors, **options)
        self.draws = draws
        self.graph_seed = graph.seed
        self.seed = seed if seed is not None or graph.seed is None else len(graph.operations)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Draw."""
        return self.draws(*values, generator=env.generator(self))


def random_operation(
    type: str,
    draws: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    seed: Any,
    dtype: Any,
    name: str | None,
    static: Sequence[int] = (),
    differentiable: bool = False,
) -> Tensor:
    """Add an operation that draws; return its result."""
    operation = RandomOperation(
        type, draws, inputs, seed, name=name, static=static, differentiable=differentiable
    )
    made: Tensor = finished(operation, dtype=dtype)
    return made


def set_random_seed(seed: int) -> None:
    """Set the seed of the graph: what its operations draw follows from it."""
    get_default_graph().seed = seed


def get_seed(op_seed: Any) -> tuple[Any, Any]:
    """Return the seed of the graph and of an operation."""
    return get_default_graph().seed, op_seed


def _parameter(value: Any, kind: Any) -> Any:
    return convert_to_tensor(value, None if is_tensor(value) else kind)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from a normal distribution."""
    kind = as_dtype(dtype)

    def draws(to: Any, mu: Any, sigma: Any, *, generator: Any) -> Any:
        return mu + sigma * draw.randn(whole_numbers(to), dtype=kind.dtype, generator=generator)

    inputs = [shape_tensor(shape), _parameter(mean, kind), _parameter(stddev, kind)]
    return random_operation(
        "RandomStandardNormal",
        draws,
        inputs,
        seed=seed,
        dtype=kind,
        name=name or "random_normal",
        static=[0],
        differentiable=True,
    )


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from a normal distribution within two standard deviations."""
    kind = as_dtype(dtype)

    def draws(to: Any, mu: Any, sigma: Any, *, generator: Any) -> Any:
        z = draw.truncated_normal(shape=whole_numbers(to), dtype=kind.dtype, generator=generator)
        return mu + sigma * z

    inputs = [shape_tensor(shape), _parameter(mean, kind), _parameter(stddev, kind)]
    return random_operation(
        "TruncatedNormal",
        draws,
        inputs,
        seed=seed,
        dtype=kind,
        name=name or "truncated_normal",
        static=[0],
        differentiable=True,
    )


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return uniform draws from minval up to, and not with, maxval."""
    kind = as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise ValueError(
                "Must specify maxval for integer dtype 'int32'".replace("int32", kind.name)
            )
        maxval = 1

    def draws(to: Any, low: Any, high: Any, *, generator: Any) -> Any:
        u = draw.rand(
            whole_numbers(to),
            dtype="float64" if kind.is_integer else kind.dtype,
            generator=generator,
        )
        if kind.is_integer:
            return F.cast(F.floor(low + (high - low) * u), kind.dtype)
        return low + (high - low) * u

    inputs = [shape_tensor(shape), _parameter(minval, kind), _parameter(maxval, kind)]
    return random_operation(
        "RandomUniform",
        draws,
        inputs,
        seed=seed,
        dtype=kind,
        name=name or "random_uniform",
        static=[0],
        differentiable=True,
    )


def random_shuffle(value: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Return the rows of a tensor in random order."""
    x = convert_to_tensor(value)
    return random_operation(
        "RandomShuffle",
        lambda x, *, generator: draw.permutation(x, 0, generator=generator),
        [x],
        seed=seed,
        dtype=x.dtype,
        name=name,
    )


def multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any = None,
    name: str | None = None,
    output_dtype: Any = "int64",
) -> Tensor:
    """Return draws of classes by unnormalised log probabilities; rows are examples."""
    kind = as_dtype(output_dtype)

    def draws(x: Any, n: Any, *, generator: Any) -> Any:
        count = whole_numbers(n)[0]
        noise = draw.rand((x.shape[0], count, x.shape[1]), dtype=x.dtype, generator=generator)
        gumbel = -F.log(-F.log(F.clip(noise, 1e-20, 1 - 1e-7)))
        return F.cast(F.argmax(F.expand_dims(x, 1) + gumbel, -1), kind.dtype)

    return random_operation(
        "Multinomial", draws, [logits, num_samples], seed=seed, dtype=kind, name=name, static=[1]
    )


categorical = multinomial


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from gamma distributions; the shape is in front of that of the parameters."""
    kind = as_dtype(dtype)

    def draws(to: Any, a: Any, b: Any, *, generator: Any) -> Any:
        whole = (*whole_numbers(to), *F.broadcast_to(a, (a + b).shape).shape)
        return draw.gamma(F.broadcast_to(a, whole), generator=generator) / b

    inputs = [
        shape_tensor(shape),
        _parameter(alpha, kind),
        _parameter(1.0 if beta is None else beta, kind),
    ]
    return random_operation(
        "RandomGamma", draws, inputs, seed=seed, dtype=kind, name=name, static=[0]
    )


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Return a part of a tensor that begins at a random place."""
    x = convert_to_tensor(value)

    def draws(x: Any, to: Any, *, generator: Any) -> Any:
        sizes = whole_numbers(to)
        for axis, (whole, part) in enumerate(zip(x.shape, sizes, strict=True)):
            if part == whole:
                continue
            u = draw.rand((), dtype="float64", generator=generator)
            start = F.cast(F.floor(u * (whole - part + 1)), "int64")
            x = F.take(x, start + F.cumsum(F.ones_like(_counted(x, axis, part)), 0) - 1, axis)
        return x

    return random_operation(
        "RandomCrop",
        draws,
        [x, shape_tensor(size)],
        seed=seed,
        dtype=x.dtype,
        name=name or "random_crop",
        static=[1],
    )


def _counted(x: Any, axis: int, count: int) -> Any:
    first = F.cast(F.reshape(x, (-1,))[:1], "int64")
    return F.broadcast_to(first, (count,))
