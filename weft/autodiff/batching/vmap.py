"""`vmap`: turn a function of one example into a function of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.imports import deferred_imports
from ...core.modes import current_interpreter, current_tracer
from ...core.op import F
from ...core.operands import tensor_from
from ...core.tensor import Tensor
from ...core.tree import Structure, flatten
from ..layered import Running
from .axes import Namer, batch_size, from_front, namer, spread_axes, to_front
from .batched import SHARED, Batched, make_batched
from .draws import RANDOMNESS
from .interpreter import BatchInterpreter

Axes = Any  # an int, None, or a tree of them


def vmap(
    fn: Callable[..., Any],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    *,
    axis_size: int | None = None,
    randomness: str = "different",
) -> Callable[..., Any]:
    """Return a function that applies `fn` to all examples of a batch at once.

    in_axes      which axis of each argument is the batch: an int for all, or a list or tuple with
                 one entry for each argument. An entry is an int, None for an argument that all
                 examples share, or a tree of these that is a leading part of the argument's.
                 Keyword arguments are batched along axis 0.
    out_axes     where the batch axis goes in the results; None for results that are the same for
                 all examples
    axis_size    the number of examples, if no argument tells it
    randomness   "different": each example draws random numbers of its own; "same": all examples
                 draw the same; "error": drawing is refused

    Inside, tensors have the shape of one example. There is no loop: each operation runs once, by
    the batching rule of its operator. Calls nest, and compose with every other transform.

    >>> import weft as wf
    >>> dot = wf.vmap(lambda x, y: x @ y)
    >>> dot(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([1., 4.])
    """
    if not callable(fn):
        raise ArgumentTypeError(f"vmap: a function is needed. Received: {fn!r:.60}")
    if randomness not in RANDOMNESS:
        raise ArgumentError(
            f"vmap: randomness must be one of {RANDOMNESS}. Received: {randomness!r:.60}"
        )
    if not isinstance(in_axes, (int, list, tuple)) and in_axes is not None:
        raise ArgumentTypeError(
            "vmap: in_axes must be an int, None, or a list or tuple with an entry for each "
            f"argument. Received: {type(in_axes).__name__}"
        )

    def batched(*args: Any, **kwargs: Any) -> Any:
        call = VmapCall(fn, in_axes, out_axes, axis_size, randomness, args, kwargs)
        if current_tracer() is not None:
            with deferred_imports:
                from .static.vmap import vmap_of_symbols  # noqa: PLC0415  (for graphs only)
            return vmap_of_symbols(call)
        return call.run()

    update_wrapper(batched, fn, updated=())
    batched.__doc__ = f"Apply {getattr(fn, '__name__', 'a function')} to all examples of a batch."
    return batched


class VmapCall:
    """One call of a function made by vmap: its arguments as leaves, each with its batch axis."""

    def __init__(
        self,
        fn: Callable[..., Any],
        in_axes: Axes,
        out_axes: Axes,
        axis_size: Any,
        randomness: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.fn, self.out_axes, self.randomness = fn, out_axes, randomness
        self.leaves, self.structure = flatten((args, kwargs))
        places, options = self.structure.children
        axes = [*_argument_axes(in_axes, places), *spread_axes(0, options, "in_axes")]
        self.name = namer([*args, *kwargs.values()], "argument")
        self.axes = [axis if axis is None else self._lift(i, axis) for i, axis in enumerate(axes)]
        self.size = batch_size(self.leaves, self.axes, self.name, axis_size)

    def _lift(self, i: int, axis: int) -> int:
        """Let a leaf that has a batch axis be a tensor."""
        leaf = self.leaves[i]
        if not isinstance(leaf, Tensor):
            if not isinstance(leaf, (np.ndarray, np.generic, bool, int, float)):
                raise ArgumentTypeError(
                    f"vmap: {self.name(i)} has batch axis {axis} and must be a tensor; let its "
                    f"entry of in_axes be None to share it. Received: {type(leaf).__name__}"
                )
            self.leaves[i] = tensor_from(leaf, f"vmap: {self.name(i)}")
        return axis

    def batches(self) -> list[Any]:
        """Return the leaves, batch axes in front."""
        pairs = zip(self.leaves, self.axes, strict=True)
        return [x if axis is None else to_front(x, axis) for x, axis in pairs]

    def call(self, leaves: Any) -> Any:
        """Call the function on the arguments that leaves make up."""
        args, kwargs = self.structure.unflatten(leaves)
        return self.fn(*args, **kwargs)

    def run(self) -> Any:
        """Run the function eagerly, by an interpreter."""
        interpreter = BatchInterpreter(self.size, current_interpreter(), self.randomness)
        level = interpreter.level
        pairs = zip(self.batches(), self.axes, strict=True)
        examples = [x if axis is None else make_batched(x, level) for x, axis in pairs]
        try:
            with Running(interpreter):
                outputs, result = flatten(self.call(examples))
        except BaseException:
            level.release()
            raise
        if level.release({id(y) for y in outputs}):
            raise ArgumentError(SHARED)
        split = [
            (y.value, True) if isinstance(y, Batched) and y.level is level else (y, False)
            for y in outputs
        ]
        return self.results(split, result)

    def results(self, split: list[tuple[Any, bool]], result: Structure) -> Any:
        """Return the function's results with batch axes where out_axes wants them.

        Each result comes with a flag that says whether it has a batch axis, in front.
        """
        axes = spread_axes(self.out_axes, result, "out_axes")
        name = namer(result.unflatten(y for y, _ in split), "the result")
        pairs = enumerate(zip(split, axes, strict=True))
        return result.unflatten(self._placed(*pair, axis, i, name) for i, (pair, axis) in pairs)

    def _placed(self, y: Any, flag: bool, axis: Any, position: int, name: Namer) -> Any:
        if axis is None:
            if flag:
                raise ArgumentError(
                    f"vmap: {name(position)} differs between examples, so its entry of out_axes "
                    "cannot be None"
                )
            return y
        if not flag:
            y = self._repeated(y, position, name)
        return from_front(y, axis, position, name)

    def _repeated(self, y: Any, position: int, name: Namer) -> Tensor:
        """Return a result that is the same for all examples with a batch axis."""
        if not isinstance(y, (Tensor, np.ndarray, np.generic, bool, int, float)):
            raise ArgumentTypeError(
                f"vmap: {name(position)} must be a tensor, or have None in out_axes. "
                f"Received: {type(y).__name__}"
            )
        tensor = y if isinstance(y, Tensor) else tensor_from(y, f"vmap: {name(position)}")
        repeated: Tensor = F.broadcast_to(tensor, (self.size, *tensor.shape))
        return repeated


def _argument_axes(in_axes: Axes, places: Structure) -> list[Any]:
    """Return the batch axis of each leaf of the positional arguments."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(places.children):
        raise ArgumentError(
            f"vmap: in_axes must have an entry for each of the {len(places.children)} "
            f"argument(s). Received: {in_axes!r:.80}"
        )
    return spread_axes(in_axes, places, "in_axes")
