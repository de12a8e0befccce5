"""What all layers share: bottoms and tops that are counted, blobs, and Caffe's words for errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeVar

from ...core.dtype import float32
from ...core.op import F
from ...core.shape import as_int
from ...core.tensor import Tensor
from ...graph.frontend import placeholder
from ...graph.graph import Graph
from ...nn import Module, Parameter
from ...ops.creation import tensor
from ..errors import CaffeError
from ..fillers import fill
from ..message import TRAIN, FillerParameter, Message, ParamSpec

Shape: TypeAlias = tuple[int, ...]
Count: TypeAlias = tuple[int, int | None]  # at least, at most
LARGEST_BLOB = 2**31 - 1  # elements, as Caffe has it
MANY = None


class Limits(NamedTuple):
    """How large a net may be, checked before memory is taken."""

    blob: int = LARGEST_BLOB  # elements of a blob
    parameters: int = 2**30  # elements of all blobs of layers together


class BlobSpec(NamedTuple):
    """A blob of a layer: its name in the module, its shape, and how it is trained."""

    name: str
    shape: Shape
    spec: Message


class Layer(Module):
    """A layer of a net, made of its LayerParameter and the shapes of its bottoms.

    Subclasses count bottoms and tops, make blobs in `setup`, and compute in `forward`, which is
    given the bottoms and returns a tensor for a top, or a tuple of them.
    """

    bottoms: ClassVar[Count] = (1, 1)
    tops: ClassVar[Count] = (1, 1)
    as_many_tops: ClassVar[bool] = False  # as bottoms
    is_loss: ClassVar[bool] = False  # its first top counts in the loss, and need not be named
    differentiable: ClassVar[tuple[int, ...] | None] = None  # bottoms; None: all
    shares_in_place: ClassVar[bool] = True  # a top may have the name of a bottom

    def __init__(
        self, param: Message, shapes: Sequence[Shape], phase: int, limits: Limits | None = None
    ) -> None:
        super().__init__()
        self.param, self.phase = param, phase
        self.blob_specs: list[BlobSpec] = []
        self.limits = limits or Limits()
        self.__dict__["training"] = phase == TRAIN
        self._check_counts(len(shapes))
        self.setup([tuple(shape) for shape in shapes])

    # -- for subclasses --------------------------------------------------------------------------

    def setup(self, shapes: list[Shape]) -> None:
        """Read options and make blobs."""

    def top_shapes(self, shapes: list[Shape]) -> list[Shape] | None:
        """Return the shapes of the tops, or None if what `forward` computes tells them."""
        return None

    def shapes_for(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops for bottoms of given shapes."""
        found = self.top_shapes(shapes)
        return _traced_shapes(self, shapes) if found is None else found

    def add_blob(self, name: str, shape: Shape, filler: Message | None = None) -> None:
        """Make a blob that is trained, as its ParamSpec says, and begins as a filler says."""
        shape = self.checked_shape(shape, f"blob {name}")
        self._check_parameters(shape)
        spec = self._spec()
        made = tensor(fill(filler or FillerParameter(), shape))
        setattr(self, name, Parameter(made, requires_grad=spec.lr_mult != 0))
        self.blob_specs.append(BlobSpec(name, shape, spec))

    def add_statistic(self, name: str, shape: Shape) -> None:
        """Make a blob of zeros that no solver changes."""
        self._check_parameters(shape)
        spec = self._spec()
        spec.lr_mult = spec.decay_mult = 0.0
        self.register_buffer(name, tensor(fill(FillerParameter(), shape)))
        self.blob_specs.append(BlobSpec(name, shape, spec))

    def blob(self, index: int) -> Tensor:
        """Return a blob; one that is shared may have another shape at its owner."""
        name, shape, _ = self.blob_specs[index]
        found: Tensor = self.__dict__[name]
        return found if tuple(found.shape) == shape else found.reshape(shape)

    def _spec(self) -> Message:
        index, specs = len(self.blob_specs), self.param.param
        return specs[index].copy() if index < len(specs) else ParamSpec()

    # -- checks ----------------------------------------------------------------------------------

    def fail(self, what: str) -> NoReturn:
        """Raise an error that names the layer."""
        raise CaffeError(f"Layer {self.param.name!r} ({self.param.type}): {what}")

    def check(self, holds: Any, what: str) -> None:
        """Raise an error that names the layer unless something holds."""
        if not holds:
            self.fail(what)

    def axis(self, axis: int, dims: int, name: str = "axis") -> int:
        """Return an axis counted from the front."""
        self.check(
            -dims <= axis < dims,
            f"{name} {axis} out of range for {dims}-D Blob",
        )
        return axis % dims

    def checked_shape(self, shape: Sequence[int], what: str) -> Shape:
        """Return a shape after checking that a blob may have it."""
        sizes = tuple(as_int(n, what) for n in shape)
        self.check(all(n >= 0 for n in sizes), f"{what}: sizes must not be negative: {sizes}")
        self.check(
            math.prod(sizes) <= self.limits.blob,
            f"{what}: blob size exceeds {_limit_name(self.limits.blob)}: {sizes}",
        )
        self.check(len(sizes) <= 32, f"{what}: a blob has at most 32 axes. Received: {len(sizes)}")
        return sizes

    def _check_parameters(self, shape: Shape) -> None:
        self.check(
            math.prod(shape) <= self.limits.parameters,
            f"its blobs would have {math.prod(shape)} elements, more than the "
            f"{self.limits.parameters} that are left of what a net may have; "
            "raise Limits(parameters=...) if this is meant",
        )
        self.limits = self.limits._replace(parameters=self.limits.parameters - math.prod(shape))

    def _check_counts(self, bottoms: int) -> None:
        self._check_count("bottom", bottoms, self.bottoms)
        if not (self.is_loss and len(self.param.top) < self.tops[0]):
            self._check_count("top", len(self.param.top), self.tops)
        if self.as_many_tops and len(self.param.top) != bottoms:
            self.fail(
                f"{self.param.type} Layer produces one top blob for each bottom blob input. "
                f"Received: {bottoms} bottoms, {len(self.param.top)} tops"
            )

    def _check_count(self, what: str, count: int, allowed: Count) -> None:
        least, most = allowed
        if least <= count and (most is None or count <= most):
            return
        wanted = f"{least}" if least == most else f"at least {least}"
        if most is not None and least != most:
            wanted = f"{least} to {most}"
        self.fail(
            f"{self.param.type} Layer takes {wanted} {what} blob(s) as "
            f"{'input' if what == 'bottom' else 'output'}. Received: {count}"
        )

    def extra_repr(self) -> str:
        """Return what printing a net shows of the layer."""
        return f"{self.param.type}"


def _limit_name(limit: int) -> str:
    return "INT_MAX" if limit == LARGEST_BLOB else str(limit)


def _traced_shapes(layer: Layer, shapes: list[Shape]) -> list[Shape]:
    """Return what shapes a layer computes, by writing its graph, which is thrown away."""
    with Graph():
        symbols = [placeholder(shape, float32) for shape in shapes]
        found = layer(*symbols)
    tops = found if isinstance(found, tuple) else (found,)
    return [tuple(int(n) for n in top.shape) for top in tops]


# -- the catalogue ---------------------------------------------------------------------------------

LAYERS: dict[str, type[Layer]] = {}
L = TypeVar("L", bound=type[Layer])


def layer(*names: str) -> Callable[[L], L]:
    """Enter a class into the catalogue under Caffe's names."""

    def enter(kind: L) -> L:
        for name in names:
            LAYERS[name] = kind
        return kind

    return enter


def label_indices(labels: Tensor) -> Tensor:
    """Return labels, which blobs hold as floating-point numbers, as integers."""
    return F.cast(labels, "int64")
