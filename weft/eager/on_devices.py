"""Operations on tensors of a device: each is one launch of a kernel that was compiled for it.

An operator on operands of certain types is a small graph, which goes through the same compiler as
every graph; what that makes for the device is kept, the latest used ones. An operator that has no
kernel there, or a result whose size depends on values, is computed by the host: its operands are
copied out and the result in, which is counted, and said once.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backends.device_memory import DevicePool, memory_of
from ..backends.execution import Execution
from ..compiler.stages import compile_program
from ..core.device import device
from ..core.device_array import DeviceArray, DeviceError
from ..core.dispatch import group
from ..core.dtype import Array, DType
from ..core.errors import IndexOutOfRange, WeftError, user_stacklevel
from ..core.op import find_op
from ..core.shape import TensorType
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import type_text
from ..graph.run import Program
from ..passes.user_rules import without_user_rules

MOST_LAUNCHES = 1024  # kernels of operations that are kept

Launch = Callable[[Sequence[DeviceArray | None]], Any]


class HostRunWarning(UserWarning):
    """An operation on tensors of a device was computed by the host."""


class HostRun(NamedTuple):
    """An operator that the host computes for a device, and why."""

    operator: str
    device: str
    reason: str
    types: str  # of the operands that it was met with first


LIBRARY = "it has no kernel of its own: a library of the host computes it"
UNKNOWN_SIZE = "the size of its result depends on values"
NOT_TRACED = "it works on values in Python"


class DeviceRunner:
    """What core asks for: copies, and operations on values of devices."""

    def __init__(self) -> None:
        self._launches: OrderedDict[Any, Launch] = OrderedDict()
        self.host_runs: dict[tuple[str, str], HostRun] = {}

    def has_own_memory(self, where: str) -> bool:
        """Tell whether tensors on a device hold memory of the device, and no arrays."""
        return memory_of(where).own

    def stats(self, where: device) -> dict[str, Any]:
        """Return what was done on a device so far, and what the host has computed for it."""
        host = [run for run in self.host_runs.values() if run.device == where]
        return {**memory_of(where).counts, "host": host}

    def synchronize(self, where: device) -> None:
        """Wait until all that was started on a device is done."""
        memory = memory_of(where)
        if memory.own:
            memory.backend.synchronize()

    def copy_in(self, array: Array, where: device) -> DeviceArray:
        """Return an array of the host as a value of a device."""
        return memory_of(where).copy_in(array)

    def copy_out(self, value: DeviceArray) -> Array:
        """Wait for a value of a device, and return it as a new array of the host."""
        return memory_of(value.device).copy_out(value)

    def cast(self, value: DeviceArray, dtype: DType) -> DeviceArray:
        """Return a value in another dtype, converted on its device."""
        made: DeviceArray = self.launch(find_op("cast"), (value,), (dtype,), value.device)
        return made

    def launch(
        self, op: Any, operands: Sequence[Any], attrs: tuple[Any, ...], where: device
    ) -> Any:
        """Return the result of an operator on values of a device, or the tuple of its results."""
        memory = memory_of(where)
        values = [None if x is None else _value(memory, x) for x in operands]
        types = tuple([None if x is None else (x.shape, x.dtype) for x in values])
        key = (op, str(where), types, repr(attrs))  # 1, 1.0 and True are equal, 0.0 and -0.0 too
        known = self._launches.get(key)
        if known is None:
            known = self._launches[key] = self._made(op, types, attrs, memory)
            if len(self._launches) > MOST_LAUNCHES:
                self._launches.popitem(last=False)
        else:
            self._launches.move_to_end(key)
        memory.counts["launches"] += 1
        return known(values)

    def _made(
        self, op: Any, types: Sequence[Any], attrs: tuple[Any, ...], memory: DevicePool
    ) -> Launch:
        compiled = _compiled(op, types, attrs, memory)
        if isinstance(compiled, Execution):
            explain = _host_launch(op, attrs, memory)
            return _launch_of(compiled, explain, several=op.outputs != 1)
        run = HostRun(op.name, str(memory.name), compiled, _types_text(types))
        by_host = _host_launch(op, attrs, memory)

        def launch(values: Sequence[DeviceArray | None]) -> Any:
            made = by_host(values)  # or it raises what is wrong, and nobody has computed anything
            if (run.operator, run.device) not in self.host_runs:
                self.host_runs[run.operator, run.device] = run
                _tell(run)
            return made

        return launch


RUNTIME = DeviceRunner()


def host_operators() -> list[HostRun]:
    """Return the operators that the host has computed for devices so far, with reasons."""
    return list(RUNTIME.host_runs.values())


def _value(memory: DevicePool, x: Any) -> DeviceArray:
    if x.__class__ is not DeviceArray:
        return memory.copy_in(np.asarray(x))
    if x.device != memory.name:
        raise DeviceError(f"{x!r} is needed on {str(memory.name)!r}; move it there by x.to(...)")
    return x


def _compiled(
    op: Any, types: Sequence[Any], attrs: tuple[Any, ...], memory: DevicePool
) -> Execution | str:
    """Return an operator as a program of a device, or the reason why it has none."""
    graph = Graph()
    with graph:
        feeds = [None if kind is None else placeholder(*kind) for kind in types]
        try:
            out = graph.tracer.apply(op, tuple(feeds), attrs)
        except WeftError:
            return NOT_TRACED
    outputs = out if isinstance(out, tuple) else (out,)
    fed = [x.value for x in feeds if x is not None]
    program = Program(graph, [y.value for y in outputs], fed)
    if program.states or program.commits:
        return NOT_TRACED
    with without_user_rules():  # they are for programs; single operations stay as they are
        made = compile_program(program, {x: x.shape for x in fed}, device=str(memory.name))
    if made is None:
        return UNKNOWN_SIZE
    return LIBRARY if made.stats()["library"] else made


def _launch_of(execution: Execution, explain: Launch, *, several: bool) -> Launch:
    """Return a program as a launch; what it refuses, the host is asked to explain."""
    fetches, straight = execution.program.fetches, execution.straight

    def quick(values: Sequence[DeviceArray | None]) -> Any:
        assert straight is not None
        results = straight([x for x in values if x is not None])
        return tuple(results) if several else results[0]

    def launch(values: Sequence[DeviceArray | None]) -> Any:
        placed = execution.placed([x for x in values if x is not None])
        try:
            found = execution.compute(placed)
        except IndexOutOfRange:
            explain(values)  # raises what is wrong, with the value that is
            raise
        results = [found(view) for view in fetches]
        return tuple(results) if several else results[0]

    return launch if straight is None else quick


def _host_launch(op: Any, attrs: tuple[Any, ...], memory: DevicePool) -> Launch:
    """Return an operator as the host computes it, on copies."""

    def launch(values: Sequence[DeviceArray | None]) -> Any:
        arrays = [None if x is None else memory.copy_out(x) for x in values]
        with np.errstate(all="ignore"):
            made = op.kernel(*group(op, arrays), *attrs)
        memory.counts["host runs"] += 1
        if op.outputs == 1:
            return memory.copy_in(np.asarray(made))
        return tuple([memory.copy_in(np.asarray(y)) for y in made])

    return launch


def _types_text(types: Sequence[Any]) -> str:
    return ", ".join(type_text(TensorType(*kind)) for kind in types if kind is not None)


def _tell(run: HostRun) -> None:
    warnings.warn(
        f"{run.operator} of {run.types} on {run.device!r} is computed by the host, on copies: "
        f"{run.reason}",
        HostRunWarning,
        stacklevel=user_stacklevel(),
    )
