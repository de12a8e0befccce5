"""FunctionNode and Function: operations whose forward and backward a program writes in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.function import Function as WeftFunction
from ..core.tensor import Tensor, wrap
from .variable import Variable, as_tensor, wrapped


class FunctionNode:
    """An operation: `forward` computes on arrays, `backward` on variables.

    Subclasses define `forward(inputs)`, which returns a tuple of arrays, and
    `backward(target_input_indexes, grad_outputs)`, which returns a variable or None for each
    target. `apply(inputs)` runs it. If backward is written in functions, it can be differentiated.
    """

    inputs: Any = None
    outputs: Any = None
    xp = np

    @property
    def label(self) -> str:
        """A short text for pictures."""
        return type(self).__name__

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Compute the outputs."""
        return self.forward_cpu(inputs)

    def forward_cpu(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Compute the outputs; programs that also had code for GPUs define this."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def backward(self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]) -> Any:
        """Return a gradient for each target."""
        return (None,) * len(target_input_indexes)

    def check_type_forward(self, in_types: Any) -> None:
        """Raise unless inputs fit; programs may define it. Weft does not call it."""

    def retain_inputs(self, indexes: tuple[int, ...]) -> None:
        """Say which inputs backward needs."""
        self._retained_inputs = tuple(indexes)

    def retain_outputs(self, indexes: tuple[int, ...]) -> None:
        """Say which outputs backward needs."""
        self._retained_outputs = tuple(indexes)

    def get_retained_inputs(self) -> tuple[Variable, ...]:
        """Return the inputs that backward said it needs."""
        kept: tuple[Any, ...] = self._kept_inputs
        return tuple(wrapped(kept[i]) for i in getattr(self, "_retained_inputs", ()))

    def get_retained_outputs(self) -> tuple[Variable, ...]:
        """Return the outputs that backward said it needs."""
        return tuple(wrapped(self._kept_outputs[i]) for i in getattr(self, "_retained_outputs", ()))

    _kept_inputs: tuple[Tensor, ...] = ()
    _kept_outputs: tuple[Tensor, ...] = ()

    def apply(self, inputs: Any) -> tuple[Variable, ...]:
        """Run it on variables and arrays; return a tuple of variables."""
        given = tuple(as_tensor(x) for x in inputs)
        found = _Call.apply(self, *given)
        many = found if isinstance(found, tuple) else (found,)
        return wrapped(many)

    def _computed(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        arrays = tuple(x.numpy() for x in given)
        outputs = self.forward(arrays)
        if not isinstance(outputs, tuple):
            raise TypeError(
                f"forward output must be a tuple of ndarrays. Received: {type(outputs).__name__} "
                f"from {type(self).__name__}"
            )
        return tuple(wrap(np.array(y)) for y in outputs)

    def _gradients(self, given: tuple[Tensor, ...], grads: tuple[Tensor, ...]) -> tuple[Any, ...]:
        targets = tuple(i for i, x in enumerate(given) if x.dtype.kind == "f")
        found = self.backward(targets, tuple(map(wrapped, grads)))
        found = found if isinstance(found, tuple) else (found,)
        result: list[Any] = [None] * len(given)
        for index, gradient in zip(targets, found, strict=True):
            result[index] = None if gradient is None else as_tensor(gradient)
        return tuple(result)


class _Call(WeftFunction):
    """A call of a FunctionNode, as Weft's tape sees it."""

    @staticmethod
    def forward(ctx: Any, node: FunctionNode, *given: Tensor) -> Any:
        outputs = node._computed(given)
        ctx.node = node
        ctx.save_for_backward(*given, *outputs)
        ctx.count = len(given)
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        saved = ctx.saved_tensors
        given, outputs = tuple(saved[: ctx.count]), tuple(saved[ctx.count :])
        ctx.node._kept_inputs, ctx.node._kept_outputs = given, outputs
        return (None, *ctx.node._gradients(given, grads))


class Function(FunctionNode):
    """The older form: `backward(inputs, grad_outputs)` computes on arrays too."""

    def __call__(self, *inputs: Any) -> Any:
        """Run it on variables and arrays."""
        outputs = self.apply(inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def backward(self, inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        """Return the gradient of each input as an array, or None."""
        return self.backward_cpu(inputs, grad_outputs)

    def backward_cpu(self, inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        """Return gradients; programs that also had code for GPUs define this."""
        return (None,) * len(inputs)

    def _gradients(self, given: tuple[Tensor, ...], grads: tuple[Tensor, ...]) -> tuple[Any, ...]:
        arrays = tuple(x.numpy() for x in given)
        found = self.backward(arrays, tuple(g.numpy() for g in grads))
        found = found if isinstance(found, tuple) else (found,)
        return tuple(None if g is None else wrap(np.asarray(g)) for g in found)
