"""Which put-off operations may run as one: signatures, and the tables they are interned in.

PutOffOperations of one signature have the same operator, attributes, types of operands that differ
between members, and the same shared operands. A table belongs to one batched function, so the
numbers in it mean the same for all its calls, and plans of examples can be put together by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from math import copysign
from typing import Any, NamedTuple

import numpy as np

from ..backends.cpu.runtime.batch_order import ResultColumns
from ..core.device import CPU, device
from ..core.locks import fork_safe_lock
from ..core.shape import TensorType, type_of
from ..core.tensor import Constant, Tensor
from .places import place_of_results

# Held while something gets a number: several threads may call one batched function.
interning = fork_safe_lock("interning")
MANY = 8  # operands of one type, from which on they are gathered as one
MOST_SLOTS = 1 << 14  # shared tensors that a table remembers before it begins anew
MOST_SIGNATURES = 1 << 14  # and signatures: a number that is an attribute may be new in each call


class ValueDependentError(Exception):
    """Says that the shape of a result depends on values: the operation cannot be put off."""


class Slot:
    """A place for a tensor that all members of a batch share.

    key      what it is: a tensor from outside, an argument, a literal, what was made of such
    where    the device that it is on
    tensor   the tensor, where that is the same in all calls; else None
    made     how it is computed from other slots, if it is
    """

    __slots__ = ("index", "key", "made", "tensor", "type", "where")

    def __init__(self, index: int, key: Any, like: Tensor, tensor: Tensor | None) -> None:
        self.index = index
        self.key = key
        self.type = type_of(like)
        self.where = like.device
        self.tensor = tensor
        self.made: Made | None = None

    @property
    def fits(self) -> bool:
        """Whether its tensor has the type that it had, and is where it was."""
        x = self.tensor
        return x is None or (type_of(x) == self.type and x.device == self.where)


class BatchSignature:
    """What operations have in common that may run as one.

    work     what runs them: an operator's, a cell's (kernels.py); None for data
    specs    for each operand the number of its type, a Slot, or None where there is none
    outs     the numbers of the types of the results
    arity    how many operands differ between members
    runs     these operands in order: how many are gathered as one, which are many of one type
    slots    the places of shared operands, and the numbers of their slots
    grad     whether gradients are recorded
    many     whether the results are a tuple
    merged   what it runs as, together with such of other numbers of operands; itself as a rule
    ragged   whether it is that: of each member there are any number of operands
    waits    whether its operations wait until the end while examples read values in the middle,
             because nothing read has needed them; None while that is not known
    """

    __slots__ = (
        *("arity", "grad", "index", "kernel", "many", "merged", "name", "outs", "ragged", "runs"),
        *("slots", "specs", "waits", "work"),
    )

    def __init__(
        self, index: int, work: Any, specs: tuple[Any, ...], outs: tuple[int, ...], grad: bool
    ) -> None:
        self.index = index
        self.work = work
        self.specs = specs
        self.outs = outs
        self.arity = sum(spec.__class__ is int for spec in specs)
        self.slots = [(i, s.index) for i, s in enumerate(specs) if s.__class__ is Slot]
        self.runs = _runs([spec for spec in specs if spec.__class__ is int])
        self.grad = grad
        self.many = work is not None and work.many
        self.merged = self
        self.ragged = getattr(work, "ragged", False)
        self.waits: bool | None = None
        self.kernel: Any = None  # what runs it on arrays, once it has run
        self.name: str = "data" if work is None else work.name


def _runs(kinds: list[int]) -> tuple[int, ...]:
    """Return how many operands are gathered as one, from the first on."""
    found: list[int] = []
    for _, run in groupby(kinds):
        count = len(list(run))
        found += [count] if count >= MANY else [1] * count
    return tuple(found)


class Made(NamedTuple):
    """What a slot holds that is computed from other slots: once for all examples of a call."""

    work: Any
    slots: tuple[Slot | None, ...]
    output: int


class SignatureTable:
    """Interned types, slots and signatures.

    A type is one of values on one device: `types` and `places` say which, by its number.
    """

    def __init__(self) -> None:
        self.types: list[TensorType] = []
        self.places: list[device] = []
        self._elsewhere: set[int] = set()  # types of values that are not on the CPU
        self._kinds: dict[tuple[TensorType, device], int] = {}
        self.slots: dict[Any, Slot] = {}
        self._outside: list[Slot] = []  # those of tensors that may be cast in place
        self.all: list[BatchSignature] = []
        self.literals: dict[Any, set[bytes]] = {}  # numbers that were met in one place
        self.data_places = 0  # where so many were met that they are data
        self.arity = np.zeros(0, np.int64)  # of each signature
        self.results = np.zeros(0, np.int64)
        self.result_columns = ResultColumns(np.zeros(0, np.int64), np.zeros(1, np.int64))
        self.merged = np.zeros(0, np.int64)  # what each runs as
        self.ragged = np.zeros(0, np.int64)
        self._known: dict[Any, BatchSignature] = {}
        self._data: dict[int, BatchSignature] = {}
        self._clusters: dict[bytes, BatchSignature] = {}

    @property
    def is_full(self) -> bool:
        """Whether it remembers so much that it is better to begin anew."""
        return len(self.slots) > MOST_SLOTS or len(self.all) > MOST_SIGNATURES

    @property
    def is_current(self) -> bool:
        """Whether tensors from outside have the types that its signatures say."""
        return all([slot.fits for slot in self._outside])  # noqa: C419  (a list is quicker)

    def kind(self, type: TensorType, where: device = CPU) -> int:
        """Return the number of a type on a device."""
        found = self._kinds.get((type, where))
        if found is None:
            with interning:
                found = self._kinds.get((type, where))
                if found is None:
                    found = len(self.types)
                    self.types.append(type)
                    self.places.append(where)
                    if where != CPU:
                        self._elsewhere.add(found)
                    self._kinds[type, where] = found
        return found

    def any_elsewhere(self, kinds: Iterable[int]) -> bool:
        """Tell whether values of some of these types are not on the CPU."""
        return bool(self._elsewhere) and not self._elsewhere.isdisjoint(kinds)

    def slot(self, key: Any, tensor: Tensor, *, keep: bool) -> Slot:
        """Return the slot of a shared tensor by what it is."""
        found = self.slots.get(key)
        if found is None:
            kept = tensor if keep else None
            with interning:
                made = Slot(len(self.slots), key, tensor, kept)
                found = self.slots.setdefault(key, made)
                if found is made and keep and tensor.__class__ is not Constant:
                    self._outside.append(made)
        return found

    def data(self, kind: int) -> BatchSignature:
        """Return the signature of what examples bring along, of one type."""
        found = self._data.get(kind)
        if found is None:
            with interning:
                found = self._data.get(kind)
                if found is None:
                    found = self._data[kind] = self._add(None, (), (kind,), grad=False)
        return found

    def find(self, key: Any) -> BatchSignature | None:
        """Return a signature that was seen."""
        return self._known.get(key)

    def new(
        self, key: Any, work: Any, specs: tuple[Any, ...], inputs: Any, grad: bool
    ) -> BatchSignature:
        """Intern a signature; raise if operands of these types do not fit the operation."""
        types = [self._type(spec) for spec in specs]
        where = place_of_results(work, specs, inputs, self)
        outs = tuple([self.kind(t, where) for t in work.types(types, inputs)])
        any_number = getattr(work, "segments", None)  # how it runs with any number of operands
        with interning:
            merged = None if any_number is None else self._merged(any_number, outs, grad)
            made = self._known[key] = self._add(work, specs, outs, grad=grad, merged=merged)
        return made

    def _merged(self, work: Any, outs: tuple[int, ...], grad: bool) -> BatchSignature:
        """Return the signature of operations that may have any number of operands."""
        key = work, grad
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._add(work, work.specs(), outs, grad=grad)
        return found

    def cluster(self, key: bytes, make: Callable[[bytes, SignatureTable], Any]) -> BatchSignature:
        """Return the signature of operations that were found to come together."""
        found = self._clusters.get(key)
        if found is None:
            with interning:
                found = self._clusters.get(key)
                if found is None:
                    work = make(key, self)
                    found = self._clusters[key] = self.new(key, work, work.specs(), (), work.grad)
        return found

    def _type(self, spec: Any) -> TensorType | None:
        if spec is None:
            return None
        found: TensorType = self.types[spec] if spec.__class__ is int else spec.type
        return found

    def _add(
        self,
        work: Any,
        specs: Any,
        outs: Any,
        *,
        grad: bool,
        merged: BatchSignature | None = None,
    ) -> BatchSignature:
        made = BatchSignature(len(self.all), work, specs, outs, grad)
        made.merged = merged or made
        # The columns first: whoever finds a signature finds its row in them.
        self.arity = np.append(self.arity, made.arity)
        self.results = np.append(self.results, len(outs))
        self.merged = np.append(self.merged, made.merged.index)
        self.ragged = np.append(self.ragged, int(made.ragged))
        kinds, begins = self.result_columns
        kinds = np.append(kinds, np.array(outs, np.int64))
        self.result_columns = ResultColumns(kinds, np.append(begins, len(kinds)))
        self.all.append(made)
        return made


def attrs_key(attrs: tuple[Any, ...]) -> Any:
    """Return attributes as a key that tells 1 from True and 0.0 from -0.0."""
    if not attrs:
        return attrs
    return attrs, tuple([_tag(a) for a in attrs])


def _tag(value: Any) -> Any:
    kind = value.__class__
    if kind is float:
        return copysign(1.0, value)
    return tuple([_tag(x) for x in value]) if kind is tuple else kind
