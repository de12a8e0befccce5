"""pycaffe's Net: blobs by name, with data and diff, run forward and backward layer by layer.

Each layer's results stay on the tape of that layer alone, so that parts of a net can be run in
either direction, and every blob has a diff. `Network` is the same net as one graph.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..autodiff import gradients
from ..core.modes import enable_grad
from ..core.tensor import Tensor, wrap
from .building import Step
from .catalogue import Input, Sourced
from .errors import CaffeError
from .loading import read_net
from .message import Message
from .needs import backward_needs
from .net_blobs import Blob, ParameterBlob
from .network import Network
from .weights import copy_weights, load_weights, save_weights

Array: TypeAlias = NDArray[Any]


class Net:
    """A net as pycaffe has it.

    >>> from weft.caffe.message import NetParameter
    >>> from weft.caffe.text import read_message
    >>> text = 'input: "x" input_shape { dim: 2 } layer { type: "ReLU" bottom: "x" top: "y" }'
    >>> net = Net(read_message(text, NetParameter), 1)
    >>> net.blobs["x"].data[...] = [-1, 2]
    >>> net.forward()["y"]
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        network_file: Any,
        phase_or_weights: Any = 1,
        phase: int | None = None,
        *,
        weights: str | Path | None = None,
        level: int = 0,
        stages: Sequence[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        if phase is not None:
            weights, chosen = phase_or_weights, phase
        else:
            chosen = phase_or_weights
        proto = read_net(network_file)
        self.network = Network(proto, chosen, level, stages or (), inputs=inputs)
        self.force_backward = bool(proto.force_backward)
        self._needs = backward_needs(self.network, self.force_backward)
        self.blobs: OrderedDict[str, Blob] = OrderedDict(
            (name, Blob(shape)) for name, shape in self.network.shapes.items()
        )
        self.params = _parameter_blobs(self.network)
        self._tapes: dict[int, tuple[list[Tensor], tuple[Tensor, ...]]] = {}
        if weights is not None:
            self.copy_from(weights)

    # -- what there is ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the net."""
        return self.network.net_name

    @property
    def inputs(self) -> list[str]:
        """Blobs that the program fills."""
        return [top for step in self._steps if isinstance(step.layer, Input) for top in step.tops]

    @property
    def outputs(self) -> list[str]:
        """Blobs that no layer reads."""
        return list(self.network.output_names)

    @property
    def layers(self) -> list[Any]:
        """The layers, each with its `type` and `blobs`."""
        return [_LayerView(self, step) for step in self._steps]

    @property
    def layer_dict(self) -> OrderedDict[str, Any]:
        """The layers by name."""
        return OrderedDict(zip(self._layer_names, self.layers, strict=True))

    @property
    def top_names(self) -> OrderedDict[str, list[str]]:
        """The names of the tops of each layer."""
        return OrderedDict((step.name, list(step.tops)) for step in self._steps)

    @property
    def bottom_names(self) -> OrderedDict[str, list[str]]:
        """The names of the bottoms of each layer."""
        return OrderedDict((step.name, list(step.bottoms)) for step in self._steps)

    @property
    def blob_loss_weights(self) -> OrderedDict[str, float]:
        """How much each blob counts in the loss."""
        weights = dict.fromkeys(self.blobs, 0.0)
        for step in self._steps:
            weights.update(zip(step.tops, step.loss_weights, strict=True))
        return OrderedDict(weights)

    @property
    def _steps(self) -> list[Step]:
        return self.network.steps

    @property
    def _layer_names(self) -> list[str]:
        return [step.name for step in self._steps]

    # -- running ---------------------------------------------------------------------------------

    def forward(
        self,
        blobs: Iterable[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **inputs: Any,
    ) -> dict[str, Array]:
        """Run layers from `start` to `end` (all); return outputs and the blobs that are named."""
        first = 0 if start is None else self._index(start)
        last = len(self._steps) - 1 if end is None else self._index(end)
        wanted = set(self._steps[last].tops) if end is not None else set(self.outputs)
        self._take(inputs)
        self._forward(first, last)
        return {name: self._blob(name).data for name in {*wanted, *(blobs or ())}}

    def backward(
        self,
        diffs: Iterable[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **output_diffs: Any,
    ) -> dict[str, Array]:
        """Run layers backwards from `start` (the last) to `end`; return diffs of inputs."""
        first = len(self._steps) - 1 if start is None else self._index(start)
        last = 0 if end is None else self._index(end)
        wanted = set(self._steps[last].bottoms) if end is not None else set(self.inputs)
        for name, value in output_diffs.items():
            if name not in self.outputs and start is None:
                raise CaffeError("Top diff arguments do not match net outputs: " + name)
            _put(self._blob(name).diff, value, f"diff of {name}")
        self._backward(first, last)
        return {name: self._blob(name).diff for name in {*wanted, *(diffs or ())}}

    def forward_all(self, blobs: Iterable[str] | None = None, **inputs: Any) -> dict[str, Array]:
        """Run forward over inputs of any length, in batches; return outputs of that length."""
        return self._whole(inputs, lambda batch: self.forward(blobs=blobs, **batch))

    def forward_backward_all(
        self,
        blobs: Iterable[str] | None = None,
        diffs: Iterable[str] | None = None,
        **inputs: Any,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Run both ways over inputs of any length, in batches."""
        both = self._whole(inputs, lambda batch: self._both(blobs, diffs, batch))
        outputs = {name[1:]: value for name, value in both.items() if name[0] == "o"}
        return outputs, {name[1:]: value for name, value in both.items() if name[0] == "d"}

    def _both(self, blobs: Any, diffs: Any, batch: dict[str, Any]) -> dict[str, Array]:
        found = {f"o{name}": value for name, value in self.forward(blobs=blobs, **batch).items()}
        return found | {f"d{name}": value for name, value in self.backward(diffs=diffs).items()}

    def _whole(self, inputs: Mapping[str, Any], run: Any) -> dict[str, Array]:
        if {*inputs} != {*self.inputs}:
            raise CaffeError(
                f"Input blob arguments do not match net inputs: {sorted(inputs)} against "
                f"{self.inputs}"
            )
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        count = len(next(iter(arrays.values())))
        size = self.blobs[self.inputs[0]].shape[0]
        parts: dict[str, list[Array]] = {}
        for start in range(0, count, size):
            batch = {name: _padded(a[start : start + size], size) for name, a in arrays.items()}
            for name, value in run(batch).items():
                parts.setdefault(name, []).append(np.array(value))
        return {name: np.concatenate(found)[:count] for name, found in parts.items()}

    def _forward(self, first: int, last: int) -> float:
        """Run layers by their numbers; return the loss of those."""
        loss = 0.0
        for index in range(first, last + 1):
            step = self._steps[index]
            if step.is_source:
                self._fill(step)
            else:
                self._run(index, step)
            for name, weight in zip(step.tops, step.loss_weights, strict=True):
                if weight:
                    loss += weight * float(self.blobs[name].data.sum())
        return loss

    def _run(self, index: int, step: Step) -> None:
        bottoms = [self.blobs[name].tensor() for name in step.bottoms]
        with enable_grad():
            for x, needed in zip(bottoms, self._needs.bottoms[index], strict=True):
                x.requires_grad_(needed)
            tops = step.run(bottoms)
        self._tapes[index] = bottoms, tops
        for name, value in zip(step.tops, tops, strict=True):
            self.blobs[name].put(value)

    def _fill(self, step: Step) -> None:
        """Take the next batch of a data layer; tops of Input layers are the program's."""
        if isinstance(step.layer, Input):
            return
        source = step.layer.source if isinstance(step.layer, Sourced) else step.layer
        for name, value in zip(step.tops, source.next(), strict=False):
            self.blobs[name].put(wrap(np.array(value, np.float32)))

    def _backward(self, first: int, last: int) -> None:
        for index in range(first, last - 1, -1):
            if self._needs.layers[index]:
                self._pull_back(index, self._steps[index])

    def _pull_back(self, index: int, step: Step) -> None:
        if index not in self._tapes:
            raise CaffeError(f"backward through layer {step.name!r} needs a forward pass first")
        bottoms, tops = self._tapes[index]
        self._seed(step)
        blobs = [b for b in self.params.get(step.name, ()) if b.tensor_.requires_grad]
        leaves = [x for x in bottoms if x.requires_grad]
        wanted = [*leaves, *(b.tensor_ for b in blobs)]
        outs = [(t, n) for t, n in zip(tops, step.tops, strict=True) if t.requires_grad]
        if not outs or not wanted:
            return
        seeds = [wrap(np.array(self.blobs[n].diff, t.dtype)) for t, n in outs]
        grads = iter(gradients([t for t, _ in outs], wanted, seeds, retain_graph=True))
        for name, x in zip(step.bottoms, bottoms, strict=True):
            if x.requires_grad:
                self.blobs[name].put_diff(next(grads))
        for blob, grad in zip(blobs, grads, strict=True):
            if grad is not None:
                blob.diff[...] += grad.numpy()

    def _seed(self, step: Step) -> None:
        """Put the weights of losses into the diffs of their blobs, as Caffe keeps them there."""
        for name, weight in zip(step.tops, step.loss_weights, strict=True):
            if weight:
                self.blobs[name].diff[...] = weight

    # -- blobs and weights -----------------------------------------------------------------------

    def _take(self, inputs: Mapping[str, Any]) -> None:
        if inputs and {*inputs} != {*self.inputs}:
            raise CaffeError(
                f"Input blob arguments do not match net inputs: {sorted(inputs)} against "
                f"{self.inputs}"
            )
        for name, value in inputs.items():
            if np.shape(value)[:1] != self.blobs[name].shape[:1]:
                raise CaffeError(
                    f"Input is not batch sized: {name} is given {np.shape(value)}, its blob is "
                    f"{self.blobs[name].shape}"
                )
            _put(self.blobs[name].data, value, name)

    def reshape(self) -> None:
        """Follow the shapes that input blobs were given: Net.blobs["data"].reshape(...)."""
        shapes = {name: blob.shape for name, blob in self.blobs.items()}
        for step in self._steps:
            if step.is_source:
                continue
            bottoms = [shapes[name] for name in step.bottoms]
            found = step.layer.shapes_for(bottoms)
            for name, shape in zip(step.tops, found, strict=True):
                shapes[name] = shape
                self.blobs[name].reshape(*shape)

    def copy_from(self, weights: str | Path | Message) -> None:
        """Take the weights of layers of equal names."""
        if isinstance(weights, Message):
            copy_weights(self.network, weights)
        else:
            load_weights(self.network, weights)

    def share_with(self, other: Net) -> None:
        """Let layers of equal names have the weights of another net: what changes, changes both."""
        theirs = {step.name: step for step in other._steps}
        for step in self._steps:
            if step.name not in theirs:
                continue
            source = theirs[step.name].layer
            for mine, its in zip(step.layer.blob_specs, source.blob_specs, strict=True):
                step.layer.check(
                    mine.shape == its.shape, f"Cannot share: {mine.shape}, {its.shape}"
                )
                setattr(step.layer, mine.name, source.__dict__[its.name])
        self.params = _parameter_blobs(self.network)

    def save(self, path: str | Path) -> None:
        """Write the net with its weights as a .caffemodel (.h5: HDF5)."""
        save_weights(self.network, path)

    save_hdf5 = save

    def load_hdf5(self, path: str | Path) -> None:
        """Take weights from an HDF5 file."""
        load_weights(self.network, path)

    def clear_param_diffs(self) -> None:
        """Set the diffs of all weights to 0."""
        for blobs in self.params.values():
            for blob in blobs:
                blob.diff[...] = 0

    def set_input_arrays(self, data: Any, labels: Any) -> None:
        """Give arrays to the first layer, of type MemoryData."""
        source: Any = self._steps[0].layer.__dict__.get("source")
        if not hasattr(source, "set_arrays"):
            raise CaffeError("set_input_arrays may only be called if the first layer is MemoryData")
        source.set_arrays(data, labels)

    def _blob(self, name: str) -> Blob:
        if name not in self.blobs:
            raise CaffeError(f"Unknown blob {name!r}; the net has {', '.join(self.blobs):.300}")
        return self.blobs[name]

    def _index(self, name: str) -> int:
        if name not in self._layer_names:
            raise CaffeError(f"Unknown layer {name!r}; the net has {self._layer_names}")
        return self._layer_names.index(name)


class _LayerView:
    """What pycaffe shows of a layer."""

    def __init__(self, net: Net, step: Step) -> None:
        self.type: str = step.layer.param.type
        self.blobs = list(net.params.get(step.name, ()))


def _parameter_blobs(network: Network) -> OrderedDict[str, list[ParameterBlob]]:
    made: dict[int, ParameterBlob] = {}
    found: OrderedDict[str, list[ParameterBlob]] = OrderedDict()
    for step in network.steps:
        tensors = network.layer_blobs(step.name)
        if tensors:
            found[step.name] = [made.setdefault(id(t), ParameterBlob(t)) for t in tensors]
    return found


def _put(target: Array, value: Any, what: str) -> None:
    try:
        target[...] = value
    except ValueError:
        raise CaffeError(
            f"{what}: takes an array of shape {target.shape}. Received: {np.shape(value)}"
        ) from None


def _padded(part: Array, size: int) -> Array:
    if len(part) == size:
        return part
    return np.concatenate([part, np.zeros((size - len(part), *part.shape[1:]), part.dtype)])
