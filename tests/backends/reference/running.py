"""Run what the compiler made of a program by the reference back end."""

from __future__ import annotations

import numpy as np

from weft.backends.reference.kernels import run_kernels
from weft.backends.reference.memory import Memory


def run_reference(session, fetches, feeds):
    """Return the results of a session's program, its kernels run by NumPy."""
    call = session._call(session._prepared(fetches), feeds)
    arrays = call.arrays(feeds.values())
    analysis = call.executable(arrays)._analyse()
    memory = Memory()
    program, sources = analysis.program, analysis.sources
    for buffer in program.buffers:
        if buffer.kind == "feed":
            memory.put(buffer, arrays[buffer.slot])
        elif buffer.kind == "constant":
            memory.put(buffer, np.array(sources.constants[buffer.slot]))
        elif buffer.kind == "state":
            memory.put(buffer, np.asarray(sources.states[buffer.slot].read()))
    with np.errstate(all="ignore"):
        run_kernels(program.kernels, memory)
    return [memory.view(view).copy() for view in program.outputs]
