"""A trace: what a recorded call of a function became, as a compiled program that can be called.

It runs the graph of a recording, and does with what that run gives what Python did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

from ..core.config import config
from ..core.dim import is_known
from ..core.dispatch import ERRORS
from ..core.errors import IndexOutOfRange, is_from_signal, note_commit
from ..graph.call import ProgramCall
from ..graph.size_patterns import Shapes
from .evaluation import Array
from .held import with_tensor_tests
from .outside import GradWrite, KeptGrad, Leaves, Outside, TensorArgument
from .recorded_call import EscapedLeaf, RecordedCall
from .written_guards import tests_of, write_holds
from .written_run import WrittenRun, write_run

MISSED = object()  # in place of a result: values were not those that the trace holds for


class Trace:
    """One path through a function, compiled."""

    def __init__(
        self, recording: RecordedCall, fed: Collection[int] = (), pattern: Shapes | None = None
    ) -> None:
        self.recording = recording
        self.graph = recording.final
        self.pattern = pattern  # of the shapes of calls, if it is for many
        self.fed = fed  # positions of the numbers among the leaves that are fed
        self.looks = recording.recorder.looks
        self.feeds = recording.feeds
        self.resolving = recording.resolving
        self.escaped: list[EscapedLeaf] = recording.escaped
        self.result = recording.result
        self.effects = recording.watch.effects
        self.python_guards = recording.watch.guards
        recording.modules.begin()
        self.held = recording.held
        self.tests = tests_of(recording)
        self.identities = recording.identities()
        self.holds = with_tensor_tests(write_holds(self.tests), self.held, self.identities)
        self.links = recording.history
        self.writes = recording.writes
        self.split_run = recording.split_run()
        self.program = recording.program(None if self.split_run is None else self.split_run.fed)
        self.call = ProgramCall(self.program, recording.name)
        self._replaced: list[Outside] = self._replaced_grads()
        self.places = recording.places
        self.decisions = recording.decisions
        self.counter = [0]  # a list of one, which written runs count without holding the trace
        self.origin: Trace | None = None  # what is for many sizes, if this is it for some
        self._written: WrittenRun | None = None

    def donate(self, places: Collection[int]) -> None:
        """Let results take the memory of arguments, by their places among the leaves of a call.

        Not of one that a result, or what Python keeps, refers to: it must stay what it is.
        """
        self.recording.recorder.evaluate.known.clear()  # nobody else holds what is given away
        if self.split_run is not None or (self.links is not None and self.links.sources):
            return
        positions = self.recording.positions
        kept = {positions.get(id(leaf)) for leaf in self.recording.watch.leaves}
        self.program.donated = tuple(
            i
            for i, get in enumerate(self.feeds)
            if isinstance(get, TensorArgument) and get.position in places
            if get.position not in kept
        )

    @property
    def paths(self) -> list[Trace]:
        """Return the paths through the function that it is."""
        return [self]

    def executables(self) -> list[Any]:
        """Return the machine code there is so far."""
        before = [] if self.split_run is None else self.split_run.calls
        return [code for call in (*before, self.call) for code in call.executables()]

    @property
    def runs(self) -> int:
        """How often it has run."""
        return self.counter[0]

    @runs.setter
    def runs(self, count: int) -> None:
        self.counter[0] = count

    @property
    def has_sized_places(self) -> bool:
        """Tell whether it is for many sizes of what places hold besides the arguments."""
        return not all(is_known(value.shape) for value in self.places.values())

    def for_shapes(self) -> Trace:
        """Return the same trace for the shapes that it ran with last, which it takes at once."""
        if self._written is None and self.split_run is None:
            self._written = write_run(self)
        bound = copy(self)
        bound.origin = self
        bound.call, bound.counter = copy(self.call), [0]
        return bound

    def run(self, leaves: Leaves) -> Any:
        """Run on the arguments of a call; return what the function would, or MISSED."""
        if self.held:
            leaves = self.held.extended(leaves)
        if self._written is not None:
            return self._written(self, leaves)
        if self.runs and self.split_run is None:
            self._written = write_run(self)
        return self.run_generally(leaves)

    def run_generally(self, leaves: Leaves) -> Any:
        """Do the same step by step; the program may be compiled for what it is fed."""
        fetched = self.fetch(leaves)
        return MISSED if fetched is MISSED else self.finish(fetched, leaves)

    def finish(self, fetched: Sequence[Array], leaves: Leaves) -> Any:
        """Do with what a run has fetched what the function does; return what it returns."""
        try:
            return self._finished(fetched, leaves)
        except Exception as error:
            note_commit(error)
            raise

    def _finished(self, fetched: Sequence[Array], leaves: Leaves) -> Any:
        self.runs += 1
        found = [leaf.made(fetched) for leaf in self.escaped]
        if self.links is not None:
            self.links(found, fetched, leaves)
        for write in self.writes:
            write(found, fetched, leaves)
        made: dict[int, Any] = {}
        result = self.result(found, leaves, made)
        if self.effects:
            self.effects.apply(self.resolving(found, leaves), made)
        return result

    def _replaced_grads(self) -> list[Outside]:
        """Return the tensors whose gradients make room for new ones when a run begins.

        Those of a step with other processes that sets them without having read them, as behind
        `zero_grad`: kept until its end they would be there twice, where memory is what sharding
        them is for. If such a step fails they are None.
        """
        if self.looks or not any(node.op.communicates for node in self.program.order):
            return []
        read = {get.owner.key for get in self.feeds if isinstance(get, KeptGrad)}
        owners = (write.owner for write in self.writes if isinstance(write, GradWrite))
        return [owner for owner in owners if owner.key not in read]

    def fetch(self, leaves: Leaves) -> Any:
        """Run the program, which writes states; return its fetches, or MISSED."""
        feeds: Any = [get(leaves) for get in self.feeds]
        if self.split_run is not None:
            feeds = self.split_run(feeds, self.decisions.hold)
            if feeds is None:
                return MISSED
        for owner in self._replaced:
            owner(leaves)._keep_grad(None)
        fetched = self.call.run_unchecked(feeds)
        return self._run_checked(feeds) if fetched is None else fetched

    def _run_checked(self, feeds: list[Any]) -> Any:
        arrays = self.call.arrays(feeds)
        try:
            if config.debug_interpret or config.nan_trap or self.call.has_effects:
                return self.call.run(arrays)
            executable = self.call.executable(arrays)
            fetched = executable.run(arrays)
            self.call.remember(executable)
            return fetched
        except ERRORS as error:
            if is_from_signal(error):
                raise
            if self.looks and isinstance(error, IndexOutOfRange):
                return MISSED
            raise
