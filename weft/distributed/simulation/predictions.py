"""`wf.distributed.simulate`: steps on numbers of ranks, what holds them up, what to divide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...core.errors import ArgumentError
from ..launcher.launch import parse_size
from .measured import MeasuredStep, measure
from .network import Network, as_network
from .timeline import MIB, StepTime, step_time

STAGES: Final = (0, 1, 2, 3)
_HIDDEN: Final = 0.95  # from this efficiency on nothing but computing holds a step up


@dataclass(frozen=True)
class Prediction:
    """A step on so many ranks.

    seconds      of a step
    efficiency   the time of one rank, divided by it: every rank computes its own batch
    memory       bytes of a rank
    bottleneck   "computation", "bandwidth", "latency" or "memory"
    """

    ranks: int
    seconds: float
    efficiency: float
    exposed: float
    memory: int
    bottleneck: str


class Simulation:
    """What a step takes on numbers of ranks; prints as a table with advice.

    step          what was measured
    predictions   one for each number of ranks
    """

    def __init__(
        self,
        step: MeasuredStep,
        ranks: Sequence[int],
        network: Network,
        *,
        zero: int = 0,
        memory: int | None = None,
        bucket_mib: float = 25.0,
        first_bucket_mib: float = 1.0,
    ) -> None:
        self.step, self.network, self.zero, self.limit = step, network, zero, memory
        self._buckets = {"bucket": bucket_mib * MIB, "first_bucket": first_bucket_mib * MIB}
        self.predictions = [self._predict(n) for n in ranks]

    def _predict(self, ranks: int) -> Prediction:
        found = step_time(self.step, ranks, self.network, zero=self.zero, **self._buckets)
        memory = memory_of(self.step, ranks, self.zero)
        efficiency = self.step.alone / found.total
        held_up = _bottleneck(found, efficiency, self.limit is not None and memory > self.limit)
        return Prediction(ranks, found.total, efficiency, found.exposed, memory, held_up)

    def advice(self) -> str:
        """Return what to divide among ranks, and why."""
        most = max(p.ranks for p in self.predictions)
        step = self.step
        parts = {
            "what the optimizer keeps": step.slots,
            "gradients": step.gradient_bytes,
            "parameters": step.parameters,
            "activations": step.activations,
        }
        largest = max(parts, key=lambda name: parts[name])
        if self.limit is None:
            saved = memory_of(step, most, 0) - memory_of(step, most, 1)
            return (
                f"most memory is taken by {largest}; zero=1 would save {_mb(saved)} of each rank "
                f"at {most} ranks"
            )
        for stage in STAGES:
            if memory_of(step, most, stage) <= self.limit:
                if stage == 0:
                    return f"everything fits into {_mb(self.limit)}: nothing needs to be divided"
                return f"divide by zero={stage}: at {most} ranks a rank then fits {_mb(self.limit)}"
        if step.activations > self.limit:
            return "activations alone do not fit: use smaller batches, checkpoints or a pipeline"
        return "not even zero=3 fits: divide layers too (tensor parallel), or use a pipeline"

    def table(self) -> str:
        """Return the predictions as text."""
        rows = [("ranks", "step ms", "efficiency", "exposed ms", "memory MB", "held up by")]
        rows += [
            (
                str(p.ranks),
                f"{p.seconds * 1e3:.3f}",
                f"{p.efficiency:.1%}",
                f"{p.exposed * 1e3:.3f}",
                f"{p.memory / 1e6:.1f}",
                p.bottleneck,
            )
            for p in self.predictions
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )

    def __repr__(self) -> str:
        name = self.network.name or f"{self.network.bandwidth / 1.25e8:.3g} Gbit/s"
        return f"{self.table()}\n{name}, zero={self.zero}; {self.advice()}"


def simulate(
    step: Any,
    ranks: int | Sequence[int],
    *,
    inputs: Sequence[Any] = (),
    network: Any = "10gbit",
    zero: int = 0,
    memory: str | int | None = None,
    runs: int = 10,
    **buckets: Any,
) -> Simulation:
    """Predict the time and memory of a training step on many ranks.

    step      a training step under `wf.jit`, best of a model that is `parallel`, so that it does
              all that it does on many ranks; or what `measure` found of one
    ranks     how many, or several numbers
    inputs    what the step is called with: one rank's batch
    network   "1gbit", "10gbit", "25gbit", "100gbit", "400gbit", or a `Network`
    zero      which state is divided among ranks: 0 none, 1 what the optimizer keeps, 2 gradients
              too, 3 parameters too
    memory    what a rank has, as "8G", for the advice on what to divide
    buckets   `bucket_mib` and `first_bucket_mib`, as of `wf.distributed.parallel`

    Every rank computes what was measured here: more ranks make a larger global batch.

    >>> import weft as wf
    >>> from weft.distributed.simulation.measured import Gradient, MeasuredStep
    >>> known = MeasuredStep(0.1, 0.09, (Gradient("w", 4000000, 0.08, 0.01),), 4000000, 8000000, 0)
    >>> print(simulate(known, [1, 8], network="10gbit"))
    ranks  step ms  efficiency  exposed ms  memory MB  held up by
        1  100.000      100.0%       0.000       16.0  computation
        8  100.000      100.0%       0.000       16.0  computation
    10 Gbit/s, zero=0; most memory is taken by what the optimizer keeps; zero=1 would save 7.0 MB
    of each rank at 8 ranks
    """
    counts = [ranks] if isinstance(ranks, int) else list(ranks)
    if not counts or not all(type(n) is int and n > 0 for n in counts):
        raise ArgumentError(f"simulate: ranks must be numbers from 1 on. Received: {ranks!r:.60}")
    if zero not in STAGES:
        raise ArgumentError(f"simulate: zero must be one of {STAGES}. Received: {zero!r}")
    measured = step if isinstance(step, MeasuredStep) else measure(step, inputs, runs)
    limit = parse_size(memory) if isinstance(memory, str) else memory
    return Simulation(measured, counts, as_network(network), zero=zero, memory=limit, **buckets)


def memory_of(step: MeasuredStep, ranks: int, zero: int) -> int:
    """Return the bytes of a rank: parameters P, gradients G, slots S and activations A.

    P + G + S + A; with zero=1 S is divided by the ranks, with 2 G too, with 3 P too, of which the
    largest is there whole while it is used (Rajbhandari et al., 2020).
    """
    whole = step.parameters, step.gradient_bytes, step.slots
    divisors = [ranks if zero >= stage else 1 for stage in (3, 2, 1)]
    kept = sum(-(-size // divisor) for size, divisor in zip(whole, divisors, strict=True))
    used = max(g.size for g in step.gradients) if zero == 3 else 0
    return kept + used + step.activations


def _bottleneck(found: StepTime, efficiency: float, too_large: bool) -> str:
    if too_large:
        return "memory"
    if efficiency >= _HIDDEN:
        return "computation"
    return "latency" if found.waits > found.travel / 2 else "bandwidth"


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
