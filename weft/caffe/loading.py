"""`wf.caffe.load`: a net and its weights, from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .catalogue import Limits
from .errors import CaffeError
from .inputs_protocol import ArraySource, InputSource
from .message import TEST, Message, NetParameter
from .network import Network
from .text import read_message_file
from .weights import load_weights


def load(
    prototxt: str | Path | Message,
    weights: str | Path | None = None,
    phase: int | str = TEST,
    *,
    level: int = 0,
    stages: Sequence[str] = (),
    inputs: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Network:
    """Return a net of Caffe's as a module, with the weights of a .caffemodel if one is given.

    phase    "TRAIN" or "TEST": which layers it has, and how they behave
    inputs   data instead of what data layers name: for the name of such a layer its arrays, or an
             object with `shapes()` and `next()`
    limits   how large blobs may be, for files of strangers

    >>> from weft.caffe.message import NetParameter
    >>> net = load(NetParameter(input=["x"], input_shape=[{"dim": [2]}]))
    >>> net.input_names
    ['x']
    """
    net = read_net(prototxt)
    name = "net" if isinstance(prototxt, Message) else str(prototxt)
    sources = {layer: _as_source(layer, given) for layer, given in (inputs or {}).items()}
    made = Network(net, phase, level, stages, inputs=sources, limits=limits, name=name)
    if weights is not None:
        load_weights(made, weights)
    return made


def read_net(prototxt: str | Path | Message) -> Message:
    """Return the NetParameter of a file, or as it was given."""
    if isinstance(prototxt, NetParameter):
        return prototxt
    if not isinstance(prototxt, str | Path):
        raise CaffeError(f"load takes the path of a prototxt. Received: {prototxt!r:.80}")
    return read_message_file(prototxt, NetParameter)


def _as_source(layer: str, given: Any) -> InputSource:
    if isinstance(given, InputSource):
        return given
    arrays = given if isinstance(given, tuple | list) else (given,)
    if not arrays:
        raise CaffeError(f"inputs: layer {layer!r} is given no arrays")
    return ArraySource(*arrays)
