"""Cut the history of tensors, as Chainer does: `unchain` and `unchain_backward`.

Backward over a long sequence goes back to its beginning. Cutting the history every k steps keeps
memory and time constant: truncated backpropagation through time.
"""

from __future__ import annotations

from ..core.errors import GradientError
from ..core.modes import current_recorder, modes
from ..core.tape import TapeNode
from ..core.tape import unchain as cut
from ..core.tensor import Tensor
from .engine import nodes_behind


def unchain(tensor: Tensor) -> None:
    """Forget what a tensor was computed from: gradients of what follows end at it.

    Its value stays, and so does what was computed from it before. What backward brings is found in
    its `.grad`. A leaf, and a tensor that requires no gradients, are left alone.

    >>> import weft as wf
    >>> x = wf.tensor(2.0, requires_grad=True)
    >>> h = x * x
    >>> y = h * 3
    >>> h.unchain()
    >>> y.backward()
    >>> h.grad, x.grad
    (tensor(3.), None)
    """
    node = _node_of(tensor, "unchain")
    if node is not None:
        cut(node)


def unchain_backward(tensor: Tensor) -> None:
    """Forget the whole history of a tensor: no operation behind it is kept any more.

    All results that it was computed from are cut off, too; leaves stay leaves. What else was
    computed from those results has its gradients end at them.

    >>> import weft as wf
    >>> w = wf.tensor(0.5, requires_grad=True)
    >>> h = wf.tensor(1.0)
    >>> for step in range(1, 7):
    ...     h = h * w
    ...     if step % 3 == 0:
    ...         h.backward()
    ...         h.unchain_backward()
    >>> w.grad  # of 3 steps, twice
    tensor(0.8438)
    """
    node = _node_of(tensor, "unchain_backward")
    if node is not None:
        for each in nodes_behind([node]):
            if isinstance(each, TapeNode):
                cut(each)


def _node_of(tensor: Tensor, what: str) -> TapeNode | None:
    """Return the operation that made a tensor; None where there is none."""
    if modes.interpreters and (recorder := current_recorder()) is not None:
        recorder.refuse(f"{what} cuts the history of tensors")
    if tensor.symbolic or tensor.batched:
        raise GradientError(
            f"{what}: {type(tensor).__name__.lower()}s have no history to cut; use "
            "wf.stop_gradient(x) where gradients shall end"
        )
    return tensor._node if isinstance(tensor._node, TapeNode) else None
