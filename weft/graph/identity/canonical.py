"""The canonical hash: equal for graphs that compute the same in the same way.

It depends on operators, attributes, types, constants and how they are connected; not on names,
source lines, scopes, the order in which independent nodes were built, or the identity of anything
in Python. Equal nodes count as one. States are known by their type and by how they are used.

What is not known by itself (states of the same type) is told apart as in McKay's test of
isomorphism. Colour refinement: each state takes the hash of everything that is computed from it,
with the other states as coloured before, until no more of them differ. Those still alike are
interchangeable in all but artificial graphs, so any one of them is singled out, and the others are
refined again by how they relate to it. Then a walk from the outputs numbers the states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from ...core.dim import SizeVar
from ...core.effects import CHAIN
from ...core.errors import ArgumentTypeError
from ...core.rng import Generator
from ..graph import Graph
from ..node import Node, Value, is_graph
from ..special import ASSIGN, PLACEHOLDER, STATE
from ..state import State
from .content import Encoder
from .points import Point, PointLayout, Ref, bare_sizes

VERSION = b"weft graph 1"
# Rounds of refinement: a few, and more for small graphs. Only many interchangeable states that are
# entangled with one another need more; the numbers depend on nothing but the size of the graph.
LEAST_ROUNDS = 10
WORK = 200_000

Key = tuple[int, str]


def canonical_hash(graph: Graph, outputs: Iterable[Any] | None = None) -> str:
    """Return a hash (hexadecimal) of what a graph computes: of its results, or of given values.

    Without explicit outputs, neither here nor in the graph, all values that no node takes count, in
    any order.

    >>> import weft as wf
    >>> def build(swapped):
    ...     with wf.Graph() as graph:
    ...         x = wf.placeholder((None, 3), wf.float32, name="x")
    ...         _ = (2.0 * x if swapped else x * 2.0).sum()
    ...     return canonical_hash(graph)
    >>> build(True) == build(False)
    True
    """
    return Canonical(graph, outputs).digest()


def step_hash(graph: Graph) -> str:
    """Return a hash (hexadecimal) of what a run of a graph writes to states.

    A training step has the same one whether it was built by `minimize` or recorded by `wf.jit`:
    placeholders count by their order and not by their names, and neither what is returned besides
    counts (the loss, gradients that are kept) nor what matters only to derivatives of the step.
    """
    written = [node.outputs[0] for node in graph.nodes if node.op is ASSIGN]
    return Canonical(graph, written, as_step=True).digest()


class Canonical:
    """A graph whose nodes are hashed, and ordered independently of how it was built.

    order    the points that the outputs need, each after those it takes, in canonical order
    hashes   the hash of each of them
    states   the states they use, in the order in which the walk meets them
    colours  for each unknown size, a hash of what tells it
    """

    def __init__(
        self, graph: Graph, outputs: Iterable[Any] | None = None, *, as_step: bool = False
    ) -> None:
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"canonical_hash: expected a wf.Graph. Received: {type(graph).__name__}"
            )
        given = graph.outputs if outputs is None else [_value(graph, y) for y in outputs]
        self.ordered = (bool(given) or outputs is not None) and not as_step
        ends = given if self.ordered or as_step else graph.results()
        self.layout = PointLayout(graph, ends, as_run=as_step)
        self.points = self.layout.points
        self._fed = self._placeholders() if as_step else None
        self.encoder = Encoder()
        self.labels = {
            i: self._label(self.points[i], self.encoder) for i in self.layout.reachable()
        }
        self._merge_equal()
        self.reached = self._reached()
        self._keys = self._refined()
        self.ends = self._sorted_ends()
        self.order = list(self._walk())
        self.states = self._states_in(self.order)
        self.hashes, self.colours = self._hashed(self.order, self.states)

    def settle(self) -> None:
        """Walk once more, by the hashes: among states alike, the numbers now decide the order."""
        self._keys = self.hashes
        self.ends = self._sorted_ends()
        self.order = list(self._walk())

    def digest(self) -> str:
        """Return the hash of the whole graph."""
        ends = [self.hashes[ref.point] + _number(ref.output) for ref in self.ends]
        if not self.ordered:
            ends = sorted(set(ends))
        kind = b"ordered" if self.ordered else b"any order"
        return blake2b(_joined([VERSION, kind, *ends]), digest_size=32).hexdigest()

    # -- labels: what a point is apart from its inputs --------------------------------------------

    def _label(self, point: Point, encoder: Encoder) -> bytes:
        node = point.node
        if node is None:
            parts = [b"argument", _number(point.position), *map(encoder.type, point.types)]
            return _joined([_number(point.depth), *parts])
        parts = [_number(point.depth), node.op.name.encode(), node.device.encode()]
        parts += map(encoder.type, point.types)
        if node.op is PLACEHOLDER:
            parts.append(node.name.encode() if self._fed is None else _number(self._fed[node]))
        elif node.op in (STATE, ASSIGN):
            parts.append(_threaded_as(node.attrs[0]))
        elif point.bodies:
            parts += self._control_label(point, encoder)
        else:
            own = node.attrs[:-2] if node.op.effect else node.attrs  # without name and line
            parts.append(encoder.attr(own))
        return _joined(parts)

    def _placeholders(self) -> dict[Node, int]:
        """Return which of the placeholders that are needed each is, in their order."""
        nodes = (self.points[i].node for i in self.layout.reachable())
        fed = [node for node in nodes if node is not None and node.op is PLACEHOLDER]
        return {node: number for number, node in enumerate(fed)}

    def _control_label(self, point: Point, encoder: Encoder) -> Iterator[bytes]:
        """Yield the attributes of control flow; bodies and threads are among its inputs."""
        node = point.node
        assert node is not None
        for name, attr in zip(node.op.attrs, node.attrs, strict=True):
            if name == "threads":
                yield encoder.attr(tuple(after for _, after in attr))
            elif not is_graph(attr):
                yield encoder.attr(attr)
        for body in point.bodies:
            yield _number(len(self.layout.results[body]))

    # -- equal nodes count as one -----------------------------------------------------------------

    def _merge_equal(self) -> None:
        """Let everything refer to the first of several equal points."""
        order = self.layout.reachable()
        hashes, _ = self._hashed(order, self._states_in(order))
        first: dict[tuple[int, bytes], int] = {}
        same = {i: first.setdefault((self.points[i].scope, hashes[i]), i) for i in order}
        if len(first) < len(order):
            self.layout.merge(same)

    def _reached(self) -> list[int]:
        """Return the points to consider; without explicit outputs, what is used is no result."""
        reached = self.layout.reachable()
        if not self.ordered:
            used = {ref for i in reached for ref in self.points[i].refs}
            self.layout.outputs = [ref for ref in self.layout.outputs if ref not in used]
        return reached

    # -- colours: telling states apart ------------------------------------------------------------

    def _refined(self) -> dict[int, bytes]:
        """Return hashes of all points in which states differ as far as their use differs."""
        users = self._state_users()
        colours = {key: self.labels[found[0]] for key, found in users.items()}
        rounds = LEAST_ROUNDS + WORK // max(1, len(self.reached))
        while True:
            up = self._upward(colours)
            if _first_alike(colours) is None or rounds <= 0:
                return up
            rounds -= 1
            down = self._downward(up)
            refined = {
                key: _hash([colours[key], *sorted(down[i] for i in found)])
                for key, found in users.items()
            }
            if len(set(refined.values())) == len(set(colours.values())):
                chosen = _first_alike(refined)
                assert chosen is not None
                refined[chosen] = _hash([refined[chosen], b"chosen"])
            colours = refined

    def _state_users(self) -> dict[Key, list[int]]:
        """Return, for each state, the points that read or write it."""
        users: dict[Key, list[int]] = {}
        for i in self.reached:
            state = _state(self.points[i])
            if state is not None:
                users.setdefault(state.key, []).append(i)
        return users

    def _upward(self, colours: dict[Key, bytes]) -> dict[int, bytes]:
        """Return a hash of what each point is computed from."""
        up: dict[int, bytes] = {}
        for i in self.reached:
            point = self.points[i]
            state = _state(point)
            own = self.labels[i] if state is None else self.labels[i] + colours[state.key]
            up[i] = _hash([own, *self._operands(point, up)])
        return up

    def _operands(self, point: Point, hashes: dict[int, bytes]) -> list[bytes]:
        found = [b"" if r is None else hashes[r.point] + _number(r.output) for r in point.refs]
        return sorted(found) if point.commutes else found

    def _downward(self, up: dict[int, bytes]) -> dict[int, bytes]:
        """Return a hash of what each point is and of everything that is computed from it."""
        received: dict[int, list[bytes]] = {i: [] for i in self.reached}
        for position, end in enumerate(self.layout.outputs):
            place = _number(position) if self.ordered else b""
            received[end.point].append(_joined([b"output", place, _number(end.output)]))
        down: dict[int, bytes] = {}
        for i in reversed(self.reached):
            point = self.points[i]
            down[i] = _hash([up[i], *sorted(received[i])])
            for position, ref in enumerate(point.refs):
                if ref is not None:
                    place = b"" if point.commutes else _number(position)
                    received[ref.point].append(_joined([down[i], place, _number(ref.output)]))
        return down

    # -- order -------------------------------------------------------------------------------------

    def _sorted_ends(self) -> list[Ref]:
        if self.ordered:
            return self.layout.outputs
        return sorted(self.layout.outputs, key=lambda ref: (self._keys[ref.point], ref.output))

    def _walk(self) -> Iterator[int]:
        """Yield the points in the order of a walk from the outputs, depth first."""
        done: set[int] = set()
        pending = [(ref.point, False) for ref in reversed(self.ends)]
        while pending:
            i, entered = pending.pop()
            if i in done:
                continue
            if entered:
                done.add(i)
                yield i
                continue
            pending.append((i, True))
            pending += [(j, False) for j in reversed(self._below(self.points[i])) if j not in done]

    def _below(self, point: Point) -> list[int]:
        found = [ref.point for ref in point.refs if ref is not None]
        if point.commutes:
            found.sort(key=self._keys.__getitem__)
        return [*point.tellers, *found]

    def _states_in(self, order: Iterable[int]) -> dict[Key, State]:
        found = (_state(self.points[i]) for i in order)
        return {state.key: state for state in found if state is not None}

    # -- hashes ------------------------------------------------------------------------------------

    def _hashed(
        self, order: Sequence[int], states: Iterable[Key]
    ) -> tuple[dict[int, bytes], dict[SizeVar, bytes]]:
        """Return the hashes, with states by their numbers and sizes by what tells them."""
        numbers = {key: _number(n) for n, key in enumerate(states)}
        colours = self._placeholder_sizes(set(order))
        encoder = Encoder(colours)
        hashes: dict[int, bytes] = {}
        for i in order:
            point = self.points[i]
            operands = self._operands(point, hashes)
            self._note_sizes(i, operands, colours)
            label = self._label(point, encoder) if self._is_sized(point) else self.labels[i]
            state = _state(point)
            hashes[i] = _hash([label, b"" if state is None else numbers[state.key], *operands])
        return hashes, colours

    def _placeholder_sizes(self, reached: set[int]) -> dict[SizeVar, bytes]:
        """Return colours of the sizes that placeholders tell, by name and axis."""
        colours = {}
        for variable, refs in self.layout.sizes.items():
            used = [ref for ref in refs if ref.point in reached] or refs
            names = [(self.points[r.point].node.name, r.output) for r in used]  # type: ignore[union-attr]  # a placeholder
            name, axis = min(names)
            colours[variable] = _hash([b"size", name.encode(), _number(axis)])
        return colours

    def _note_sizes(self, i: int, operands: Sequence[bytes], colours: dict[SizeVar, bytes]) -> None:
        """Give a colour to the sizes that a point is the first to tell."""
        for index, axis, variable in bare_sizes(self.points[i].types):
            if variable not in colours:
                place = [_number(index), _number(axis)]
                colours[variable] = _hash([b"size", self.labels[i], *place, *operands])

    def _is_sized(self, point: Point) -> bool:
        """Tell whether unknown sizes are part of what a point is."""
        return self.encoder.has_sizes(point.types, () if point.node is None else point.node.attrs)


def _first_alike(colours: dict[Key, bytes]) -> Key | None:
    """Return a state whose colour others have too, of the first such colour; None if none has."""
    if len(set(colours.values())) == len(colours):
        return None
    count = Counter(colours.values())
    first = min(colour for colour, n in count.items() if n > 1)
    return next(key for key, colour in colours.items() if colour == first)


def _state(point: Point) -> State | None:
    if point.node is None or point.node.op not in (STATE, ASSIGN):
        return None
    state: State = point.node.attrs[0]
    return state


def _value(graph: Graph, y: Any) -> Value:
    value = getattr(y, "value", y)
    if not isinstance(value, Value):
        raise ArgumentTypeError(
            f"canonical_hash: outputs must be symbols. Received: {type(y).__name__}"
        )
    return graph.check_member(value, "canonical_hash")


def _hash(parts: Sequence[bytes]) -> bytes:
    return blake2b(_joined(parts), digest_size=16).digest()


def _threaded_as(state: Any) -> bytes:
    """Return what a state is that nodes thread, as bytes; nothing for one that they do not."""
    if state.owner is CHAIN:
        return b"effects"
    return b"generator" if isinstance(state.owner, Generator) else b""


def _joined(parts: Sequence[bytes]) -> bytes:
    """Return parts as one text from which they could be taken apart again."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def _number(n: int) -> bytes:
    return b"%d" % n
