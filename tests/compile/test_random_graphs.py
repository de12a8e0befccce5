"""Random graphs of all sorts of operations: compiled = reference = interpreted, on all threads.

A failing example is a seed and a number of steps; fewer steps of one seed are the beginning of the
same graph, so that Hypothesis shrinks it to the step that goes wrong.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as wf
from tests.compile.agreement import PROGRAM, assert_agree, run_reference
from tests.programs.mixed import MixedProgram
from tests.threads import num_threads

CI, LONG = 60, 2500


def graphs(most_steps):
    """Run a test on as many graphs as the profile wants: more in long mode."""
    count = LONG if settings.default.max_examples > 1000 else CI
    drawn = given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, most_steps))
    return lambda test: settings(max_examples=count, deadline=None)(drawn(test))


@graphs(most_steps=16)
def test_compiled_equals_interpreted(seed, steps):
    program = MixedProgram(seed, steps)
    expected = wf.Session(program.graph, compiled=False).run(program.fetches, program.feeds)
    results = [run_on(threads, program) for threads in (1, 2)]
    meant = run_reference(program.graph, program.fetches, program.feeds)
    for kept, a, b, n, wanted in zip(program.fetched, *results, meant, expected, strict=True):
        tolerance = None if kept.exact else PROGRAM
        assert_agree(a, wanted, tolerance, repr(kept.symbol))
        assert_agree(n, wanted, tolerance, f"{kept.symbol!r} by the reference")
        np.testing.assert_array_equal(a, b, err_msg=f"{kept.symbol!r} on two threads")


@graphs(most_steps=12)
def test_states_change_alike(seed, steps):
    """Two runs, each of which gives states new values from their old ones and from others."""
    results = []
    for device in (None, "cpu", "reference"):
        program = MixedProgram(seed, steps, states=True)
        fetches = [program.fetches, program.updates]
        if device is not None:
            arrays = list(program.feeds.values())
            executable = wf.Session(program.graph, device=device).executable(fetches, program.feeds)
            fetched = [executable.run(arrays)[: len(program.fetched)] for _ in range(2)]
        else:
            session = wf.Session(program.graph, compiled=False)
            fetched = [session.run(fetches, program.feeds)[0] for _ in range(2)]
        results.append((fetched, [state.numpy() for state in program.states]))
    (expected, wanted), *others = results
    for found, states in others:
        for kept, *pairs in zip(program.fetched, *expected, *found, strict=True):
            for a, b in zip(pairs[2:], pairs[:2], strict=True):
                assert_agree(a, b, None if kept.exact else PROGRAM, repr(kept.symbol))
        for a, b in zip(states, wanted, strict=True):
            assert_agree(a, b, None)


def run_on(threads, program):
    """Return the results of code that was made for, and runs on, a number of threads."""
    with num_threads(threads):
        # Not by Session.run, which would quietly interpret what cannot be compiled.
        executable = wf.Session(program.graph).executable(program.fetches, program.feeds)
        executable.run(list(program.feeds.values()))  # the first run starts the threads
        return executable.run(list(program.feeds.values()))
