"""Tensors that all examples of a run share, and what is computed from such alone.

Parameters, other tensors from outside, shared arguments and literals lie in slots, by which a
signature names them. What an operation computes of slots is in a slot, too: it runs once for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.modes import run_below
from ..core.shape import type_of
from ..core.tensor import Constant, Tensor
from .kernels import OpWork
from .signatures import BatchSignature, Made, SignatureTable, Slot

if TYPE_CHECKING:
    from .running import PutOffRun

LITERAL = 16  # elements up to which literals are told apart by value
MOST_LITERALS = 8  # different ones in one place, from which on they are data


class SharedTensors:
    """The tensors that slots hold in one run.

    arguments   the numbers of shared arguments, by identity
    given       these arguments
    """

    def __init__(self, run: PutOffRun) -> None:
        self._run = run
        self.table: SignatureTable = run.table
        self.arguments: dict[int, int] = {}
        self.given: list[Any] = []
        self.held: dict[int, Tensor] = {}  # by the numbers of slots
        self._known: dict[int, tuple[Slot, Tensor, Any]] = {}
        self._made: dict[Any, tuple[Any, Any]] = {}
        self._accepted: set[int] = set()  # signatures of cells

    def __contains__(self, x: Tensor) -> bool:
        return id(x) in self._known

    def forget(self) -> None:
        """Take what follows as it is then."""
        self.held.clear()
        self._known.clear()
        self._made.clear()
        self._accepted.clear()

    # -- slots -------------------------------------------------------------------------------------

    def known(self, x: Any) -> Slot | None:
        """Return the slot of a tensor that is shared and has the value that it had."""
        found = self._known.get(id(x))
        return found[0] if found is not None and found[2] is value_in(x) else None

    def slot(self, x: Tensor) -> Slot:
        """Return the slot of a tensor."""
        known = self.known(x)
        if known is not None:
            return known
        if id(x) in self._known:  # it has another value by now: what waits needs the one of before
            self._run.flush()
        slot = self._new_slot(x)
        self._hold(slot, x)
        return slot

    def _new_slot(self, x: Tensor) -> Slot:
        if id(x) in self.arguments:
            return self.table.slot(
                ("argument", self.arguments[id(x)], type_of(x), x.device), x, keep=False
            )
        if x.__class__ is Constant:
            value = x._value
            return self.table.slot((value.dtype, value.shape, value.tobytes()), x, keep=True)
        return self.table.slot((id(x), type_of(x), x.device), x, keep=True)

    def _hold(self, slot: Slot, x: Tensor) -> None:
        self._known[id(x)] = slot, x, value_in(x)
        self.held[slot.index] = x

    def is_literal(self, where: Any, position: int, x: Tensor) -> bool:
        """Tell whether a constant is one of few in its place: then it is told by its value."""
        if x._value.size > LITERAL:
            return False
        seen = self.table.literals.setdefault((where, position), set())
        count = len(seen)
        seen.add(x._value.tobytes())
        if count == MOST_LITERALS < len(seen):
            self.table.data_places += 1
        return len(seen) <= MOST_LITERALS

    # -- signatures that are used again ------------------------------------------------------------

    def accepts(self, signature: BatchSignature) -> bool:
        """Tell whether a cell that was traced before is still what it was."""
        if signature.index not in self._accepted:
            if not signature.work.holds():
                return False
            self.accept(signature)
        return True

    def accept(self, signature: BatchSignature) -> None:
        """Let the slots of a signature hold what they do in this run."""
        if signature.index not in self._accepted:
            for spec in signature.specs:
                if spec.__class__ is Slot:
                    self.fill(spec)
            self._accepted.add(signature.index)

    def fill(self, slot: Slot) -> Tensor:
        """Return the tensor that a slot holds in this run: from outside, given, or made."""
        if slot.index not in self.held:
            if slot.tensor is not None:
                self.slot(slot.tensor)
            elif slot.made is None:
                self._hold(slot, self.given[slot.key[1]])
            else:
                work, slots, _ = slot.made
                given = tuple([None if s is None else self.fill(s) for s in slots])
                self.once(slot.key[0], work, slots, given)
        return self.held[slot.index]

    def once(self, key: Any, work: Any, specs: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
        """Run an operation on shared operands alone, once for all examples."""
        key = (key, specs, self._run.grad())
        values = [value_in(x) for x in inputs]
        known = self._made.get(key)
        if known is None or any(x is not y for x, y in zip(known[0], values, strict=True)):
            made = run_below(self._run.below, work.alone, inputs)
            if isinstance(work, OpWork) and work.is_open(inputs):
                self._run.saw_sizes()
            self._made[key] = known = values, made
            for i, y in enumerate(made if isinstance(made, tuple) else (made,)):
                slot = self.table.slot((key[0], key[1:], i), y, keep=False)
                slot.made = Made(work, specs, i)
                self._hold(slot, y)
        return known[1]


def value_in(x: Any) -> Any:
    """Return what tells whether a tensor has the value that it had."""
    return x.primal if hasattr(x, "level") else x._value
