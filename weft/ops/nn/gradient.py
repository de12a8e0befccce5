"""The identity that gradients do not pass."""

from __future__ import annotations

from ...core.op import elementwise, op
from ...core.samples import Sample
from ...core.tensor import Tensor


@op(elementwise, method=False)
def stop_gradient(x: Tensor) -> Tensor:
    """Return x as a constant: every derivative with respect to it is zero.

    >>> import weft as wf
    >>> wf.stop_gradient(wf.tensor([1.0, 2.0], requires_grad=True)).requires_grad
    False
    """


@stop_gradient.eval
def _(x):
    return x


stop_gradient.lower(lambda b, x: x)


@stop_gradient.samples
def _(s):
    yield from s.unary(grad=0)
    yield Sample(s.integers(2, 3), grad=0, label="integers")
