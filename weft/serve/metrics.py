"""What a server counts, in the text format that Prometheus reads.

Each number is changed by one thread only, so there are no locks; a page may show a batch whose
requests it does not count yet.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_QUANTILES = (0.5, 0.9, 0.99)
_WINDOW = 4096  # requests that quantiles are of


class Counter:
    """A number that only grows."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, count: int = 1) -> None:
        """Count some more."""
        self.value += count


class Histogram:
    """How many observations lie below certain bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.count += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the cumulative counts."""
        below = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{bound}"}} {below}'
        yield f"{name}_sum {self.sum:.9g}"
        yield f"{name}_count {below}"


class Metrics:
    """All that a server counts."""

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}  # by status
        self.in_flight = 0
        self.latency = Histogram(_SECONDS)
        self._latest: deque[float] = deque(maxlen=_WINDOW)
        self.items = Counter()
        self.batches = Counter()
        self.split_batches = Counter()
        self.batch_size = Histogram(_SIZES)
        self.compute = Histogram(_SECONDS)
        self.queued = Histogram(_SECONDS)

    def observe_request(self, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[status] = self.requests.get(status, 0) + 1
        self.latency.observe(seconds)
        self._latest.append(seconds)

    def observe_batch(self, size: int, seconds: float, waited: Sequence[float]) -> None:
        """Count a batch that was run, and how long each of its jobs had waited."""
        self.batches.add()
        self.items.add(size)
        self.batch_size.observe(size)
        self.compute.observe(seconds)
        for wait in waited:
            self.queued.observe(wait)

    def quantiles(self) -> dict[float, float]:
        """Return quantiles of the latest latencies; nothing if there are none."""
        ordered = sorted(self._latest)
        if not ordered:
            return {}
        last = len(ordered) - 1
        return {q: ordered[min(last, int(q * len(ordered)))] for q in _QUANTILES}

    def text(self, gauges: Sequence[tuple[str, str, float]] = ()) -> str:
        """Return the page; gauges are (name, what it is, value)."""
        return "\n".join([*self._lines(), *_gauge_lines(gauges), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("requests_total", "counter", "requests for predictions, by status")
        for status, count in sorted(dict(self.requests).items()):
            yield f'weft_requests_total{{status="{status}"}} {count}'
        counters = (
            ("items_total", "items that the model was run on", self.items),
            ("batches_total", "batches that the model was run on", self.batches),
            ("split_batches_total", "batches that failed and ran one by one", self.split_batches),
        )
        for name, about, counter in counters:
            yield from _head(name, "counter", about)
            yield f"weft_{name} {counter.value}"
        yield from _head("process_cpu_seconds_total", "counter", "time of processors", prefix="")
        yield f"process_cpu_seconds_total {time.process_time():.6g}"
        yield from self._histogram("batch_size", "items of a batch", self.batch_size)
        yield from self._histogram("batch_seconds", "time to run a batch", self.compute)
        yield from self._histogram("queue_seconds", "time in the queue", self.queued)
        yield from self._histogram("request_seconds", "time to answer", self.latency)
        yield from _head("latency_seconds", "summary", f"the same, of the last {_WINDOW} requests")
        for quantile, seconds in self.quantiles().items():
            yield f'weft_latency_seconds{{quantile="{quantile}"}} {seconds:.6g}'
        yield f"weft_latency_seconds_sum {self.latency.sum:.9g}"
        yield f"weft_latency_seconds_count {self.latency.count}"

    def _histogram(self, name: str, about: str, histogram: Histogram) -> Iterator[str]:
        yield from _head(name, "histogram", about)
        yield from histogram.lines(f"weft_{name}")


def _gauge_lines(gauges: Sequence[tuple[str, str, float]]) -> Iterator[str]:
    for name, about, value in gauges:
        yield from _head(name, "gauge", about)
        yield f"weft_{name} {value:g}"


def _head(name: str, kind: str, about: str, prefix: str = "weft_") -> Iterator[str]:
    yield f"# HELP {prefix}{name} {about}"
    yield f"# TYPE {prefix}{name} {kind}"
