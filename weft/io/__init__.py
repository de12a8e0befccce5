"""Files: tensors as safetensors, states as checkpoints that survive crashes; never a pickle.

Enter and leave: named tensors (`save`, `load`, `load_into`) and nested states (`save_state`,
`load_state`, `CheckpointManager`). Imports core and the public names of nn; the package
`safetensors` (`pip install "weft[io]"`) is loaded when a file is read or written. TensorFlow's
checkpoints are read by `TensorBundle`. `wire` reads protocol buffers and `crc32c` sums bytes up,
for every reader of such files.
"""

from . import crc32c, wire
from .bundle import TensorBundle, save_bundle
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
from .spans import ArrayPart
from .state import load_state, load_state_metadata, save_state
from .weights import load, load_into, load_metadata, save

__all__ = [
    "ArrayPart",
    "Checkpoint",
    "CheckpointError",
    "CheckpointManager",
    "CheckpointWarning",
    "FileFormatError",
    "FileMissingError",
    "ReadError",
    "SaveError",
    "TensorBundle",
    "UnsafeFileError",
    "crc32c",
    "load",
    "load_into",
    "load_metadata",
    "load_state",
    "load_state_metadata",
    "save",
    "save_bundle",
    "save_state",
    "wire",
]
