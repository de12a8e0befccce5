"""Train networks over structures: Weft's batched functions against PyTorch.

    python benchmarks/batching.py --peer-python /path/to/python/with/torch [--only tree]
    python benchmarks/batching.py --growth          how time and memory grow with trees and depth
    python benchmarks/batching.py --scheduling      the share of a step that is not computing
    python benchmarks/batching.py --device opencl:0 steps on a device, first and later ones

A step is the loss of a batch, its gradients and an update by SGD, on batches that are drawn anew
from a pool of examples each time. `torch` runs the same program one example after another, `torch
by hand` is batched as one would write it (by depth, padded, in step), `weft products` multiplies
the same matrices in one product each, forward and backward, and does nothing else, and `weft one by
one` is the same code as `weft`, called for each example. Losses and gradients are compared first.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import main as compare
from structures import examples as x

BATCH, POOL = 64, 512
TREE, BALANCED, TAGGER, PARSER = "tree-LSTM", "balanced trees", "BiLSTM tagger", "parser"
WIDTHS = {TREE: 150, BALANCED: 256, TAGGER: (100, 100), PARSER: (100, 128)}
STEPS = 40  # on a device, until it has met the widths of batches
FEW = 8  # balanced trees that are run one by one: 256 of them would take minutes


class Batches:
    """Batches from a pool: always of the same examples for comparison, drawn anew for timing."""

    def __init__(self, pool: list[Any], size: int) -> None:
        self.pool, self.size = pool, size
        self._rng = np.random.default_rng(0)

    def first(self) -> list[Any]:
        """Return the batch on which frameworks are compared."""
        return self.pool[: self.size]

    def draw(self) -> list[Any]:
        """Return another batch."""
        return [self.pool[i] for i in self._rng.choice(len(self.pool), self.size, replace=False)]


def data(name: str) -> Batches:
    """Return the examples of a workload."""
    if name == TREE:
        return Batches(x.random_trees(POOL), BATCH)
    if name.startswith(BALANCED):
        few = name.endswith(f"{FEW}")
        return Batches(x.balanced_trees(2 * FEW if few else 320), FEW if few else 256)
    return Batches(x.sentences(POOL), BATCH)


SHAPES = {
    TREE: partial(x.tree_shapes, 150),
    BALANCED: partial(x.tree_shapes, 256),
    TAGGER: partial(x.tagger_shapes, 100, 100),
    PARSER: partial(x.parser_shapes, 100, 128),
}
NAMES = (TREE, f"{BALANCED}, {FEW}", BALANCED, TAGGER, PARSER)


def workload(
    training: Any, losses: Callable[[Any], Any], batches: Batches, seen: bool = False
) -> Callable[[], Any]:
    """Return a step on a new batch each time; where asked, after two epochs over all examples.

    Paths of examples that read values are noted in the second one.
    """
    epochs = iter([batches.pool] * 2 if seen else [])

    def run() -> None:
        for pool in epochs:
            for start in range(0, len(pool), batches.size):
                losses(pool[start : start + batches.size])
        training.step(losses, batches.draw())

    run.computed = partial(training.computed, losses, batches.first())  # type: ignore[attr-defined]  # harness.py reads it
    return run


def _networks(models: Any) -> dict[str, Any]:
    kinds = {TREE: models.TreeLSTM, BALANCED: models.TreeLSTM}
    kinds |= {TAGGER: models.Tagger, PARSER: models.Parser}
    return {name: kinds[name.split(",")[0]](SHAPES[name.split(",")[0]]()) for name in NAMES}


def weft() -> dict[str, Any]:
    """Return steps of batched functions."""
    from structures import weft_models

    import weft as wf

    nets = _networks(weft_models)
    return {
        name: workload(
            weft_models.Training(net), wf.batched(net.loss, reduce="mean"), data(name), seen=True
        )
        for name, net in nets.items()
    }


def weft_one_by_one() -> dict[str, Any]:
    """Return steps of the same functions, called for one example after another."""
    from structures import weft_models

    import weft as wf

    def mean(net: Any, given: list[Any]) -> Any:
        return wf.stack([net.loss(example) for example in given]).mean()

    nets = _networks(weft_models)
    return {
        name: workload(weft_models.Training(net), partial(mean, net), data(name))
        for name, net in nets.items()
        if name != BALANCED
    }


def torch_one_by_one() -> dict[str, Any]:
    """Return steps that run one example after another."""
    from structures import torch_models

    nets = _networks(torch_models)
    return {
        name: workload(torch_models.Training(net), net.one_by_one, data(name))
        for name, net in nets.items()
        if name != BALANCED
    }


def torch_by_hand() -> dict[str, Any]:
    """Return steps that are batched by hand."""
    from structures import torch_models

    ways = {TREE: "by_depth", BALANCED: "by_depth", TAGGER: "padded", PARSER: "in_step"}
    nets = _networks(torch_models)
    return {
        name: workload(
            torch_models.Training(net), getattr(net, ways[name.split(",")[0]]), data(name)
        )
        for name, net in nets.items()
    }


def products() -> dict[str, Any]:
    """Return the products of a step, each over all its rows at once: forward and both adjoints."""
    import weft as wf

    def multiply(pairs: list[tuple[Any, Any, Any]]) -> Any:
        return [(a @ w, g @ w.T, a.T @ g) for a, w, g in pairs]

    jitted = wf.jit(multiply)
    found = {}
    for name in NAMES:
        shapes = SHAPES[name.split(",")[0]]()
        pairs = []
        for weight, rows in _rows(name, data(name).first()).items():
            inputs, outputs = shapes[weight]
            arrays = (np.ones((rows, inputs)), np.ones((inputs, outputs)), np.ones((rows, outputs)))
            pairs.append(tuple(wf.tensor(a.astype(np.float32)) for a in arrays))
        found[name] = partial(jitted, pairs)
        found[name].computed = None
    return found


def _rows(name: str, given: list[Any]) -> dict[str, int]:
    """Return how many rows each matrix is multiplied with, in a batch."""
    if name.startswith((TREE, BALANCED)):
        return {"weight": sum(tree.count() // 2 for tree in given), "out": len(given)}
    words = sum(len(s.words) for s in given)
    if name == TAGGER:
        letters = sum(len(w) for s in given for w in s.letters if w is not None)
        return {
            "spell_weight": letters,
            "forward_weight": words,
            "backward_weight": words,
            "out": words,
        }
    steps = sum(len(s.steps) for s in given)
    return {"hidden": steps, "out": steps, "join": words - len(given)}


FRAMEWORKS = {
    "weft": weft,
    "torch": torch_one_by_one,
    "torch by hand": torch_by_hand,
    "weft products": products,
    "weft one by one": weft_one_by_one,
}


# -- how it grows ---------------------------------------------------------------------------------


def growth() -> None:
    """Print times and memory for more trees, deeper chains, and a million nodes."""
    from structures import weft_models

    print(f"{'':<8}{'nodes':>10}{'new ms':>12}{'seen ms':>12}{'us a node':>12}{'MB at most':>12}")
    net = weft_models.TreeLSTM(x.tree_shapes(32))
    for count in (1, 4, 16, 64, 256, 1024):
        _grown(net, x.random_trees(count), f"{count} trees")
    chain = weft_models.Chain(x.tree_shapes(32))
    for depth in (1, 10, 100, 1000):
        _grown(chain, [depth] * 16, f"{depth} deep")
    _grown(net, x.random_trees(23_300), "10^6")


def _grown(net: Any, given: list[Any], label: str) -> None:
    from structures import weft_models

    import weft as wf

    nodes = sum(g if isinstance(g, int) else g.count() for g in given)
    warm = wf.batched(net.loss, reduce="mean")
    training = weft_models.Training(net)
    training.step(warm, given[:1])  # compiles
    losses = wf.batched(net.loss, reduce="mean")
    times = []
    for _ in range(3):
        start = time.process_time()
        training.step(losses, given)
        times.append(time.process_time() - start)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    new, seen = times[0], min(times[1:])
    figures = f"{new * 1e3:>12.2f}{seen * 1e3:>12.2f}{seen / nodes * 1e6:>12.2f}{most:>12.0f}"
    print(f"{label:<10}{nodes:>8}{figures}", flush=True)


class Computing:
    """Adds up the time in which batches run: memory is made, operands gathered, kernels called."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._is_inside = False

    def watch(self, kind: Any, name: str) -> None:
        """Count the time of a method, unless another one that is counted calls it."""
        method = getattr(kind, name)

        def timed(*args: Any) -> Any:
            if self._is_inside:
                return method(*args)
            start, self._is_inside = time.process_time(), True
            try:
                return method(*args)
            finally:
                self._is_inside = False
                self.seconds += time.process_time() - start

        setattr(kind, name, timed)


def scheduling() -> None:
    """Print what of a step is neither computing nor gathering, for new and for seen structures."""
    from structures import weft_models

    import weft as wf
    from weft.dynamic.arenas import Arenas

    computing = Computing()
    for name in ("run", "launch", "add", "take", "prepare"):
        computing.watch(Arenas, name)
    kinds = {TREE: weft_models.TreeLSTM, TAGGER: weft_models.Tagger, PARSER: weft_models.Parser}
    print(f"{'milliseconds':<16}{'a step':>10}{'scheduling':>12}{'share':>8}")
    for name, kind in kinds.items():
        net, batches = kind(SHAPES[name]()), data(name)
        training, losses = weft_models.Training(net), wf.batched(net.loss, reduce="mean")
        training.step(losses, batches.pool[-1:])  # compiles
        pool, size = batches.pool, batches.size
        new = [pool[start : start + size] for start in range(0, len(pool), size)]
        seen = [batches.draw() for _ in range(8)]
        for label, given in (("new", new), ("again", new), ("seen", seen)):
            parts = [_parts(training, losses, batch, computing) for batch in given]
            whole, forward = (statistics.median(column) for column in zip(*parts, strict=True))
            row = f"{1e3 * whole:>10.1f}{1e3 * forward:>12.1f}{forward / whole:>8.0%}"
            print(f"{name + ', ' + label:<16.16}{row}", flush=True)


def _parts(training: Any, losses: Any, given: list[Any], computing: Any) -> tuple[float, float]:
    """Return the seconds of a step, and those of its forward pass in which no batch ran."""
    start, before = time.process_time(), computing.seconds
    loss = losses(given)
    forward = time.process_time() - start - (computing.seconds - before)
    loss.backward()
    training.optimizer.step()
    training.optimizer.zero_grad()
    return time.process_time() - start, forward


def on_device(where: str) -> None:
    """Print what steps on a device take: the first, and the median of the last ten."""
    from structures import weft_models

    import weft as wf

    kinds = {TREE: weft_models.TreeLSTM, TAGGER: weft_models.Tagger}
    print(f"{'milliseconds':<16}{'first':>10}{'later':>10}{'launches':>12}")
    for name, kind in kinds.items():
        batches, times, launches = data(name), [], []
        with wf.device(where):
            net = kind(SHAPES[name]())
            training, losses = weft_models.Training(net), wf.batched(net.loss, reduce="mean")
            for _ in range(STEPS):
                start, before = time.perf_counter(), _launches(where)
                training.step(losses, batches.draw())
                wf.device(where).synchronize()
                times.append(time.perf_counter() - start)
                launches.append(_launches(where) - before)
        later, counted = statistics.median(times[-10:]), statistics.median(launches[-10:])
        print(f"{name:<16}{1e3 * times[0]:>10.0f}{1e3 * later:>10.1f}{counted:>12.0f}", flush=True)


def _launches(where: str) -> int:
    """Return how many kernels were launched on a device so far."""
    import weft as wf

    found: int = wf.device(where).stats().get("launches", 0)
    return found


if __name__ == "__main__":
    chosen = argparse.ArgumentParser(add_help=False)
    chosen.add_argument("--growth", action="store_true")
    chosen.add_argument("--scheduling", action="store_true")
    chosen.add_argument("--device")
    known, rest = chosen.parse_known_args()
    sys.argv[1:] = rest
    if known.device:
        on_device(known.device)
    elif known.growth or known.scheduling:
        (growth if known.growth else scheduling)()
    else:
        compare(__file__, FRAMEWORKS, tolerance=2e-3)
