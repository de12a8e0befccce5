"""Distributions made of others: transformed, with batch axes as events, and mixtures."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError, ShapeError
from ..core.modes import no_grad
from ..core.op import F
from ..core.shape import broadcast
from . import constraints
from ._shared import as_sizes, check_batch, constrained, sum_last
from .categorical import Categorical
from .distribution import Distribution
from .normal import Normal
from .number_transforms import ExpTransform
from .transforms import ComposeTransform, Transform
from .vector_transforms import StickBreakingTransform


class Independent(Distribution):
    """A distribution whose last batch axes count as event axes: log-probabilities are summed.

    >>> import weft as wf
    >>> normal = wf.distributions.Normal(wf.zeros((2, 3)), 1.0)
    >>> wf.distributions.Independent(normal, 1).event_shape
    (3,)
    """

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, count = base_distribution.batch_shape, int(reinterpreted_batch_ndims)
        if not 0 <= count <= len(batch):
            raise ArgumentError(
                f"Independent: reinterpreted_batch_ndims must be from 0 to {len(batch)}. "
                f"Received: {count}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        event = (*batch[cut:], *base_distribution.event_shape)
        super().__init__(batch[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]  # that of the base
        """Tell whether the base has differentiable draws."""
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        support, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, count) if count else support

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.base_dist.variance

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*batch_shape, *inner))
        return Independent(base, self.reinterpreted_batch_ndims, validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What transforms make of the draws of a distribution."""

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        self.transforms = list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ArgumentError(
                f"TransformedDistribution: transforms must be Transforms. Received: {transforms!r}"
            )
        self._whole = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        dims = self._whole.domain.event_dim
        if len(shape) < dims:
            raise ShapeError(
                f"TransformedDistribution: the base needs at least {dims} dimensions. "
                f"Received: shape {shape}"
            )
        forward = self._whole.forward_shape(shape)
        expanded = self._whole.inverse_shape(forward)
        if shape != expanded:
            event = len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(expanded[: len(expanded) - event])
        extra = dims - len(base_distribution.event_shape)
        self.base_dist = (
            Independent(base_distribution, extra, validate_args=False)
            if extra > 0
            else base_distribution
        )
        change = self._whole.codomain.event_dim - dims
        event = max(len(self.base_dist.event_shape), dims) + change
        cut = len(forward) - event
        super().__init__(forward[:cut], forward[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]  # that of the base
        """Tell whether the base has differentiable draws."""
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self.event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        wanted = tuple(batch_shape)
        check_batch(self._batch_shape, wanted, type(self).__name__)
        shape = self._whole.inverse_shape((*wanted, *self._event_shape))
        cut = len(shape) - len(self.base_dist.event_shape)
        base = self.base_dist.expand(shape[:cut])
        return TransformedDistribution(base, self.transforms, validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        with no_grad():
            drawn = self._whole(self.base_dist.sample(sample_shape))
            return F.stop_gradient(drawn) if drawn.requires_grad else drawn  # caches know it

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        y = self._value(value)
        event, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            stretch = transform.log_abs_det_jacobian(x, y)
            total = total - sum_last(stretch, event - transform.domain.event_dim)
            y = x
        own = self.base_dist.log_prob(y)
        return total + sum_last(own, event - len(self.base_dist.event_shape))

    def _monotonous(self, value: Any) -> Any:
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return F.where(F.full_like(value, 1.0) * sign == 1, value, 1 - value)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        y = self._value(value)
        return self._monotonous(self.base_dist.cdf(self._whole.inv(y)))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self._whole(self.base_dist.icdf(self._monotonous(value)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class LogNormal(TransformedDistribution):
    """The exponential of a normal variable."""

    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, ExpTransform(), validate_args)

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        return Distribution.expand(self, batch_shape)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        square = self.scale**2
        return F.expm1(square) * F.exp(2 * self.loc + square)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return self.base_dist.entropy() + self.loc

    __repr__ = Distribution.__repr__


class LogisticNormal(TransformedDistribution):
    """Probabilities by breaking a stick at normal places."""

    arg_constraints = constrained(
        loc=constraints.real_vector,
        scale=constraints.independent(constraints.positive, 1),
    )

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, StickBreakingTransform(), validate_args)

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        return Distribution.expand(self, batch_shape)

    __repr__ = Distribution.__repr__


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen by a categorical one.

    The last batch axis of the components is what is chosen from.
    """

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                "MixtureSameFamily: mixture_distribution must be a Categorical. "
                f"Received: {mixture_distribution!r}"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        *batch, count = component_distribution.batch_shape or (None,)
        if count != mixture_distribution.param_shape[-1]:
            raise ShapeError(
                f"MixtureSameFamily: {mixture_distribution.param_shape[-1]} weights and components "
                f"of batch shape {component_distribution.batch_shape} do not fit"
            )
        weights_batch = tuple(mixture_distribution.batch_shape)
        if broadcast(weights_batch, tuple(batch)) != tuple(batch):
            raise ShapeError(
                f"MixtureSameFamily: weights of batch shape {weights_batch} do not fit components "
                f"of batch shape {component_distribution.batch_shape}"
            )
        self._events = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return self.component_distribution.support

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        count = self.component_distribution.batch_shape[-1]
        return MixtureSameFamily(
            self.mixture_distribution.expand(tuple(batch_shape)),
            self.component_distribution.expand((*batch_shape, count)),
            validate_args=False,
        )

    def _check_support(self, value: Any) -> None:
        pass  # each component checks it

    def _padded(self, value: Any) -> Any:
        return F.unsqueeze(value, -1 - self._events)

    def _weights(self) -> Any:
        probs = self.mixture_distribution.probs
        return F.reshape(probs, (*probs.shape, *(1,) * self._events))

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.sum(self._weights() * self.component_distribution.mean, -1 - self._events)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        axis, weights = -1 - self._events, self._weights()
        component = self.component_distribution
        inside = F.sum(weights * component.variance, axis)
        apart = component.mean - self._padded(self.mean)
        return inside + F.sum(weights * apart * apart, axis)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        value = self._padded(self._value(value))
        return F.sum(self.component_distribution.cdf(value) * self.mixture_distribution.probs, -1)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._padded(self._value(value))
        each = self.component_distribution.log_prob(value)
        return F.logsumexp(each + F.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        sizes = as_sizes(sample_shape)
        chosen = self.mixture_distribution.expand(self._batch_shape).sample(sizes)
        drawn = self.component_distribution.sample(sizes)
        axis = len(sizes) + len(self._batch_shape)
        index = F.reshape(chosen, (*chosen.shape, *(1,) * (self._events + 1)))
        shape = (*drawn.shape[:axis], 1, *drawn.shape[axis + 1 :])
        taken = F.take_along_axis(drawn, F.broadcast_to(index, shape), axis)
        return F.squeeze(taken, axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"
