"""Gradients on their way while the rest of backward is computed: one step on many ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .measured import Gradient, MeasuredStep, StepEvent
from .network import Network

MIB: Final = 2**20


@dataclass(frozen=True)
class StepTime:
    """A step on many ranks, in seconds.

    total      of the whole
    travel     of all exchanges
    exposed    in which nothing is computed, as gradients are still on their way
    waits      of the exchanges that are latency, not bytes
    """

    total: float
    travel: float
    exposed: float
    waits: float


def bucketed(
    gradients: Sequence[Gradient], limit: float, first: float
) -> list[tuple[Gradient, ...]]:
    """Return gradients by the buckets that they travel in: some, of at most so many bytes."""
    buckets: list[list[Gradient]] = [[]]
    for gradient in gradients:
        held = sum(g.size for g in buckets[-1])
        most = first if len(buckets) == 1 else limit
        if buckets[-1] and held + gradient.size > most:
            buckets.append([])
        buckets[-1].append(gradient)
    return [tuple(bucket) for bucket in buckets if bucket]


def step_time(
    step: MeasuredStep,
    ranks: int,
    network: Network,
    *,
    zero: int = 0,
    bucket: float = 25 * MIB,
    first_bucket: float = MIB,
) -> StepTime:
    """Return the time of a step on so many ranks, each of which computes what was measured."""
    if ranks == 1:
        return StepTime(step.alone, 0.0, 0.0, 0.0)
    if step.events and zero == 0:
        return replayed(step.events, ranks, network)
    buckets = bucketed(step.gradients, bucket, first_bucket)
    exchange = network.all_reduce if zero == 0 else network.reduce_scatter
    travel = [exchange(sum(g.size for g in b), ranks) for b in buckets]
    slowed = sum(travel) * network.occupied  # the processor is busy with bytes
    stretch = (step.computing + slowed) / step.computing if step.computing else 1.0
    free, end = 0.0, step.computing * stretch
    for bucket_of, seconds in zip(buckets, travel, strict=True):
        free = max(free, bucket_of[-1].ready * stretch) + seconds
        part = sum(g.update for g in bucket_of) / (ranks if zero else 1)
        end = max(end, free) + part
    gathers = _gathers(step, ranks, network, zero)
    rounds = 2 * len(buckets) if zero == 0 else len(buckets)
    updates = sum(g.update for g in step.gradients) / (ranks if zero else 1)
    total = end + gathers + max(0.0, step.seconds - step.computing - _updates(step))
    waits = network.waits(ranks) * rounds
    exposed = total - step.computing - updates
    return StepTime(total, sum(travel) + gathers, max(0.0, exposed), waits)


def replayed(events: Sequence[StepEvent], ranks: int, network: Network) -> StepTime:
    """Return the time of a step whose own exchanges, in its own order, take what a network takes.

    One exchange follows another, as the thread that does them does; while one is on its way, the
    processor computes slower by what the network takes of it.
    """
    now = free = travel = waits = exposed = 0.0
    done: dict[int, float] = {}
    for event in events:
        if event.exchange is None or event.how is not None:
            now = _computed(now, event.seconds, free, network.occupied)
        if event.exchange is not None and event.how is not None:
            took = network.exchange(event.how, event.size, ranks)
            free = done[event.exchange] = max(free, now) + took
            travel += took
            waits += network.latency_of(event.how, ranks)
        elif event.exchange is not None:
            waited = max(0.0, done[event.exchange] - now)
            exposed += waited
            now = _computed(now + waited, event.seconds, free, network.occupied)
    return StepTime(now, travel, exposed, waits)


def _computed(now: float, seconds: float, free: float, occupied: float) -> float:
    """Return when something that begins now is done; exchanges are on their way until `free`."""
    shared = max(0.0, free - now)
    if occupied >= 1.0:
        return now + shared + seconds
    slowed = seconds / (1.0 - occupied)
    return now + slowed if slowed <= shared else now + seconds + shared * occupied


def _updates(step: MeasuredStep) -> float:
    return sum(g.update for g in step.gradients)


def _gathers(step: MeasuredStep, ranks: int, network: Network, zero: int) -> float:
    """Return the seconds of fetching parameters: after the update; of ZeRO-3 also for backward."""
    times = {0: 0, 1: 1, 2: 1, 3: 2}[zero]
    return times * network.all_gather(step.parameters, ranks)
