"""The tests of a trace written out: what tells whether it holds for a call.

They look at what the path through Python depended on besides values: attributes and variables (by
the tests of watch/), modules, and of tensors from outside whether they require gradients, have
hooks and have a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.generated import ObjectNames, define
from ..core.specialize import function
from ..core.tape import Leaf
from ..core.tensor import Tensor
from .objects import ModuleTests
from .outside import Leaves, Outside
from .watch import HELPERS, Guards, lines_that_hold

if TYPE_CHECKING:
    from .recorded_call import RecordedCall

Holds = Callable[[Leaves], bool]


class TraceTests(NamedTuple):
    """What a trace depends on besides values.

    python     places of Python's objects
    modules    the modules that it uses
    arguments  positions of those that are tensors
    required   tensors from outside, and whether they required gradients
    grads      tensors whose gradient was looked at, and whether there was one
    others     functions that tell whether something is as it was
    observed   functions that read something, and what they read
    """

    python: Guards
    modules: ModuleTests
    arguments: list[int]
    required: list[tuple[Outside, Tensor, bool]]
    grads: list[tuple[Outside, bool]]
    others: list[Callable[[], bool]]
    observed: list[tuple[Callable[[], Any], Any]]

    def outer(self) -> list[Tensor]:
        """Return the tensors that are used from outside and are no arguments."""
        return [tensor for owner, tensor, _ in self.required if owner.position is None]


def tests_of(recording: RecordedCall) -> TraceTests:
    """Return the tests of a recording."""
    recorder = recording.recorder
    return TraceTests(
        recording.watch.guards,
        recording.modules,
        list(dict.fromkeys(recording.positions.values())),
        [(recording.outside(t), t, required) for t, required in recorder.required.values()],
        list(recording.grads_needed()),
        list(recorder.tests.values()),
        recording.guards,
    )


def write_holds(tests: TraceTests) -> Holds:
    """Return a function that tells, for the leaves of a call, whether a trace holds."""
    names = ObjectNames()
    conditions = [
        *GuardWriter(tests, names, lambda position: f"leaves[{position}]").conditions(),
        *_none_is_outside(tests, names),
    ]
    text = function("holds", "leaves", lines_that_hold(conditions)) + "\n"
    return define("holds", text, {**SCOPE, **names.scope}, "guards")


def _none_is_outside(tests: TraceTests, names: ObjectNames) -> Iterator[str]:
    """Yield conditions that arguments are none of the tensors that are used from outside."""
    outer = frozenset(map(id, tests.outer()))
    for position in tests.arguments if outer else ():
        yield f"id(leaves[{position}]) not in {names.of(outer, 'outer')}"


class GuardWriter:
    """Writes the tests of one trace, as expressions that are true where it holds.

    They may raise one of GONE, where something is not even there any more.

    leaf      gives the text of a leaf of the call, by its position
    checked   ids of tensors whose shape and dtype somebody else looks at
    nodes     the names of variables that hold the leaf nodes of tensors, when the tests are done
    """

    def __init__(
        self,
        tests: TraceTests,
        names: ObjectNames,
        leaf: Callable[[int], str],
        checked: Collection[int] = (),
    ) -> None:
        self.tests = tests
        self.names = names
        self.leaf = leaf
        self.checked = checked
        self.nodes: dict[tuple[int | None, int], str] = {}

    def conditions(self) -> Iterator[str]:
        """Yield all conditions, those first that fail most often and cost least."""
        tests, names = self.tests, self.names
        yield tests.modules.condition(names)
        yield from tests.python.conditions(names)
        for owner, tensor, required in tests.required:
            yield from self._on_tensor(owner, tensor, required)
        for owner, has in tests.grads:
            yield f"{self.grad(owner)} is {'not ' if has else ''}None"
        for test in tests.others:
            written = getattr(test, "conditions", None)
            yield from [f"{names.of(test, 'test')}()"] if written is None else written(names)
        for read, value in tests.observed:
            yield f"{names.of(read, 'read')}() == {names.of(value, 'value')}"

    def grad(self, owner: Outside) -> str:
        """Return the expression for the gradient that a tensor has."""
        node = self.nodes.get(owner.key)
        return f"{self.outside(owner)}._kept_grad()" if node is None else f"{node}.grad"

    def outside(self, thing: Outside) -> str:
        """Return the expression for something from outside of the function."""
        return self.names.of(thing.thing) if thing.position is None else self.leaf(thing.position)

    def _on_tensor(self, owner: Outside, tensor: Tensor, required: bool) -> Iterator[str]:
        text = self.outside(owner)
        if owner.position is None and id(tensor) not in self.checked:
            dtype, shape = self.names.of(tensor.dtype, "dtype"), self.names.of(tensor.shape)
            yield f"{text}._value.dtype == {dtype} and {text}._value.shape == {shape}"
        if not required:
            yield f"{text}._node is None"
            return
        hooks = hooks_of(tensor)
        if hooks:
            yield f"{text}._node is not None"
            yield f"hooks_of({text}) == {self.names.of(hooks, 'hooks')}"
        elif type(tensor._node) is Leaf:
            node = self.nodes[owner.key] = f"leaf{len(self.nodes)}"
            yield f"({node} := {text}._node).__class__ is Leaf"
            yield f"{node}.watch is None or not {node}.watch.hooks"
        else:
            yield f"(node := {text}._node) is not None"
            yield "node.watch is None or not node.watch.hooks"


def hooks_of(tensor: Any) -> list[Any]:
    """Return the hooks on the gradient of a tensor from outside."""
    watch = getattr(tensor._node, "watch", None)
    return [] if watch is None else list(watch.hooks.values())


SCOPE: dict[str, Any] = {**HELPERS, "Leaf": Leaf, "hooks_of": hooks_of}
