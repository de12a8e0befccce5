"""Embedding layers: rows of a table chosen by integers, singly or in bags."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..core.errors import ArgumentError, ShapeError
from ..core.modes import no_grad
from ..core.shape import as_int
from ..core.tensor import Tensor
from ..ops.index.rows import index_counts
from . import init
from .arguments import as_choice, as_flag, as_number, as_size, placement
from .calls import F
from .module import Module
from .parameter import Parameter, new_parameter

E = TypeVar("E", bound="_Table")


class _Table(Module):
    """A table of vectors: what Embedding and EmbeddingBag share."""

    weight: Parameter

    def _take_sizes(self, num_embeddings: Any, embedding_dim: Any, padding_idx: Any) -> None:
        self.num_embeddings = as_size(self, "num_embeddings", num_embeddings, 0)
        self.embedding_dim = as_size(self, "embedding_dim", embedding_dim, 0)
        self.padding_idx = self._padding_row(padding_idx)

    def _take_options(self, max_norm: Any, norm_type: Any, by_freq: Any, sparse: Any) -> None:
        self.max_norm = None if max_norm is None else as_number(self, "max_norm", max_norm, 0)
        self.norm_type = as_number(self, "norm_type", norm_type)
        self.scale_grad_by_freq = as_flag(self, "scale_grad_by_freq", by_freq)
        self.sparse = as_flag(self, "sparse", sparse)

    def _make_weight(self, given: Any, dtype: Any, device: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = new_parameter(shape, dtype, device)
            self.reset_parameters()
            return
        self.weight = given if isinstance(given, Parameter) else Parameter(given)
        if self.weight.shape != shape:
            raise ShapeError(
                f"{type(self).__name__}: the weight must have the shape {shape}. "
                f"Received: {self.weight.shape}"
            )

    def _padding_row(self, padding_idx: Any) -> int | None:
        if padding_idx is None:
            return None
        row, rows = as_int(padding_idx, f"{type(self).__name__}: padding_idx"), self.num_embeddings
        if not -rows <= row < rows:
            raise ArgumentError(
                f"{type(self).__name__}: padding_idx must lie within the {rows} embeddings. "
                f"Received: {row}"
            )
        return row % rows

    def reset_parameters(self) -> None:
        """Draw the table anew from N(0, 1); the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(cls: type[E], embeddings: Any, freeze: bool = True, **options: Any) -> E:
        """Return a layer with a given table (rows, dim), which is not trained unless asked for."""
        weight = Parameter(embeddings)
        if weight.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}.from_pretrained: the table must have the shape (rows, dim). "
                f"Received: {weight.shape}"
            )
        make: Any = cls  # the constructors of the subclasses differ
        layer: E = make(*weight.shape, _weight=weight, **options)
        weight.requires_grad_(not freeze)
        return layer

    def _limit_norms(self, index: Any) -> None:
        """Shorten the rows that are about to be used to at most max_norm, in place."""
        rows = np.unique(np.asarray(index))
        with no_grad():
            chosen = self.weight.numpy()[rows]
            norms = np.linalg.norm(chosen, ord=self.norm_type, axis=1, keepdims=True)
            # 1e-7 as in PyTorch, so that results agree
            scale = np.where(norms > self.max_norm, self.max_norm / (norms + 1e-7), 1.0)
            self.weight[rows] = (chosen * scale).astype(chosen.dtype)

    def _by_frequency(self, index: Any) -> Tensor:
        """Return the table, its gradient divided by how often `index` names each row."""
        counts = F.bincount(F.reshape(index, (-1,)), minlength=self.num_embeddings)
        scale = 1.0 / F.maximum(F.cast(counts, self.weight.dtype), 1.0)
        fixed = F.stop_gradient(self.weight)
        # The difference is exactly zero: it adds the scaled gradient and nothing else.
        return fixed + (self.weight - fixed) * scale[:, None]

    def _shown(self, first: list[str]) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}", *first]
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append("scale_grad_by_freq=True")
        return ", ".join(parts)


class Embedding(_Table):
    """Return the rows of `weight` (num_embeddings, embedding_dim) that integers name.

    padding_idx         a row that starts at zero and is not trained
    max_norm            rows are shortened to this norm (of order norm_type) when used
    scale_grad_by_freq  divide a row's gradient by how often the batch names it
    sparse              give the table a row-sparse gradient (wf.RowSparse): a step of SGD, Adagrad,
                        Adam or SparseAdam then takes time by the batch, and not by the table

    >>> import weft as wf
    >>> wf.nn.Embedding(10, 3)(wf.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        **factory: Any,
    ) -> None:
        super().__init__()
        self._take_sizes(num_embeddings, embedding_dim, padding_idx)
        self._take_options(max_norm, norm_type, scale_grad_by_freq, sparse)
        self._make_weight(_weight, **placement(self, factory))

    def forward(self, index: Tensor) -> Tensor:
        """Return the rows: shape index.shape + (embedding_dim,)."""
        if self.max_norm is not None:
            self._limit_norms(index)
        if self.scale_grad_by_freq and self.sparse:
            return self._scaled_by_frequency(index)
        weight = self._by_frequency(index) if self.scale_grad_by_freq else self.weight
        return F.embedding(weight, index, self.padding_idx, self.sparse)

    def _scaled_by_frequency(self, index: Tensor) -> Tensor:
        """Return the rows, the gradient of each divided by how often `index` names it."""
        rows = F.embedding(self.weight, index, self.padding_idx, True)
        fixed = F.stop_gradient(rows)
        counts = F.cast(index_counts(index), rows.dtype)
        # The difference is exactly zero: it adds the scaled gradient and nothing else.
        return fixed + (rows - fixed) / F.reshape(counts, (*index.shape, 1))

    def extra_repr(self) -> str:
        """Return the options, those at their defaults left out."""
        parts = [] if self.padding_idx is None else [f"padding_idx={self.padding_idx}"]
        parts += [] if self.max_norm is None else [f"max_norm={self.max_norm}"]
        return self._shown(parts) + (", sparse=True" if self.sparse else "")


class EmbeddingBag(_Table):
    """Return the sum, mean or maximum of the embeddings in each bag of integers.

    Bags are the rows of a matrix, or stretches of a vector that begin at `offsets` (with
    include_last_offset the last offset ends the last bag). For the other options see Embedding.

    >>> import weft as wf
    >>> bag = wf.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag(wf.tensor([1, 2, 4, 5]), wf.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        **factory: Any,
    ) -> None:
        super().__init__()
        self._take_sizes(num_embeddings, embedding_dim, padding_idx)
        self._take_options(max_norm, norm_type, scale_grad_by_freq, sparse)
        self.mode = as_choice(self, "mode", mode, ("sum", "mean", "max"))
        if self.mode == "max" and self.scale_grad_by_freq:
            raise ArgumentError("EmbeddingBag: scale_grad_by_freq does not go with mode='max'")
        if self.sparse and self.scale_grad_by_freq:
            raise ArgumentError(
                "EmbeddingBag: scale_grad_by_freq counts all rows, which sparse=True leaves out; "
                "set one of them"
            )
        self.include_last_offset = as_flag(self, "include_last_offset", include_last_offset)
        self._make_weight(_weight, **placement(self, factory))

    def forward(
        self, index: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Return one vector for each bag; per_sample_weights scale embeddings in mode "sum"."""
        if self.max_norm is not None:
            self._limit_norms(index)
        return F.embedding_bag(
            index,
            self._by_frequency(index) if self.scale_grad_by_freq else self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
            sparse=self.sparse,
        )

    def extra_repr(self) -> str:
        """Return the options, those at their defaults left out."""
        parts = [] if self.max_norm is None else [f"max_norm={self.max_norm}"]
        shown = f"{self._shown(parts)}, mode={self.mode!r}"
        shown += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return shown + (", sparse=True" if self.sparse else "")
