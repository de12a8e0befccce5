"""Python layers: classes of the user's with setup, reshape, forward and backward.

They compute on NumPy arrays, `bottom[0].data` in and `top[0].data` out, between Weft's operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autodiff.function import Function as WeftFunction
from ...core.imports import load
from ...core.tensor import Tensor, wrap
from ...nn import Parameter
from ..arrays import ArrayBlob
from .base import MANY, BlobSpec, Layer, Shape, layer


class PythonLayer:
    """Base of Python layers: `class MyLayer(caffe.Layer)`."""

    param_str = ""
    phase = 0

    def __init__(self) -> None:
        self.blobs = PythonBlobs()

    def setup(self, bottom: Any, top: Any) -> None:
        """Read options and check bottoms; called once."""

    def reshape(self, bottom: Any, top: Any) -> None:
        """Give the tops their shapes; called before each forward."""

    def forward(self, bottom: Any, top: Any) -> None:
        """Put into the tops' data what follows from the bottoms' data."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Put into the bottoms' diff what follows from the tops' diff."""
        raise NotImplementedError(f"{type(self).__name__} defines no backward()")


class PythonBlobs(list[ArrayBlob]):
    """The blobs of a Python layer, which `setup` adds."""

    def add_blob(self, *shape: int) -> ArrayBlob:
        """Add a blob of zeros."""
        made = ArrayBlob(np.zeros(shape, np.float32))
        self.append(made)
        return made


@layer("Python")
class Python(Layer):
    """Runs a class of the user's."""

    bottoms = (0, MANY)
    tops = (0, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Make the object, and let it say the shapes of its tops."""
        self.user = self._made()
        bottom = [ArrayBlob(np.zeros(self.checked_shape(s, "bottom"), np.float32)) for s in shapes]
        top = [ArrayBlob(np.zeros((), np.float32)) for _ in self.param.top]
        self.user.setup(bottom, top)
        self.user.reshape(bottom, top)
        for index, blob in enumerate(self.user.blobs):
            spec = self._spec()
            name = f"blob{index}"
            setattr(self, name, Parameter(wrap(blob.data.copy()), requires_grad=spec.lr_mult != 0))
            self.blob_specs.append(BlobSpec(name, blob.data.shape, spec))
        self.shapes = [blob.data.shape for blob in top]

    def _made(self) -> Any:
        options = self.param.python_param
        try:
            kind = getattr(load(options.module), options.layer)
        except (ImportError, AttributeError, ValueError) as error:
            self.fail(
                f"python_param names {options.module}.{options.layer}, which cannot be imported "
                f"({error}); its folder must be in PYTHONPATH"
            )
        if not (isinstance(kind, type) and issubclass(kind, PythonLayer)):
            self.fail(f"{options.module}.{options.layer} is no subclass of caffe.Layer")
        user = kind.__new__(kind)
        PythonLayer.__init__(user)
        user.param_str = options.param_str
        user.phase = self.phase
        return user

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes that `reshape` gave to the tops."""
        return self.shapes

    def forward(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        """Return what the user's forward puts into the tops."""
        blobs = [self.blob(i) for i in range(len(self.blob_specs))]
        found = _Call.apply(self, len(bottoms), *bottoms, *blobs)
        return found if isinstance(found, tuple) else (found,)

    def run(self, given: Sequence[Tensor], bottoms: int) -> tuple[Any, ...]:
        """Call reshape and forward on arrays; return bottoms and tops."""
        bottom = [ArrayBlob(np.array(x.numpy())) for x in given[:bottoms]]
        top = [ArrayBlob(np.zeros(shape, np.float32)) for shape in self.shapes]
        for blob, value in zip(self.user.blobs, given[bottoms:], strict=True):
            blob.data[...] = value.numpy()
        self.user.reshape(bottom, top)
        self.user.forward(bottom, top)
        return bottom, top

    def pull_back(self, bottom: Any, top: Any, grads: Sequence[Tensor]) -> list[Any]:
        """Call backward on arrays; return the gradients of bottoms and blobs."""
        for blob, grad in zip(top, grads, strict=True):
            blob.diff[...] = grad.numpy()
        for blob in (*bottom, *self.user.blobs):
            blob.diff[...] = 0
        down = [True] * len(bottom)
        self.user.backward(top, down, bottom)
        return [wrap(np.array(blob.diff)) for blob in (*bottom, *self.user.blobs)]


class _Call(WeftFunction):
    """A call of a Python layer, as one node of the tape."""

    @staticmethod
    def forward(ctx: Any, layer: Python, bottoms: int, *given: Tensor) -> Any:
        ctx.layer = layer
        ctx.bottom, ctx.top = layer.run(given, bottoms)
        return tuple(wrap(np.array(blob.data)) for blob in ctx.top)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return (None, None, *ctx.layer.pull_back(ctx.bottom, ctx.top, grads))
