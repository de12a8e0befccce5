"""pycaffe's solvers: a class for each type, and `get_solver`, which takes the type of the file."""

from __future__ import annotations

from typing import Any, ClassVar

from .message import SolverParameter
from .solver import Solver
from .solver_log import SolverLog
from .text import read_message_file

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "get_solver",
]


class _TypedSolver(Solver):
    """A solver of one type, whatever its file says."""

    KIND: ClassVar[str]

    def __init__(self, param: Any, *, log: SolverLog | None = None) -> None:
        given = param if isinstance(param, SolverParameter) else None
        found = (given or read_message_file(param, SolverParameter)).copy()
        found.clear("solver_type")
        found.type = self.KIND
        super().__init__(found, log=log, path=None if given is not None else param)


class SGDSolver(_TypedSolver):
    """Descent with momentum."""

    KIND = "SGD"


class NesterovSolver(_TypedSolver):
    """Nesterov's accelerated descent."""

    KIND = "Nesterov"


class AdaGradSolver(_TypedSolver):
    """AdaGrad."""

    KIND = "AdaGrad"


class RMSPropSolver(_TypedSolver):
    """RMSProp."""

    KIND = "RMSProp"


class AdaDeltaSolver(_TypedSolver):
    """AdaDelta."""

    KIND = "AdaDelta"


class AdamSolver(_TypedSolver):
    """Adam."""

    KIND = "Adam"


def get_solver(param: Any, *, log: SolverLog | None = None) -> Solver:
    """Return the solver of a prototxt file, or of a SolverParameter."""
    return Solver(param, log=log)
