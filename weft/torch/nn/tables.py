"""Tables of vectors in torch.nn.functional: their rows by index, singly and in bags."""

from __future__ import annotations

from typing import Any

from ...core.modes import no_grad
from ...core.op import F
from ...ops.index.rows import index_counts
from ..adoption import adopt
from ..deferred import weft_function


def _weft(name: str, namespace: str = "nn.functional") -> Any:
    found = weft_function(name, namespace)
    assert found is not None, name
    return found


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the rows of a table that indices name."""
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    rows = _weft("embedding")(input, weight, padding_idx, sparse=sparse)
    if scale_grad_by_freq:
        counts = F.cast(index_counts(input), rows.dtype)
        rows = _with_gradient_over(rows, F.reshape(counts, (*input.shape, 1)))
    return adopt(rows)


def embedding_renorm_(weight: Any, indices: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Shorten those rows of a table that indices name, and that are longer than a norm."""
    with no_grad():
        rows = _weft("unique", "wf")(indices)
        chosen = F.take(weight, rows, 0)
        norms = _weft("vector_norm", "linalg")(chosen, norm_type, 1, True)
        scale = F.where(norms > max_norm, max_norm / (norms + 1e-7), F.ones_like(norms))
        weight[rows] = chosen * scale
    return weight


def _with_gradient_over(x: Any, divisor: Any) -> Any:
    """Return a tensor whose gradient is divided; the difference that is divided is exactly zero."""
    fixed = F.stop_gradient(x)
    return fixed + (x - fixed) / divisor


def embedding_bag(  # noqa: PLR0913, PLR0917  (PyTorch's arguments)
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Return sums, means or maxima of rows of a table, of bags of indices."""
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:
        weight = _by_frequency(input, weight, mode, sparse)
    found = _weft("embedding_bag")(
        input,
        weight,
        offsets,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
        sparse=sparse,
    )
    return adopt(found)


def _by_frequency(input: Any, weight: Any, mode: str, sparse: bool) -> Any:
    """Return a table whose gradient is divided by how often indices name each row."""
    if mode == "max" or sparse:
        raise ValueError(
            "embedding_bag: scale_grad_by_freq goes with the modes 'sum' and 'mean' of tables "
            f"whose gradient is not sparse. Received: mode={mode!r}, sparse={sparse}"
        )
    flat = F.reshape(input, (-1,))
    counts = _weft("bincount", "wf")(flat, minlength=weight.shape[0])
    most = F.maximum(F.cast(counts, weight.dtype), 1.0)
    return _with_gradient_over(weight, F.unsqueeze(most, 1))


TABLES: dict[str, Any] = {"embedding": embedding, "embedding_bag": embedding_bag}
