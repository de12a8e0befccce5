"""PyTorch's operator database, called on `weft.torch` exactly as PyTorch is called.

    python benchmarks/torch_database.py [--names PATTERN ...] [--shard I/N] [--show COUNT]
                                        [--record FILE] [--dtype NAME]

Needs PyTorch, with `expecttest`, beside Weft. For every name of the database, and every sample with
real numbers that it has, values and gradients of the face are held against PyTorch's. What differs
is listed with its reason (database_notes.py), and counted. Where a gradient differs, finite
differences of PyTorch's own function say which of the two is right. A record keeps what was found;
names that it has are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402  (after the warnings are off)
from database_notes import ABSENT, OUT_OF_SCOPE, REASONS  # noqa: E402
from database_trial import Trial, call_of, find  # noqa: E402
from torch.testing._internal import common_methods_invocations as database  # noqa: E402

# The dtype of samples is the first of these that an entry knows.
DTYPES = [torch.float64, torch.float32, torch.int64, torch.bool]


def label_of(info: Any) -> str:
    """Return the name of an entry, with its variant."""
    return f"{info.name}.{info.variant_test_name}".rstrip(".")


def dtype_of(info: Any) -> Any:
    """Return the dtype with which an entry is tried, or None."""
    known = info.supported_dtypes("cpu")
    for dtype in DTYPES:
        if dtype in known:
            return dtype
    return None


def is_checked(info: Any) -> bool:
    """Tell whether PyTorch's own tests hold the gradients of an entry against differences."""
    marks = [m for m in info.decorators if getattr(m, "cls_name", None) == "TestBwdGradients"]
    return not any(m.test_name in (None, "test_fn_grad") for m in marks)


def try_entry(info: Any) -> dict[str, Any]:
    """Return what was found of one entry of the database."""
    call, dtype = call_of(info), dtype_of(info)
    found: dict[str, Any] = {"label": label_of(info), "name": info.name}
    found |= {"known": find(info.name) is not None, "checked": is_checked(info), "samples": []}
    if call is None or not found["known"] or dtype is None:
        return found
    torch.manual_seed(0)
    wants_grad = info.supports_autograd and dtype.is_floating_point
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=wants_grad))
    except Exception as error:  # of the database itself
        return {**found, "failed": f"{type(error).__name__}: {str(error)[:80]}"}
    for sample in samples:
        try:
            found["samples"].append(Trial(call, info, sample).compare())
        except Exception as error:  # PyTorch's own
            found["samples"].append(
                (f"not compared: {type(error).__name__}: {error}"[:120], "none")
            )
    return found


def run(patterns: list[str], shard: tuple[int, int], record: Path | None) -> list[dict[str, Any]]:
    """Try the entries of the database that are not in the record yet; return all."""
    done = {}
    if record is not None and record.exists():
        lines = record.read_text(encoding="utf-8").splitlines()
        done = {entry["label"]: entry for entry in map(json.loads, lines)}
    chosen = [i for i in database.op_db if not i.name.startswith(tuple(OUT_OF_SCOPE))]
    chosen = [i for i in chosen if not patterns or any(fnmatch(i.name, p) for p in patterns)]
    for info in chosen[shard[0] :: shard[1]]:
        if label_of(info) in done:
            continue
        entry = done[label_of(info)] = try_entry(info)
        if record is not None:
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
    return list(done.values())


# -- what is printed ------------------------------------------------------------------------------


def report(entries: list[dict[str, Any]], show: int) -> None:
    """Print what differs, and how many names, values and gradients do not."""
    counts: Counter[str] = Counter()
    for entry in entries:
        label, shown = entry["label"], 0
        for number, (value, grad) in enumerate(entry["samples"]):
            counts[f"values {_kind(value)}"] += 1
            counts[f"gradients {_kind(grad)}"] += grad != "none"
            if entry["checked"]:
                counts[f"gradients that PyTorch's own tests check {_kind(grad)}"] += grad != "none"
            if {_kind(value), _kind(grad)} & {"wrong", "right"}:
                counts[f"of {label}"] += 1
                shown += 1
                if shown <= show:
                    print(f"{label} [{number}]: {value}; gradient {grad}")
        if label in REASONS and shown:
            print(f"  {shown} of {label}: {REASONS[label]}")
    _report_names(entries)
    for kind in ("values", "gradients", "gradients that PyTorch's own tests check"):
        right, wrong = counts[f"{kind} equal"], counts[f"{kind} wrong"]
        ours = counts[f"{kind} right"]
        total = right + wrong + ours
        print(f"{kind}: {right} of {total} equal ({right / max(total, 1):.2%})")
        if ours:
            print(f"  {ours} more are right by finite differences, and PyTorch's are not")
    skipped = counts["values complex"], counts["values not compared"]
    print("not counted: {} samples of complex numbers, {} that PyTorch refuses".format(*skipped))
    worst = [(c, n.removeprefix("of ")) for n, c in counts.items() if n.startswith("of ")]
    print("by name:", *[f"{n}:{c}" for c, n in sorted(worst, reverse=True)])


def _kind(found: str) -> str:
    if found in ("equal", "complex", "none"):
        return found
    if found.startswith("not compared"):
        return "not compared"
    return "right" if found.startswith("ours is right") else "wrong"


def _report_names(entries: list[dict[str, Any]]) -> None:
    names: dict[str, bool] = {}
    for entry in entries:
        names[entry["name"]] = names.get(entry["name"], False) or entry["known"]
    for name in sorted(n for n, known in names.items() if not known):
        print(f"missing: {name} ({ABSENT.get(name, 'to be done')})")
    print(f"names: {sum(names.values())} of {len(names)}")


def main() -> None:
    """Read options, run, and print counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", nargs="*", default=[], help="patterns of names: linalg.*")
    parser.add_argument("--shard", default="0/1", help="which part of how many")
    parser.add_argument("--show", type=int, default=3, help="how many misses of an entry to print")
    parser.add_argument("--record", type=Path, help="a file of what was found, which is continued")
    parser.add_argument("--dtype", help="try this one alone; by default float64 where it is known")
    options = parser.parse_args()
    if options.dtype:
        DTYPES[:] = [getattr(torch, options.dtype)]
    index, count = map(int, options.shard.split("/"))
    begun = time.perf_counter()
    report(run(options.names, (index, count), options.record), options.show)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
