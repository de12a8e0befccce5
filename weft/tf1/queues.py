"""Queues: what one operation puts in, another takes out.

TensorFlow fills queues by threads that run in the background. Here a queue that has too few
elements runs the operations that fill it (its queue runners, once they were started) until it has
enough, in the order in which they were added: the same elements in the same order each time. A
program that fills a queue by threads of its own is waited for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core.rng import Generator
from ..data.streams import fresh_seed, integer
from .dtypes import as_dtype, int32
from .dtypes import bool as boolean
from .errors import CancelledError, InvalidArgumentError, OutOfRangeError
from .graph import get_default_graph
from .host import host_operation
from .recording import convert_to_tensor
from .shapes import TensorShape

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "QueueBase", "RandomShuffleQueue"]

_POLL_SECONDS = 0.05  # how soon one who waits sees that nobody is left to wait for
_PATIENCE_SECONDS = 60.0  # how long another thread is waited for that never used the queue
# Threads of these packages do their own work; they never run a program's operations.
_OTHER_WORK = ("concurrent.", "execnet.", "multiprocessing.", "tensorboardX.", "weft.data.")


class _Content:
    """What a queue holds in one session."""

    def __init__(self) -> None:
        self.elements: deque[tuple[Any, ...]] = deque()
        self.closed = False
        self.changed = threading.Condition(threading.RLock())
        self.runners: list[Any] = []  # that were started for it, and have not ended
        self.users: set[int] = set()  # threads that put in or took out

    def is_shared(self, since: float) -> bool:
        """Tell whether another thread may change what the queue holds."""
        me = threading.get_ident()
        self.users.add(me)
        if self.runners or self.closed:
            return False
        others = {t.ident for t in threading.enumerate() if t.ident != me and _may_run(t)}
        return bool(others & self.users) or (
            bool(others) and time.monotonic() - since < _PATIENCE_SECONDS
        )


def _may_run(thread: threading.Thread) -> bool:
    """Tell whether a thread may be the program's own."""
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    if thread.name.startswith("weft-"):  # Weft's own: the pool, and what compiles beside
        return False
    return not any(module.startswith(_OTHER_WORK) for module in modules)


class QueueBase:
    """A queue of elements with one type, and perhaps one shape, for each component."""

    kind = "Queue"

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: Any = None,
        name: str | None = None,
    ) -> None:
        self.capacity = int(capacity)
        listed = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
        self.dtypes = [as_dtype(dtype) for dtype in listed]
        self.names = [names] if isinstance(names, str) else names
        self.shapes = _shapes(shapes, len(self.dtypes))
        self.graph = get_default_graph()
        self.name = self.graph.unique_name(name or self.kind.lower())
        self._contents: WeakKeyDictionary[Any, _Content] = WeakKeyDictionary()

    @property
    def queue_ref(self) -> QueueBase:
        """Return what refers to the queue: itself."""
        return self

    def content(self, session: Any) -> _Content:
        """Return what the queue holds in a session."""
        return self._contents.setdefault(session, _Content())

    # -- operations --------------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """Return an operation that puts one element in."""
        parts = self._components(vals)
        for part, shape in zip(parts, self.shapes, strict=True):
            part.shape.assert_is_compatible_with(shape)
        return host_operation(
            f"{self.kind}EnqueueV2",
            lambda session, *values: self._put(session, [tuple(values)]),
            parts,
            name=name or f"{self.name}_enqueue",
        )

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Return an operation that puts the rows of tensors in."""
        parts = self._components(vals)

        def call(session: Any, *values: Any) -> None:
            rows = [
                tuple(np.asarray(value)[i : i + 1].reshape(value.shape[1:]) for value in values)
                for i in range(len(values[0]))
            ]
            self._put(session, rows)

        return host_operation(
            f"{self.kind}EnqueueManyV2", call, parts, name=name or f"{self.name}_EnqueueMany"
        )

    def dequeue(self, name: str | None = None) -> Any:
        """Return tensors that have the next element in each run."""
        return self._taken("Dequeue", lambda session: self.taken(session, 1)[0], self.shapes, name)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Return tensors that have the next `n` elements as rows."""
        return self._batch("DequeueMany", n, False, name)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Return tensors that have the next `n` elements, or what is left of a closed queue."""
        return self._batch("DequeueUpTo", n, True, name)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """Return an operation after which nothing more can be put in."""
        return host_operation("QueueCloseV2", self.shut, name=name or f"{self.name}_Close")

    def size(self, name: str | None = None) -> Any:
        """Return a tensor with the number of elements."""
        return host_operation(
            "QueueSizeV2",
            lambda session: [np.int32(len(self.content(session).elements)).reshape(())],
            outputs=[(int32, ())],
            name=name or f"{self.name}_Size",
        )

    def is_closed(self, name: str | None = None) -> Any:
        """Return a tensor that tells whether the queue is closed."""
        return host_operation(
            "QueueIsClosedV2",
            lambda session: [np.bool_(self.content(session).closed).reshape(())],
            outputs=[(boolean, ())],
            name=name or f"{self.name}_Is_Closed",
        )

    def _components(self, vals: Any) -> list[Any]:
        if isinstance(vals, dict):
            if not self.names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            vals = [vals[name] for name in self.names]
        listed = vals if isinstance(vals, (list, tuple)) and len(self.dtypes) > 1 else [vals]
        if isinstance(vals, (list, tuple)) and len(self.dtypes) == 1 and len(vals) == 1:
            listed = vals
        if len(listed) != len(self.dtypes):
            raise ValueError(
                f"{self.name}: expected {len(self.dtypes)} components. Received: {len(listed)}"
            )
        return [
            convert_to_tensor(value, None if hasattr(value, "op") else dtype)
            for value, dtype in zip(listed, self.dtypes, strict=True)
        ]

    def _batch(self, type: str, n: Any, up_to: bool, name: str | None) -> Any:
        if any(shape.sizes is None for shape in self.shapes) and not isinstance(
            self, PaddingFIFOQueue
        ):
            raise ValueError(
                f"{type} requires the components to have specified shapes: give shapes= to "
                f"{self.name}"
            )
        number = None if up_to or hasattr(n, "op") else int(n)
        shapes = [TensorShape([number]).concatenate(shape) for shape in self.shapes]

        def call(session: Any, count: Any) -> list[Any]:
            rows = self.taken(session, int(count), up_to)
            return [self._stacked(column) for column in zip(*rows, strict=True)]

        return self._taken(type, call, shapes, name, [convert_to_tensor(n, None)])

    def _taken(
        self, type: str, call: Any, shapes: Any, name: str | None, inputs: Sequence[Any] = ()
    ) -> Any:
        made = host_operation(
            f"{self.kind}{type}V2",
            call,
            inputs,
            outputs=list(zip(self.dtypes, shapes, strict=True)),
            name=name or f"{self.name}_{type}",
        )
        if self.names:
            parts = made if len(self.dtypes) > 1 else [made]
            return dict(zip(self.names, parts, strict=True))
        return made

    # -- runs --------------------------------------------------------------------------------------

    def _stacked(self, column: Sequence[Any]) -> Any:
        return np.stack([np.asarray(value) for value in column])

    def _put(self, session: Any, rows: list[tuple[Any, ...]]) -> None:
        content = self.content(session)
        with content.changed:
            if content.closed:
                raise CancelledError(None, None, f"{self.kind} '{self.name}' is closed.")
            since = time.monotonic()
            while self._is_full(content, len(rows)) and content.is_shared(since):
                content.changed.wait(_POLL_SECONDS)  # another thread takes elements out
            content.elements.extend(rows)
            content.changed.notify_all()

    def _is_full(self, content: _Content, more: int) -> bool:
        return len(content.elements) + more > self.capacity > 0

    def taken(self, session: Any, count: int, up_to: bool = False) -> list[tuple[Any, ...]]:
        """Take elements out in a session; wait or fill the queue if there are too few."""
        content = self.content(session)
        since = time.monotonic()
        with content.changed:
            while len(content.elements) < count + self.reserve(content):
                if content.closed or not self._fill(session, content, since):
                    break
            if len(content.elements) < count and not (up_to and content.elements):
                self._refuse(content, count)
            found = [self.pick(content.elements) for _ in range(min(count, len(content.elements)))]
            content.changed.notify_all()
            return found

    def _refuse(self, content: _Content, count: int) -> None:
        if content.closed:
            raise OutOfRangeError(
                None,
                None,
                f"{self.kind} '{self.name}' is closed and has insufficient elements (requested "
                f"{count}, current size {len(content.elements)})",
            )
        raise InvalidArgumentError(
            None,
            None,
            f"{self.kind} '{self.name}' has {len(content.elements)} of {count} elements that are "
            "taken, and nothing fills it: call tf.train.start_queue_runners(sess), or run its "
            "enqueue operation",
        )

    def _fill(self, session: Any, content: _Content, since: float) -> bool:
        """Let more elements come; return whether there is a hope of any."""
        if content.runners:
            runner = content.runners[0]
            content.runners.append(content.runners.pop(0))
            runner.run_once(session, self)
            return True
        if content.is_shared(since):
            content.changed.wait(_POLL_SECONDS)
            return True
        return False

    def shut(self, session: Any) -> None:
        """Let nothing more be put in."""
        content = self.content(session)
        with content.changed:
            content.closed = True
            content.changed.notify_all()

    def reserve(self, content: _Content) -> int:
        """Return how many elements should stay behind."""
        return 0

    def pick(self, elements: deque[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Take an element out."""
        return elements.popleft()


class FIFOQueue(QueueBase):
    """Elements come out in the order in which they went in."""

    kind = "FIFOQueue"


class PaddingFIFOQueue(FIFOQueue):
    """The same, with elements of different sizes, which are filled up with zeros in batches."""

    kind = "PaddingFIFOQueue"

    def _stacked(self, column: Sequence[Any]) -> Any:
        arrays = [np.asarray(value) for value in column]
        largest = np.max([array.shape for array in arrays], axis=0)
        made = np.zeros((len(arrays), *largest), arrays[0].dtype)
        for row, array in zip(made, arrays, strict=True):
            row[tuple(slice(0, n) for n in array.shape)] = array
        return made


class RandomShuffleQueue(QueueBase):
    """Elements come out in a random order; so many stay behind as are needed to mix them."""

    kind = "RandomShuffleQueue"

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            capacity, dtypes, shapes, names, shared_name, name or "random_shuffle_queue"
        )
        self._least = int(min_after_dequeue)
        graph_seed = self.graph.seed
        known = seed is not None or graph_seed is not None
        self._generator = Generator(
            abs(hash((seed or 0, graph_seed or 0))) if known else fresh_seed()
        )

    def reserve(self, content: _Content) -> int:
        """Return how many elements should stay behind."""
        return 0 if content.closed else self._least

    def pick(self, elements: deque[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Take an element out."""
        place = integer(0, len(elements), generator=self._generator)
        elements[place], elements[-1] = elements[-1], elements[place]
        return elements.pop()


def _shapes(given: Any, count: int) -> list[TensorShape]:
    if given is None:
        return [TensorShape(None)] * count
    listed = (
        given
        if isinstance(given, list) and (not given or not isinstance(given[0], int))
        else [given]
    )
    if count > 1 and isinstance(given, (list, tuple)) and len(given) == count:
        listed = list(given)
    if len(listed) != count:
        raise ValueError(f"a queue has {count} components. Received: {len(listed)} shapes")
    return [TensorShape(shape) for shape in listed]
