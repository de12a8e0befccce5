"""A table of a model: for each layer its output shape, parameters, FLOPs and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import no_grad
from ..core.rng import default_generator
from ..core.shape import Shape
from ..core.tensor import Tensor
from ..core.tree import tree_leaves
from ..ops.creation import zeros
from .arguments import as_size
from .flops import CountFlops
from .version import count_change

if TYPE_CHECKING:
    from .module import Module

COLUMNS = ("Layer", "Output shape", "Parameters", "FLOPs", "Memory")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
DECIMAL = ("", "k", "M", "G", "T", "P")


@dataclass
class Row:
    """One layer of a summary.

    name        dotted name, "" for the model itself
    layer       class name
    depth       levels below the model
    outputs     shapes of the output tensors of the last call
    parameters  number of elements of its parameters, those of submodules included
    flops       floating-point operations of all its calls, those of submodules included
    memory      bytes of its output tensors over all calls
    calls       how often it ran
    reused      whether its parameters stand in an earlier row already
    """

    name: str
    layer: str
    depth: int
    leaf: bool
    parameters: int
    reused: bool = False
    outputs: list[Shape] = field(default_factory=list)
    flops: int = 0
    memory: int = 0
    calls: int = 0


@dataclass
class Summary:
    """A table of a model; print it, or read `rows` and the totals.

    parameters, trainable       number of elements, of all and of those that are trained
    flops                       of one forward pass; a multiply-add counts two
    parameter_bytes, buffer_bytes, activation_bytes    memory; activations are leaf layers' outputs
    """

    rows: list[Row]
    parameters: int
    trainable: int
    parameter_bytes: int
    buffer_bytes: int
    ran: bool

    @property
    def flops(self) -> int:
        """Return the floating-point operations of one forward pass."""
        return self.rows[0].flops

    @property
    def activation_bytes(self) -> int:
        """Return the bytes of the outputs of all layers without submodules."""
        return sum(row.memory for row in self.rows if row.leaf)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain data, ready for JSON."""
        totals = {
            name: getattr(self, name)
            for name in ("parameters", "trainable", "flops", "parameter_bytes", "buffer_bytes")
        }
        rows = [{**vars(row), "outputs": [list(s) for s in row.outputs]} for row in self.rows]
        return {"rows": rows, **totals, "activation_bytes": self.activation_bytes}

    def __str__(self) -> str:
        return format_summary(self)

    __repr__ = __str__


# -- collecting ----------------------------------------------------------------------------------


def summarize(model: Module, inputs: Sequence[Any], dtype: Any, depth: int | None) -> Summary:
    """Run a model once, in evaluation mode and unrecorded, and return its table.

    The model is only looked at: layers whose input size is open are open afterwards.
    """
    if depth is not None:
        as_size("summary", "depth", depth, 0)
    if not inputs and any(module._pending for module in model.modules()):
        raise ArgumentError(
            "summary: the model has layers whose input size is open; give an example input"
        )
    examples = [_example(model, x, dtype) for x in _separate(inputs)]
    rows: dict[int, Row] = {}
    with _left_open(model):
        if examples:
            _run(model, examples, rows)
        return _summary(model, rows, depth, bool(examples))


def _run(model: Module, examples: Sequence[Any], rows: dict[int, Row]) -> None:
    """Run a model, and note what each of its modules did."""
    with ExitStack() as stack:
        stack.enter_context(evaluation_mode(model))
        stack.enter_context(no_grad())
        counter = stack.enter_context(CountFlops())
        _watch(model, rows, counter, stack)
        model(*examples)


def _separate(inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the inputs one by one; a single list of shapes or tensors stands for several."""
    single = inputs[0] if len(inputs) == 1 else None
    if isinstance(single, (list, tuple)) and not _is_shape(single):
        return single
    return inputs


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(
        isinstance(size, int) and not isinstance(size, bool) for size in value
    )


def _example(model: Module, given: Any, dtype: Any) -> Any:
    if not _is_shape(given):
        if isinstance(given, (str, int, float)):
            raise ArgumentTypeError(
                "summary: inputs must be tensors or shapes such as (1, 3, 32, 32). "
                f"Received: {given!r}"
            )
        return given
    if dtype is None:
        floats = (p.dtype for p in model.parameters() if dt.is_float(p.dtype))
        dtype = next(floats, dt.default_float())
    return zeros(tuple(given), dtype=dtype)


@contextmanager
def _left_open(model: Module) -> Iterator[None]:
    """Put layers that have taken their size from an example back to where it was open."""
    layers = [_Layer(module) for module in model.modules() if module._pending]
    drawn = default_generator.get_state() if layers else None
    try:
        yield
    finally:
        for layer in layers:
            layer.restore()
        if drawn is not None:
            default_generator.set_state(drawn)


class _Layer:
    """All that changes in a layer when it takes its size, as it was before."""

    def __init__(self, module: Module) -> None:
        self.module, self.kind = module, type(module)
        self.attributes = dict(vars(module))
        self.hooks = {moment: dict(found) for moment, found in module._hooks.items()}
        self.tensors = [(p, type(p), p._value) for p in module.parameters(recurse=False)]

    def restore(self) -> None:
        """Let the layer, and its parameters, be what they were."""
        count_change()
        object.__setattr__(self.module, "__class__", self.kind)
        vars(self.module).clear()
        vars(self.module).update(self.attributes, _hooks=self.hooks)
        for parameter, kind, value in self.tensors:
            parameter.__class__ = kind
            parameter._value = value


@contextmanager
def evaluation_mode(model: Module) -> Iterator[None]:
    """Put a model into evaluation mode and each of its modules back into its own afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            count_change()
            module.__dict__["training"] = mode


def _watch(model: Module, rows: dict[int, Row], counter: CountFlops, stack: ExitStack) -> None:
    """Let hooks note, for each module, the shapes and the operations of its calls."""
    started: list[int] = []

    def before(module: Module, args: Any) -> None:
        started.append(counter.total)

    def after(module: Module, args: Any, output: Any) -> None:
        row = rows.setdefault(id(module), Row("", "", 0, False, 0))
        tensors = [x for x in tree_leaves(output) if isinstance(x, Tensor)]
        row.outputs = [tuple(x.shape) for x in tensors]
        row.flops += counter.total - started.pop()
        row.memory += sum(x.nbytes for x in tensors)
        row.calls += 1

    for module in model.modules():
        stack.enter_context(module.register_forward_pre_hook(before))
        stack.enter_context(module.register_forward_hook(after))


def _summary(model: Module, found: dict[int, Row], depth: int | None, ran: bool) -> Summary:
    rows, seen = [], set[int]()
    for name, module in model.named_modules():
        level = name.count(".") + 1 if name else 0
        row = found.get(id(module)) or Row("", "", 0, False, 0)
        row.name, row.layer, row.depth = name, type(module).__name__, level
        row.leaf = not any(True for _ in module.children())
        row.parameters = sum(p.size for p in module.parameters())
        own = {id(p) for p in module.parameters(recurse=False)}
        row.reused = bool(own & seen)
        seen |= own
        if depth is None or level <= depth:
            rows.append(row)
    parameters = list(model.parameters())
    return Summary(
        rows,
        sum(p.size for p in parameters),
        sum(p.size for p in parameters if p.requires_grad),
        sum(p.nbytes for p in parameters),
        sum(b.nbytes for b in model.buffers()),
        ran,
    )


# -- printing ------------------------------------------------------------------------------------


def format_summary(summary: Summary) -> str:
    """Return the table as text, aligned, with the totals below."""
    lines = [COLUMNS, *(_cells(row, summary.ran) for row in summary.rows)]
    shown = [0, 1, 2, 3, 4] if summary.ran else [0, 2]
    widths = [max(len(line[i]) for line in lines) for i in shown]
    text = [
        "  ".join(_aligned(line[i], i, w) for i, w in zip(shown, widths, strict=True)).rstrip()
        for line in lines
    ]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([text[0], rule, *text[1:], rule, *_totals(summary)])


def _cells(row: Row, ran: bool) -> tuple[str, ...]:
    label = row.name.rpartition(".")[2]
    layer = f"{row.layer} ({label})" if label else row.layer
    times = f" x{row.calls}" if row.calls > 1 else ""
    absent = "not run" if ran and row.leaf else ""  # a list of layers is not run itself
    shapes = " ".join(map(str, row.outputs)) if row.calls else absent
    count = f"{row.parameters:,}" + (" (shared)" if row.reused else "")
    return (
        "  " * row.depth + layer + times,
        shapes,
        count if row.parameters else "-",
        format_count(row.flops) if row.flops else "-",
        format_memory(row.memory) if row.memory else "-",
    )


def _aligned(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _totals(summary: Summary) -> list[str]:
    frozen = summary.parameters - summary.trainable
    counted = f"{summary.parameters:,} ({summary.trainable:,} trainable, {frozen:,} frozen)"
    memory = [f"parameters {format_memory(summary.parameter_bytes)}"]
    if summary.buffer_bytes:
        memory.append(f"buffers {format_memory(summary.buffer_bytes)}")
    if not summary.ran:
        return [f"Parameters: {counted}", f"Memory: {', '.join(memory)}"]
    memory.append(f"activations {format_memory(summary.activation_bytes)}")
    return [
        f"Parameters: {counted}",
        f"FLOPs, forward: {format_count(summary.flops)}",
        f"Memory: {', '.join(memory)}",
    ]


def format_memory(count: int) -> str:
    """Return a number of bytes with its unit.

    >>> format_memory(1536)
    '1.5 KiB'
    """
    return _scaled(count, 1024, UNITS)


def format_count(count: int) -> str:
    """Return a large number with a decimal prefix.

    >>> format_count(1_234_000)
    '1.23 M'
    """
    return _scaled(count, 1000, DECIMAL).rstrip()


def _scaled(count: float, base: int, units: Sequence[str]) -> str:
    power = 0
    while count >= base and power < len(units) - 1:
        count, power = count / base, power + 1
    return f"{count:.3g} {units[power]}" if power else f"{count} {units[0]}"
