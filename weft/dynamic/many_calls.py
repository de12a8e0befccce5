"""One call of a batched function: the function is called for every example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..core.dispatch import ERRORS
from ..core.errors import ArgumentError, is_from_signal
from ..core.modes import current_interpreter, interpret_with, refuse_recording
from ..core.tree import flatten
from .collecting import rare_collection
from .deferred import DeferredTensor
from .deferring import Deferring
from .example_state import ExampleState
from .plans import Known, NewPlan
from .replaying import SeenExample, replay
from .results import ExampleError, checked, explain_depth, note_example, reduced, settled
from .shared_parts import SharedParts
from .suspension import ThreadTask, line_of, task_class

if TYPE_CHECKING:
    from .function import ExampleFunction
    from .structure import StructureWalk


class ManyCalls:
    """Calls of a function for all examples."""

    def __init__(
        self, function: ExampleFunction, examples: list[Any], shared: tuple[Any, ...], start: int
    ) -> None:
        refuse_recording("wf.batched runs what it puts off by programs of its own", in_parts=True)
        self.function, self.examples, self.shared, self.start = function, examples, shared, start
        table, self.plans = function.begin()
        self.context = self.plans.context(shared)
        self.run = Deferring(table, current_interpreter())
        self.run.plan.examples = len(examples)
        self.run.plan.reason = self.plans.reason
        given = flatten(shared)[0]
        self.run.shared.given = given
        self.run.shared.arguments = {id(x): i for i, x in enumerate(given)}
        self.found: list[Any] = [None] * len(examples)
        self.waiting: list[tuple[int, ExampleState, Any]] = []
        self._walks: list[StructureWalk] = []  # through the examples that ran
        self._new: list[NewPlan] = []
        self._common: SharedParts | None = None
        self._known: list[Known] | None = None  # examples that were seen, if all were

    def results(self) -> Any:
        """Run all examples, and return their results as the function was asked to."""
        with rare_collection:
            self._run_all()
            self.plans.keep(self._new, self.run.table.all)
            return reduced(self.function.reduce, self.run, self.found)

    def _run_all(self) -> None:
        """Find the results of all examples; end those that wait if one fails."""
        try:
            with interpret_with(self.run):
                if not self._replay_all():
                    for i, example in enumerate(self.examples):
                        self._begin(i, example)
                    while self.waiting:
                        self._go_on()
            self._finish()
        except BaseException:
            self._stop()
            raise

    def _replay_all(self) -> bool:
        """Go by plans if all examples have one; tell whether they have."""
        if self.context is None or not self.examples:
            return False
        self._known = self.plans.all_seen(self.examples, self.context)
        if self._known is None:
            return False
        seen = [
            SeenExample(self.start + i, x.plan, x.walk.tensors)
            for i, x in enumerate(self._known)
            if x.plan is not None
        ]
        if len(seen) < len(self.examples):
            return False
        self.run.plan.planned += len(seen)
        self.found = replay(self.run, seen)
        return True

    def _finish(self) -> None:
        """Run all that was put off; what fails then is looked for one by one, with its line."""
        needed = None
        if self.run.records.is_new:
            leaves = flatten(self.found)[0]
            needed = [x.index for x in leaves if x.__class__ is DeferredTensor]
        try:
            self.run.close(needed)
        except ERRORS as error:
            if is_from_signal(error):
                raise
            if self.function.errors == "raise":
                self._blame(error)
            for i, example in enumerate(self.examples):
                self.found[i] = self._alone(i, example)

    def _blame(self, error: Exception) -> NoReturn:
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
        try:
            found = ManyCalls(self.function, [example], self.shared, self.start + i)
            with interpret_with(found.run):
                found._begin(0, example)
                while found.waiting:
                    found._go_on()
            found.run.close()
        except ERRORS:
            try:
                self.function.fn(example, *self.shared)
            except Exception as error:
                return ExampleError(i, error)
            raise
        return settled(found.run, found.found)[0]

    # -- one example -------------------------------------------------------------------------------

    def _begin(self, i: int, example: Any) -> None:
        """Start an example: by its plan if it has one."""
        run, walk = self.run, None
        state = ExampleState(self.start + i, run)
        run.enter(state)
        if self.context is not None:
            known = None if self._known is None else self._known[i]
            if known is not None and known.plan is None:
                walk, plan = known
            else:  # one before it may have changed it
                walk, plan = self.plans.find(example, self.context)
            if plan is not None and walk is not None:
                run.plan.planned += 1
                (self.found[i],) = replay(run, [SeenExample(state.index, plan, walk.tensors)])
                return
        if walk is not None:
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

    def _call(self, i: int, example: Any, walk: StructureWalk | None) -> None:
        """Call the function, and keep what it returns, or says."""
        try:
            result = checked(self.function.fn(example, *self.shared), i)
        except Exception as error:
            explain_depth(error, example)
            if self.function.errors == "raise":
                note_example(error, i, len(self.examples))
                raise
            self.found[i] = ExampleError(i, error)
            return
        self.found[i] = result
        if walk is not None:
            made = self.run.plan_of_example(result)
            if self.context is not None and (self._known is None or made is not None):
                self._new.append(NewPlan(self.context, Known(walk, made)))

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
