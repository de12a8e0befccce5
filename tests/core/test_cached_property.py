"""A property that is computed once, and that a fork never finds locked."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass

import pytest

from weft.core.cached_property import cached_property


@dataclass(frozen=True)
class Counted:
    calls: list[str]

    @cached_property
    def value(self):
        """Return how often it was asked for."""
        self.calls.append("value")
        return len(self.calls)


def test_is_computed_once_for_each_object_even_if_frozen():
    first, second = Counted([]), Counted(["before"])
    assert (first.value, first.value) == (1, 1)
    assert (second.value, second.value) == (2, 2)
    assert first.calls == ["value"]


def test_the_class_has_the_property_itself():
    assert isinstance(Counted.value, cached_property)
    assert Counted.value.__doc__ == "Return how often it was asked for."


def test_an_error_is_not_kept():
    class Failing:
        tries = 0

        @cached_property
        def value(self):
            self.tries += 1
            if self.tries == 1:
                raise ValueError("the first time")
            return self.tries

    failing = Failing()
    with pytest.raises(ValueError, match="the first time"):
        _ = failing.value
    assert failing.value == 2


def test_two_threads_get_one_value():
    both_compute = threading.Barrier(2)

    class Slow:
        @cached_property
        def value(self):
            both_compute.wait()
            return object()

    slow, found = Slow(), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is slow.value


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # from 3.12 on
def test_a_child_computes_what_a_thread_of_its_parent_was_computing():
    computing, go_on = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            if threading.current_thread() is not threading.main_thread():
                computing.set()
                go_on.wait()
            return 7

    slow = Slow()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    computing.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # it would wait for ever
        os._exit(slow.value)
    status = os.waitpid(child, 0)[1]
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7
