"""A debugger over graphs: take the nodes of a run one by one, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from ...core.anomaly import searching
from ...core.effects import CHAIN, trips
from ...core.errors import ArgumentError, GraphError
from ..call import ProgramCall
from ..graph import Graph, nearest_name
from ..layout import ProgramStep
from ..node import Node, Value, subgraphs
from ..run import Array, Program, Results, Sizes
from ..special import STATE
from .console import Prompt, console
from .effects import QuitDebugger
from .frames import Stack, stack_of_site
from .shown import described, shown


def step_through(
    call: ProgramCall, arrays: list[Array], stdin: TextIO | None, stdout: TextIO | None
) -> list[Array] | None:
    """Run a program under the debugger; return the fetches, or None if the user quits."""
    stepper = Stepper(call.program, arrays, stdin, stdout)
    with console(stepper.given_in, stepper.stdout):  # for breakpoints on the way
        token = searching.set(stepper.run_body)
        try:
            fetched = call.run_steps(arrays, stepper.take)
        except QuitDebugger:
            stepper.say("the run was ended; no state was written")
            return None
        finally:
            searching.reset(token)
    stepper.say("the run is complete")
    return fetched


class _Level:
    """The graph, or a body of control flow in it, that runs: its values so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[str, Array] = {}

    def note(self, value: Value, array: Any) -> None:
        """Note what a value is."""
        graph = self.program.graph
        self.known[graph.given_names.get(value, value.name)] = array


class Stepper(Prompt):
    """Stops before nodes, and shows what they make."""

    def __init__(
        self,
        program: Program,
        feeds: Sequence[Array],
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        super().__init__(stdin, stdout)
        self.given_in = stdin
        self._levels: list[_Level] = []
        self._breaks: set[str] = set()
        self._stops_at = 1  # the deepest level at which every node is a stop; 0: breaks alone
        self._node: Node | None = None
        self._begin(program, feeds)

    def _begin(self, program: Program, feeds: Sequence[Array]) -> None:
        level = _Level(program)
        for value, array in zip(program.feeds, feeds, strict=True):
            level.note(value, array)
        for node in program.order:
            if node.op is STATE and node.attrs[0].owner is not CHAIN:
                level.note(node.outputs[0], node.attrs[0].read())
        self._levels.append(level)

    # -- running -----------------------------------------------------------------------------------

    def run_body(self, program: Program, feeds: Sequence[Array], sizes: Sizes | None) -> Results:
        """Run a body of control flow, one level deeper."""
        self._begin(program, feeds)
        try:
            return program.run(feeds, sizes, self.take)
        finally:
            self._levels.pop()
            self._stops_at = min(self._stops_at, len(self._levels))

    def take(self, step: ProgramStep, slots: list[Any], sizes: Sizes) -> None:
        """Take one step of a program; stop before it if that is wanted."""
        level, node = self._levels[-1], step.node
        stops = len(self._levels) <= self._stops_at or self._is_break(node)
        if stops:
            self._stop(node)
        level.program.take(step._replace(frees=()), slots, sizes)  # all values stay to be seen
        for value, slot in zip(node.outputs, step.outputs, strict=True):
            if slot >= 0 and not node.op.effect:
                level.note(value, slots[slot])
                if stops and len(self._levels) <= self._stops_at:
                    self.say(f"   {shown(value.name, slots[slot])}")

    def _is_break(self, node: Node) -> bool:
        graph = self._levels[-1].program.graph
        names = {graph.given_names.get(value, node.name) for value in node.outputs}
        return not self._breaks.isdisjoint({*names, node.name, node.op.name})

    def _stop(self, node: Node) -> None:
        self._node = node
        self.stop_here(self._described(node), self._stack_of(node))

    def _stack_of(self, node: Node) -> Stack:
        stacks = self._levels[-1].program.graph.stacks
        return stacks.get(node) or stack_of_site(node.site)

    def _described(self, node: Node) -> str:
        depth, counts = "  " * (len(self._levels) - 1), trips()
        trip = f" (trip {', '.join(map(str, counts))})" if counts else ""
        given = ", ".join("None" if x is None else x.name for x in node.inputs)
        return f"{depth}-> {node.name} = {node.op.name}({given}){trip}"

    # -- values ------------------------------------------------------------------------------------

    def known(self) -> Mapping[str, Array]:
        """Return all values so far, those of the graph around a body too."""
        return {name: array for level in self._levels for name, array in level.known.items()}

    def find(self, name: str) -> Array:
        """Say that a value is not computed yet, or that there is none of that name."""
        for level in self._levels:
            try:
                level.program.graph.find(name)
            except ArgumentError:
                continue
            raise GraphError(f"{name} is not computed yet")
        near = nearest_name(name, list(self.known()))
        hint = f"; did you mean {near!r}?" if near else "; `values` lists what is there"
        raise ArgumentError(f"no value is named {name!r:.60}{hint}")

    # -- commands ----------------------------------------------------------------------------------

    def do_next(self, line: str) -> bool:
        """Run this node, bodies of control flow as a whole, and stop at the next."""
        self._stops_at = len(self._levels)
        return True

    def do_step(self, line: str) -> bool:
        """Run this node; stop in its body if it has one, trip by trip."""
        self._stops_at = len(self._levels) + 1
        return True

    def do_finish(self, line: str) -> bool:
        """Run to the end of this body, all its trips, and stop behind it."""
        self._stops_at = len(self._levels) - 1
        return True

    def do_continue(self, line: str) -> bool:
        """Run to the next break, or to the end."""
        self._stops_at = 0
        return True

    def do_break(self, line: str) -> None:
        """Stop at nodes of a name or operator, `break NAME`; alone, list where it stops."""
        if not line:
            self.say(f"breaks: {', '.join(sorted(self._breaks)) or 'none'}")
            return
        names = set(_names(self._levels[0].program.graph))
        if line not in names:
            near = nearest_name(line, sorted(names))
            hint = f"; did you mean {near!r}?" if near else ""
            self.say(f"*** no node and no operator of the graph is named {line!r}{hint}")
            return
        self._breaks.add(line)
        self.say(f"stops at {line}")

    def do_clear(self, line: str) -> None:
        """Stop at a name no more, `clear NAME`; alone, stop nowhere."""
        self._breaks = self._breaks - {line} if line else set()

    def do_node(self, line: str) -> None:
        """Show the node that comes next, with what it takes."""
        node, known = self._node, self.known()
        assert node is not None
        self.say(f"{node!r}")
        for x in node.inputs:
            if x is not None and x.name in known:
                self.say(f"   {x.name}: {described(known[x.name])}")
        if node.where:
            self.say(f"   built at {node.where}")

    def do_up(self, line: str) -> None:
        """Go up to the line that called this one, in the stack of the node."""
        if self._node is not None and len(self.stack) == 1 and not self._has_stack(self._node):
            self.say(
                "only the innermost line of this node is known; set wf.config.graph_stacks = True "
                "before the graph is built to record the whole stack"
            )
        else:
            super().do_up(line)

    def _has_stack(self, node: Node) -> bool:
        return node in self._levels[-1].program.graph.stacks

    do_n, do_s, do_f, do_b, do_u = do_next, do_step, do_finish, do_break, do_up
    do_c = do_continue


def _names(graph: Graph) -> list[str]:
    """Return the names of all nodes and operators, in bodies too."""
    own = [name for node in graph.nodes for name in (node.name, node.op.name)]
    bodies = (body for node in graph.nodes for body in subgraphs(node))
    return [*own, *graph.names, *(name for body in bodies for name in _names(body))]
