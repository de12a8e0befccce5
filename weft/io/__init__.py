"""Files: tensors as safetensors, states as checkpoints that survive crashes; never a pickle.

Enter and leave: named tensors (`save`, `load`, `load_into`) and nested states (`save_state`,
`load_state`, `CheckpointManager`). Imports core and the public names of nn; the package
`safetensors` (`pip install "weft[io]"`) is loaded when a file is read or written. `wire` reads
protocol buffers, for every reader of them.
"""

from . import wire
from .errors import (
    CheckpointError,
    CheckpointWarning,
    FileFormatError,
    FileMissingError,
    ReadError,
    SaveError,
    UnsafeFileError,
)
from .manager import Checkpoint, CheckpointManager
from .state import load_state, load_state_metadata, save_state
from .weights import load, load_into, load_metadata, save

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointManager",
    "CheckpointWarning",
    "FileFormatError",
    "FileMissingError",
    "ReadError",
    "SaveError",
    "UnsafeFileError",
    "load",
    "load_into",
    "load_metadata",
    "load_state",
    "load_state_metadata",
    "save",
    "save_state",
    "wire",
]
