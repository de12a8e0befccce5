"""`Function`: a class whose forward and backward the user writes.

A call is recorded as one node of the tape. Forward runs unrecorded; backward is plain Python, so
print and pdb work in it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ArgumentTypeError
from ..core.modes import current_interpreter
from ..core.tensor import Tensor
from .calls import FunctionCall
from .function_op import FunctionOp


class Function:
    """A differentiable function with hand-written forward and backward.

    Subclass it with two static methods and call `apply`. `forward(ctx, *args, **kwargs)` computes
    on tensors without being recorded; `backward(ctx, *grads)` receives one gradient per output
    (zeros where nothing depends on it) and returns one per positional argument of forward, None
    where there is none. If backward is written in Weft operations, higher derivatives and forward
    mode follow. A static method `jvp(ctx, *tangents)`, if there is one, serves forward mode: it
    receives one tangent per positional argument (None for zero) and returns one per output.

    >>> import weft as wf
    >>> class Square(wf.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = wf.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _op: ClassVar[FunctionOp]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._op = FunctionOp(cls)

    def __init__(self) -> None:
        raise ArgumentTypeError(
            f"{type(self).__name__} is not instantiated; call {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; keep in `ctx` what backward needs."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradient of each positional argument of forward."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it for differentiation."""
        call = FunctionCall(cls, args, kwargs)
        tensors = tuple(x for x in args if isinstance(x, Tensor))
        interpreter = current_interpreter()
        if interpreter is None:
            result = cls._op.execute(tensors, (call,))
        else:
            result = interpreter.apply(cls._op, tensors, (call,))
        return call.arrange(result if isinstance(result, tuple) else (result,))
