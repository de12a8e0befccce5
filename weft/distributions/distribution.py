"""What all distributions are: shapes, samples, log-probabilities, and checks of arguments.

The shape of a sample is sample_shape + batch_shape + event_shape: independent draws, distributions
with parameters of their own, and what one draw consists of. `log_prob` has the shape of a sample
without the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..core.errors import ArgumentError, ShapeError, WeftError
from ..core.modes import no_grad
from ..core.op import F
from ..core.shape import Shape
from ..core.tensor import Tensor
from ._shared import as_sizes, as_tensor, check_batch
from .constraints import Constraint, is_dependent


class _Settings:
    validate = True


def set_default_validate_args(value: bool) -> None:
    """Let distributions check their arguments, or not, where they are not told."""
    _Settings.validate = bool(value)


class Distribution:
    """The base of all distributions.

    has_rsample              whether gradients reach the parameters through `rsample`
    has_enumerate_support    whether `enumerate_support` lists all values
    arg_constraints          what each parameter must satisfy
    support                  what each value must satisfy
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Mapping[str, Any]] = {}
    _given: str | None = None  # which of probs and logits the user gave

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape: Shape = tuple(batch_shape)
        self._event_shape: Shape = tuple(event_shape)
        self._validate_args = _Settings.validate if validate_args is None else bool(validate_args)
        if self._validate_args:
            self._check_parameters()

    # -- shapes ---------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Shape:
        """Return the shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """Return the shape of a single draw."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        raise NotImplementedError(f"{type(self).__name__} states no support")

    def _extended_shape(self, sample_shape: Any = ()) -> Shape:
        return (*as_sizes(sample_shape), *self._batch_shape, *self._event_shape)

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to a batch shape."""
        wanted = tuple(batch_shape)
        check_batch(self._batch_shape, wanted, type(self).__name__)
        parameters = {}
        for name in self._parameter_names():
            value = getattr(self, name)
            event = self._event_dims(name)
            own = tuple(value.shape[value.ndim - event :]) if event else ()
            parameters[name] = F.broadcast_to(value, (*wanted, *own))
        return type(self)(**parameters, **self._other_arguments(), validate_args=False)

    def _parameter_names(self) -> tuple[str, ...]:
        """Return the arguments that describe it: of probs and logits the one that was given."""
        names = tuple(self.arg_constraints)
        if self._given is None:
            return names
        left_out = {"probs", "logits"} - {self._given}
        return tuple(name for name in names if name not in left_out)

    def _other_arguments(self) -> dict[str, Any]:
        """Return arguments that are no tensors."""
        return {}

    def _event_dims(self, name: str) -> int:
        constraint = self.arg_constraints[name]
        return 0 if constraint is None else int(constraint.event_dim)

    # -- values ---------------------------------------------------------------------------------

    @property
    def mean(self) -> Any:
        """Return the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean in closed form")

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode in closed form")

    @property
    def variance(self) -> Any:
        """Return the variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance in closed form")

    @property
    def stddev(self) -> Any:
        """Return the standard deviation."""
        return F.sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        with no_grad():
            return F.stop_gradient(self.rsample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw by a differentiable function of the parameters and of fixed random numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no differentiable draws: use sample")

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density, or probability, at values."""
        raise NotImplementedError(f"{type(self).__name__} has no density in closed form")

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf in closed form")

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf in closed form")

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy in closed form")

    def perplexity(self) -> Any:
        """Return exp(entropy)."""
        return F.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values of a finite distribution along a new first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    # -- checks ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name in self._parameter_names():
            constraint = self.arg_constraints[name]
            if constraint is None or is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not holds(constraint, value):
                raise ArgumentError(
                    f"{type(self).__name__}: {name} must satisfy {constraint!r}. "
                    f"Received: {_shown(value)}; validate_args=False skips the check",
                    name=name,
                    value=value,
                    constraint=constraint,
                )

    def _value(self, value: Any) -> Any:
        """Return a value to compute with, checked where that is asked for."""
        value = as_tensor(value, f"{type(self).__name__}: value")
        event = len(self._event_shape)
        if event and (value.ndim < event or tuple(value.shape[-event:]) != self._event_shape):
            raise ShapeError(
                f"{type(self).__name__}: a value must end in the event shape {self._event_shape}. "
                f"Received: shape {tuple(value.shape)}"
            )
        if self._validate_args:
            self._check_support(value)
        return value

    def _check_support(self, value: Any) -> None:
        try:
            support = self.support
        except NotImplementedError:
            return
        if not is_dependent(support) and not holds(support, value):
            raise ArgumentError(
                f"{type(self).__name__}: a value must satisfy {support!r}. "
                f"Received: {_shown(value)}; validate_args=False skips the check",
                support=support,
                value=value,
            )

    def __repr__(self) -> str:
        shown = []
        for name in self._parameter_names():
            value = getattr(self, name)
            shape = tuple(value.shape)
            small = shape == () and _known(value) is not None
            shown.append(f"{name}: {float(value):.4g}" if small else f"{name}: {shape}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """The base of distributions whose log-probability is linear in functions of the value."""


def _known(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers in a tensor, None where it has none yet: in graphs and under vmap."""
    array = getattr(value, "_value", None) if isinstance(value, Tensor) else np.asarray(value)
    return array if isinstance(array, np.ndarray) else None


def holds(constraint: Constraint, value: Any) -> bool:
    """Tell whether a constraint holds for all values, as far as they are known."""
    known = _known(value)
    if known is None:
        return True
    try:
        with no_grad():
            found = _known(constraint.check(known))  # on the array: nothing is recorded
    except WeftError:
        return False
    return found is None or bool(np.all(found))


def _shown(value: Any) -> str:
    known = _known(value)
    return f"{known!r:.80}".replace("\n", " ")
