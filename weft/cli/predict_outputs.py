"""What `weft predict` writes: a row for each sample, as CSV or JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..train.extensions.files import write_text
from ..train.losses import LOSSES
from .errors import UsageError

_MAX_COLUMNS = 10_000
Row = dict[str, Any]


def rows_of(
    labels: Sequence[str], output: Any, loss: str, classes: Sequence[str] | None, top: int
) -> Iterator[Row]:
    """Yield what the model says of each sample: classes, probabilities, or plain numbers."""
    first = output[0] if isinstance(output, tuple | list) else output
    values = first.numpy() if isinstance(first, Tensor) else np.asarray(first)
    values = values.astype(np.float64) if values.dtype.kind not in "iub" else values
    for label, value in zip(labels, values, strict=True):
        yield {"input": label, **_said(value, loss, classes, top)}


def _said(value: Any, loss: str, classes: Sequence[str] | None, top: int) -> Row:
    traits = LOSSES[loss].traits
    is_probability = "probabilities" in traits
    if "classes" in traits and value.ndim == 1:
        return _ranking(value if is_probability else softmax(value), classes, top)
    if "classes" in traits:
        return {"label": value.argmax(0).tolist()}
    if is_probability or "scores" in traits:
        p = value if is_probability else 1.0 / (1.0 + np.exp(-value))
        chosen = (p > 0.5).astype(int)
        if value.size == 1:
            return {"label": int(chosen.reshape(())), "probability": float(p.reshape(()))}
        return {"label": chosen.tolist(), "probability": p.tolist()}
    return {"output": value.item() if value.size == 1 else value.tolist()}


def _ranking(shares: Any, classes: Sequence[str] | None, top: int) -> Row:
    row: Row = {}
    for rank, index in enumerate(np.argsort(-shares, kind="stable")[:top]):
        suffix = "" if rank == 0 else f"_{rank + 1}"
        row[f"label{suffix}"] = int(index)
        if classes and index < len(classes):
            row[f"class{suffix}"] = classes[index]
        row[f"probability{suffix}"] = float(shares[index])
    return row


def softmax(scores: Any) -> Any:
    """Return the probabilities of scores."""
    e = np.exp(scores - scores.max())
    return e / e.sum()


def write_rows(rows: list[Row], out: str | None, kind: str | None) -> None:
    """Write rows to a file or the terminal, as CSV or JSON."""
    chosen = kind or (Path(out).suffix.lower().lstrip(".") if out else "csv")
    if chosen not in {"csv", "json"}:
        raise UsageError(f"predictions are written as csv or json. Received: {chosen!r}")
    text = _csv(rows) if chosen == "csv" else json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(Path(out), text)


def _csv(rows: list[Row]) -> str:
    flat = [_flat(row) for row in rows]
    names: dict[str, None] = {}
    for row in flat:
        names.update(dict.fromkeys(row))
    if len(names) > _MAX_COLUMNS:
        raise UsageError(f"{len(names)} numbers a sample are too many for CSV; use --format json")
    text = StringIO()
    writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> Row:
    """Return a row with a column for each number: output_0, output_1 ..."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, list):
            flat.update({f"{name}_{i}": v for i, v in enumerate(np.ravel(value).tolist())})
        else:
            flat[name] = value
    return flat
