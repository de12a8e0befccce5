"""Run code with a number of threads, and compare what it gives with other numbers of them."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import weft as wf


@contextmanager
def num_threads(count):
    """Use `count` threads for as long as the context lasts."""
    before = wf.get_num_threads()
    wf.set_num_threads(count)
    try:
        yield
    finally:
        wf.set_num_threads(before)


def assert_same_bits_on_threads(graph, fetches, feeds, counts=(1, 2, 3)):
    """Assert that compiled code gives the same bits at each number of threads."""
    first, *others = [_run_on(count, graph, fetches, feeds) for count in counts]
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def _run_on(count, graph, fetches, feeds):
    with num_threads(count):
        session = wf.Session(graph, compiled=True)
        session.run(fetches, feeds)  # the first run starts the threads
        return session.run(fetches, feeds)
