"""What brings data into nets: databases, HDF5 files, images, windows, arrays.

Enter: a LayerParameter and its phase. Leaves: an `InputSource` of batches. lmdb, plyvel, h5py and
pillow are loaded by the functions that need them.
"""

from __future__ import annotations

from .opening import INPUTS, open_input

__all__ = ["INPUTS", "open_input"]
