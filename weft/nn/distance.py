"""Distances and similarities between vectors as layers."""

from __future__ import annotations

from ..core.shape import as_int
from ..core.tensor import Tensor
from .arguments import as_flag, as_number
from .calls import F
from .module import Module


class CosineSimilarity(Module):
    """Return the cosine of the angle between x1 and x2 along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = as_int(dim, "CosineSimilarity: dim")
        self.eps = as_number(self, "eps", eps, 0)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the similarities."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Return the p-norm of x1 - x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = as_number(self, "p", p)
        self.eps = as_number(self, "eps", eps, 0)
        self.keepdim = as_flag(self, "keepdim", keepdim)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
