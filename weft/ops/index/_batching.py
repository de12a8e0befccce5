"""Index arrays under vmap: one index over a whole batch.

If only the indexed tensor differs between examples, the batch axis is one more full slice. If the
index arrays differ, they get a partner that counts the examples, and the selected dimensions then
stand in front, behind the batch axis; they are moved to where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.batching import repeat, with_rank
from ...core.errors import ArgumentError
from ...core.op import F
from ...core.shape import Shape, TensorType
from ._spec import ARRAY, Spec, selection

ALL = (None, None, None)


class BatchIndex:
    """An index with arrays, of which some differ between the examples of a batch.

    shape    of the tensor that is indexed, in one example
    arrays   the index arrays; those for which `flags` holds have a batch axis in front
    """

    def __init__(
        self, shape: Shape, arrays: Sequence[Any], flags: Sequence[bool], spec: Spec, examples: Any
    ) -> None:
        self.shape, self.spec, self.examples = shape, spec, examples
        self.arrays, self.flags = list(arrays), tuple(flags)
        self.differs = any(self.flags)
        if self.differs:
            self._refuse_masks()
            self._resolve_masks()
        self.types = [
            TensorType(a.shape[1:] if flag else a.shape, a.dtype)
            for a, flag in zip(self.arrays, self.flags, strict=True)
        ]
        self.place, self.count, self.together = selection(shape, self.spec, self.types)

    def _refuse_masks(self) -> None:
        for array, flag in zip(self.arrays, self.flags, strict=True):
            if flag and array.dtype.kind == "b":
                raise ArgumentError(
                    "a boolean mask that differs between the examples of vmap selects different "
                    "numbers of elements; use wf.where(mask, x, other)"
                )

    def _resolve_masks(self) -> None:
        """Turn masks that all examples share into arrays of places."""
        spec: list[Any] = []
        arrays: list[Any] = []
        flags: list[bool] = []
        rest = iter(zip(self.arrays, self.flags, strict=True))
        for item in self.spec:
            if item != ARRAY:
                spec.append(item)
                continue
            array, flag = next(rest)
            found = F.nonzero(array) if array.dtype.kind == "b" else (array,)
            spec += [ARRAY] * len(found)
            arrays += found
            flags += [flag] * len(found)
        self.spec, self.arrays, self.flags = tuple(spec), arrays, tuple(flags)

    # -- the index of the whole batch --------------------------------------------------------------

    def whole(self) -> tuple[list[Any], Spec]:
        """Return index arrays and spec for a tensor that has a batch axis."""
        if not self.differs:
            return self.arrays, (ALL, *self.spec)
        places = F.reshape(F.iota(self.examples), (self.examples, *(1,) * self.count))
        return [places, *self.aligned()], (ARRAY, *self.spec)

    def aligned(self) -> list[Any]:
        """Return the index arrays, those that differ with as many dimensions as are selected."""
        pairs = zip(self.arrays, self.flags, strict=True)
        return [with_rank(a, self.count) if flag else a for a, flag in pairs]

    def to_native(self, x: Any) -> Any:
        """Return elements in the order of axes in which the index of the whole batch takes them."""
        source, target = self._moves()
        return F.moveaxis(x, source, target)

    def from_native(self, x: Any) -> Any:
        """Return elements that the index of the whole batch took in the order of an example."""
        source, target = self._moves()
        return F.moveaxis(x, target, source)

    def _moves(self) -> tuple[Any, Any]:
        if not self.differs:  # NumPy puts selected dimensions that stand apart before all others
            return (0, 0) if self.together else (0, self.count)
        selected = tuple(range(1, self.count + 1))
        return tuple(self.place + i for i in selected), selected


def batch_taken(x: Any, flag: bool, index: BatchIndex) -> Any:
    """Return the elements that an index selects in all examples."""
    if flag:
        arrays, spec = index.whole()
        return index.from_native(F.getitem_arrays(x, arrays, spec))
    found = F.getitem_arrays(x, index.aligned(), index.spec)
    return F.moveaxis(found, index.place, 0)


def put_back(g: Any, index: BatchIndex) -> Any:
    """Return zeros with g added where an index points in all examples."""
    arrays, spec = index.whole()
    shape = (index.examples, *index.shape)
    return F.getitem_arrays_adjoint(index.to_native(g), arrays, shape, spec)


def written(x: Any, value: Any, index: BatchIndex, ndim: int) -> Any:
    """Return x with a value of `ndim` dimensions written where an index points in all examples."""
    arrays, spec = index.whole()
    return F.setitem_arrays(x, index.to_native(with_rank(value, ndim)), arrays, spec)


class MaskedWrite(NamedTuple):
    """One mask, which differs between examples, over the leading axes of a tensor."""

    mask: Any
    value: Any
    flag: bool

    def write(self, x: Any) -> Any:
        """Return x with the value where the mask is true."""
        rest = x.ndim - self.mask.ndim
        value = self.value if self.flag else repeat(self.value, 1)
        if value.ndim - 1 > rest + 1 or (value.ndim - 1 == rest + 1 and value.shape[1] != 1):
            raise ArgumentError(
                "inside vmap a value can be written through a mask that differs between examples "
                f"only if it is the same for all selected elements. Received: shape "
                f"{tuple(value.shape[1:])}; use wf.where(mask, value, x)"
            )
        mask = F.reshape(self.mask, (*self.mask.shape, *(1,) * rest))
        chosen = with_rank(with_rank(value, rest), x.ndim - 1)
        chosen = chosen if chosen.dtype == x.dtype else F.cast(chosen, x.dtype)
        return F.where(mask, chosen, x)
