"""PyTorch's methods of tensors that are no operators; methods.py adds those that are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..core.device import CPU
from ..core.errors import GradientError, WeftError
from ..core.modes import current_recorder, is_transformed, modes
from ..core.op import F
from ..core.shape import Shape
from ..core.tape import TapeNode
from .adoption import FACES, Methods, adopt
from .backward import backward_to, check_backward, in_their_words
from .devices import conversion, no_cuda, usable_device
from .dtypes import MADE
from .geometry import geometry_of
from .phrasing import phrase
from .printing import format_tensor
from .sizes import Size
from .storage import relatives
from .types import type_name
from .writing import detached, overwrite, replace_value

Array = np.ndarray[Any, Any]


class TensorMethods(Methods):
    """Methods and properties that are no operators."""

    __slots__ = ()

    _words = staticmethod(phrase)  # in which errors are said of it (core/wording.py)

    # What these are in Weft, seen from a class in front of it.
    _value: Array
    _node: Any
    ndim: int
    symbolic: bool

    @property
    def dtype(self) -> Any:
        """Return the type of its elements."""
        return MADE[super().dtype]  # type: ignore[misc]  # of the tensor behind

    @property
    def shape(self) -> Shape:
        """Return the sizes of all dimensions."""
        found: Shape = super().shape  # type: ignore[misc]  # of the tensor behind
        return found if modes.interpreters and is_transformed() else Size(found)

    def stride(self, dim: int | None = None) -> Any:
        """Return by how many elements one moves along each dimension."""
        strides = geometry_of(self).strides
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """Return where its first element is in the memory of what it is a view of."""
        return geometry_of(self).offset

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether its elements lie in their order."""
        return geometry_of(self).is_contiguous

    def data_ptr(self) -> int:
        """Return a number that is the same for tensors of one memory."""
        owner: Any = self
        while getattr(owner, "is_view_of", None) is not None:
            owner = owner.is_view_of
        keys = [id(owner), *[id(other) for other in relatives(owner)]]
        return min(keys) * 16 + self.storage_offset() * self.element_size()

    def nelement(self) -> Any:
        """Return the number of elements."""
        return self.numel()  # type: ignore[attr-defined]  # of the tensor behind

    def ndimension(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def element_size(self) -> int:
        """Return the number of bytes of one element."""
        return int(self.dtype.itemsize)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of its type, or the tensor in another dtype."""
        if dtype is None:
            return f"torch.{type_name(self.dtype)}Tensor"
        return self.to(getattr(dtype, "dtype", dtype))

    def is_complex(self) -> bool:
        """Tell whether its elements are complex: they never are."""
        return False

    def is_floating_point(self) -> bool:
        """Tell whether its elements are floats."""
        return dt.is_float(self.dtype)

    def is_signed(self) -> bool:
        """Tell whether its elements may be negative."""
        return self.dtype.kind not in "ub"

    def get_device(self) -> int:
        """Return -1, as PyTorch does for what is on the CPU."""
        return -1

    is_cuda = is_quantized = is_meta = is_mps = is_xpu = is_nested = False
    is_cpu = True
    layout = "torch.strided"
    names = None

    def is_pinned(self) -> bool:
        """Tell whether its memory is locked: it is not."""
        return False

    def is_shared(self) -> bool:
        """Tell whether processes share its memory: they do not."""
        return False

    def is_inference(self) -> bool:
        """Tell whether it was made in inference mode, which is no_grad here."""
        return False

    def is_same_size(self, other: Any) -> bool:
        """Tell whether another tensor has the same sizes."""
        return tuple(self.shape) == tuple(other.shape)

    def is_nonzero(self) -> bool:
        """Tell whether its only element is not zero."""
        return bool(self)

    # -- values and gradients ---------------------------------------------------------------------

    def __repr__(self) -> str:
        return format_tensor(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """Return its only element where it has no dimensions: `f"{loss}"` is a number."""
        if not self.ndim and not self.symbolic:
            return format(self.item(), spec)  # type: ignore[attr-defined]  # of the tensor behind
        return super().__format__(spec)

    def numpy(self, *, force: bool = False) -> Array:
        """Return the value as a NumPy array, read-only; np.array(x) gives a copy to write into."""
        if self._node is not None and not force and not self.symbolic:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        found: Array = super().numpy()  # type: ignore[misc]  # of the tensor behind
        return found

    @property
    def grad(self) -> Any:
        """Return the gradient that `backward` left here, or None."""
        return adopt(super().grad)  # type: ignore[misc]  # of the tensor behind

    @grad.setter
    def grad(self, value: Any) -> None:
        behind: Any = super(TensorMethods, type(self))
        try:
            behind.grad.__set__(self, value)
        except WeftError as error:
            raise phrase(error, "grad", {"x": self, "value": value}) from None

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def retains_grad(self) -> bool:
        """Tell whether `retain_grad` was called on it, a result of an operation."""
        node = self._node
        return isinstance(node, TapeNode) and node.watch is not None and node.watch.retain

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to `.grad` of every leaf it depends on."""
        check_backward(self, gradient)
        if inputs is not None:
            backward_to(self, gradient, retain_graph, create_graph, inputs)
            return
        options = {"retain_graph": retain_graph, "create_graph": create_graph}
        try:
            super().backward(gradient, **options)  # type: ignore[misc]  # of the tensor behind
        except GradientError as error:
            raise in_their_words(error) from None

    def detach(self) -> Any:
        """Return a tensor of the same memory without history."""
        return detached(self)

    @property
    def data(self) -> Any:
        """Return a tensor of the same memory without history; set it to write there."""
        return detached(self)

    @data.setter
    def data(self, value: Any) -> None:
        replace_value(self, value)

    def detach_(self) -> Any:
        """Forget what it was computed from."""
        if modes.interpreters and (recorder := current_recorder()) is not None:
            recorder.refuse("it detaches a tensor in place")
        self._node = None
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Start (or stop) recording gradients with respect to this leaf; return it."""
        if not self.symbolic and not self.is_leaf and requires_grad:  # type: ignore[attr-defined]  # of the tensor behind
            return self
        if not self.symbolic and not self.is_leaf:  # type: ignore[attr-defined]  # likewise
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if requires_grad and not dt.is_float(self.dtype):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return super().requires_grad_(requires_grad)  # type: ignore[misc]  # of the tensor behind

    # -- writing ----------------------------------------------------------------------------------

    def _rebind(self, result: Any) -> Any:
        return overwrite(self, result)

    def _overwritten(self, result: Any, begun: int) -> Any:
        return overwrite(self, result, begun)

    def _take(self, result: Any) -> None:
        """Let this tensor be a result, whose shape and dtype were seen to."""
        super()._rebind(result)  # type: ignore[misc]  # of the tensor behind

    # -- other places -----------------------------------------------------------------------------

    def to(self, *targets: Any, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        """Return the tensor in another dtype or on another device; itself where nothing changes."""
        dtype, device = conversion(targets, dtype, device)
        where = None if device is None else usable_device(device)
        wanted = self.dtype if dtype is None else dt.as_dtype(dtype)
        result: Any = self
        if wanted != self.dtype:
            result = adopt(F.cast(self, wanted))
        elif options.get("copy"):
            result = self.clone()  # type: ignore[attr-defined]  # attached by methods.py
        if where is None or where == result.device:
            return result
        return adopt(core.Tensor.to(result, where))  # type: ignore[attr-defined]  # attached

    def cpu(self, memory_format: Any = None) -> Any:
        """Return the tensor on the CPU: where it is, itself."""
        return self if self.device == CPU else self.to(CPU)  # type: ignore[attr-defined]  # of the tensor behind

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Refuse: there is no such device."""
        raise no_cuda()

    def pin_memory(self, device: Any = None) -> Any:
        """Return the tensor itself: memory is not locked."""
        return self

    def share_memory_(self) -> Any:
        """Return the tensor itself."""
        return self


FACES.front = TensorMethods
