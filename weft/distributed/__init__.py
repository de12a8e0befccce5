"""Programs of several processes: `wf.distributed`.

Tensors of this process enter, what was made of those of all processes leaves: by operators
(weft/ops/collective) whose kernels use the connections made here. Stands below training, above
capture, so that captured steps contain their communication. Nothing here imports MPI before `init`
finds that there are several processes.
"""

from .asynchronous.local import LocalUpdates
from .asynchronous.training import AsyncOptimizer
from .batch_norm import SyncBatchNorm, synchronize_batch_norm
from .checkpoints import (
    DistributedCheckpointManager,
    consolidate,
    load_checkpoint,
    save_checkpoint,
)
from .collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    recv,
    reduce,
    reduce_scatter,
    send,
    shift,
    start_all_reduce,
)
from .errors import DistributedError, MismatchError
from .faults import LostRankError, run_resilient, shrink
from .launcher.launch import restarts
from .parallel import Parallel, parallel
from .pipeline import Pipeline
from .placement import join_parts, local_part, place_parameters, shard
from .sharded import (
    clip_grad_norm_,
    full_state_dict,
    load_full_state_dict,
    memory_of,
    shard_parameters,
)
from .sharded_state import load_sharded_state, save_sharded_state
from .simulation.calibration import measure_network
from .simulation.network import Network
from .simulation.predictions import Simulation, simulate
from .tensor_parallel import (
    ColumnParallelLinear,
    ParallelAttention,
    ParallelDropout,
    ParallelEmbedding,
    RowParallelLinear,
    tensor_parallel,
)
from .world import ProcessGroup, init, is_initialized, launch, new_group, rank, size, world

__all__ = [
    "AsyncOptimizer",
    "ColumnParallelLinear",
    "DistributedCheckpointManager",
    "DistributedError",
    "LocalUpdates",
    "LostRankError",
    "MismatchError",
    "Network",
    "Parallel",
    "ParallelAttention",
    "ParallelDropout",
    "ParallelEmbedding",
    "Pipeline",
    "ProcessGroup",
    "RowParallelLinear",
    "Simulation",
    "SyncBatchNorm",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "clip_grad_norm_",
    "consolidate",
    "full_state_dict",
    "init",
    "is_initialized",
    "join_parts",
    "launch",
    "load_checkpoint",
    "load_full_state_dict",
    "load_sharded_state",
    "local_part",
    "measure_network",
    "memory_of",
    "new_group",
    "parallel",
    "place_parameters",
    "rank",
    "recv",
    "reduce",
    "reduce_scatter",
    "restarts",
    "run_resilient",
    "save_checkpoint",
    "save_sharded_state",
    "send",
    "shard",
    "shard_parameters",
    "shift",
    "shrink",
    "simulate",
    "size",
    "start_all_reduce",
    "synchronize_batch_norm",
    "tensor_parallel",
    "world",
]
