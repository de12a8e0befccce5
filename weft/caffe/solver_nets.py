"""The nets of a solver: one to train, and those to test, in their states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import CaffeError
from .message import TEST, TRAIN, Message, NetParameter
from .pycaffe import Net
from .text import read_message_file

_FILES, _NETS = ("net", "train_net"), ("net_param", "train_net_param")


def train_net(param: Message, folder: Path) -> Net:
    """Return the net that a solver trains; paths are tried from the working directory first."""
    given = [name for name in (*_FILES, *_NETS) if param.has(name)]
    if len(given) != 1:
        raise CaffeError(
            "SolverParameter must specify a train net using one of these fields: "
            f"{', '.join((*_FILES, *_NETS))}. Received: {', '.join(given) or 'none of them'}"
        )
    (name,) = given
    net = getattr(param, name)
    return _in_state(_read(net, folder) if name in _FILES else net, TRAIN, param.train_state)


def test_nets(param: Message, folder: Path, trained: Net) -> list[Net]:
    """Return the nets that a solver tests, with the blobs of the net that it trains."""
    protos = _test_protos(param, folder)
    states = list(param.test_state)
    if states and len(states) != len(protos):
        raise CaffeError(
            "test_state must be unspecified or specified once per test net. "
            f"Received: {len(states)} for {len(protos)}"
        )
    if protos and param.test_interval < 1:
        raise CaffeError(f"test_interval must be positive. Received: {param.test_interval}")
    found = []
    for number, proto in enumerate(protos):
        made = _in_state(proto, TEST, states[number] if states else None)
        made.share_with(trained)
        found.append(made)
    return found


def _test_protos(param: Message, folder: Path) -> list[Message]:
    named = [*param.test_net_param, *(_read(name, folder) for name in param.test_net)]
    generic: Any = None
    if param.has("net_param"):
        generic = param.net_param
    elif param.has("net"):
        generic = _read(param.net, folder)
    wanted = len(param.test_iter)
    if wanted < len(named) or (generic is None and wanted != len(named)):
        raise CaffeError(
            f"test_iter must be specified for each test network: there are {len(named)} "
            f"and {wanted} test_iter"
        )
    return [*named, *[generic] * (wanted - len(named))]


def _in_state(net: Message, phase: int, state: Message | None) -> Net:
    level, stages = (state.level, list(state.stage)) if state is not None else (0, [])
    return Net(net, phase, level=level, stages=stages)


def _read(name: str, folder: Path) -> Message:
    path = Path(name)
    beside = folder / path.name
    if not path.is_file() and beside.is_file():
        path = beside
    found: Message = read_message_file(path, NetParameter)
    return found
