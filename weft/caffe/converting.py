"""Converting nets: into Weft's saved graphs and safetensors, and from old forms into today's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..core.errors import WeftError
from ..core.tensor import Tensor
from ..io import SaveError, load, load_metadata, save
from ..io.graphs import save_graph
from .draw import net_graph
from .errors import CaffeError
from .loading import load as load_net
from .loading import read_net
from .message import TEST, Message, NetParameter
from .network import Network
from .printing import print_message
from .text import read_message
from .upgrade import upgraded
from .weights import net_proto, save_weights

KEY = "caffe_net"  # of the metadata of safetensors files
PHASE = "caffe_phase"


class Converted(NamedTuple):
    """What was written."""

    path: Path
    inputs: dict[str, tuple[int, ...]]
    outputs: list[str]


def convert(
    prototxt: str | Path, weights: str | Path | None, out: str | Path, phase: int | str = TEST
) -> Converted:
    """Write a net, with its weights, in the form that the name of the result asks for.

    .weft          a graph, for `wf.Session`, `weft serve` and `weft graph`
    .safetensors   tensors by name with the net beside them, for `load_converted`
    .prototxt      the net alone, in today's form
    .caffemodel, .h5   net and weights, in today's form
    """
    target = Path(out)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise CaffeError(
            f"weft caffe convert writes {', '.join(WRITERS)}. Received: {str(out)!r:.200}"
        )
    if target.suffix.lower() == ".prototxt":
        return _write_text(upgraded(read_net(prototxt), str(prototxt)), target)
    net = load_net(prototxt, weights, phase)
    return writer(net, target)


def load_converted(path: str | Path) -> Network:
    """Return the net that `convert` wrote as safetensors."""
    described = load_metadata(path)
    if KEY not in described:
        raise CaffeError(f"{path}: holds no net that `weft caffe convert` wrote")
    proto = read_message(str(described[KEY]), NetParameter, name=str(path))
    net = Network(proto, int(described.get(PHASE, TEST)), name=str(path))
    net.load_state_dict(load(path))
    return net


def _write_text(proto: Message, path: Path) -> Converted:
    try:
        path.write_text(print_message(proto), encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise SaveError(f"{path}: cannot be written ({error.strerror})") from None
    return Converted(path, {}, [])


def _write_graph(net: Network, path: Path) -> Converted:
    graph, outputs = net_graph(net)
    try:
        save_graph(graph, path)
    except WeftError as error:
        raise CaffeError(f"net {net.net_name!r} cannot be saved as a graph: {error}") from error
    return _converted(net, path)._replace(outputs=outputs)


def _write_safetensors(net: Network, path: Path) -> Converted:
    proto = net_proto(net)
    for layer in proto.layer:
        layer.clear("blobs")
    named: dict[str, Tensor] = net.state_dict()
    save(path, named, {KEY: print_message(proto), PHASE: net.phase})
    return _converted(net, path)


def _write_weights(net: Network, path: Path) -> Converted:
    save_weights(net, path)
    return _converted(net, path)


def _converted(net: Network, path: Path) -> Converted:
    inputs = {name: net.shapes[name] for name in net.input_names}
    return Converted(path, inputs, list(net.output_names))


WRITERS: dict[str, Callable[[Network, Path], Converted]] = {
    ".weft": _write_graph,
    ".safetensors": _write_safetensors,
    ".caffemodel": _write_weights,
    ".h5": _write_weights,
    ".prototxt": _write_weights,  # by itself: it needs no net that runs
}
