"""One call of a batched function: the function is called for every example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.dispatch import ERRORS
from ..core.errors import ArgumentError, is_from_signal
from ..core.modes import current_deferral, current_transform, interpret_with, refuse_recording
from ..core.tree import flatten
from .choices import KnownAhead, other_paths
from .collecting import rare_collection
from .deferred import DeferredTensor
from .deferring import Deferring
from .example_state import ExampleState
from .kept_numbers import PlainNumbers, settle_kept
from .paths import EndedExample, Turns
from .plans import Known, NewPlan, leaves_of
from .reads import ExampleReads, plain_number
from .replaying import SeenExample, replay
from .results import ExampleError, checked, explain_depth, note_example, reduced, settled
from .shared_parts import SharedParts
from .structure import are_same
from .suspension import ThreadTask, line_of, task_class

if TYPE_CHECKING:
    from .function import ExampleFunction
    from .signatures import SignatureTable
    from .structure import StructureWalk


class NumbersRefusedError(Exception):
    """Says that code which was given numbers that it read has failed: perhaps because of these."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class ManyCalls:
    """Calls of a function for all examples."""

    def __init__(
        self, function: ExampleFunction, examples: list[Any], shared: tuple[Any, ...], start: int
    ) -> None:
        refuse_recording("wf.batched runs what it puts off by programs of its own", in_parts=True)
        self.function, self.examples, self.shared, self.start = function, examples, shared, start
        if (around := current_deferral()) is not None:
            around.calls_inside()
        table, self.plans = function.begin()
        self._shared_walk = self.plans.walk(shared)
        self.context = self.plans.context(self._shared_walk)
        self.run = self._new_run(table)
        self.found: list[Any] = [None] * len(examples)
        self.waiting: list[tuple[int, ExampleState, Any]] = []
        self._walks: list[StructureWalk] = []  # through the examples that ran
        self._new: list[NewPlan] = []
        self._common: SharedParts | None = None
        self._known: list[Known | None] = [None] * len(examples)  # of those that were seen
        self._ended: list[tuple[EndedExample, StructureWalk]] = []  # of those that read values
        self._notes_reads = self.plans.trust.looks()
        self._ahead: dict[int, Any] = {}  # what is known of values that examples read
        self._reads: list[ExampleReads] = []  # of all examples that are noted

    def _new_run(self, table: SignatureTable) -> Deferring:
        run = Deferring(table, current_transform())
        run.plan.examples = len(self.examples)
        run.plan.reason = self.plans.reason
        given = flatten(self.shared)[0]
        run.shared.given = given
        run.shared.arguments = {id(x): i for i, x in enumerate(given)}
        return run

    def _start_over(self) -> None:
        """Forget what was put off; random numbers are drawn as if it had not been."""
        run = self._new_run(self.run.table)
        run.streams = self.run.streams.again()
        self.run, self.found = run, [None] * len(self.examples)
        self._walks, self._new, self._ended, self._common = [], [], [], None

    def results(self) -> Any:
        """Run all examples, and return their results as the function was asked to."""
        with rare_collection:
            try:
                self._run_all()
            finally:
                self._settle_numbers()
            if self._shared_walk is None or self._shared_walk.is_same():
                self.plans.keep(self._new, self.run.table.all)
            return reduced(self.function.reduce, self.run, self.found)

    def _run_all(self) -> None:
        """Find the results of all examples; end those that wait if one fails."""
        try:
            if not self._go_by_plans():
                self._run_code(range(len(self.examples)))
                self._finish()
                self._new += self._plans_of_paths()
        except NumbersRefusedError as refused:
            self._stop()
            if not self._is_unchanged():
                raise refused.error from None
            self._run_with_plain_numbers()
        except BaseException as error:
            self._stop()
            failed = self.run.is_broken and isinstance(error, ERRORS) and not is_from_signal(error)
            if not failed:
                raise
            self._run_one_by_one(error)

    def _settle_numbers(self) -> None:
        """Let objects that code has changed have plain numbers in the places of those it read."""
        if any(reads.gave_numbers for reads in self._reads) and not self._is_unchanged():
            settle_kept((self.examples, self.shared, *self.plans.outside.holders()))

    def _run_with_plain_numbers(self) -> None:
        """Run all code again, with Python's own floats where it reads such, as it does from now on.

        If it fails again, it was not for those.
        """
        self.plans.gives_numbers = False
        self._start_over()
        try:
            self._run_all()
        except BaseException:
            self.plans.gives_numbers = True
            raise

    def _run_code(self, chosen: Iterable[int]) -> None:
        """Run the code of some examples."""
        with interpret_with(self.run):
            for i in chosen:
                self._begin(i, self.examples[i])
            while self.waiting:
                self._go_on()

    # -- by plans ----------------------------------------------------------------------------------

    def _go_by_plans(self) -> bool:
        """Go by plans if all examples have one, or most where they read; tell whether they have."""
        count = len(self.examples)
        if self.context is None or not count:
            return False
        self._known = self.plans.known(self.examples, self.context)
        seen = {
            i: SeenExample(self.start + i, x.plan, x.walk.tensors)
            for i, x in enumerate(self._known)
            if x is not None and x.plan is not None
        }
        if all(x.plan.choices is None for x in seen.values()):
            if len(seen) < count:
                return False
            self._replay(range(count), seen)
            self._finish()
            return True
        if 2 * len(seen) < count or not self.plans.trust or not self.run.is_plain:
            return False
        self._go_by_paths(seen)
        return True

    def _replay(self, chosen: Sequence[int], seen: Mapping[int, SeenExample]) -> list[int]:
        """Put off what some plans say; return the numbers of the first values of each."""
        self.run.plan.planned += len(chosen)
        self.run.enter(ExampleState(self.start, self.run))  # these are none of an example's own
        with interpret_with(self.run):
            results, firsts = replay(self.run, [seen[i] for i in chosen])
        for i, result in zip(chosen, results, strict=True):
            self.found[i] = result
        return firsts

    def _go_by_paths(self, seen: Mapping[int, SeenExample]) -> None:
        """Go by plans of examples that read values, as if these led where they did; others by code.

        Where they lead elsewhere, all run again: nothing that was computed on a path that nobody
        goes may have a part in gradients.
        """
        other = self._with_other_paths(seen)
        self.plans.trust.note(len(seen) - len(other), len(seen))
        if other:
            self._ahead = other
            self._start_over()
            self.run.plan.differed = len(other)
            same = sorted(seen.keys() - {*other})
            self._run_code(sorted({*range(len(self.examples))} - {*same}))
            if same:
                self._replay(same, seen)
            self._finish()
        self._new += self._plans_of_paths()

    def _with_other_paths(self, seen: Mapping[int, SeenExample]) -> dict[int, Any]:
        """Run all examples; return those that read other values than their plans say.

        With each comes what it reads before that.
        """
        self._run_code([i for i in range(len(self.examples)) if i not in seen])
        chosen = [*seen]
        firsts = self._replay(chosen, seen)
        try:
            self.run.close()
        except ERRORS as error:  # on a path that is none, or else code will say so
            if is_from_signal(error):
                raise
            return dict.fromkeys(chosen)
        values = self.run.ran_values()
        found = other_paths([seen[i].plan.choices for i in chosen], firsts, values)
        return {
            chosen[k]: KnownAhead(values, firsts[k], last, seen[chosen[k]].plan.places)
            for k, last in found.items()
        }

    def _plans_of_paths(self) -> list[NewPlan]:
        """Return new plans of the examples whose code has read values."""
        if self.context is None or not self._ended:
            return []
        made = self.run.plans_of_paths([ended for ended, _ in self._ended])
        old = [x for x in self._known if x is not None]
        before = {id(x.walk): x.plan for x in old if x.plan is not None}
        pairs = [
            (before.get(id(walk)), plan) for (_, walk), plan in zip(self._ended, made, strict=True)
        ]
        if not self.run.plan.differed:
            known = [(x, y) for x, y in pairs if x is not None]
            same = sum(y is not None and x.choices == y.choices for x, y in known)
            self.plans.trust.note(same, len(known))
        return [
            NewPlan(self.context, Known(walk, plan))
            for (_, walk), plan in zip(self._ended, made, strict=True)
        ]

    def _finish(self) -> None:
        """Run all that was put off."""
        needed = None
        if self.run.records.is_new:
            leaves = flatten(self.found)[0]
            needed = [x.index for x in leaves if x.__class__ is DeferredTensor]
        self.run.close(needed)

    def _run_one_by_one(self, error: BaseException) -> None:
        """Look for an operation that failed when it ran: it may be that of any example."""
        if self.function.errors == "raise":
            self._blame(error)
        for i, example in enumerate(self.examples):
            self.found[i] = self._alone(i, example)

    def _blame(self, error: BaseException) -> NoReturn:
        """Raise the error of the first example that fails alone, or that of all together."""
        for i, example in enumerate(self.examples):
            try:
                self.function.fn(example, *self.shared)
            except Exception as own:
                note_example(own, i, len(self.examples))
                raise own from error
        raise error

    def _alone(self, i: int, example: Any) -> Any:
        """Return the result of one example that is run without the others, or its error."""
        found = ManyCalls(self.function, self.examples, self.shared, self.start)
        found._notes_reads = False
        try:
            found._run_code([i])
            found.run.close()
        except BaseException as error:
            found._stop()
            if not isinstance(error, ERRORS) or is_from_signal(error):
                raise
            try:
                self.function.fn(example, *self.shared)
            except Exception as own:
                return ExampleError(i, own)
            raise
        return settled(found.run, found.found[i : i + 1])[0]

    # -- one example -------------------------------------------------------------------------------

    def _begin(self, i: int, example: Any) -> None:
        """Start an example: by its plan if it has one."""
        run, walk = self.run, None
        state = ExampleState(self.start + i, run)
        state.ahead = self._ahead.get(i)
        run.enter(state)
        if self.context is not None:
            known = self._known[i]
            if known is not None and (known.plan is None or known.plan.choices is not None):
                walk, plan = known
            else:  # one before it may have changed it
                walk, plan = self.plans.find(example, self.context)
            if plan is not None and plan.choices is not None:
                plan = None  # holds, or not, for all examples of a call
            if plan is not None and walk is not None:
                run.plan.planned += 1
                seen = SeenExample(state.index, plan, walk.tensors)
                (self.found[i],) = replay(run, [seen]).results
                return
        if walk is not None:
            self._note_reads(state, walk)
            self._walks.append(walk)
            state.brought = {id(x): k for k, x in enumerate(walk.tensors)}

        def work() -> None:
            self._call(i, example, walk)

        kind = task_class()
        if kind is ThreadTask and not self.function.reads:
            work()  # threads are dear: the first value that is read runs what was put off so far
            self.function.reads = run.has_read
            return
        task = state.task = kind(work)
        if task.resume():
            self.waiting.append((i, state, task))

    def _note_reads(self, state: ExampleState, walk: StructureWalk) -> None:
        """Have what an example reads noted, for a plan: of one that comes again, that may pay."""
        if self.context is None or not (self._notes_reads and self.run.is_plain):
            return
        if self.plans.has_met(walk, self.context):
            if self.run.turns is None:
                self.run.turns = Turns()
                self.run.turns.begin(state, self.run.count)
            state.reads = ExampleReads(gives_numbers=self.plans.gives_numbers)
            self._reads.append(state.reads)

    def _call(self, i: int, example: Any, walk: StructureWalk | None) -> None:
        """Call the function, and keep what it returns, or says."""
        state = self.run.state
        try:
            result = checked(self.function.fn(example, *self.shared), i)
        except Exception as error:
            if self.run.is_broken:  # it need not be this example whose operation has failed
                raise
            if state.reads is not None and state.reads.gave_numbers:
                raise NumbersRefusedError(error) from None
            explain_depth(error, example)
            if self.function.errors == "raise":
                note_example(error, i, len(self.examples))
                raise
            self.found[i] = ExampleError(i, error)
            return
        self.found[i] = result = self._plain(result, state)
        if walk is None or self.context is None:
            return
        if state.reads:
            leaves = leaves_of(result, self.run) if self.run.knows_all(state) else None
            if leaves is not None:
                self._ended.append((EndedExample(state, leaves), walk))
                return
        made = self.run.plan_of_example(result)
        if made is not None or not self.plans.has_met(walk, self.context):
            self._new.append(NewPlan(self.context, Known(walk, made)))

    def _plain(self, result: Any, state: ExampleState) -> Any:
        """Return a result with Python's own numbers in it."""
        if state.reads is None or not state.reads.gave_numbers:
            return result
        leaves, nest = flatten(result)
        return PlainNumbers().within(nest.unflatten([plain_number(x) for x in leaves]))

    def _is_unchanged(self) -> bool:
        """Tell whether code has left everything as it was, so that it may run again."""
        given = [] if self._shared_walk is None else [self._shared_walk]
        return self.plans.outside.is_same() and are_same([*given, *self._walks])

    # -- all of them -------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Run what was put off, and let every example that waited for it go on."""
        self._check_outside()
        awaited = [state.awaited for _, state, _ in self.waiting]
        self.run.flush(wanted=[i for i in awaited if not self.run.is_there(i)])
        waiting, self.waiting = self.waiting, []
        for place, (i, state, task) in enumerate(waiting):
            self.run.go_on(state)
            try:
                suspended = task.resume()
            except BaseException:
                self.waiting += waiting[place + 1 :]
                raise
            if suspended:
                self.waiting.append((i, state, task))

    def _check_outside(self) -> None:
        """Raise if an example changed what others, which are suspended, may be reading."""
        if self._common is None:  # the first time that one waits
            self._common = SharedParts(self._walks)
        changed = self._common.changed()
        if changed is not None:
            self._refuse(f"{changed}, which examples of this call share,")
        if self.context is not None and not self.plans.outside.is_same():
            self._refuse("something outside of the examples, or one example from within another,")

    def _refuse(self, what: str) -> NoReturn:
        i, _, task = self.waiting[0]
        raise ArgumentError(
            f"batched: {what} was changed while example {i} was suspended{line_of(task)}, waiting "
            "for a value; examples run at the same time and must not depend on one another"
        )

    def _stop(self) -> None:
        """End examples that are suspended."""
        waiting, self.waiting = self.waiting, []
        for _, state, task in waiting:
            self.run.go_on(state)
            task.stop()
