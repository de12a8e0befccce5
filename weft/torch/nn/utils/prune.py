"""Weights of which some elements are zero for good: a parameter times a mask.

The parameter is `weight_orig`, the mask the buffer `weight_mask`, and `weight` their product, a
property of the module (weft/nn/reparametrize.py): whoever reads it gets what belongs to the
present parameter. A method of pruning says which elements of the mask become zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

from ....core.op import F
from ....nn.reparametrize import attach_computed, release_computed
from ....ops.creation import ones_like, zeros
from ....ops.random.draw import rand
from ...adoption import adopt

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

UNSTRUCTURED, STRUCTURED, GLOBAL = "unstructured", "structured", "global"


class _Masked(NamedTuple):
    """A weight that is a parameter times a mask, and the method that made the mask."""

    name: str
    method: Any
    sources: tuple[str, ...] = ()

    def compute(self, module: Any) -> Any:
        """Return the weight."""
        return self.method.apply_mask(module)


class BasePruningMethod(ABC):
    """A way of pruning: a subclass has `PRUNING_TYPE` and says by `compute_mask` what is left."""

    PRUNING_TYPE: str
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask of a tensor whose mask so far is given."""

    def apply_mask(self, module: Any) -> Any:
        """Return the parameter of a module times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        mask = getattr(module, f"{self._tensor_name}_mask")
        return adopt(F.cast(mask, original.dtype) * original)

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a tensor of a module, further if it is pruned already; return the method."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        known = _method_of(module, name)
        tensor = getattr(module, name)
        scores = _scores(tensor, importance_scores, f"parameter {name} of {module}")
        if known is None:
            mask = method.compute_mask(scores, default_mask=adopt(ones_like(tensor.detach())))
            _attach(module, method, mask)
            return method
        joined = known if isinstance(known, PruningContainer) else PruningContainer(known)
        joined.add_pruning_method(method)
        held = getattr(module, f"{name}_mask")
        held.copy_(joined.compute_mask(scores, default_mask=held.detach().clone()))
        module._computed[name] = module._computed[name]._replace(record=_Masked(name, joined))
        return joined

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a tensor pruned."""
        scores = _scores(t, importance_scores, "tensor t")
        mask = adopt(ones_like(t.detach())) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter again; what is zero stays so."""
        name = self._tensor_name
        value, original = self.apply_mask(module).detach(), getattr(module, f"{name}_orig")
        release_computed(module, name)
        delattr(module, f"{name}_orig")
        delattr(module, f"{name}_mask")
        original.data.copy_(value)
        module.register_parameter(name, original)


def _scores(tensor: Any, scores: Any, what: str) -> Any:
    """Return how important the elements of a tensor are: what was given, or the tensor."""
    if scores is None:
        return tensor.detach()
    if tuple(scores.shape) != tuple(tensor.shape):
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, "
            f"got {scores.shape} vs {tensor.shape}"
        )
    return scores.detach()


def _attach(module: Any, method: BasePruningMethod, mask: Any) -> None:
    """Put the product of a parameter and a mask in the place of the parameter."""
    name = method._tensor_name
    original = getattr(module, name)
    attach_computed(module, _Masked(name, method))
    module.register_parameter(f"{name}_orig", original)
    module.register_buffer(f"{name}_mask", mask)


def _method_of(module: Any, name: str) -> Any:
    """Return the method by which a tensor of a module is pruned, or None."""
    computed = getattr(module, "_computed", {}).get(name)
    record: Any = getattr(computed, "record", None)
    return record.method if isinstance(record, _Masked) else None


class PruningContainer(BasePruningMethod):
    """Methods one after the other: each prunes of what those before it have left."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(methods) == 1:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask after the last method, which sees what is left alone."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(t.dtype)
        return mask


def _left(method: Any, t: Any, mask: Any) -> Any:
    """Return an index of what a method may prune: elements, channels, or all."""
    if method.PRUNING_TYPE == UNSTRUCTURED:
        return mask == 1
    if method.PRUNING_TYPE == GLOBAL:
        return (slice(None),) * t.ndim
    if method.PRUNING_TYPE != STRUCTURED:
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    return _channels(t, method.dim, mask.sum(dim=_others(t, method.dim)) != 0)


def _others(t: Any, dim: int) -> list[int]:
    """Return all dimensions but one."""
    return [d for d in range(t.ndim) if d != range(t.ndim)[dim]]


def _channels(t: Any, dim: int, which: Any) -> tuple[Any, ...]:
    """Return an index of some channels, which one dimension counts."""
    index: list[Any] = [slice(None)] * t.ndim
    index[dim] = which
    return tuple(index)


# -- how much --------------------------------------------------------------------------------------


def _checked_amount(amount: Any) -> Any:
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    number = float(amount)
    if number < 0 or (number > 1 and not isinstance(amount, Integral)):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )
    return amount


def _count(amount: Any, size: int) -> int:
    """Return how many of so many are pruned: a number of them, or a part."""
    if not isinstance(amount, Integral):
        return round(float(amount) * size)
    if int(amount) > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return int(amount)


# -- methods ---------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prune nothing."""

    PRUNING_TYPE = UNSTRUCTURED

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prune the elements that count least; a subclass says how much each counts.

    amount   how many elements: a number of them, or a part between 0 and 1
    """

    PRUNING_TYPE = UNSTRUCTURED

    def __init__(self, amount: Any) -> None:
        self.amount = _checked_amount(amount)

    def _importance(self, t: Any) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far, with further elements zero."""
        mask = default_mask.clone()
        count = _count(self.amount, t.numel())
        if count:
            places = self._importance(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[places] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prune elements at random."""

    def _importance(self, t: Any) -> Any:
        return adopt(rand(*t.shape))


class L1Unstructured(_Unstructured):
    """Prune the elements that are closest to zero."""

    def _importance(self, t: Any) -> Any:
        return t.abs()


class _Structured(BasePruningMethod):
    """Prune the channels that count least; a subclass says how much each counts.

    amount   how many channels: a number of them, or a part between 0 and 1
    dim      the dimension that counts the channels
    """

    PRUNING_TYPE = STRUCTURED

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount, self.dim = _checked_amount(amount), dim

    def _importance(self, t: Any) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far, with further channels zero."""
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if not count:
            return default_mask
        kept = self._importance(t).topk(size - count).indices
        mask = adopt(zeros(tuple(t.shape), dtype=t.dtype))
        mask[_channels(t, self.dim, kept)] = 1
        return mask * default_mask.to(t.dtype)


class RandomStructured(_Structured):
    """Prune channels at random."""

    def _importance(self, t: Any) -> Any:
        return adopt(rand(t.shape[self.dim]))


class LnStructured(_Structured):
    """Prune the channels of the least norm, of the order n."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _importance(self, t: Any) -> Any:
        return t.norm(p=self.n, dim=_others(t, self.dim))


class CustomFromMask(BasePruningMethod):
    """Prune what a mask says."""

    PRUNING_TYPE = GLOBAL

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far, with what the other mask says zero."""
        if tuple(default_mask.shape) != tuple(self.mask.shape):
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


# -- functions -------------------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """Give a tensor of a module a mask of ones; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements of a tensor at random; return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of a tensor that are closest to zero; return the module.

    >>> from weft import torch
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, -4.0], [3.0, 2.0]]))
    >>> l1_unstructured(layer, "weight", amount=0.5).weight
    tensor([[ 0., -4.],
            [ 3.,  0.]], grad_fn=<MulBackward0>)
    >>> list(layer.state_dict())
    ['weight_orig', 'weight_mask']
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels of a tensor at random; return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels of a tensor with the least norm of order n; return the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune what a mask says; return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune tensors of several modules as if they were one, given by pairs (module, name)."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs: list[tuple[Any, str]] = list(parameters)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != UNSTRUCTURED:
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    tensors = [getattr(module, name).detach() for module, name in pairs]
    scores = [given.get(pair, t).detach() for pair, t in zip(pairs, tensors, strict=True)]
    masks = [_mask_of(m, name, t) for (m, name), t in zip(pairs, tensors, strict=True)]
    joined = PruningContainer(method).compute_mask(_joined(scores), _joined(masks))
    parts = joined.split([t.numel() for t in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, part.view_as(tensor))


def _mask_of(module: Any, name: str, tensor: Any) -> Any:
    held = getattr(module, f"{name}_mask", None)
    return adopt(ones_like(tensor)) if held is None else held


def _joined(tensors: list[Any]) -> Any:
    return adopt(F.concat([F.reshape(t, (-1,)) for t in tensors], 0))


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a parameter again; what is zero stays so. Return the module."""
    method = _method_of(module, name)
    if method is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    method.remove(module)
    return module


def is_pruned(module: Any) -> bool:
    """Tell whether a module, or one in it, is pruned."""
    return any(
        isinstance(computed.record, _Masked)
        for part in module.modules()
        for computed in getattr(part, "_computed", {}).values()
    )
