"""The tests of a trace written out: one function that tells whether it holds for a call.

It looks at what the path through Python depended on besides values: attributes and variables (by
the tests of watch/), modules, and of tensors from outside whether they require gradients, have
hooks and have a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.generated import ObjectNames, define
from ..core.specialize import function
from .outside import Leaves, Outside

if TYPE_CHECKING:
    from .trace import RecordedCall

Holds = Callable[[Leaves], bool]


def write_holds(recording: RecordedCall) -> Holds:
    """Return a function that tells, for the leaves of a call, whether a recording holds."""
    writer = _GuardWriter(recording)
    tests = [line for test in writer.tests() for line in (f"if {test}:", "    return False")]
    text = function("holds", "leaves", [*tests, "return True"]) + "\n"
    return define("holds", text, {"hooks_of": hooks_of, **writer.names.scope}, "guards")


class _GuardWriter:
    """Writes the tests of one recording; each is true where it does not hold."""

    def __init__(self, recording: RecordedCall) -> None:
        self.recording = recording
        self.names = ObjectNames()

    def tests(self) -> Iterator[str]:
        """Yield all tests, those first that fail most often and cost least."""
        recording = self.recording
        yield f"not {self.names.of(recording.python_holds, 'python')}()"
        yield f"not {self.names.of(recording.modules.hold, 'modules')}()"
        yield from self._on_arguments()
        for tensor, required in recording.recorder.required.values():
            yield from self._on_leaf(tensor, required)
        for owner, has in recording.grads_needed():
            grad = f"{self._outside(owner)}._kept_grad()"
            yield f"{grad} is None" if has else f"{grad} is not None"
        for test in recording.recorder.tests.values():
            yield f"not {self.names.of(test, 'test')}()"
        for read, value in recording.guards:
            yield f"{self.names.of(read, 'read')}() != {self.names.of(value, 'value')}"

    def _on_arguments(self) -> Iterator[str]:
        """Yield tests that arguments are none of the tensors that are used from outside."""
        positions = self.recording.positions
        outer = frozenset(self.recording.recorder.required.keys() - positions.keys())
        if outer:
            for position in dict.fromkeys(positions.values()):
                yield f"id(leaves[{position}]) in {self.names.of(outer, 'outer')}"

    def _on_leaf(self, tensor: Any, required: bool) -> Iterator[str]:
        owner = self._outside(self.recording.outside(tensor))
        node = f"{owner}._node"
        if not owner.startswith("leaves"):  # arguments are known by their signature
            dtype, shape = self.names.of(tensor.dtype, "dtype"), self.names.of(tensor.shape)
            yield f"{owner}._value.dtype != {dtype} or {owner}._value.shape != {shape}"
        if not required:
            yield f"{node} is not None"
            return
        yield f"{node} is None"
        hooks = hooks_of(tensor)
        if hooks:
            yield f"hooks_of({owner}) != {self.names.of(hooks, 'hooks')}"
        else:
            yield f"{node}.watch is not None and {node}.watch.hooks"

    def _outside(self, thing: Outside) -> str:
        if thing.position is None:
            return self.names.of(thing.thing)
        return f"leaves[{thing.position}]"


def hooks_of(tensor: Any) -> list[Any]:
    """Return the hooks on the gradient of a tensor from outside."""
    watch = getattr(tensor._node, "watch", None)
    return [] if watch is None else list(watch.hooks.values())
