"""`backward`, with PyTorch's checks and words."""

from __future__ import annotations

from typing import Any

from ..autodiff.reverse import accumulate, gradients
from ..core.errors import WeftError
from .sizes import Size
from .storage import check_versions

NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"
FREED_GRAPH = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


def check_backward(tensor: Any, gradient: Any) -> None:
    """Raise if backward cannot begin at a tensor."""
    if not tensor.requires_grad:
        raise RuntimeError(NO_GRAPH)
    if gradient is None and tensor.numel() != 1:
        raise RuntimeError(NOT_SCALAR)
    if gradient is not None and tuple(gradient.shape) != tuple(tensor.shape):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {Size(gradient.shape)} and "
            f"output[0] has a shape of {Size(tensor.shape)}."
        )
    if not tensor.symbolic:
        check_versions([tensor._node])


def in_their_words(error: WeftError) -> Exception:
    """Return an error of a backward pass as PyTorch says it."""
    if "freed" not in error.facts:
        return error
    found = RuntimeError(FREED_GRAPH)
    found.add_note(f"weft: {error}")
    return found


def backward_to(
    tensor: Any, gradient: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
) -> None:
    """Add gradients to `.grad` of the given leaves alone."""
    wanted = [inputs] if hasattr(inputs, "_node") else list(inputs)
    found = gradients(
        tensor, wanted, gradient, retain_graph=retain_graph, create_graph=create_graph
    )
    for leaf, grad in zip(wanted, found, strict=True):
        if grad is not None:
            accumulate(leaf._node, grad)
