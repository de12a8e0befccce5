"""`tf.summary`: operations that write down what TensorBoard shows, and the writer of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..io.wire import MessageWriter
from ..viz.summaries import SummaryWriter
from ..viz.summary_images import as_image, encoded_png
from .dtypes import string
from .graph import Graph, get_default_graph
from .host import host_operation
from .keys import GraphKeys
from .recording import convert_to_tensor
from .summary_messages import Event, HistogramProto, Image, Summary, Value

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "Summary",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Any:
    """Return an operation whose value is the summary of a number."""
    return _summary("ScalarSummary", name, tensor, collections, family, _scalar)


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Any:
    """Return an operation whose value is the summary of how numbers are distributed."""
    return _summary("HistogramSummary", name, values, collections, family, _histogram)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Any = None,
    family: str | None = None,
) -> Any:
    """Return an operation whose value is the summary of pictures, (N, height, width, channels).

    Numbers are stretched to the range of bytes, as TensorFlow does; bytes are as they are.
    """

    def values(tag: str, array: Any) -> list[Value]:
        return _images(tag, array, max_outputs)

    return _summary("ImageSummary", name, tensor, collections, family, values)


def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Return an operation whose value is the summary of a text."""
    return _summary("TensorSummaryV2", name, tensor, collections, None, _text)


def audio(*args: Any, **kwargs: Any) -> Any:
    """Refuse: sounds are not written."""
    raise NotImplementedError("tf.summary.audio: sounds are not served; write scalars or images")


def tensor_summary(*args: Any, **kwargs: Any) -> Any:
    """Refuse; say what to use."""
    raise NotImplementedError(
        "tf.summary.tensor_summary is not served; use scalar, histogram, image or text"
    )


def get_summary_description(node_def: Any) -> str:
    """Return nothing: summaries have no descriptions here."""
    return ""


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """Return an operation whose value is several summaries in one."""
    parts = list(inputs)
    if not parts:
        raise ValueError("tf.summary.merge: there are no summaries to merge. Received: []")
    made = host_operation(
        "MergeSummary",
        lambda session, *found: [_joined(found)],
        parts,
        outputs=[(string, ())],
        name=name or "Merge",
    )
    get_default_graph().add_to_collections(list(collections or ()), made)
    return made


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Any:
    """Return an operation that merges all summaries of the graph; None if there are none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


# -- values ----------------------------------------------------------------------------------------


def _summary(
    type: str,
    name: str,
    tensor: Any,
    collections: Any,
    family: str | None,
    values: Callable[[str, Any], list[Value]],
) -> Any:
    """Add a summary of a tensor; its tag is the name in the scopes that are open."""
    graph = get_default_graph()
    clean = _clean(name)
    tensor = convert_to_tensor(tensor)
    with graph.name_scope(f"{_clean(family)}/{clean}" if family else clean) as scope:
        tag = f"{_clean(family)}/{scope.rstrip('/')}" if family else scope.rstrip("/")
        made = host_operation(
            type,
            lambda session, array: [Summary(values(tag, array)).SerializeToString()],
            [tensor],
            outputs=[(string, ())],
            name=scope,
        )
    keys = [GraphKeys.SUMMARIES] if collections is None else list(collections)
    graph.add_to_collections(keys, made)
    return made


def _clean(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a summary must be a string. Received: {name!r:.60}")
    return "".join(c if c.isalnum() or c in "-_./" else "_" for c in name).lstrip("/")


def _scalar(tag: str, array: Any) -> list[Value]:
    if np.size(array) != 1:
        raise ValueError(
            f"tf.summary.scalar {tag!r}: takes one number. Received: shape {np.shape(array)}"
        )
    return [Value(tag, float(np.asarray(array).reshape(())))]


def _histogram(tag: str, array: Any) -> list[Value]:
    if not np.isfinite(np.asarray(array, np.float64)).all():
        raise ValueError(f"Nan in summary histogram for: {tag}")
    return [Value(tag, histo=HistogramProto.of(array))]


def _images(tag: str, array: Any, most: int) -> list[Value]:
    batch = np.asarray(array)
    if batch.ndim != 4 or batch.shape[3] not in (1, 3, 4):
        raise ValueError(
            "Tensor must be 4-D with last dim 1, 3, or 4, not "
            f"[{','.join(map(str, batch.shape))}] (tf.summary.image {tag!r})"
        )
    shown = batch[:most]
    tags = [f"{tag}/image"] if most == 1 else [f"{tag}/image/{i}" for i in range(len(shown))]
    return [Value(name, image=_png(pixels)) for name, pixels in zip(tags, shown, strict=True)]


def _png(pixels: Any) -> Image:
    bytes_ = pixels if pixels.dtype == np.uint8 else _stretched(pixels.astype(np.float64))
    made = as_image(bytes_, "HWC", "tf.summary.image")
    height, width, channels = made.shape
    return Image(height, width, channels, encoded_png(made))


def _stretched(pixels: Any) -> Any:
    """Return numbers as bytes: the largest becomes 255; negative ones put 0 in the middle."""
    finite = np.where(np.isfinite(pixels), pixels, 0.0)
    low, high = float(finite.min()), float(finite.max())
    if low < 0:
        largest = max(abs(low), abs(high))
        return (finite * (127.0 / largest if largest else 0.0) + 128.0).astype(np.uint8)
    return (finite * (255.0 / high if high else 0.0)).astype(np.uint8)


def _text(tag: str, array: Any) -> list[Value]:
    found = np.asarray(array, object).reshape(-1).tolist()
    lines = [x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in found]
    return [Value(tag, text="\n\n".join(lines))]


def _joined(found: Sequence[Any]) -> bytes:
    """Return summaries as one; a tag may come once."""
    whole = Summary()
    for content in found:
        whole.MergeFromString(_content(content))
    tags = [value.tag for value in whole.value]
    twice = next((tag for tag in tags if tags.count(tag) > 1), None)
    if twice is not None:
        raise ValueError(f"Duplicate tag {twice} found in summary inputs")
    return whole.SerializeToString()


def _content(summary: Any) -> bytes:
    if isinstance(summary, Summary):
        return summary.SerializeToString()
    found = summary[()] if isinstance(summary, np.ndarray) else summary
    if not isinstance(found, bytes):
        raise TypeError(
            f"a summary is bytes, from sess.run(tf.summary...), or a tf.Summary. Received: "
            f"{type(found).__name__}"
        )
    return found


# -- files -----------------------------------------------------------------------------------------


class FileWriter:
    """Writes event files into a folder: `writer.add_summary(sess.run(merged), step)`."""

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self._logdir = str(os.fspath(logdir))
        self._seconds = flush_secs
        self._writer: SummaryWriter | None = None
        self.reopen()
        for given in (graph, graph_def):
            if given is not None:
                self.add_graph(given)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary, serialized or not, at a step."""
        step = 0 if global_step is None else int(np.asarray(global_step))
        self._open().message(_content(summary), step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, for TensorBoard's tab of graphs."""
        found = graph if graph is not None else graph_def
        if not isinstance(found, Graph):
            raise TypeError(
                "The passed graph must be an instance of `Graph` or the deprecated `GraphDef`. "
                f"Received: {type(found).__name__}"
            )
        self._open().graph_message(graph_content(found))

    def add_event(self, event: Any) -> None:
        """Write the summary of an event."""
        self._open().message(_content(event.summary), event.step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Do nothing: TensorBoard shows the graph itself."""

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Do nothing: runs are profiled by `weft.profile`."""

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Do nothing: sessions leave no log."""

    def flush(self) -> None:
        """Put everything written so far into the file."""
        self._open().flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def reopen(self) -> None:
        """Open another file, after `close`."""
        if self._writer is None:
            os.makedirs(self._logdir, exist_ok=True)
            self._writer = SummaryWriter(self._logdir, flush_seconds=self._seconds)

    def _open(self) -> SummaryWriter:
        if self._writer is None:
            raise RuntimeError("Attempted to use a closed FileWriter.")
        return self._writer

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class FileWriterCache:
    """One writer for each folder."""

    _writers: dict[str, FileWriter] = {}  # noqa: RUF012  (one for the process, as in TensorFlow)

    @classmethod
    def get(cls, logdir: Any) -> FileWriter:
        """Return the writer of a folder."""
        return cls._writers.setdefault(os.fspath(logdir), FileWriter(logdir))

    @classmethod
    def clear(cls) -> None:
        """Close all."""
        for writer in cls._writers.values():
            writer.close()
        cls._writers.clear()


def graph_content(graph: Graph) -> bytes:
    """Return a graph as a GraphDef message: names, kinds, inputs and devices of operations."""
    made = MessageWriter()
    for operation in graph.get_operations():
        node = MessageWriter().text(1, operation.name).text(2, operation.type)
        for tensor in operation.inputs:
            index = f":{tensor.value_index}" if tensor.value_index else ""
            node.text(3, f"{tensor.op.name}{index}")
        for before in operation.control_inputs:
            node.text(3, f"^{before.name}")
        made.message(1, node.text(4, operation.device))
    return made.message(4, MessageWriter().varint(1, 22)).content()
