"""Weight and spectral normalisation: a weight that is computed from other parameters.

The module's class is replaced by a subclass in which the weight is a property, so whoever reads it
gets the value that belongs to the present parameters, in forward and elsewhere. State dictionaries
hold what the weight is computed from, under PyTorch's names: weight_g and weight_v, or weight_orig,
weight_u and weight_v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.modes import no_grad
from ..core.shape import normalize_axis, size_of
from ..core.tensor import Tensor
from ..ops.random.draw import randn
from .arguments import as_number, as_size
from .calls import F
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .hooks import HookRemover
from .module import Module
from .parameter import Parameter, UninitializedParameter
from .version import count_change

M = TypeVar("M", bound=Module)


# -- weight normalisation ------------------------------------------------------------------------


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train a weight as magnitude and direction, g * v / |v| (arXiv:1602.07868).

    The norm is taken over all axes but `dim`, over all of them for None. Returns the module.

    >>> import weft as wf
    >>> layer = weight_norm(wf.nn.Linear(3, 5))
    >>> layer.weight_g.shape, layer.weight_v.shape
    ((5, 1), (5, 3))
    """
    weight = _weight_of("weight_norm", module, name)
    axis = None if dim is None else normalize_axis(dim, weight.ndim, "weight_norm: dim")
    record = WeightNorm(name, axis)
    magnitude, trained = record.norm(weight).detach(), weight.requires_grad
    attach_computed(module, record)
    module.register_parameter(f"{name}_g", Parameter(magnitude, trained))
    module.register_parameter(f"{name}_v", Parameter(weight.detach(), trained))
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a weight an ordinary parameter of its present value again."""
    _detach("remove_weight_norm", WeightNorm, module, name)
    return module


class WeightNorm(NamedTuple):
    """A weight of direction v and norm g."""

    name: str
    axis: int | None

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the tensors that the weight is computed from."""
        return (f"{self.name}_g", f"{self.name}_v")

    def norm(self, v: Tensor) -> Tensor:
        """Return the norms of v, with their axes kept unless there is one norm only."""
        if self.axis is None:
            return F.vector_norm(v)
        axes = tuple(i for i in range(v.ndim) if i != self.axis)
        return F.vector_norm(v, axis=axes, keepdims=True) if axes else F.abs(v)

    def compute(self, module: Module) -> Tensor:
        """Return the weight."""
        return self.joined(*(getattr(module, source) for source in self.sources))

    def joined(self, g: Tensor, v: Tensor) -> Tensor:
        """Return the weight of a norm and a direction; zero where v is zero, which has none."""
        norm = self.norm(v)
        weight: Tensor = v * (g / F.where(F.equal(norm, 0), 1.0, norm))
        return weight


# -- spectral normalisation ----------------------------------------------------------------------


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value (Miyato et al. 2018, arXiv:1802.05957).

    The value is followed by power iteration: each forward pass in training makes
    `n_power_iterations` steps. The weight is taken as a matrix with `dim` as rows: None means 1
    for transposed convolutions and 0 for the rest. Returns the module.

    >>> import weft as wf
    >>> layer = spectral_norm(wf.nn.Linear(3, 5))
    >>> layer.weight_u.shape, layer.weight_v.shape
    ((5,), (3,))
    """
    weight = _weight_of("spectral_norm", module, name)
    steps = as_size("spectral_norm", "n_power_iterations", n_power_iterations)
    floor = as_number("spectral_norm", "eps", eps, least=0.0)
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    record = SpectralNorm(
        name, steps, floor, normalize_axis(dim, weight.ndim, "spectral_norm: dim")
    )
    rows, columns = record.matrix(weight.detach()).shape
    attach_computed(module, record, record.iterate)
    module.register_parameter(f"{name}_orig", Parameter(weight.detach(), weight.requires_grad))
    for letter, size in (("u", rows), ("v", columns)):
        start = F.normalize(randn(size, dtype=weight.dtype), axis=0, eps=floor)
        module.register_buffer(f"{name}_{letter}", start)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a weight an ordinary parameter of its present value again."""
    _detach("remove_spectral_norm", SpectralNorm, module, name)
    return module


class SpectralNorm(NamedTuple):
    """A weight divided by its largest singular value, u . W v."""

    name: str
    steps: int
    eps: float
    axis: int

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the tensors that the weight is computed from."""
        return (f"{self.name}_orig", f"{self.name}_u", f"{self.name}_v")

    def matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix, with one axis as rows and the others as columns."""
        front = F.moveaxis(weight, self.axis, 0)
        return F.reshape(front, (front.shape[0], size_of(front.shape[1:])))

    def iterate(self, module: Module, args: tuple[Any, ...]) -> None:
        """Bring u and v closer to the singular vectors; a forward hook, in training only."""
        if not module.training:
            return
        original, u, v = (getattr(module, source) for source in self.sources)
        with no_grad():
            matrix, towards_u, towards_v = self.matrix(original), u, v
            for _ in range(self.steps):
                towards_v = F.normalize(F.matmul(towards_u, matrix), axis=0, eps=self.eps)
                towards_u = F.normalize(F.matmul(matrix, towards_v), axis=0, eps=self.eps)
            u.copy_(towards_u)
            v.copy_(towards_v)

    def compute(self, module: Module) -> Tensor:
        """Return the weight; u and v count as constants in its gradient (equation 10)."""
        original, u, v = (getattr(module, source) for source in self.sources)
        u, v = u.detach().clone(), v.detach().clone()  # the next step may write into their memory
        sigma = F.matmul(u, F.matmul(self.matrix(original), v))
        weight: Tensor = original / F.where(F.equal(sigma, 0), 1.0, sigma)
        return weight


# -- modules with computed weights ---------------------------------------------------------------


class Record(Protocol):
    """How a weight is computed.

    sources   names of the tensors of the module that it is computed from
    """

    @property
    def name(self) -> str:
        """Return the name of the weight."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return what must not be assigned to otherwise."""

    def compute(self, module: Any) -> Tensor:
        """Return the weight."""


class Computed(NamedTuple):
    """How a weight is computed, and the hook that goes with it."""

    record: Record
    hook: HookRemover | None = None


class _WithComputed(Module):
    """Mixed into the class of a module some of whose weights are computed."""

    _computed: dict[str, Computed]
    _plain_class: type[Module]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._computed:
            record: Any = self._computed[name].record
            if hasattr(record, "assign"):
                record.assign(self, value)
                return
            sources = " and ".join(record.sources)
            raise ArgumentError(
                f"{type(self).__name__}.{name} is computed from {sources}: assign to those, or "
                "remove the normalisation first"
            )
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Name the class by what it is made of: copy and pickle cannot look it up."""
        reduced: Any = super().__reduce_ex__(protocol)
        made_of = (self._plain_class, tuple(self._computed))
        return (_new_with_computed, made_of, *reduced[2:])


_classes: dict[tuple[type[Module], tuple[str, ...]], type[Module]] = {}


def _class_with_computed(plain: type[Module], names: tuple[str, ...]) -> type[Module]:
    """Return the one subclass of a class in which these names are computed."""
    if (plain, names) not in _classes:
        _classes[plain, names] = _make_class(plain, names)
    return _classes[plain, names]


def _make_class(plain: type[Module], names: tuple[str, ...]) -> type[Module]:
    members: dict[str, Any] = {name: property(_reader(name)) for name in names}
    members.update(__module__=plain.__module__, __doc__=plain.__doc__, _plain_class=plain)
    return type(plain.__name__, (_WithComputed, plain), members)


def _reader(name: str) -> Callable[[Any], Tensor]:
    def read(module: Any) -> Tensor:
        return module._computed[name].record.compute(module)  # type: ignore[no-any-return]  # a Record

    return read


def _new_with_computed(plain: type[Module], names: tuple[str, ...]) -> Module:
    made = _class_with_computed(plain, names)
    return made.__new__(made)


def _weight_of(fn: str, module: Any, name: str) -> Parameter:
    """Return the parameter to be normalised; raise if there is none that can be."""
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"{fn}: expected a module. Received: {type(module).__name__}")
    label = f"{fn}: {type(module).__name__}"
    if isinstance(module, _WithComputed) and name in module._computed:
        raise ArgumentError(f"{label}.{name} is normalised already")
    own = dict(module.named_parameters(recurse=False))
    if name not in own:
        known = ", ".join(own) or "none"
        raise ArgumentError(f"{label} has no parameter {name!r}; it has: {known}")
    if isinstance(own[name], UninitializedParameter):
        raise ArgumentError(f"{label}.{name} has no shape yet: run the module once before")
    if own[name].ndim == 0:
        raise ShapeError(f"{label}.{name} is 0-d and cannot be normalised")
    return own[name]


def attach_computed(module: Any, record: Record, hook: Callable[..., None] | None = None) -> None:
    """Put a computed weight in the place of a parameter.

    A record that has `assign(module, value)` is given what the weight is set to.
    """
    for source in record.sources:
        if hasattr(module, source):
            raise ArgumentError(
                f"{type(module).__name__} has an attribute {source!r} already, which the "
                f"normalisation of {record.name!r} needs"
            )
    delattr(module, record.name)
    computed = module.__dict__.setdefault("_computed", {})
    remover = None if hook is None else module.register_forward_pre_hook(hook)
    computed[record.name] = Computed(record, remover)
    _settle_class(module)


def _detach(fn: str, kind: type[Any], module: Any, name: str) -> None:
    """Put an ordinary parameter in the place of a computed weight."""
    computed = getattr(module, "_computed", {}).get(name)
    if computed is None or not isinstance(computed.record, kind):
        raise ArgumentError(
            f"{fn}: {type(module).__name__} has no weight {name!r} of that normalisation"
        )
    sources = computed.record.sources
    weight = Parameter(getattr(module, name).detach(), getattr(module, sources[0]).requires_grad)
    if computed.hook is not None:
        computed.hook.remove()
    for source in sources:
        delattr(module, source)
    release_computed(module, name)
    module.register_parameter(name, weight)


def release_computed(module: Any, name: str) -> None:
    """Let a weight be computed no more: its name is free."""
    del module._computed[name]
    _settle_class(module)


def _settle_class(module: Any) -> None:
    """Give a module the class in which exactly its computed weights are properties."""
    plain = module._plain_class if isinstance(module, _WithComputed) else type(module)
    names = tuple(module._computed)
    count_change()
    if not names:
        del module.__dict__["_computed"]
    made = _class_with_computed(plain, names) if names else plain
    object.__setattr__(module, "__class__", made)
