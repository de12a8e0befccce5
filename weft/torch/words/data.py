"""What PyTorch says of loaders, samplers and batches."""

from __future__ import annotations

from ...core.errors import ArgumentError
from .refused import Refused, Rule

TOGETHER = (
    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
)


def loader(refused: Refused) -> Exception | None:
    """Say it of the options of a loader: what PyTorch checks first comes first."""
    workers, timeout = refused["num_workers"] or 0, refused["timeout"] or 0
    if workers < 0:
        return ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        return ValueError("timeout option should be non-negative")
    if not workers and refused["persistent_workers"]:
        return ValueError("persistent_workers option needs num_workers > 0")
    if refused["sampler"] is not None and refused["shuffle"]:
        return ValueError("sampler option is mutually exclusive with shuffle")
    if refused["batch_sampler"] is not None:
        return ValueError(TOGETHER)
    return batches(refused)


def batches(refused: Refused) -> Exception | None:
    """Say it of the size of batches."""
    size = refused["batch_size"]
    if isinstance(size, int) and size >= 1:
        return None
    return ValueError(f"batch_size should be a positive integer value, but got batch_size={size}")


def collate(refused: Refused) -> Exception | None:
    """Say it of items that make no batch."""
    facts = refused.facts
    if "place" in facts:
        return RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(facts['first'])} at entry "
            f"0 and {list(facts['other'])} at entry {facts['place']}"
        )
    if "kind" in facts:
        return TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
            f"found {facts['kind']}"
        )
    if refused.is_a(ArgumentError):
        return RuntimeError("each element in list of batch should be of equal size")
    return None


RULES: dict[str, Rule] = {
    "DataLoader.__init__": loader,
    "BatchSampler.__init__": batches,
    "default_collate": collate,
}
