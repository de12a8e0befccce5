"""Programs of several processes: `wf.distributed`.

Tensors of this process enter, what was made of those of all processes leaves: by operators
(weft/ops/collective) whose kernels use the connections made here. Stands below training, above
capture, so that captured steps contain their communication. Nothing here imports MPI before `init`
finds that there are several processes.
"""

from .collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    reduce,
    reduce_scatter,
    shift,
    start_all_reduce,
)
from .errors import DistributedError, MismatchError
from .launcher.launch import restarts
from .world import ProcessGroup, init, is_initialized, launch, new_group, rank, size, world

__all__ = [
    "DistributedError",
    "MismatchError",
    "ProcessGroup",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "init",
    "is_initialized",
    "launch",
    "new_group",
    "rank",
    "reduce",
    "reduce_scatter",
    "restarts",
    "shift",
    "size",
    "start_all_reduce",
    "world",
]
