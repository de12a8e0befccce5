"""NumPy's BLAS keeps its setting while Weft computes."""

import os
import threading

import numpy as np
import pytest

import weft as wf
from weft.core import blas

pytestmark = pytest.mark.skipif(
    blas.numpy_library() is None, reason="NumPy was not built with an OpenBLAS that is known"
)


@pytest.fixture
def two_threads():
    """Have the user's BLAS use two threads, and give its library."""
    library = blas.numpy_library()
    before = library.get_num_threads()
    library.set_num_threads(2)
    yield library
    library.set_num_threads(before)


def seen_during(library, call):
    """Return the numbers of threads that another thread sees while a function runs."""
    seen, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(library.get_num_threads())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(3):
            call()
    finally:
        done.set()
        watcher.join()
    return seen | {library.get_num_threads()}


CALLS = {
    "product": lambda x: x @ x,
    "thin product": lambda x: x[:, :10].T @ x,
    "half product": lambda x: x.to(wf.float16) @ x.to(wf.float16),
    "solve": lambda x: wf.linalg.solve(x, x),
    "svd": wf.linalg.svd,
    "threads": lambda _: wf.set_num_threads(wf.get_num_threads()),
}


@pytest.mark.skipif(os.name != "posix", reason="here BLAS is limited for the time of a call")
@pytest.mark.parametrize("name", CALLS)
def test_the_setting_of_the_process_is_never_touched(two_threads, name):
    x = wf.eye(160) + wf.randn(160, 160) / 40
    CALLS[name](x)  # what is loaded on first use has its own setting too
    assert seen_during(two_threads, lambda: CALLS[name](x)) == {2}


@pytest.mark.skipif(os.name != "posix", reason="there is no copy")
def test_the_copy_has_one_thread_and_a_setting_of_its_own(two_threads):
    copy = blas.single_library()
    assert copy is not None
    assert copy.get_num_threads() == 1
    two_threads.set_num_threads(3)
    assert copy.get_num_threads() == 1


def test_a_file_serves_where_memory_holds_no_code(monkeypatch):
    def refuse(path):
        raise OSError("no code in memory")

    monkeypatch.setattr(blas, "_load_from_memory", refuse)
    copy = blas.BlasLibrary(blas._load_copy(blas.numpy_library().handle._name))
    copy.set_num_threads(1)
    assert copy.lapack("dgesv") is not None


def test_without_a_copy_the_setting_is_restored(two_threads, monkeypatch):
    monkeypatch.setattr("weft.ops.linalg._lapack.single_library", lambda: None)
    a = np.eye(100) + np.random.default_rng(0).standard_normal((100, 100)) / 40
    np.testing.assert_array_equal(wf.linalg.inv(wf.tensor(a)).numpy(), _alone(two_threads, a))
    assert two_threads.get_num_threads() == 2
    with pytest.raises(ValueError, match="singular"):
        wf.linalg.inv(wf.zeros((100, 100)))
    assert two_threads.get_num_threads() == 2


def _alone(library, a):
    library.set_num_threads(1)
    found = np.linalg.inv(a)
    library.set_num_threads(2)
    return found
