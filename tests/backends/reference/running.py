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
    fed = dict(zip(analysis.lowered.graph.inputs, arrays, strict=True))
    for buffer in analysis.lowered.buffers():
        if buffer.kind == "feed":
            memory.put(buffer, fed[buffer.source])
        elif buffer.kind == "constant":
            memory.put(buffer, np.array(buffer.source))
        elif buffer.kind == "state":
            memory.put(buffer, np.asarray(buffer.source.read()))
    with np.errstate(all="ignore"):
        run_kernels(analysis.lowered.kernels, memory)
    return [memory.view(view).copy() for view in analysis.outputs]
