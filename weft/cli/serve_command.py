"""`weft serve`: a trained run, or a saved graph, behind HTTP."""

from __future__ import annotations

import csv
from argparse import Namespace
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.errors import GraphError, WeftError
from ..core.tensor import Tensor, wrap
from ..core.threads import set_num_threads
from ..data import Vocabulary
from ..graph.graph import Graph
from ..serve import ServedModel, ServeLimits, run
from ..serve.model import Item, served_model
from ..serve.programs import ModuleProgram, input_values
from .errors import BUILD_ERRORS, UsageError
from .predict_inputs import read_samples
from .predict_outputs import Row, rows_of
from .run_directory import FACTS
from .trained import TrainedRun, open_trained

# Bodies that are read as `weft predict` reads files of these names.
_PICTURES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/bmp": ".bmp",
    "image/gif": ".gif",
    "image/tiff": ".tiff",
    "image/webp": ".webp",
}
_TABLES = {"text/csv": ".csv", "application/vnd.apache.parquet": ".parquet"}
_ARCHIVES = {"application/x-npz": ".npz"}


def serve(options: Namespace) -> int:
    """Answer requests until a signal ends the server."""
    limits = _limits(options)
    if options.threads is not None:
        set_num_threads(options.threads)
    model = _model(options)
    return run(
        model, host=options.host, port=options.port, limits=limits, announce=_announce(model)
    )


def _limits(options: Namespace) -> ServeLimits:
    try:
        return ServeLimits(
            max_batch=options.max_batch,
            max_wait=options.max_wait_ms / 1000,
            max_body=options.max_body,
            max_queue=options.max_queue,
            timeout=options.timeout,
            max_connections=options.max_connections,
            grace=options.grace,
        )
    except WeftError as error:
        raise UsageError(str(error)) from error


def _announce(model: ServedModel) -> Callable[[str], None]:
    def announce(address: str) -> None:
        print(f"serving {model.program.name} on {address}", flush=True)
        print(f"  curl {address}/v1/model tells what it takes; Ctrl-C ends it", flush=True)

    return announce


def _model(options: Namespace) -> ServedModel:
    path = Path(options.run)
    if path.is_file() and path.suffix.lower() != ".toml":
        return _graph_model(path, options)
    if options.outputs:
        raise UsageError("--outputs are for saved graphs; a run gives what its model returns")
    return run_model(open_trained(options.run, options.set), options.weights)


def _graph_model(path: Path, options: Namespace) -> ServedModel:
    if options.set or options.weights != "auto":
        raise UsageError(f"{path} is a saved graph: --set and --weights need a run or a TOML file")
    try:
        graph = Graph.load(path)
    except GraphError as error:
        raise UsageError(
            f"{error}; serve a run directory, a graph that graph.save wrote, or a TOML file with "
            "--weights: weights alone do not say what to compute"
        ) from error
    outputs = options.outputs.split(",") if options.outputs else None
    return served_model(graph, outputs=outputs)


# -- runs ------------------------------------------------------------------------------------------


def run_model(trained: TrainedRun, weights: str) -> ServedModel:
    """Return the model of a trained run as a server knows it."""
    shapes, dtypes = _inputs(trained)
    examples = [wrap(np.zeros((2, *s), d)) for s, d in zip(shapes, dtypes, strict=True)]
    model = trained.model(trained.prepare(tuple(examples)), weights)
    program = ModuleProgram(
        model,
        input_values(_specs(trained, model, shapes, dtypes)),
        trained.config["compile"],
        item_shapes=shapes,
    )
    program.name = str(trained.config["name"])
    facts = trained.facts
    told = {"classes": facts.get("classes"), "features": facts.get("feature_names")}
    return ServedModel(
        program,
        prepare=None if trained.transform is None else _preparer(trained),
        readers=_readers(trained, shapes),
        items_of=_items_of(trained),
        rows_of=_rows_of(trained),
        about={name: value for name, value in told.items() if value},
    )


def _inputs(trained: TrainedRun) -> tuple[list[tuple[int, ...]], list[Any]]:
    """Return the shapes and dtypes of the inputs of an item, as the run has noted them."""
    found = trained.facts.get("input_shapes")
    if not isinstance(found, list) or not found:
        raise UsageError(
            f"what the model takes is not known: {FACTS} with input_shapes, which `weft train` "
            "writes, is missing beside the configuration; name the run directory"
        )
    usual = "int64" if "vocabulary" in trained.facts else trained.prepare.dtype.name
    dtypes = trained.facts.get("input_dtypes") or [usual] * len(found)
    return [tuple(shape) for shape in found], dtypes


def _specs(trained: TrainedRun, model: Any, shapes: Any, dtypes: Any) -> Any:
    """Return the inputs by name; texts may be of any length."""
    if "vocabulary" in trained.facts:
        shapes = [(None,) * len(shape) for shape in shapes]
    names = getattr(model, "inputs", None)
    specs = list(zip(shapes, dtypes, strict=True))
    if isinstance(names, tuple | list) and len(names) == len(specs):
        return dict(zip(names, specs, strict=True))
    return specs[0] if len(specs) == 1 else specs


def _preparer(trained: TrainedRun) -> Callable[[Item], Item]:
    transform = trained.transform
    assert transform is not None

    def prepare(item: Item) -> Item:
        first, *others = item
        given = first if isinstance(first, Tensor) else wrap(np.asarray(first))
        try:
            prepared: Item = trained.prepare((transform(given), *others))
        except BUILD_ERRORS as error:
            shape = tuple(given.shape)
            raise UsageError(f"an item of shape {shape} cannot be prepared: {error}") from error
        return prepared

    return prepare


def _rows_of(trained: TrainedRun) -> Callable[[Sequence[Array], int], list[Row]]:
    loss, classes = trained.config["loss"]["type"], trained.facts.get("classes")

    def rows(outputs: Sequence[Array], top: int) -> list[Row]:
        labels = [""] * len(outputs[0])
        found = list(rows_of(labels, outputs[0], loss, classes, top))
        return [{k: v for k, v in row.items() if k != "input"} for row in found]

    return rows


# -- bodies that are files, records or texts -------------------------------------------------------


def _readers(trained: TrainedRun, shapes: Sequence[Any]) -> dict[str, Any]:
    """Return what reads bodies that `weft predict` would read as files."""
    kinds = dict(_ARCHIVES)
    if len(shapes) == 1 and len(shapes[0]) == 3:
        kinds |= _PICTURES
    if _trained_on(trained).get("type") in {"csv", "parquet"}:
        kinds |= _TABLES
    return {kind: _reader(trained, suffix) for kind, suffix in kinds.items()}


def _trained_on(trained: TrainedRun) -> dict[str, Any]:
    data = trained.config["data"]
    found = data.get("source") or data.get("train") or {}
    return found if isinstance(found, dict) else {}


def _reader(trained: TrainedRun, suffix: str) -> Callable[[bytes], list[Item]]:
    def read(body: bytes) -> list[Item]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"body{suffix}"
            path.write_bytes(body)
            try:
                samples = read_samples([str(path)], trained.config["data"], trained.facts)
                return [sample.inputs for sample in samples]
            except WeftError as error:
                said = str(error).replace(str(path), "the body").replace(path.name, "the body")
                raise UsageError(said) from error

    return read


def _items_of(trained: TrainedRun) -> Callable[[list[Any]], list[Item]] | None:
    """Return what reads a list in JSON whose items are records of a table, or texts."""
    features = trained.facts.get("feature_names")
    if features and _trained_on(trained).get("type") in {"csv", "parquet"}:
        return lambda records: _from_records(trained, features, records)
    if "vocabulary" in trained.facts:
        letters = Vocabulary(trained.facts["vocabulary"])
        return lambda texts: [(letters.encode(_text(text)),) for text in texts]
    return None


def _text(text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise UsageError(f"each item must be a text that is not empty. Received: {text!r:.60}")
    return text


def _from_records(trained: TrainedRun, features: list[str], records: list[Any]) -> list[Item]:
    """Return records as rows of a table, which is read as the training data was."""
    for record in records:
        if not isinstance(record, dict) or set(record) != set(features):
            raise UsageError(
                f"each item must be an object with the features {', '.join(features):.300}. "
                f"Received: {record!r:.120}"
            )
        strange = [name for name, v in record.items() if not isinstance(v, str | int | float)]
        if strange:
            shown = f"{strange[0]} = {record[strange[0]]!r:.60}"
            raise UsageError(f"a feature must be a number or a text. Received: {shown}")
    text = StringIO()
    delimiter = _trained_on(trained).get("delimiter", ",")
    writer = csv.DictWriter(text, features, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return _reader(trained, ".csv")(text.getvalue().encode())
