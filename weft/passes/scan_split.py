"""Split scans: what need not wait for the state of a loop is done once, for all steps together.

invariants       what is the same in every step is computed before the loop
input products   a row times an invariant matrix: one product of all rows before the loop
row products     a result that is such a product: one product of all results after it
sums             a carry that adds up products (the gradient of a weight): one product after it;
                 one that adds up rows which are stacked (that of a bias): one sum after it

A matrix product of many rows runs several times as fast as many products of few rows. Sums are
rounded in another order; everything else keeps its bits, as far as products do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.dim import is_told
from ..core.op import Op
from ..core.shape import size_of
from ..graph.control.ops import SCAN
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..ops.elementwise.arithmetic import add
from ..ops.elementwise.filling import fill_like
from ..ops.linalg.matmul import matmul
from ..ops.movement.axes import permute
from ..ops.movement.broadcast import broadcast_to
from ..ops.reduce.sums import sum_to
from .rewrite import Rebuild, with_bodies
from .scan_edit import Carry, ScanEdit, is_pure, reshaped

Compute = Callable[[], Value]
FILLS = (broadcast_to, fill_like)  # making them again costs less than reading them


def split_scans(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with scans of known lengths split; sizes must be known."""
    if outputs is None and not has_scans(graph):
        return graph
    rebuild = Rebuild(graph, outputs)
    used = {x for node in graph.nodes for x in node.inputs} | set(rebuild.outputs)
    for old in graph.nodes:
        node = with_bodies(rebuild.current(old), lambda body: split_scans(body, None))
        if node.op is SCAN and _can_be_split(node):
            edit = ScanEdit(rebuild, old, node)
            edit.rows = [(value, result) for value, result in edit.rows if result in used]
            for rule in _RULES:
                rule(edit)
            edit.build()
        else:
            rebuild.place(old, node)
    made = rebuild.finish()
    made.extended.clear()  # loops and their extensions are not the same loops any more
    return made


def has_scans(graph: Graph) -> bool:
    """Tell whether a graph, or a body in it, has a scan."""
    return any(
        node.op is SCAN or any(map(has_scans, subgraphs(node)))
        for node in graph.nodes
        if not isinstance(node.op, Op)
    )


def _can_be_split(node: Node) -> bool:
    body, _, _, length, _, until, _ = node.attrs
    sizes = (length, *(size for value in body.values() for size in value.shape))
    return not until and is_told(sizes) and length > 0


# -- before the loop -------------------------------------------------------------------------------


def _hoist_invariants(edit: ScanEdit) -> None:
    """Compute before the loop what steps take of invariant values."""
    wanted = {
        x
        for node in edit.nodes
        if node.outputs[0] not in edit.invariant
        for x in node.inputs
        if x is not None and x in edit.invariant
    }
    for node in edit.nodes:
        moves = is_pure(node) and node.op not in FILLS
        for value in node.outputs:
            if moves and value in wanted and value in edit.invariant:
                edit.capture(value)


def _hoist_products(edit: ScanEdit) -> None:
    """Multiply all rows of the xs with a matrix at once."""
    for node in edit.nodes:
        if not _is_product(edit, node):
            continue
        x = node.inputs[0]
        assert x is not None
        stacked = _stacked_outside(edit, x)
        if stacked is not None:
            edit.take_row(node.outputs[0], _product_of_rows(edit, node, stacked))


def _is_product(edit: ScanEdit, node: Node) -> bool:
    """Tell whether a node multiplies rows of a value that varies with an invariant matrix."""
    if node.op.product_rule is None:
        return False
    x, w, *bias = node.inputs
    if x is None or w is None or x in edit.invariant or not x.shape or len(w.shape) != 2:
        return False
    return all(v is None or v in edit.invariant for v in (w, *bias))


def _stacked_outside(edit: ScanEdit, value: Value) -> Value | None:
    """Return a value of all steps if it depends on rows of the xs alone, elementwise; else None."""
    if value in edit.xs:
        return edit.xs[value]
    node = value.node
    if not (is_pure(node) and node.op.kind == "elementwise" and len(node.outputs) == 1):
        return None
    inputs = []
    for x in node.inputs:
        if x is None or (x in edit.invariant and len(x.shape) <= len(value.shape)):
            inputs.append(edit.outside(x))
        elif x.shape != value.shape or (stack := _stacked_outside(edit, x)) is None:
            return None
        else:
            inputs.append(stack)
    return edit.make(node.op.name, *inputs, attrs=node.attrs)


def _product_of_rows(edit: ScanEdit, node: Node, stacked: Value) -> Value:
    """Return a product for rows of all steps."""
    _, *others = (edit.outside(x) if i else None for i, x in enumerate(node.inputs))
    rows, inner = size_of(stacked.shape[:-1]), stacked.shape[-1]
    flat = reshaped(edit, stacked, (rows, inner))
    made = edit.make(node.op.name, flat, *others, attrs=node.attrs)
    return reshaped(edit, made, (edit.steps, *node.outputs[0].shape))


def _return_xs(edit: ScanEdit) -> None:
    """Stack nothing that is stacked outside already."""
    for value, result in list(edit.rows):
        if value in edit.xs:
            edit.rows.remove((value, result))
            edit.finals.append((result, edit.stack_of(value)))


# -- after the loop --------------------------------------------------------------------------------


def _defer_products(edit: ScanEdit) -> None:
    """Stack what is multiplied rather than a product that only the results need."""
    for value, result in list(edit.rows):
        node = value.node
        if edit.users(value) == 1 and _is_product(edit, node):
            edit.rows.remove((value, result))
            edit.finals.append((result, _later_product(edit, node)))


def _later_product(edit: ScanEdit, node: Node) -> Compute:
    x = node.inputs[0]
    assert x is not None
    stack = edit.stack_of(x)
    return lambda: _product_of_rows(edit, node, stack())


def _defer_sums(edit: ScanEdit) -> None:
    """Take sums out of the carries: those of products, then those of rows that are stacked."""
    for is_term, later in ((_is_outer, _later_outer), (_is_sum_of_stacked, _later_sum_of_stacked)):
        for carry in list(edit.carries):
            terms = _summands(edit, carry)
            if terms and all(is_term(edit, term) for term in terms):
                edit.carries.remove(carry)
                parts = [later(edit, term.node) for term in terms]
                edit.finals.append((carry.result, _later_sum(edit, carry, parts)))


def _summands(edit: ScanEdit, carry: Carry) -> list[Value]:
    """Return what each step adds to a carry that it uses for nothing else; nothing if it does."""
    if edit.users(carry.entering) != 1 or edit.users(carry.leaving) != 1:
        return []
    found: list[Value] = []
    pending = [carry.leaving]
    while pending:
        value = pending.pop()
        inputs = value.node.inputs
        plain = value.node.op is add and all(x is not None and x.type == value.type for x in inputs)
        if plain and edit.users(value) == 1:
            pending += [x for x in inputs if x is not None]
        else:
            found.append(value)
    return [v for v in found if v is not carry.entering] if carry.entering in found else []


def _is_outer(edit: ScanEdit, value: Value) -> bool:
    """Tell whether a value is a product of two matrices that both change from step to step."""
    node = value.node
    if node.op is not matmul or edit.users(value) != 1:
        return False
    return all(x is not None and len(x.shape) == 2 and x not in edit.invariant for x in node.inputs)


def _is_sum_of_stacked(edit: ScanEdit, value: Value) -> bool:
    """Tell whether a value is a sum of rows (the gradient of a bias) that are stacked anyway."""
    (x, *_) = value.node.inputs or (None,)
    stacked = x in edit.xs or any(found is x for found, _ in edit.rows)
    return value.node.op is sum_to and stacked


def _later_sum(edit: ScanEdit, carry: Carry, parts: Sequence[Compute]) -> Compute:
    def compute() -> Value:
        total = carry.start
        for part in parts:
            total = edit.make("add", total, part())
        return total

    return compute


def _later_sum_of_stacked(edit: ScanEdit, node: Node) -> Compute:
    (x,) = node.inputs
    assert x is not None
    stack = edit.stack_of(x)
    return lambda: edit.make("sum_to", stack(), attrs=node.attrs)


def _later_outer(edit: ScanEdit, node: Node) -> Compute:
    """Return the sum over all steps of x @ y: one product whose inner dimension has all steps."""
    x, y = node.inputs
    assert x is not None
    assert y is not None
    turned = x.node.op is permute and x.node.attrs == ((1, 0),)
    source = x.node.inputs[0] if turned else x
    assert source is not None
    left, right = edit.stack_of(source), edit.stack_of(y)
    inner, (rows, columns) = edit.steps * y.shape[0], (x.shape[0], y.shape[1])

    def compute() -> Value:
        if turned:
            flat = reshaped(edit, left(), (inner, rows))
            first = edit.make("permute", flat, attrs=((1, 0),))
        else:
            beside = edit.make("permute", left(), attrs=((1, 0, 2),))
            first = reshaped(edit, beside, (rows, inner))
        return edit.make("matmul", first, reshaped(edit, right(), (inner, columns)))

    return compute


_RULES = (_hoist_invariants, _hoist_products, _return_xs, _defer_products, _defer_sums)
