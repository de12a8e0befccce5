"""`weft train solver.prototxt`: what `caffe train` does."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..caffe.message import SolverParameter
from ..caffe.solver import Solver
from ..caffe.solver_signals import EFFECTS
from ..caffe.text import read_message, read_message_file
from .errors import UsageError

SUFFIX = ".prototxt"
# Options of `weft train` that only solvers have, and those that only TOML files have.
_OF_SOLVERS = ("snapshot", "weights", "iterations", "gpu", "sigint_effect", "sighup_effect")
_OF_RUNS = {"out": "snapshot_prefix in the solver", "resume": "--snapshot X.solverstate"}


def add_solver_options(made: Any, positive: Any) -> None:
    """Add the options of `caffe train` to `weft train`."""
    group = made.add_argument_group("solvers of Caffe (.prototxt)")
    group.add_argument("--snapshot", metavar="FILE", help="go on from a .solverstate file")
    group.add_argument(
        "--weights", metavar="FILE[,FILE]", help="begin with the weights of .caffemodel files"
    )
    group.add_argument("--iterations", type=positive, metavar="N", help="in place of max_iter")
    group.add_argument("--gpu", metavar="ID", help="understood, and without effect")
    for signal, usual in (("sigint", "stop"), ("sighup", "snapshot")):
        group.add_argument(
            f"--{signal}-effect",
            f"--{signal}_effect",
            choices=EFFECTS,
            help=f"what {signal.upper()} does (default: {usual})",
        )


def is_solver(config: str) -> bool:
    """Tell whether a file is a solver of Caffe's, by its name."""
    return Path(config).suffix == SUFFIX


def refuse_solver_options(options: Namespace) -> None:
    """Refuse options that a TOML file has no use for."""
    for name in _OF_SOLVERS:
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for solvers of Caffe ({SUFFIX}); "
                f"{options.config} is none"
            )


def train_solver(options: Namespace) -> int:
    """Train as a solver says."""
    for name, instead in _OF_RUNS.items():
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is for TOML files; a solver of Caffe takes {instead}")
    if options.snapshot and options.weights:
        raise UsageError(
            "Give a snapshot to resume training or weights to finetune but not both. "
            f"Received: --snapshot {options.snapshot} --weights {options.weights}"
        )
    solver = Solver(_parameter(options), path=options.config)
    _note_devices(options, solver)
    if options.dry_run:
        print(f"the solver {options.config} is good; nothing was trained (--dry-run)")
        return 0
    for name in options.weights.split(",") if options.weights else ():
        solver.copy_from(name)
    effects = {
        "SIGINT": options.sigint_effect or "stop",
        "SIGHUP": options.sighup_effect or "snapshot",
    }
    solver.solve(options.snapshot, effects=effects)
    return 0


def _parameter(options: Namespace) -> Any:
    """Return the solver of a file, with the changes of --set and --iterations."""
    param = read_message_file(options.config, SolverParameter)
    for setting in _settings(options.set):
        changed = read_message(setting, SolverParameter, name="--set")
        for field, _ in changed.set_fields():
            param.clear(field.name)
        param.merge(changed)
    if options.iterations is not None:
        param.max_iter = options.iterations
    return param


def _settings(given: Sequence[str]) -> list[str]:
    found = []
    for item in given:
        name, mark, value = item.partition("=")
        if not mark or name == "compile":
            raise UsageError(f"--set of a solver takes a field and its value. Received: {item}")
        found.append(f"{name}: {value}")
    return found


def _note_devices(options: Namespace, solver: Solver) -> None:
    if options.gpu is not None:
        print(
            f"weft: note: --gpu {options.gpu} has no effect; Weft trains on this processor",
            file=sys.stderr,
        )
    elif solver.param.which("solver_mode") == "GPU" and solver.param.has("solver_mode"):
        solver.log("solver_mode: GPU has no effect; Weft trains on this processor")
