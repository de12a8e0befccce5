"""Integer expressions over unknown sizes, in a normal form: a polynomial over sizes and calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from numbers import Integral
from typing import Any, NoReturn

from ..errors import ArgumentTypeError, AxisError, ShapeError, UnknownSizeError
from ..imports import deferred_imports
from .intervals import CALLS, Bounds, times

Monomial = tuple["Atom", ...]

LEAST = 2  # of the sizes that runs are told


class Atom:
    """What polynomials are made of: an unknown size, or a call on sizes."""

    __slots__ = ("key",)

    key: tuple[Any, ...]  # orders atoms, and tells equal ones

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def evaluate(self, sizes: Mapping[SizeVar, Any]) -> Any:
        """Return its value for the given sizes."""
        raise NotImplementedError

    def bounds(self) -> Bounds:
        """Return the least and the greatest value it can have."""
        raise NotImplementedError

    def variables(self) -> Iterator[SizeVar]:
        """Yield the unknown sizes in it."""
        raise NotImplementedError


class SizeVar(Atom):
    """One unknown size, known by its name within a graph."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        self.key = (0, name)

    def evaluate(self, sizes: Mapping[SizeVar, Any]) -> Any:
        """Return its value among the given ones."""
        try:
            return sizes[self]
        except KeyError:
            raise UnknownSizeError(f"the size {self.name} is not known here") from None

    def bounds(self) -> Bounds:
        """Return the least and the greatest value it can have."""
        return 0, math.inf

    def variables(self) -> Iterator[SizeVar]:
        """Yield the unknown sizes in it."""
        yield self

    def __repr__(self) -> str:
        return self.name


class RunTimeSize(SizeVar):
    """A size that every run is told before it begins: of one program for many sizes.

    It is at least 2: what a size of 0 or 1 means for broadcasting and for empty loops is decided
    when a program is made, so that these have programs of their own.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.key = (0, name, LEAST)

    def bounds(self) -> Bounds:
        """Return the least and the greatest value it can have."""
        return LEAST, math.inf


class SizeCall(Atom):
    """A function of two sizes that is no polynomial."""

    __slots__ = ("a", "b", "fn")

    def __init__(self, fn: str, a: Any, b: Any) -> None:
        self.fn, self.a, self.b = fn, a, b
        self.key = (1, fn, _key(a), _key(b))

    def evaluate(self, sizes: Mapping[SizeVar, Any]) -> Any:
        """Return its value for the given sizes."""
        return FUNCTIONS[self.fn](evaluate(self.a, sizes), evaluate(self.b, sizes))

    def bounds(self) -> Bounds:
        """Return bounds of its value."""
        return CALLS[self.fn](bounds(self.a), bounds(self.b))

    def variables(self) -> Iterator[SizeVar]:
        """Yield the unknown sizes in it."""
        yield from variables(self.a)
        yield from variables(self.b)

    def __repr__(self) -> str:
        if self.fn == "floordiv":
            return f"({_operand_text(self.a)} // {_operand_text(self.b)})"
        return f"{self.fn}({self.a!r}, {self.b!r})"


class Dim:
    """A size that is not known until the graph runs. Made by placeholders; behaves as an int."""

    __slots__ = ("sizes", "terms")

    sizes: tuple[Any, ...]  # of a tensor, if this is the number of its elements

    __array_ufunc__ = None  # a NumPy integer asks the Dim

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape of the tensor whose x.size this is, or one of its sizes."""
        sizes = getattr(self, "sizes", None)
        if sizes is None:
            raise ArgumentTypeError(f"the size {self} cannot be called; x.size(), a tensor's, can")
        return size_in(sizes, dim)

    # -- arithmetic --------------------------------------------------------------------------------

    def _combined(self, fn: str, a: Any, b: Any) -> Any:
        """Return fn(a, b): a size if both are sizes, else a number (see number.py)."""
        return ARITHMETIC[fn](a, b) if _is_size(b if a is self else a) else _real(fn, a, b)

    def __add__(self, other: Any) -> Any:
        return self._combined("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._combined("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._combined("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combined("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._combined("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._combined("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._combined("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combined("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._combined("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._combined("mod", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return _real("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _real("truediv", other, self)

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other >= 0:
            return math.prod([self] * other)
        return _real("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _real("pow", other, self)

    def __neg__(self) -> Any:
        return _product(self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return size_max(self, -self)

    # -- questions ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if other is None:  # what the user wrote for an unknown size
            return True
        if hasattr(other, "shape"):
            return _compared("equal", self, other)
        return isinstance(other, Dim) and self.terms == other.terms

    def __ne__(self, other: object) -> bool:
        if other is None:
            return False
        if hasattr(other, "shape"):
            return _compared("not_equal", self, other)
        if not _is_number(other):
            return True
        low, high = difference(self, other)
        if low > 0 or high < 0 or high == low == 0 or other.__class__ is float:
            return low > 0 or high < 0
        return bool(HOOK.decide(self - other, "!="))

    def __hash__(self) -> int:
        return hash(self.terms)

    def __lt__(self, other: Any) -> bool:
        if not _is_number(other):
            return NotImplemented
        low, high = difference(self, other)
        return _decided(low >= 0, high < 0, self, other, "<")

    def __gt__(self, other: Any) -> bool:
        if not _is_number(other):
            return NotImplemented
        low, high = difference(self, other)
        return _decided(high <= 0, low > 0, self, other, ">")

    def __le__(self, other: Any) -> bool:
        return not self > other if _is_number(other) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return not self < other if _is_number(other) else NotImplemented

    def __bool__(self) -> bool:
        low, high = bounds(self)
        return _decided(False, low > 0 or high < 0, self, 0, "!=")

    def __index__(self) -> int:
        number = HOOK.number(self)
        return undecided(self) if number is None else number

    __int__ = __index__
    __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __repr__(self) -> str:
        return " + ".join(_term_text(*term) for term in self.terms).replace("+ -", "- ")

    def __reduce__(self) -> tuple[Any, ...]:
        return (parse, (repr(self),))

    def evaluate(self, sizes: Mapping[SizeVar, Any]) -> Any:
        """Return the value for given sizes, which may be unknown sizes again."""
        total: Any = 0
        for monomial, factor in self.terms:
            total = total + factor * math.prod(atom.evaluate(sizes) for atom in monomial)
        return total

    def among_numbers(self) -> Any:
        """Return what it is as an operand beside numbers of a graph."""
        return self

    def renewed(self) -> Any:
        """Return another object for the same size."""
        return Dim(self.terms)

    def variables(self) -> Iterator[SizeVar]:
        """Yield the unknown sizes in it."""
        for monomial, _ in self.terms:
            for atom in monomial:
                yield from atom.variables()

    def variable(self) -> SizeVar | None:
        """Return the unknown size if this is nothing else."""
        atom = _only_atom(self)
        return atom if isinstance(atom, SizeVar) else None


# -- public functions ------------------------------------------------------------------------------


@lru_cache(4096)
def unknown_size(name: str) -> Dim:
    """Return the unknown size of a name."""
    return _from_atom(SizeVar(name))


@lru_cache(4096)
def run_time_size(name: str) -> Dim:
    """Return the size of a name that every run is told."""
    return _from_atom(RunTimeSize(name))


def evaluate(size: Any, sizes: Mapping[SizeVar, Any]) -> Any:
    """Return a size with the given ones put in."""
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def variables(size: Any) -> Iterator[SizeVar]:
    """Yield the unknown sizes of an expression."""
    if isinstance(size, Dim):
        yield from size.variables()


def size_in(sizes: tuple[Any, ...], dim: int | None) -> Any:
    """Return one of the sizes of a shape, or for None all of them: PyTorch's x.size(dim)."""
    try:
        return sizes if dim is None else sizes[dim]
    except IndexError:
        raise AxisError(f"size: dim {dim} is out of range for {len(sizes)} dimension(s)") from None


def size_min(a: Any, b: Any) -> Any:
    """Return the smaller of two sizes."""
    return _extreme("min", a, b)


def size_max(a: Any, b: Any) -> Any:
    """Return the larger of two sizes."""
    return _extreme("max", a, b)


def broadcast_sizes(a: Any, b: Any) -> Any:
    """Return the size two sizes broadcast to.

    A known size other than 1 wins: the other must be 1 or equal to it when the graph runs.
    """
    if b == 1 or a == b:  # noqa: PLR1714  (`in` would ask whether b equals a tuple's items)
        return a
    if a == 1:
        return b
    if _are_told(a, b):  # neither is 1
        if a != b:
            raise ShapeError(f"sizes {a} and {b} do not broadcast")
        return b if isinstance(a, Dim) else a
    if isinstance(a, Dim) and isinstance(b, Dim):
        return _from_atom(SizeCall("broadcast", *sorted((a, b), key=_key)))
    return b if isinstance(a, Dim) else a


def _are_told(*sizes: Any) -> bool:
    return all(isinstance(v, RunTimeSize) for size in sizes for v in variables(size))


def floor_divide(a: Any, b: Any) -> Any:
    """Return a // b; what divides without rest is taken out of the division."""
    if not isinstance(b, Dim) and b == 0:
        raise ShapeError(f"the size {a!r} cannot be divided by zero")
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a // b
    if a == b:
        return 1
    if isinstance(b, Dim) and len(b.terms) > 1:
        return _from_atom(SizeCall("floordiv", a, b))
    whole, rest = _divide_terms(a, b)
    return whole if not isinstance(rest, Dim) and rest == 0 else whole + _quotient(rest, b)


def bounds(size: Any) -> Bounds:
    """Return the least and the greatest value a size can have."""
    if not isinstance(size, Dim):
        return size, size
    low: float = 0
    high: float = 0
    for monomial, factor in size.terms:
        part: Bounds = (factor, factor)
        part = reduce(times, (atom.bounds() for atom in monomial), part)
        low, high = low + part[0], high + part[1]
    return low, high


def parse(text: str) -> Any:
    """Return the size that a text written by repr stands for; raise ValueError if it is none."""
    with deferred_imports:
        from .text import parse_size  # noqa: PLC0415  (seldom needed, and it needs this module)

    return parse_size(text)


def undecided(size: Any) -> NoReturn:
    """Raise the error that says that a size must be known."""
    raise UnknownSizeError(
        f"the size {size!r} is not known until the graph runs, and is needed here to build it; "
        "give the placeholder a known size, or write the program so that it does not depend on it"
    )


# -- the normal form -------------------------------------------------------------------------------


def _make(terms: Mapping[Monomial, int]) -> Any:
    """Return the sum of factor * monomial, an integer if nothing unknown is left."""
    kept = {m: f for m, f in terms.items() if f}
    if not any(kept):  # nothing, or the constant alone
        return kept.get((), 0)
    return Dim(tuple(sorted(kept.items(), key=lambda term: _monomial_key(term[0]))))


def _from_atom(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def _only_atom(size: Dim) -> Atom | None:
    """Return the atom that a size consists of, if it is nothing else."""
    ((monomial, factor), *others) = size.terms
    return monomial[0] if not others and factor == 1 and len(monomial) == 1 else None


def _terms(size: Any) -> dict[Monomial, int]:
    return dict(size.terms) if isinstance(size, Dim) else {(): int(size)}


def _sum(a: Any, b: Any) -> Any:
    total = _terms(a)
    for monomial, factor in _terms(b).items():
        total[monomial] = total.get(monomial, 0) + factor
    return _make(total)


def _product(a: Any, b: Any) -> Any:
    total: dict[Monomial, int] = {}
    for m, f in _terms(a).items():
        for n, g in _terms(b).items():
            monomial = tuple(sorted((*m, *n), key=_atom_key))
            total[monomial] = total.get(monomial, 0) + f * g
    return _make(total)


def _remainder(a: Any, b: Any) -> Any:
    return a - floor_divide(a, b) * b


def _divide_terms(a: Any, b: Any) -> tuple[Any, Any]:
    """Return q and r with a = q b + r, for b of one term: q takes every term that b divides."""
    ((divisor, by),) = _terms(b).items()
    quotient: dict[Monomial, int] = {}
    for monomial, factor in _terms(a).items():
        left = _without(monomial, divisor)
        if left is not None and (factor % by == 0 or not monomial):
            quotient[left] = factor // by
    whole = _make(quotient)
    return whole, a - whole * b


def _quotient(a: Any, b: Any) -> Any:
    """Return a // b where nothing can be taken out of the division."""
    if not isinstance(a, Dim) or isinstance(b, Dim):
        return _from_atom(SizeCall("floordiv", a, b)) if isinstance(b, Dim) else a // b
    common = math.gcd(b, *(factor for _, factor in a.terms))
    if common > 1:  # (g a) // (g b) = a // b
        a, b = _make({m: f // common for m, f in a.terms}), b // common
    constant = dict(a.terms).get((), 0)
    inner = _only_atom(a - constant) if isinstance(a - constant, Dim) else None
    if isinstance(inner, SizeCall) and inner.fn == "floordiv" and _positive(inner.b, b):
        return floor_divide(inner.a + constant * inner.b, inner.b * b)  # (x // d + r) // b
    return _from_atom(SizeCall("floordiv", a, b))


def _positive(*sizes: Any) -> bool:
    return all(isinstance(size, int) and size > 0 for size in sizes)


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _extreme(fn: str, a: Any, b: Any) -> Any:
    low, high = difference(a, b)
    if low >= 0 or high <= 0:
        return b if (low >= 0) == (fn == "min") else a
    return _from_atom(SizeCall(fn, *sorted((a, b), key=_key)))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, -b),
    "mul": _product,
    "floordiv": floor_divide,
    "mod": _remainder,
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": floor_divide,
    "min": size_min,
    "max": size_max,
    "broadcast": broadcast_sizes,
}


def _atom_key(atom: Atom) -> tuple[Any, ...]:
    return atom.key


def _monomial_key(monomial: Monomial) -> Any:
    # The constant term last, as one writes it.
    return (not monomial, len(monomial), tuple(atom.key for atom in monomial))


def _key(size: Any) -> tuple[Any, ...]:
    if not isinstance(size, Dim):
        return (0, size)
    return (1, tuple((_monomial_key(m), f) for m, f in size.terms))


def _term_text(monomial: Monomial, factor: int) -> str:
    atoms = "*".join(map(repr, monomial))
    if not atoms:
        return str(factor)
    return atoms if factor == 1 else f"-{atoms}" if factor == -1 else f"{factor}*{atoms}"


def _operand_text(size: Any) -> str:
    atomic = not isinstance(size, Dim) or _only_atom(size) is not None
    return repr(size) if atomic else f"({size!r})"


# -- deciding --------------------------------------------------------------------------------------


def _is_size(value: Any) -> bool:
    return value.__class__ is Dim or (isinstance(value, Integral) and not isinstance(value, bool))


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, Dim)) or _is_size(value)


def difference(a: Any, b: Any) -> Bounds:
    """Return bounds of a - b."""
    if isinstance(b, float):
        low, high = bounds(a)
        return (-b, -b) if math.isinf(b) else (low - b, high - b)
    return bounds(a - b)


def _decided(surely_not: bool, surely: bool, size: Any, other: Any, relation: str) -> bool:
    """Return the answer to a question about a size; raise if it depends on the size.

    While sizes are at hand (see decisions.py) they answer, and that they did is noted.
    """
    if surely_not or surely:
        return surely
    answer = None if isinstance(other, float) else HOOK.decide(size - other, relation)
    return undecided(size) if answer is None else answer


class _Hook:
    """Who answers what bounds leave open; nobody, unless decisions.py does."""

    decide: Callable[[Any, str], bool | None] = staticmethod(lambda size, relation: None)
    number: Callable[[Any], int | None] = staticmethod(lambda size: None)


HOOK = _Hook()


def _real(fn: str, a: Any, b: Any) -> Any:
    from .number import real  # noqa: PLC0415  (it derives its class from the one here)

    return real(fn, a, b)


def _compared(name: str, size: Dim, tensor: Any) -> bool:
    """Return the truth values (a tensor of them) of a comparison with each element."""
    from ..op import F  # noqa: PLC0415  (operators need the module here)

    return getattr(F, name)(size, tensor)  # type: ignore[no-any-return]  # see above
