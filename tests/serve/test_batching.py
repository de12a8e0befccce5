"""The queue without HTTP: what becomes a batch, in which order, and what one bad job does."""

import threading
import time

import numpy as np
import pytest

from weft.serve.batching import Batcher, Expired, QueueClosed, QueueFull, ServeJob
from weft.serve.limits import ServeLimits
from weft.serve.metrics import Metrics

LATER = 60.0


class Lab:
    """A batcher of a function, whose batches can be held back and looked at."""

    def __init__(self, run=lambda columns: [columns[0] * 2], **limits):
        self.batches, self.done = [], []
        self.gate = threading.Event()
        self.gate.set()
        self.run = run
        self.metrics = Metrics()
        self.batcher = Batcher(
            self._run, ServeLimits(**{"max_wait": 0.0} | limits), self.metrics, self._deliver
        )
        self.changed = threading.Condition()
        self.batcher.start()

    def _run(self, columns):
        self.batches.append([column.copy() for column in columns])
        assert self.gate.wait(LATER)
        return self.run(columns)

    def _deliver(self, jobs):
        with self.changed:
            self.done += jobs
            self.changed.notify_all()

    def submit(self, *values, deadline=LATER):
        job = ServeJob([np.array(values, float)], time.monotonic() + deadline)
        self.batcher.submit([job])
        return job

    def wait(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.done) >= count, LATER)

    def hold(self):
        """Let a job occupy the thread, so that others collect behind it."""
        self.gate.clear()
        self.submit(0.0)
        end = time.monotonic() + LATER
        while not self.batches and time.monotonic() < end:
            time.sleep(0.001)


@pytest.fixture
def make():
    made = []

    def start(*args, **limits):
        made.append(Lab(*args, **limits))
        return made[-1]

    yield start
    for lab in made:
        lab.gate.set()
        assert lab.batcher.close(LATER)


def test_one_job(make):
    lab = make()
    job = lab.submit(1.0, 2.0)
    lab.wait(1)
    assert job.results[0].tolist() == [2.0, 4.0]
    assert job.error is None


def test_what_waits_becomes_one_batch_and_each_gets_its_own(make):
    lab = make(max_batch=8)
    lab.hold()
    jobs = [lab.submit(float(i), i + 0.5) for i in range(3)]
    lab.gate.set()
    lab.wait(4)
    assert [len(batch[0]) for batch in lab.batches] == [1, 6]
    assert [job.results[0].tolist() for job in jobs] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_a_batch_is_no_larger_than_the_limit_and_jobs_stay_whole(make):
    lab = make(max_batch=4)
    lab.hold()
    for _ in range(3):
        lab.submit(1.0, 2.0, 3.0)
    lab.submit(4.0)
    lab.gate.set()
    lab.wait(5)
    assert [len(batch[0]) for batch in lab.batches] == [1, 3, 3, 4]


def test_shapes_have_batches_of_their_own_the_oldest_first(make):
    lab = make(max_batch=8)
    lab.hold()
    for shape in ((1, 2), (1, 3), (1, 2)):
        job = ServeJob([np.ones(shape)], time.monotonic() + LATER)
        lab.batcher.submit([job])
    lab.gate.set()
    lab.wait(4)
    assert [batch[0].shape for batch in lab.batches[1:]] == [(2, 2), (1, 3)]


def test_a_shape_that_waits_is_not_passed_over_by_full_batches_of_another(make):
    lab = make(max_batch=2)
    lab.hold()
    lab.batcher.submit([ServeJob([np.ones((1, 3))], time.monotonic() + LATER)])
    for _ in range(6):
        lab.submit(1.0)
    lab.gate.set()
    lab.wait(8)
    assert lab.batches[1][0].shape == (1, 3)


def test_a_job_waits_for_others_until_the_batch_is_full(make):
    lab = make(max_batch=3, max_wait=LATER)
    for value in (1.0, 2.0):
        lab.submit(value)
    time.sleep(0.05)
    assert lab.batches == []
    lab.submit(3.0)
    lab.wait(3)
    assert [batch[0].tolist() for batch in lab.batches] == [[1.0, 2.0, 3.0]]


def test_closing_runs_what_waits_and_refuses_the_rest(make):
    lab = make(max_batch=8, max_wait=LATER)
    job = lab.submit(1.0)
    assert lab.batcher.close(LATER)
    assert job.results[0].tolist() == [2.0]
    with pytest.raises(QueueClosed):
        lab.submit(2.0)


def test_a_full_queue_refuses_all_jobs_of_a_request_or_none(make):
    lab = make(max_batch=2, max_queue=3)
    lab.hold()
    lab.submit(1.0, 2.0)
    jobs = [ServeJob([np.ones(1)], time.monotonic() + LATER) for _ in range(2)]
    with pytest.raises(QueueFull, match="2 items are waiting, the most is 3") as caught:
        lab.batcher.submit(jobs)
    assert caught.value.retry_after > 0
    assert lab.batcher.waiting == 2
    lab.submit(3.0)
    lab.gate.set()
    lab.wait(3)
    assert lab.batcher.waiting == 0


def _no_negatives(columns):
    if (columns[0] < 0).any():
        raise ValueError("negative")
    return [columns[0] * 2]


def test_one_bad_job_does_not_fail_the_others(make):
    lab = make(_no_negatives, max_batch=8)
    lab.hold()
    jobs = [lab.submit(1.0), lab.submit(-1.0), lab.submit(3.0)]
    lab.gate.set()
    lab.wait(4)
    assert [job.results and job.results[0].tolist() for job in jobs] == [[2.0], None, [6.0]]
    assert isinstance(jobs[1].error, ValueError)
    assert lab.metrics.split_batches.value == 1
    assert lab.submit(4.0) is not None
    lab.wait(5)
    assert lab.done[-1].results[0].tolist() == [8.0]


def test_abandoned_and_late_jobs_are_not_run(make):
    lab = make(max_batch=8)
    lab.hold()
    abandoned, late, good = lab.submit(1.0), lab.submit(2.0, deadline=-1.0), lab.submit(3.0)
    abandoned.abandoned = True
    lab.gate.set()
    lab.wait(4)
    assert [batch[0].tolist() for batch in lab.batches[1:]] == [[3.0]]
    assert isinstance(late.error, Expired)
    assert good.results[0].tolist() == [6.0]


def test_many_threads_each_get_their_own_results(make):
    lab = make(max_batch=16, max_wait=0.001, max_queue=10_000)
    jobs = {}

    def client(number):
        for i in range(50):
            value = float(1000 * number + i)
            jobs[value] = lab.submit(value)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.wait(400)
    assert all(job.results[0].tolist() == [2 * value] for value, job in jobs.items())
    assert lab.metrics.items.value == 400
    assert max(len(batch[0]) for batch in lab.batches) <= 16
