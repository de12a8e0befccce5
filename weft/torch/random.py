"""Random numbers: PyTorch's functions over Weft's draws; the numbers are Weft's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.errors import WeftError
from ..core.op import F
from ..core.rng import Generator as CoreGenerator
from ..ops.random import draw
from .adoption import adopt
from .calls import write_out
from .devices import usable_device
from .phrasing import phrase
from .sizes import sizes_of
from .tensor import wrap

IGNORED = ("layout", "pin_memory", "memory_format")
_seed = [0]


class Generator:
    """A source of random numbers with a seed of its own: Weft's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """Return a generator with an arbitrary seed."""
        usable_device(device)
        return CoreGenerator()


def manual_seed(seed: int) -> Any:
    """Let random numbers begin anew from a seed."""
    _seed[0] = int(seed)
    draw.manual_seed(int(seed) & 0xFFFFFFFFFFFFFFFF)
    return draw.default_generator if hasattr(draw, "default_generator") else None


def seed() -> int:
    """Let random numbers begin anew from an arbitrary seed, and return that."""
    chosen = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed that random numbers began with."""
    return _seed[0]


def get_rng_state() -> Any:
    """Return where random numbers are."""
    return draw.get_rng_state()


def set_rng_state(new_state: Any) -> None:
    """Go on with random numbers from a state."""
    draw.set_rng_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Any:
    """Go on with random numbers afterwards as if none had been drawn inside."""
    state = draw.get_rng_state()
    try:
        yield
    finally:
        if enabled:
            draw.set_rng_state(state)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    found = {n: v for n, v in options.items() if n not in IGNORED and v is not None}
    if "device" in found:
        found["device"] = usable_device(found["device"])
    return found


def _drawn(make: Any, *args: Any, out: Any = None, **options: Any) -> Any:
    try:
        made = adopt(make(*args, **_options(options)))
    except WeftError as error:
        raise phrase(error, make.__name__, {"args": args, **options}) from None
    return made if out is None else write_out(made, out)


def rand(*size: Any, out: Any = None, **options: Any) -> Any:
    """Return numbers that are uniform between 0 and 1."""
    return _drawn(draw.rand, sizes_of(size or (options.pop("size"),)), out=out, **options)


def randn(*size: Any, out: Any = None, **options: Any) -> Any:
    """Return numbers of the standard normal distribution."""
    return _drawn(draw.randn, sizes_of(size or (options.pop("size"),)), out=out, **options)


def rand_like(input: Any, **options: Any) -> Any:
    """Return uniform numbers in the shape of another tensor."""
    options["dtype"] = options.get("dtype") or input.dtype
    return rand(tuple(input.shape), **options)


def randn_like(input: Any, **options: Any) -> Any:
    """Return normal numbers in the shape of another tensor."""
    options["dtype"] = options.get("dtype") or input.dtype
    return randn(tuple(input.shape), **options)


def randint(*bounds: Any, out: Any = None, **options: Any) -> Any:
    """Return whole numbers from a low, 0 by default, up to a high, which is left out."""
    named = [options.pop(n) for n in ("low", "high", "size") if n in options]
    *numbers, size = (*bounds, *named)
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers
    if isinstance(size, int):
        raise TypeError(
            f"randint(): argument 'size' (position {len(numbers) + 1}) must be tuple of ints, "
            "not int"
        )
    options["dtype"] = options.get("dtype") or dt.int64
    wanted = dt.as_dtype(options.pop("dtype"))
    whole = wanted if dt.is_integer(wanted) else dt.int64
    made = _drawn(draw.randint, int(low), int(high), tuple(size), dtype=whole, **options)
    made = made if whole == wanted else made.to(wanted)
    return made if out is None else write_out(made, out)


def randint_like(input: Any, *bounds: Any, **options: Any) -> Any:
    """Return whole numbers in the shape of another tensor."""
    options["dtype"] = options.get("dtype") or input.dtype
    named = [options.pop(n) for n in ("low", "high") if n in options]
    return randint(*bounds, *named, tuple(input.shape), **options)


def randperm(n: int, *, out: Any = None, **options: Any) -> Any:
    """Return the numbers below n in random order."""
    dtype = options.pop("dtype", None)
    options.pop("requires_grad", None)
    made = _drawn(draw.randperm, int(n), **options)
    made = made if dtype is None else made.to(dtype)
    return made if out is None else write_out(made, out)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, out: Any = None, **options: Any
) -> Any:
    """Return numbers of normal distributions."""
    return _drawn(draw.normal, mean, std, None if size is None else tuple(size), out=out, **options)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Return zeros and ones, ones with the probabilities that the elements are."""
    chance = input if p is None else p
    shape = tuple(input.shape)
    made = adopt(draw.bernoulli(chance, shape, generator=generator)).to(input.dtype)
    made = adopt(made + input * 0) if input.requires_grad else made  # gradients of zero
    return made if out is None else write_out(made, out)


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None, **_: Any
) -> Any:
    """Return indices that are drawn with the weights that the elements of each row are."""
    return adopt(draw.multinomial(input, num_samples, replacement, generator=generator))


def poisson(input: Any, generator: Any = None) -> Any:
    """Return counts of Poisson distributions whose rates the elements are."""
    state = np.random.Generator(np.random.Philox(_word(generator)))
    return wrap(state.poisson(input.detach()._read()).astype(input.dtype))


def _word(generator: Any) -> int:
    """Return a random number that another generator can begin with."""
    return int(draw.randint(0, 2**62, (), generator=generator)._read())


# -- in place -----------------------------------------------------------------------------------


def _fill(tensor: Any, make: Any) -> Any:
    """Let a tensor take random values, computed in floats where it holds others."""
    exact = tensor.dtype if dt.is_float(tensor.dtype) else dt.default_float()
    made = make(tuple(tensor.shape), exact)
    return tensor._rebind(made if made.dtype == tensor.dtype else F.cast(made, tensor.dtype))


def uniform_(self: Any, a: float = 0, b: float = 1, *, generator: Any = None, **names: Any) -> Any:
    """Fill with numbers that are uniform between two bounds."""
    low, high = names.get("from", a), names.get("to", b)
    return _fill(
        self, lambda s, d: draw.uniform(float(low), float(high), s, dtype=d, generator=generator)
    )


def normal_(self: Any, mean: float = 0, std: float = 1, *, generator: Any = None) -> Any:
    """Fill with numbers of a normal distribution."""
    return _fill(
        self, lambda s, d: draw.normal(float(mean), float(std), s, dtype=d, generator=generator)
    )


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with zeros and ones, ones with a probability."""
    return _fill(self, lambda s, d: F.cast(draw.bernoulli(p, s, generator=generator), d))


def exponential_(self: Any, lambd: float = 1, *, generator: Any = None) -> Any:
    """Fill with numbers of an exponential distribution."""
    return _fill(self, lambda s, d: draw.exponential(float(lambd), s, dtype=d, generator=generator))


def random_(self: Any, *bounds: Any, generator: Any = None, **names: Any) -> Any:
    """Fill with whole numbers from a low, 0 by default, up to a high, which is left out."""
    given = [*bounds, *[names[n] for n in ("from", "to") if n in names]]
    most = (
        2**24
        if dt.is_float(self.dtype)
        else np.iinfo(self.dtype).max
        if self.dtype.kind != "b"
        else 2
    )
    low, high = (0, most) if not given else (0, given[0]) if len(given) == 1 else given
    made = draw.randint(int(low), int(high), tuple(self.shape), generator=generator)
    return self._rebind(F.cast(made, self.dtype))


def _largest(dtype: Any) -> int:
    """Return the largest whole number that is drawn where no bound is given."""
    return 2**24 if dt.is_float(dtype) else int(np.iinfo(dtype).max)


def cauchy_(self: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    """Fill with numbers of a Cauchy distribution."""

    def make(shape: Any, dtype: Any) -> Any:
        u = draw.uniform(0.0, 1.0, shape, dtype=dtype, generator=generator)
        return F.tan((u - 0.5) * np.pi) * sigma + median

    return _fill(self, make)


def log_normal_(self: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Any:
    """Fill with numbers whose logarithm is normal."""
    return _fill(
        self,
        lambda s, d: F.exp(draw.normal(float(mean), float(std), s, dtype=d, generator=generator)),
    )


def geometric_(self: Any, p: Any, *, generator: Any = None) -> Any:
    """Fill with numbers of trials up to the first success."""

    def make(shape: Any, dtype: Any) -> Any:
        u = draw.uniform(0.0, 1.0, shape, dtype=dtype, generator=generator)
        return F.ceil(F.log1p(-u) / np.log1p(-float(p)))

    return _fill(self, make)


FUNCTIONS: dict[str, Any] = {
    "Generator": Generator,
    "manual_seed": manual_seed,
    "seed": seed,
    "initial_seed": initial_seed,
    "get_rng_state": get_rng_state,
    "set_rng_state": set_rng_state,
    "rand": rand,
    "randn": randn,
    "rand_like": rand_like,
    "randn_like": randn_like,
    "randint": randint,
    "randint_like": randint_like,
    "randperm": randperm,
    "normal": normal,
    "bernoulli": bernoulli,
    "multinomial": multinomial,
    "poisson": poisson,
}
METHODS: dict[str, Any] = {
    "uniform_": uniform_,
    "normal_": normal_,
    "bernoulli_": bernoulli_,
    "exponential_": exponential_,
    "random_": random_,
    "cauchy_": cauchy_,
    "log_normal_": log_normal_,
    "geometric_": geometric_,
    "bernoulli": bernoulli,
    "multinomial": multinomial,
}
