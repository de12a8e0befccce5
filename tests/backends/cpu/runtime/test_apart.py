"""Object code that another process makes: the same bytes, and never needed."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.backend import BACKEND, LARGE
from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.runtime import apart
from weft.backends.cpu.runtime.apart import ObjectRequest, begin, compiling_apart, finish, has_help
from weft.backends.cpu.runtime.linking import compile_module, machine_of

from .test_emission import module

MACHINE = machine_of(host())
TEXTS = [module(n) for n in range(8)]
Made = dict[bytes, bytes]
pytestmark = pytest.mark.skipif(not apart.is_possible(), reason="no process can be started here")


class Taker:
    """Takes what was made, and makes the others itself."""

    def __init__(self) -> None:
        self.there: Made = {}
        self.here: Made = {}

    def __call__(self, request: ObjectRequest, code: bytes | None) -> None:
        if code is None:
            self.here[request.key] = compile_module(request.text, host())
        else:
            self.there[request.key] = code


def requests(texts: list[str]) -> list[ObjectRequest]:
    return [ObjectRequest(bytes([n]), text, 3) for n, text in enumerate(texts)]


def helper() -> apart.CompilerProcess:
    """Return the process of this thread, when it is ready."""
    found = apart._work.helper
    assert found is not None
    end = time.monotonic() + 60
    while not found.is_ready and time.monotonic() < end:
        time.sleep(0.01)
    assert found.is_ready
    return found


def expected(texts: list[str]) -> Made:
    return {bytes([n]): compile_module(text, host()) for n, text in enumerate(texts)}


def test_both_processes_make_the_same_bytes() -> None:
    taker = Taker()
    with compiling_apart(MACHINE):
        helper()
        for request in requests(TEXTS):
            begin(request, taker)
        finish(taker)
    assert taker.there
    assert taker.there | taker.here == expected(TEXTS)
    assert not taker.there.keys() & taker.here.keys()


def test_a_process_that_dies_is_not_missed() -> None:
    taker = Taker()
    with compiling_apart(MACHINE):
        helper()._process.kill()
        for request in requests(TEXTS):
            begin(request, taker)
        finish(taker)
    assert taker.there | taker.here == expected(TEXTS)


def test_one_that_is_not_ready_is_not_waited_for() -> None:
    taker = Taker()
    with compiling_apart(MACHINE):
        begin(requests(TEXTS)[0], taker)
        finish(taker)
    assert taker.there | taker.here == expected(TEXTS[:1])


def test_what_llvm_rejects_comes_back() -> None:
    back: list[bytes | None] = []
    with compiling_apart(MACHINE):
        process = helper()
        begin(ObjectRequest(b"bad", "no module", 3), lambda request, code: back.append(code))
        assert process.busy == 1
        finish(lambda request, code: back.append(code))
    assert back == [None]


def test_it_ends_with_the_block() -> None:
    started = []

    def interrupted() -> None:
        with compiling_apart(MACHINE):
            started.append(helper()._process)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0].returncode is not None
    assert not has_help(MACHINE)


def test_a_block_inside_uses_the_same() -> None:
    with compiling_apart(MACHINE):
        first = apart._work.helper
        with compiling_apart(MACHINE):
            assert apart._work.helper is first
        assert has_help(MACHINE)


def test_programs_of_other_names_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/editor")
    with compiling_apart(MACHINE):
        assert not has_help(MACHINE)


@pytest.mark.parametrize("reason", ["small", "one thread", "config"])
def test_when_nobody_is_asked(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = wf.get_num_threads()
    wf.set_num_threads(1 if reason == "one thread" else 2)
    monkeypatch.setattr(wf.config, "compiler_process", reason != "config")
    try:
        with BACKEND.ready_for(1 if reason == "small" else LARGE):  # type: ignore[attr-defined]
            assert not has_help(MACHINE)
    finally:
        wf.set_num_threads(threads)


def test_large_programs_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = wf.get_num_threads()
    wf.set_num_threads(2)
    monkeypatch.setattr(wf.config, "compiler_process", True)
    try:
        with BACKEND.ready_for(LARGE):  # type: ignore[attr-defined]
            assert has_help(MACHINE)
    finally:
        wf.set_num_threads(threads)


def test_it_helps_with_code_for_one_machine() -> None:
    with compiling_apart(MACHINE):
        assert has_help(MACHINE)
        assert not has_help(MACHINE._replace(cpu="another"))


def test_a_large_program_is_compiled_by_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = wf.get_num_threads()
    wf.set_num_threads(2)
    started = []
    make = apart.CompilerProcess
    monkeypatch.setattr(apart, "CompilerProcess", lambda m: started.append(make(m)) or started[-1])
    monkeypatch.setattr(wf.config, "compiler_process", True)
    offset = time.time_ns() % 1_000_000 * 1e-7  # a program that is in no cache
    with wf.Graph() as graph:
        x = wf.placeholder((7, 5), wf.float64)
        fetches = [wf.exp(x * n + offset).sum(n % 2) for n in range(LARGE // 2)]
    feeds = {x: np.eye(7, 5)}
    try:
        found = wf.Session(graph, compiled=True).run(fetches, feeds)
    finally:
        wf.set_num_threads(threads)
    assert len(started) == 1
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
