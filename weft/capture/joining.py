"""Several paths through a function as one program, which finds out by itself which is taken.

Paths that part at a truth value are joined there by `cond` (arms.py): a tree of paths. The program
also tells the number of the path it took, and what that path does with values in Python, such as
what it returns, is done then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from ..graph.call import ProgramCall
from .arms import join
from .flow import NotJoinedError, PathFlow, flow_of
from .outside import Leaves
from .trace import MISSED, Trace
from .watch import Guards

MOST_JOINED = 16  # paths of one program


class JoinedTrace(Trace):
    """Several paths through a function, compiled as one program.

    paths are what is done with values on each.
    """

    def __init__(self, paths: Sequence[Trace], flow: PathFlow, runs: int) -> None:
        self._paths = list(paths)
        self.graph = flow.graph
        self.pattern, self.origin, self.split_run = None, None, None
        self.places, self.decisions = paths[0].places, paths[0].decisions
        self.held, self._written = paths[0].recording.held, None
        self._replaced = []  # which path it is, and so what it writes, is known at its end
        self.fed = paths[0].fed
        self.looks = [look for path in paths for look in path.looks]
        self.program, self.feeds = flow.program()
        self.call = ProgramCall(self.program, paths[0].recording.name)
        self.python_guards = Guards(guard for path in paths for guard in path.python_guards)
        self.counter = [runs]
        self._slots = [flow.slots[number] for number in range(len(paths))]
        self._tests = [path.holds for path in paths]

    @property
    def paths(self) -> list[Trace]:
        """Return the paths through the function that it is."""
        return self._paths

    def holds(self, leaves: Leaves) -> bool:
        """Tell whether the paths are those of a call, but for values."""
        return all(test(leaves) for test in self._tests)

    def run(self, leaves: Leaves) -> Any:
        """Run on the arguments of a call; return what the function would, or MISSED."""
        if self.held:
            leaves = self.held.extended(leaves)
        fetched = self.fetch(leaves)
        if fetched is MISSED:
            return MISSED
        self.runs += 1
        number = fetched[0].item()
        return self._paths[number].finish([fetched[i] for i in self._slots[number]], leaves)


def joined(known: Trace, new: Trace) -> Trace | None:
    """Return a path that was recorded with those known, as one trace; None if they do not join."""
    paths = [*(path for path in known.paths if not _covers(new, path)), new][-MOST_JOINED:]
    if not all(map(_can_be_joined, paths)) or known.origin is not None:
        return None
    if len(paths) == 1:
        return new
    try:
        _check_places(paths)
        flow = _tree([flow_of(path.recording, number) for number, path in enumerate(paths)])
    except NotJoinedError:
        return None
    return JoinedTrace(paths, flow, known.runs)


def _can_be_joined(path: Trace) -> bool:
    alone = path.call.has_effects  # it shows nothing before all that decides about it is known
    return path.pattern is None and path.recording.is_for_one_size and not alone


def _check_places(paths: Sequence[Trace]) -> None:
    """Raise unless all paths are fed with what the same places hold, in the same order."""
    if any(path.recording.held.places != paths[0].recording.held.places for path in paths):
        raise NotJoinedError("paths change other places")


def _covers(new: Trace, known: Trace) -> bool:
    """Tell whether a path is right wherever another is: it has found that to be a loop."""
    mine, theirs = ([c.seen for c in trace.recording.conditions] for trace in (new, known))
    return len(mine) < len(theirs) and theirs[: len(mine)] == mine


def _tree(flows: Sequence[PathFlow]) -> PathFlow:
    """Return paths as one flow: those that a condition tells apart are joined there."""
    if len(flows) == 1:
        return flows[0]
    at = next(i for i in count() if _part_at(flows, i))
    yes = [flow for flow in flows if flow.conditions[at].seen]
    no = [flow for flow in flows if not flow.conditions[at].seen]
    return join(_tree(yes), _tree(no), at)


def _part_at(flows: Sequence[PathFlow], position: int) -> bool:
    """Tell whether paths part at a condition; raise if they cannot be joined there."""
    if any(position == len(flow.conditions) for flow in flows):
        raise NotJoinedError("paths do not part at a truth value")
    conditions = [flow.conditions[position] for flow in flows]
    return all(one.branch for one in conditions) and len({one.seen for one in conditions}) == 2
