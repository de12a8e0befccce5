"""Identities that differentiation reads: one that gradients do not pass, and a name for a value."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentTypeError
from ...core.op import elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor


@op(elementwise, method=False, identity=True, work="nothing", public=True)
def stop_gradient(x: Tensor) -> Tensor:
    """Return x as a constant: every derivative with respect to it is zero.

    >>> import weft as wf
    >>> wf.stop_gradient(wf.tensor([1.0, 2.0], requires_grad=True)).requires_grad
    False
    """


@stop_gradient.eval  # x itself, not a copy
def _(x):
    return x


stop_gradient.lower(lambda b, x: x)


@stop_gradient.samples
def _(s):
    yield from s.unary(grad=0)
    yield Sample(s.integers(2, 3), grad=0, label="integers")


@op(elementwise, method=False, identity=True, public=True)
def checkpoint_name(x: Tensor, name: Any) -> Tensor:
    """Return x under a name by which a policy of `wf.checkpoint` can save it.

    >>> import weft as wf
    >>> wf.checkpoint_name(wf.tensor([1.0, 2.0]), "hidden")
    tensor([1., 2.])
    """


@checkpoint_name.canon
def _(x, name):
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"name must be a non-empty string. Received: {name!r:.60}")
    return (name,)


@checkpoint_name.eval  # x itself, not a copy
def _(x, name):
    return x


checkpoint_name.partial_is("x", 1)
checkpoint_name.lower(lambda b, x, name: x)


@checkpoint_name.samples
def _(s):
    yield from (Sample(*sample.args, "hidden", label=sample.label) for sample in s.unary())
    yield Sample(s.integers(2, 3), "hidden", grad=0, label="integers")


@checkpoint_name.error_samples
def _(s):
    yield ErrorSample(s.real(3), 5, error=TypeError, match="name must be a non-empty string.*5")
