"""Signals while native loops run: their handlers run, and what these raise ends the loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.runtime.linking import compile_module
from weft.backends.cpu.runtime.native.poll import poll_text
from weft.core.errors import is_from_signal

ROOT = Path(__file__).resolve().parents[4]
posix = pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")

# A loop of so many turns lasts for minutes; who cannot end it is killed before.
START = """
    import os, signal, sys, threading, time
    import numpy as np, weft as wf

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    FOR_EVER = 10**11
    CTRL_C = lambda: os.kill(os.getpid(), signal.SIGINT)

    def during(call, send=CTRL_C):
        'Return what a call raises when a signal comes while it runs.'
        threading.Timer(0.2, send).start()
        try:
            call()
        except BaseException as error:
            return type(error).__name__

    def count(n):
        return wf.while_loop(lambda i: i < n, lambda i: i + 1, wf.zeros_like(n))

    def slowly(n):
        'Each turn is a loop of its own, too short to ask about signals.'
        def turn(i):
            inner = wf.while_loop(lambda j: j < 3, lambda j: j + 1, wf.zeros_like(n))
            return i + inner - 2
        return wf.while_loop(lambda i: i < n, turn, wf.zeros_like(n))

    def number(n):
        return wf.tensor(n, dtype=wf.int64)
"""


def run(program, *, environment=(), timeout=120):
    """Run a program in a process of its own; return the lines that it prints."""
    result = subprocess.run(
        [sys.executable, "-c", dedent(START) + dedent(program)],
        env={**os.environ, **dict(environment)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout.splitlines()


@posix
def test_ctrl_c_ends_a_loop_of_a_jitted_function_and_leaves_states_alone():
    lines = run("""
        total, seen = wf.zeros(3), []

        @wf.jit
        def step(n):
            total.assign(total * 2 + 1)
            seen.append(1)
            return count(n)

        step(number(5))
        for turn in range(3):  # by a new program, the general way, and the quick one
            print(during(lambda: step(number(FOR_EVER)), CTRL_C))
            print(total.tolist(), len(seen), step(number(5)).item())
        first = wf.jit(count)
        print(during(lambda: first(number(FOR_EVER)), CTRL_C))
        print(first(number(5)).item())
    """)
    assert lines == [
        *("KeyboardInterrupt", "[1.0, 1.0, 1.0] 1 5"),
        *("KeyboardInterrupt", "[3.0, 3.0, 3.0] 2 5"),
        *("KeyboardInterrupt", "[7.0, 7.0, 7.0] 3 5"),
        *("KeyboardInterrupt", "5"),
    ]


@posix
def test_ctrl_c_ends_a_loop_and_leaves_states_alone():
    lines = run("""
        total, counted = wf.zeros(3), wf.zeros((), dtype=wf.int64)
        with wf.Graph() as graph:
            n = wf.placeholder((), wf.int64)
            updated = total.assign(total * 2 + 1)  # could be written before the loop runs
            fetches = [count(n), updated, counted.assign(counted + 1)]
        session = wf.Session(graph)
        for threads in (1, 2):
            wf.set_num_threads(threads)
            session.run(fetches, {n: 5})
            for _ in range(2):
                print(during(lambda: session.run(fetches, {n: FOR_EVER})), total.numpy(), counted)
            print(session.run(fetches, {n: 7})[0], total.numpy(), counted)
    """)
    assert lines == [
        *["KeyboardInterrupt [1. 1. 1.] tensor(1)"] * 2,
        "7 [3. 3. 3.] tensor(2)",
        *["KeyboardInterrupt [7. 7. 7.] tensor(3)"] * 2,
        "7 [15. 15. 15.] tensor(4)",
    ]


@posix
def test_every_kind_of_loop_ends():
    lines = run("""
        wf.set_num_threads(2)

        def divided(n):  # among threads
            body = lambda c: (c[0] + 1, wf.tanh(c[1] * 1.01))
            start = (wf.zeros_like(n), wf.ones((300, 300)))
            return wf.while_loop(lambda c: c[0] < n, body, start)[0]

        def scanned(n):
            step = lambda c, x: (c + count(n), x)
            return wf.scan(step, wf.zeros_like(n), wf.arange(50))[0]

        for loop in (count, slowly, divided, scanned):
            program = wf.compile(loop, number(2))
            program(number(2))
            print(loop.__name__, during(lambda: program(number(FOR_EVER))), program(number(3)))
        print(during(lambda: wf.while_loop(lambda i: i < FOR_EVER, lambda i: i + 1, number(0))))
    """)
    assert lines == [
        "count KeyboardInterrupt tensor(3)",
        "slowly KeyboardInterrupt tensor(3)",
        "divided KeyboardInterrupt tensor(3)",
        "scanned KeyboardInterrupt tensor(150)",
        "KeyboardInterrupt",
    ]


HANDLERS = """
    class Late(ValueError):
        pass

    program = wf.compile(count, number(2))
    program(number(2))
    ring = lambda: os.kill(os.getpid(), signal.SIGALRM)

    def raises(error):
        def handle(*_):
            raise error
        signal.signal(signal.SIGALRM, handle)
        return during(lambda: program(number(FOR_EVER)), ring)

    # Some of them mean something else where code itself raises them.
    print(*map(raises, (Late(), TypeError(), MemoryError(), TimeoutError(), SystemExit())))

    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    turns = 10**6
    while not rung:  # until it came while the program ran; that goes on, and is right
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert int(program(number(turns))) == turns
        turns *= 2
    print(program(number(4)))
"""


@posix
def test_what_handlers_raise_comes_out_as_it_is():
    assert run(HANDLERS) == [
        "Late TypeError MemoryError TimeoutError SystemExit",
        "tensor(4)",
    ]


@posix
def test_the_same_through_ctypes():
    program = """
        from weft.backends.cpu.runtime import calls
        calls.native_calls_work = lambda: False
    """
    assert run(dedent(program) + dedent(HANDLERS)) == [
        "Late TypeError MemoryError TimeoutError SystemExit",
        "tensor(4)",
    ]


@posix
def test_a_handler_may_call_the_program_that_it_breaks_into():
    lines = run("""
        import warnings
        program = wf.compile(count, number(2))
        program(number(2))
        seen = []

        def handle(*_):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                result = int(program(number(6)))
            seen.append((result, *("inside its own run" in str(w.message) for w in said)))
            if seen[-1] == (6, True):
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, handle)
        print(during(lambda: program(number(FOR_EVER))), seen[-1], program(number(3)))
    """)
    assert lines == ["KeyboardInterrupt (6, True) tensor(3)"]


@posix
def test_ctrl_c_while_another_thread_is_in_a_loop():
    """Python's handlers run in the main thread, which is free; the other one goes on."""
    lines = run("""
        program = wf.compile(count, number(2))
        program(number(2))
        other = threading.Thread(target=program, args=(number(FOR_EVER),), daemon=True)
        other.start()
        print(during(lambda: time.sleep(100)), other.is_alive(), flush=True)
        child = os.fork()  # whose thread is the main thread of a new process
        if child == 0:
            print(during(lambda: program(number(FOR_EVER))), program(number(3)), flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)
        os._exit(0)
    """)
    assert lines == ["KeyboardInterrupt True", "KeyboardInterrupt tensor(3)", "0"]


def test_only_marked_errors_are_from_a_signal():
    error = ValueError()
    assert not is_from_signal(error)
    error._weft_from_signal = True
    assert is_from_signal(error)


def test_the_text_is_valid_everywhere():
    text = poll_text(host(), 1e-9)
    assert compile_module(text, host())
    assert "i64 @PyThread_get_thread_ident" in text or os.name == "nt"
