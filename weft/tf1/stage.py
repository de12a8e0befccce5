"""A stage of a run: operations that are built in one graph of Weft's and run by one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.dim import Dim
from ..core.errors import WeftError
from ..graph.frontend import placeholder
from ..graph.graph import Graph as WeftGraph
from ..graph.session import Session as WeftSession
from ..graph.update import Update
from .environment import is_known
from .errors import InvalidArgumentError, OpError
from .graph import Operation
from .replay import NeedsValueError, Replay


class Program(NamedTuple):
    """A stage for certain shapes.

    session   Weft's, which runs it
    fetches   the symbols of what the stage gives, and what it writes to variables
    symbols   what is fed
    known     what it gives whose value was known when it was built
    read      variables that must have a value
    written   variables that have one afterwards
    """

    session: WeftSession
    fetches: list[Any]
    symbols: list[Any]
    gives: list[Any]
    known: dict[Any, np.ndarray[Any, Any]]
    read: tuple[Any, ...]
    written: tuple[Any, ...]


class Stage:
    """A part of a run between two pieces of work of Python's."""

    def __init__(self, session: Any, once: bool) -> None:
        self.session = session
        self.once = once  # it initialises: it runs once, and compiling it would take longer
        self.operations: dict[Operation, None] = {}
        self.taken: dict[Any, None] = {}
        self.given: dict[Any, None] = {}
        self.valued: dict[Any, None] = {}  # taken tensors for whose values programs are made
        self.programs: dict[Any, Program] = {}

    def add(self, operation: Operation) -> None:
        """Let the stage evaluate an operation."""
        self.operations[operation] = None

    def take(self, tensor: Any) -> None:
        """Let the stage take a tensor from what is fed, or was made before."""
        self.taken[tensor] = None

    def give(self, tensor: Any) -> None:
        """Let the stage give the value of a tensor."""
        self.given[tensor] = None

    def run(self, values: dict[Any, Any]) -> None:
        """Run with what is there; add what the stage gives."""
        if not self.operations:
            return
        program = self._program(values)
        self.session.check_initialized(program.read)
        fed = {s: values[t] for s, t in program.symbols}
        try:
            found = program.session.run(program.fetches, fed)
        except OpError:
            raise
        except WeftError as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        self.session.mark_initialized(program.written)
        values.update(zip(program.gives, found, strict=False))
        values.update(program.known)

    def executable(self, values: dict[Any, Any]) -> Any:
        """Return the machine code that a run with these values uses."""
        program = self._program(values)
        fed = {s: values[t] for s, t in program.symbols}
        return program.session.executable(program.fetches, fed)

    def _program(self, values: dict[Any, Any]) -> Program:
        while True:
            key = (
                *[values[tensor].shape for tensor in self.taken],
                *[values[tensor].tobytes() for tensor in self.valued],
            )
            known = self.programs.get(key)
            if known is not None:
                return known
            try:
                self.programs[key] = self._built(values)
            except NeedsValueError as needed:
                self.valued[needed.tensor] = None

    def _built(self, values: dict[Any, Any]) -> Program:
        graph = WeftGraph("run")
        env = Replay(self.session)
        env.external.update(self.taken)
        symbols: list[Any] = []
        ordered = sorted(self.operations, key=lambda operation: operation.number)
        with graph:
            for tensor in self.taken:
                if tensor in self.valued or values[tensor].dtype == object:
                    env.values[tensor] = values[tensor]
                else:
                    symbol = placeholder(values[tensor].shape, tensor.dtype.dtype)
                    env.values[tensor] = symbol
                    symbols.append((symbol, tensor))
            env.evaluate(ordered)
            known = {t: env.value(t) for t in self.given if is_known(env.value(t))}
            known, gives = self._made_plain(env, known)
            fetches = [env.symbol(t) for t in gives]
            writes = [self.session.storage(v).assign(value) for v, value in env.written.items()]
        if writes:
            fetches.append(Update(writes))
        fetches += env.shown
        session = WeftSession(graph, compiled=False if self.once else None)
        return Program(
            session, fetches, symbols, gives, known, tuple(env.read_first), tuple(env.written)
        )

    def _made_plain(self, env: Replay, known: dict[Any, Any]) -> tuple[dict[Any, Any], list[Any]]:
        """Return what is known and has no size in it that is not, and what must be computed."""
        plain = {t: a for t, a in known.items() if not any(isinstance(x, Dim) for x in a.flat)}
        return plain, [t for t in self.given if t not in plain]
