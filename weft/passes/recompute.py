"""Decide what to recompute: which values of the forward part are kept for the backward part.

The nodes before the turning point form segments. A value that a later segment takes is kept (a
checkpoint); other values that the backward part takes are dropped, and recomputed from checkpoints
when the backward part first needs one (Chen et al., "Training deep nets with sublinear memory
cost", 2016). Segments grow towards the start: when the backward part reaches an early segment, the
checkpoints behind it are gone and their memory is free. Every node runs at most twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from ..graph.node import Node, Value, subgraphs
from ..graph.special import ASSIGN, SOURCES
from .cost import is_cheap, node_cost
from .sizes import Known, known_shape

NOWHERE = -1  # the storage of what comes from outside: it costs nothing and is always there


class StoredOperand(NamedTuple):
    """Where an operand comes from: the node that makes it, and its storage, by number."""

    maker: int
    storage: int


class Trial(NamedTuple):
    """What a choice of kept storages leads to.

    peak     the most bytes alive at any time
    cost     nanoseconds, estimated, that recomputing takes
    clones   for each node of the backward part that needs any: the nodes to run again before it
    """

    peak: int
    cost: float
    clones: dict[int, list[int]]


class Flow:
    """A graph as numbers: what each node takes and makes, as if it ran node by node.

    homes     the storage of each value: views lie in that of their operand
    bytes     of each storage
    birth     the node that makes it
    scratch   what the bodies of each node need while it runs
    ends      storages that are needed when all nodes have run
    """

    def __init__(self, nodes: Sequence[Node], kept: Iterable[Value], known: Known) -> None:
        self.nodes = list(nodes)
        self.homes: dict[Value, int] = {}
        self.bytes: list[int] = []
        self.birth: list[int] = []
        self._known = known
        for i, node in enumerate(self.nodes):
            for value in node.outputs:
                self.homes[value] = self._home(value, i)
        self.makes: list[list[int]] = [[] for _ in self.nodes]
        for s, maker in enumerate(self.birth):
            self.makes[maker].append(s)
        self.operands = self._operands()
        self.scratch = [self._scratch(node) for node in self.nodes]
        assigned = (node.outputs[0] for node in self.nodes if node.op is ASSIGN)
        self.ends = {self.homes[value] for value in (*kept, *assigned)} - {NOWHERE}
        self.costs = [node_cost(node, self.shape_of) for node in self.nodes]

    def shape_of(self, value: Value) -> tuple[int, ...]:
        """Return the shape of a value, all sizes known."""
        return known_shape(value, self._known)

    def _home(self, value: Value, maker: int) -> int:
        node = value.node
        source = node.inputs[0] if node.inputs and (node.op is ASSIGN or node.op.is_view) else None
        if node.op in SOURCES or source is not None:
            return NOWHERE if source is None else self.homes[source]
        self.bytes.append(prod(self.shape_of(value)) * int(value.dtype.itemsize))
        self.birth.append(maker)
        return len(self.bytes) - 1

    def _operands(self) -> list[list[StoredOperand]]:
        position = {node: i for i, node in enumerate(self.nodes)}
        return [
            [
                StoredOperand(position[x.node], self.homes[x])
                for x in dict.fromkeys(node.inputs)
                if x is not None and self.homes[x] != NOWHERE
            ]
            for node in self.nodes
        ]

    def _scratch(self, node: Node) -> int:
        """Return what the largest body of a node needs: one runs at a time."""
        bodies = (Flow(body.nodes, body.outputs, self._known) for body in subgraphs(node))
        return max((max(body.profile(), default=0) for body in bodies), default=0)

    def profile(self) -> list[int]:
        """Return the number of bytes alive as each node runs."""
        lives = Lives(len(self.bytes))
        for i in range(len(self.nodes)):
            lives.run([s for _, s in self.operands[i]], self.makes[i], self.scratch[i])
        return lives.profile(self.bytes, self.ends)


class Chain:
    """A graph cut at the turning point.

    turn     the number of the last node of the forward part
    stash    storages that the forward part makes and the backward part takes, in order
    pinned   those that cannot be dropped: fetched, or not to be computed twice
    """

    def __init__(self, flow: Flow, turn: int) -> None:
        self.flow, self.turn = flow, turn
        self.nodes, self.bytes, self.birth = flow.nodes, flow.bytes, flow.birth
        self.operands, self.makes, self.scratch = flow.operands, flow.makes, flow.scratch
        self.ends, self.costs = flow.ends, flow.costs
        self.stash = self._stash()
        self.stash_bytes = sum(self.bytes[s] for s in self.stash)
        self._stashed_at: list[list[int]] = [[] for _ in range(turn + 1)]
        self._is_stashed = bytearray(len(self.bytes))
        for s in self.stash:
            self._stashed_at[self.birth[s]].append(s)
            self._is_stashed[s] = 1
        self.pinned = self._pinned()
        self.last_forward = self._last_forward()
        self.forward = self._forward()

    # -- reading the graph -------------------------------------------------------------------------

    def _stash(self) -> list[int]:
        backward = range(self.turn + 1, len(self.nodes))
        taken = {s for i in backward for maker, s in self.operands[i] if maker <= self.turn}
        return sorted(taken | {s for s in self.ends if self.birth[s] <= self.turn})

    def _pinned(self) -> set[int]:
        pinned = set(self.ends)
        for node in self.nodes[: self.turn + 1]:
            if not _is_repeatable(node):
                pinned.update(self.flow.homes[value] for value in node.outputs)
        return pinned - {NOWHERE}

    def _last_forward(self) -> list[int]:
        """Return, for each storage, the last node that takes it on the way to stashed values."""
        stashed, last = set(self.stash), [-1] * len(self.bytes)
        needed = [False] * (self.turn + 1)
        for i in range(self.turn, -1, -1):
            if needed[i] or any(s in stashed for s in self.makes[i]):
                for maker, storage in self.operands[i]:
                    needed[maker] = True
                    last[storage] = max(last[storage], i)
        return last

    def _crossing(self, kept: bytearray) -> list[int]:
        """Return the bytes that a cut behind each node of the forward part would keep in addition.

        Those that the backward part does not take count twice: they save no recomputation.
        """
        changes = [0] * (self.turn + 2)
        for s, last in enumerate(self.last_forward):
            if last > self.birth[s] and not kept[s]:
                price = self.bytes[s] * (1 if self._is_stashed[s] else 2)
                changes[self.birth[s]] += price
                changes[last] -= price
        return list(accumulate(changes))

    def _forward(self) -> Lives:
        """Return when storages live as far as the forward part goes, which is always the same."""
        lives = Lives(2 * len(self.bytes))
        for i in range(self.turn + 1):
            lives.run([s for _, s in self.operands[i]], self.makes[i], self.scratch[i])
        return lives

    def costly(self) -> list[int]:
        """Return stashed storages that take more than a pass over elements to recompute.

        The costliest for their bytes come first, and of equals the latest, which the backward part
        needs soonest.
        """
        stashed = set(self.stash)
        total, cheap = [0.0] * (self.turn + 1), [True] * (self.turn + 1)
        for i in range(self.turn + 1):
            hidden = [m for m, s in self.operands[i] if s not in stashed]
            total[i] = min(self.costs[i] + sum(total[m] for m in hidden), 1e18)
            cheap[i] = is_cheap(self.nodes[i]) and all(cheap[m] for m in hidden)
        found = [s for s in self.stash if not cheap[self.birth[s]] and self.bytes[s]]
        return sorted(found, key=lambda s: (-total[self.birth[s]] / self.bytes[s], -self.birth[s]))

    # -- choosing ----------------------------------------------------------------------------------

    def choose(self, room: int, favoured: Sequence[int] = ()) -> bytearray:
        """Return which storages to keep so that the stash takes about `room` bytes at any time.

        Segments are filled from the start until enough is dropped; the rest is kept.

        favoured   storages to keep in any case
        """
        kept = bytearray(len(self.bytes))
        for s in (*self.pinned, *favoured):
            kept[s] = 1
        crossing = self._crossing(kept)
        start = held = waiting = 0
        surplus = self.stash_bytes - room
        for i in range(self.turn + 1):
            if surplus <= 0:
                break
            mine = self._stashed_at[i]
            held += sum(self.bytes[s] for s in mine if kept[s])
            waiting += sum(self.bytes[s] for s in mine if not kept[s])
            if i > start and (held + waiting > room or waiting >= surplus + crossing[i]):
                cut = _best_cut(crossing, start, i)
                held += self._keep_crossing(start, cut, kept)
                left = sum(self._waiting(j, kept) for j in range(cut + 1, i + 1))
                surplus -= sum(self._waiting(j, kept) for j in range(start, cut + 1))
                start, waiting = cut + 1, left
        for i in range(start, self.turn + 1):
            for s in self._stashed_at[i]:
                kept[s] = 1
        return kept

    def _waiting(self, node: int, kept: bytearray) -> int:
        """Return the bytes that a node makes, the backward part takes and nobody keeps."""
        return sum(self.bytes[s] for s in self._stashed_at[node] if not kept[s])

    def _keep_crossing(self, start: int, cut: int, kept: bytearray) -> int:
        held = 0
        for i in range(start, cut + 1):
            for s in self.makes[i]:
                if not kept[s] and self.last_forward[s] > cut:
                    kept[s] = 1
                    held += self.bytes[s]
        return held

    # -- trying out --------------------------------------------------------------------------------

    def trial(self, kept: bytearray) -> Trial:
        """Return what keeping some storages leads to, by going through the whole schedule."""
        return _Backward(self, kept).result()


class Lives:
    """When storages are born and die; those computed again have a second life, numbered behind."""

    def __init__(self, count: int) -> None:
        self.birth = [-1] * count
        self.death = [-1] * count
        self.scratch: list[tuple[int, int]] = []
        self.time = 0

    def copied(self) -> Lives:
        """Return a copy to go on with."""
        other: Lives = object.__new__(Lives)
        other.birth, other.death = self.birth.copy(), self.death.copy()
        other.scratch, other.time = self.scratch.copy(), self.time
        return other

    def run(self, taken: Iterable[int], made: Iterable[int], scratch: int) -> None:
        """Let one node run that takes and makes some storages."""
        time, death = self.time, self.death
        for s in taken:
            death[s] = time
        for s in made:
            self.birth[s] = death[s] = time
        if scratch:
            self.scratch.append((time, scratch))
        self.time = time + 1

    def profile(self, sizes: Sequence[int], ends: Iterable[int]) -> list[int]:
        """Return the bytes alive at each time; some storages live to the end."""
        for s in ends:
            self.death[s] = self.time
        changes = [0] * (self.time + 2)
        for birth, death, nbytes in zip(self.birth, self.death, sizes, strict=True):
            if birth >= 0:
                changes[birth] += nbytes
                changes[death + 1] -= nbytes
        for time, nbytes in self.scratch:
            changes[time] += nbytes
            changes[time + 1] -= nbytes
        return list(accumulate(changes))[: self.time + 1]


class _Backward:
    """The backward part of a schedule, in which dropped values are recomputed when needed."""

    def __init__(self, chain: Chain, kept: bytearray) -> None:
        self.chain = chain
        self.lives = chain.forward.copied()
        self.again: set[int] = set()
        self.clones: dict[int, list[int]] = {}
        second, first = len(chain.bytes), chain.turn
        # Where the backward part finds each storage: in its second life if it was dropped.
        self.found = [
            s + second if birth <= first and not kept[s] else s
            for s, birth in enumerate(chain.birth)
        ]

    def result(self) -> Trial:
        """Go through the backward part and return the peak, the cost and what runs again."""
        chain, lives = self.chain, self.lives
        for i in range(chain.turn + 1, len(chain.nodes)):
            self._run_again_before(i)
            self._run(i)
        cost = sum(chain.costs[i] for i in self.again)
        return Trial(max(lives.profile(chain.bytes * 2, chain.ends)), cost, self.clones)

    def _run_again_before(self, node: int) -> None:
        """Run again, in their order, the nodes whose dropped results a node needs."""
        needed = self._missing(node)
        if needed:
            pending = needed.copy()
            while pending:
                more = self._missing(pending.pop())
                needed += more
                pending += more
            needed.sort()
            self.clones[node] = needed
            for i in needed:
                self._run(i)

    def _missing(self, node: int) -> list[int]:
        """Return the nodes that must run again for a node, not counting those that have."""
        missing = []
        for maker, s in self.chain.operands[node]:
            if self.found[s] != s and maker <= self.chain.turn and maker not in self.again:
                self.again.add(maker)
                missing.append(maker)
        return missing

    def _run(self, node: int) -> None:
        chain, found = self.chain, self.found
        self.lives.run(
            [found[s] for _, s in chain.operands[node]],
            [found[s] for s in chain.makes[node]],
            chain.scratch[node],
        )


def _best_cut(crossing: Sequence[int], start: int, stop: int) -> int:
    """Return where to end a segment: where least crosses, in its later half."""
    return min(range((start + stop) // 2, stop), key=lambda i: (crossing[i], -i))


def _is_repeatable(node: Node) -> bool:
    """Tell whether a node may run twice: not if it moves a random generator on."""
    threads = getattr(node.op, "threads", None)
    moves = node.op.advances or (threads is not None and bool(threads(node)))
    return not moves and node.op is not ASSIGN
