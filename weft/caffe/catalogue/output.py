"""Layers that write what they are given to files."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...graph.debug.nodes import callback
from ..inputs.hdf5 import Hdf5Output
from .base import Layer, Shape, layer


@layer("HDF5Output")
class HDF5Output(Layer):
    """Add data and labels to the datasets of a file, each time that they are computed."""

    bottoms = (2, 2)
    tops = (0, 0)
    differentiable = ()

    def setup(self, shapes: list[Shape]) -> None:
        """Check the file's name; it is opened when there is something to write."""
        self.check(self.param.hdf5_output_param.has("file_name"), "file_name must be specified")
        self.check(
            shapes[0][:1] == shapes[1][:1],
            f"data and label should have the same batch size: {shapes}",
        )
        self.__dict__["output"] = None

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return nothing."""
        return []

    def forward(self, data: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        """Write; return nothing."""
        callback(self.write, data, label)
        return ()

    def write(self, data: Any, label: Any) -> None:
        """Add rows to the file."""
        if self.__dict__["output"] is None:
            self.__dict__["output"] = Hdf5Output(self.param.hdf5_output_param.file_name)
        self.__dict__["output"].write(data, label)
        self.__dict__["output"].flush()
