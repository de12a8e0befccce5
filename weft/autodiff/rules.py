"""The rules of one operation, applied to its operands: what forward and reverse mode share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from ..core.dispatch import group
from ..core.op import elementwise
from ..core.tape import TapeNode, make_node


class Operation:
    """One operation on tensors or symbols, with its results."""

    def __init__(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Any) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.out = out
        # A type is a tuple too, and may stand for a result that was not computed.
        self.many = type(out) is tuple
        self.outputs: tuple[Any, ...] = out if self.many else (out,)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each operand; those of a variadic operator share the last one."""
        names: tuple[str, ...] = self.op.inputs
        missing = len(self.inputs) - len(names)
        return names if missing == 0 else (*names, *names[-1:] * missing)[: len(self.inputs)]

    def pull_back(self, g: Any, wanted: tuple[Any, ...]) -> Sequence[Any]:
        """Apply the operation's vjp rules to tensors, for the wanted inputs."""
        op = self.op
        if hasattr(op, "pull_back"):  # a Function of the user's
            found: Sequence[Any] = op.pull_back(self.inputs, self.attrs[0], self.out, g)
            return found
        node = self.node(wanted)
        pulled: Sequence[Any] = op.linked(node, node.saved, g)
        return pulled

    def node(self, parents: tuple[Any, ...], site: Any = None) -> TapeNode:
        """Return the operation as a node of the tape, with only what its vjp rules need of it."""
        op = self.op
        outputs = self.outputs if self.many else None
        shapes = self.shapes() if op.kind == elementwise else None
        return make_node(
            op, parents, self.saved(), self.attrs, shapes=shapes, outputs=outputs, site=site
        )

    def saved(self) -> Any:
        """Return what the vjp rules need of the operation."""
        op = self.op
        if hasattr(op, "saved_for"):  # no operator, but a checkpoint
            return op.saved_for(self)
        readers = _saved_readers.get(op)
        if readers is None:
            readers = _find_readers(op)
        return tuple([read(self) for read in readers])

    def shapes(self) -> Any:
        """Return the shapes of the operands of an elementwise operation that broadcasts them."""
        if len(self.inputs) <= 1:
            return None
        shapes = tuple([None if x is None else x.shape for x in self.inputs])
        return None if shapes.count(shapes[0]) == len(shapes) else shapes

    def lookup(self, name: str) -> Any:
        """Return what a rule calls by a name: an operand, a result, an attribute, a shape."""
        return reader_of(self.op, name)(self)


Reader = Callable[[Operation], Any]
_readers: dict[tuple[Any, str], Reader] = {}
_saved_readers: dict[Any, tuple[Reader, ...]] = {}


def _find_readers(op: Any) -> tuple[Reader, ...]:
    op.specialized  # noqa: B018  (which finds out what is saved)
    found = _saved_readers[op] = tuple(reader_of(op, name) for name in op.saves)
    return found


def reader_of(op: Any, name: str) -> Reader:
    """Return how to read from an operation what its rules call by a name."""
    found = _readers.get((op, name))
    if found is None:
        found = _readers[op, name] = _make_reader(op, name)
    return found


def _make_reader(op: Any, name: str) -> Reader:
    if name == "out":
        return lambda operation: operation.out
    if name in op.inputs:
        return _input_reader(op, op.inputs.index(name))
    if name in op.attrs:
        place = list(op.attrs).index(name)
        return lambda operation: operation.attrs[place]
    base, _, meta = name.rpartition("_")
    read = _make_reader(op, base)

    def read_meta(operation: Operation) -> Any:
        x = read(operation)
        if isinstance(x, list):
            return [getattr(item, meta) for item in x]
        return None if x is None else getattr(x, meta)

    return read_meta


def _input_reader(op: Any, place: int) -> Reader:
    if op.variadic:
        return lambda operation: group(op, operation.inputs)[place]
    return lambda operation: operation.inputs[place]


def has_rule(op: Any, position: int) -> bool:
    """Tell whether an operator has a derivative with respect to an input."""
    name = op.inputs[min(position, len(op.inputs) - 1)]
    return name in op.partials or name in op.vjps


def parameters(rule: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameter names of a rule."""
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


class TapeOp:
    """What stands in the place of an Op on the tape and before interpreters.

    It has `execute`, and for the tape `backward` on arrays and `linked` on tensors.
    """

    inputs = ("args",)
    variadic = True
    outputs = None
    linear = multilinear = ()
    optional: frozenset[str] = frozenset()
    partials: ClassVar[dict[str, Any]] = {}
    vjps: ClassVar[dict[str, Any]] = {"args": None}
    attrs: ClassVar[dict[str, Any]] = {}
    jvp_rule = None

    @property
    def specialized(self) -> Self:
        """Return the holder of `execute`, as an Op does."""
        return self
