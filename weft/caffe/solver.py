"""The solver: trains a net as a SolverParameter says, in Caffe's order of things.

One iteration is one compiled program: forward and backward of iter_size batches, clipping,
regularisation and update.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.modes import no_grad
from ..core.rng import default_generator, manual_seed
from ..core.tensor import Tensor, wrap
from ..io.disk import replace_file
from ..train.captured import Captures
from .errors import CaffeError
from .message import Message, SolverParameter
from .network import Network
from .policies import build_policy, current_step
from .smoothing import SmoothedLoss
from .snapshots import (
    Standing,
    learned_net_of,
    load_standing,
    save_standing,
    snapshot_name,
)
from .solver_log import SolverLog, shown
from .solver_nets import test_nets, train_net
from .solver_rules import SolverOptimizer, blob_groups
from .solver_signals import DEFAULTS, SNAPSHOT, STOP, Requests, listening
from .text import read_message_file
from .weights import load_weights, save_weights


class Solver:
    """Train a net as a solver's prototxt says.

    param   a SolverParameter, or the path of a prototxt file that holds one
    log     where lines go; by default to the standard error stream, as Caffe's do
    path    of the file that `param` is of, if it is a message: nets that are not found from the
            working directory are looked for beside it

    `iter` counts iterations, `net` is the net that is trained, `test_nets` share its blobs.
    """

    def __init__(self, param: Any, *, log: SolverLog | None = None, path: Any = None) -> None:
        self.param, self._path = _solver_parameter(param, path)
        folder = self._path.parent
        self.log = log or SolverLog()
        _check(self.param)
        if self.param.random_seed >= 0:
            manual_seed(self.param.random_seed)
        self.net = train_net(self.param, folder)
        self.network = self.net.network
        self.test_nets = test_nets(self.param, folder, self.net)
        self.blobs = self.network.learned_blobs()
        groups = blob_groups((b.value, b.lr_mult, b.decay_mult) for b in self.blobs)
        if not groups:
            raise CaffeError(f"net {self.network.net_name!r} has no blobs that could be trained")
        self.optimizer = SolverOptimizer(groups, self.param)
        self.policy = build_policy(self.param, self.optimizer)
        self.iter = 0
        self.requests = Requests()
        self._smoothed = SmoothedLoss(self.param.average_loss)
        self._captures = Captures()
        self._callbacks: list[Callable[[], Any]] = []
        self._stopped = False
        self._displayed = (0, time.perf_counter())
        for name in self.param.weights:
            self.copy_from(name)

    @property
    def type(self) -> str:
        """Return the type of the solver, as in `type: "Adam"`."""
        return self.optimizer.kind

    # -- training ----------------------------------------------------------------------------------

    def solve(self, resume_file: Any = None, *, effects: Mapping[str, str] = DEFAULTS) -> None:
        """Train to the last iteration, with tests, snapshots and a log on the way.

        effects   what signals do: "stop" (after a snapshot), "snapshot" or "none"
        """
        self.log(f"Solving {self.network.net_name}")
        self.log(f"Learning Rate Policy: {self.param.lr_policy}")
        if resume_file is not None:
            self.restore(resume_file)
        with listening(self.requests, effects):
            self._run(self.param.max_iter - self.iter, keep=False)
        every = self.param.snapshot
        if self.param.snapshot_after_train and (not every or self.iter % every):
            self.snapshot()
        if self._stopped:
            self.log("Optimization stopped early.")
            return
        self._show_end()
        self.log("Optimization Done.")

    def step(self, count: int) -> None:
        """Take so many iterations; the blobs of `net` then have the values of the last one.

        The diffs of parameters are what the last update took away from them, as in Caffe.
        """
        self._run(count, keep=True)

    def _run(self, count: int, *, keep: bool) -> None:
        self._smoothed.clear()
        self._stopped = False
        self._displayed = (self.iter, time.perf_counter())
        stop = self.iter + count
        while self.iter < stop and not self._stopped:
            self._test_if_due()
            for callback in self._callbacks:
                callback()
            self._iterate(keep=keep and self.iter == stop - 1)
            asked = self.requests.take()
            every = self.param.snapshot
            if asked == SNAPSHOT or (every and self.iter % every == 0):
                self.snapshot()
            self._stopped = asked == STOP

    def _iterate(self, *, keep: bool) -> None:
        self.policy.step(self.iter)
        batches = [self._inputs(self.network) for _ in range(self.param.iter_size)]
        if keep:
            loss, outputs = self._take_step_and_keep(batches)
        else:
            loss, outputs = self._captures.get("step", self._take_step, "auto")(batches)
        smoothed = self._smoothed.add(loss.item() / self.param.iter_size)
        if self.param.display and self.iter % self.param.display == 0:
            self._display(smoothed, outputs)
        self.iter += 1

    def _take_step(
        self, batches: list[list[Tensor]], *, every: bool = False
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute gradients of batches and update; return their summed loss, the last outputs.

        every   return all blobs instead of the outputs
        """
        self.optimizer.zero_grad()
        total: Any = None
        found: dict[str, Tensor] = {}
        for inputs in batches:
            loss, found = self.network.results(*inputs, every=every)
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        self.optimizer.clip(self.param.clip_gradients)
        self.optimizer.divide(self.param.iter_size)
        self.optimizer.step()
        return total, {name: value.detach() for name, value in found.items()}

    def _take_whole_step(self, batches: list[list[Tensor]]) -> tuple[Tensor, dict[str, Tensor]]:
        """Take a step and return all blobs."""
        return self._take_step(batches, every=True)

    def _take_step_and_keep(self, batches: list[list[Tensor]]) -> tuple[Tensor, dict[str, Tensor]]:
        """Take a step, and put what it computed into the blobs of `net`."""
        params = [blob for blobs in self.net.params.values() for blob in blobs]
        before = [np.array(blob.data) for blob in params]
        loss, found = self._captures.get("whole step", self._take_whole_step, "auto")(batches)
        for name, value in found.items():
            self.net.blobs[name].put(value)
        for blob, old in zip(params, before, strict=True):
            blob.diff[...] = old - blob.data
        return loss, {name: found[name] for name in self.network.output_names}

    def add_callback(self, start: Callable[[], Any], gradients_ready: Any = None) -> None:
        """Call a function before each iteration."""
        if gradients_ready is not None:
            raise CaffeError(
                "a step is one compiled program, which stops for nobody between gradients and "
                "update; give add_callback one function, for the start of iterations"
            )
        self._callbacks.append(start)

    def _inputs(self, network: Network) -> list[Tensor]:
        found = network.next_inputs()
        try:
            return [wrap(np.asarray(found[name], np.float32)) for name in network.input_names]
        except KeyError:
            missing = [name for name in network.input_names if name not in found]
            raise CaffeError(
                f"net {network.net_name!r}: nothing brings {', '.join(missing)}; a net that a "
                "solver trains needs data layers (Data, HDF5Data, MemoryData, DummyData, ...)"
            ) from None

    # -- testing -----------------------------------------------------------------------------------

    def _test_if_due(self) -> None:
        every = self.param.test_interval
        due = every and self.iter % every == 0
        if due and (self.iter or self.param.test_initialization):
            self.test_all()

    def test_all(self) -> list[dict[str, Any]]:
        """Test all nets for that; return the means of their outputs."""
        return [self.test(number) for number in range(len(self.test_nets))]

    def test(self, number: int = 0) -> dict[str, Any]:
        """Run a test net as often as test_iter says; return the means of its outputs."""
        self.log(f"Iteration {self.iter}, Testing net (#{number})")
        network, count = self.test_nets[number].network, self.param.test_iter[number]
        evaluate = self._captures.get(("test", number), network.results, "auto")
        sums: dict[str, Any] = {}
        total = 0.0
        with no_grad():
            for _ in range(count):
                loss, outputs = evaluate(*self._inputs(network))
                total += loss.item()
                for name, value in outputs.items():
                    sums[name] = sums.get(name, 0.0) + np.asarray(value.numpy(), np.float64)
        if self.param.test_compute_loss:
            self.log(f"Test loss: {shown(total / count)}")
        means = {name: value / count for name, value in sums.items()}
        self._log_outputs(network, means, "Test")
        return means

    # -- the log -----------------------------------------------------------------------------------

    def _display(self, loss: float, outputs: Mapping[str, Tensor]) -> None:
        since, then = self._displayed
        seconds, count = time.perf_counter() - then, self.iter - since
        speed = f" ({shown(count / seconds)} iter/s, {shown(seconds)}s/{count} iters)"
        self.log(f"Iteration {self.iter}{speed if count else ''}, loss = {shown(loss)}")
        self._log_outputs(self.network, {n: v.numpy() for n, v in outputs.items()}, "Train")
        rate = self.optimizer.param_groups[0]["lr"]
        self.log(f"Iteration {self.iter}, lr = {shown(rate)}")
        self._displayed = (self.iter, time.perf_counter())

    def _log_outputs(self, network: Network, outputs: Mapping[str, Any], phase: str) -> None:
        weights = {
            name: weight
            for step in network.steps
            for name, weight in zip(step.tops, step.loss_weights, strict=True)
        }
        numbers = ((n, x) for n, values in outputs.items() for x in np.ravel(values).tolist())
        for place, (name, x) in enumerate(numbers):
            weight = weights.get(name, 0.0)
            counted = f" (* {shown(weight)} = {shown(weight * x)} loss)" if weight else ""
            self.log(f"    {phase} net output #{place}: {name} = {shown(x)}{counted}")

    def _show_end(self) -> None:
        """Log the loss and the tests of the trained net, if the last iteration is a round one."""
        if self.param.display and self.iter % self.param.display == 0:
            evaluate = self._captures.get("forward", self.network.results, "auto")
            with no_grad():
                loss, _ = evaluate(*self._inputs(self.network))
            self.log(f"Iteration {self.iter}, loss = {shown(self._smoothed.add(loss.item()))}")
        every = self.param.test_interval
        if every and self.iter % every == 0:
            self.test_all()

    # -- files -------------------------------------------------------------------------------------

    def snapshot(self) -> Path:
        """Write the weights and where the solver stands; return the path of the latter."""
        hdf5 = self.param.which("snapshot_format") == "HDF5"
        kind = "HDF5" if hdf5 else "binary proto"
        prefix = self._prefix()
        weights = snapshot_name(prefix, self.iter, "caffemodel", hdf5=hdf5)
        path = snapshot_name(prefix, self.iter, "solverstate", hdf5=hdf5)
        self.log(f"Snapshotting to {kind} file {weights}")
        replace_file(weights, lambda new: save_weights(self.network, new))
        self.log(f"Snapshotting solver state to {kind} file {path}")
        save_standing(path, self.standing(weights))
        return path

    def standing(self, weights: Path) -> Standing:
        """Return where the solver stands, with the path of its weights."""
        return Standing(
            self.iter,
            str(weights),
            current_step(self.param, self.iter),
            self.optimizer.history(blob.value for blob in self.blobs),
            {"inputs": self._input_states(), "random": default_generator.get_state()},
        )

    def restore(self, path: Any) -> None:
        """Go on from a snapshot: weights, history, inputs and random numbers."""
        self.log(f"Restoring previous solver status from {path}")
        standing = load_standing(path)
        load_weights(self.network, learned_net_of(path, standing))
        self.optimizer.load_history(
            [blob.value for blob in self.blobs], standing.history, standing.iteration
        )
        self.iter = standing.iteration
        if standing.ours:
            self._restore_inputs(standing.ours, path)

    def copy_from(self, path: Any) -> None:
        """Take over the weights of layers of the same names: finetuning."""
        self.log(f"Finetuning from {path}")
        load_weights(self.network, path)

    def _networks(self) -> list[Network]:
        return [net.network for net in (self.net, *self.test_nets)]

    def _input_states(self) -> dict[str, Any]:
        return {
            f"{number}/{'/'.join(tops)}": source.state()
            for number, network in enumerate(self._networks())
            for tops, source in network.sources
            if hasattr(source, "state")
        }

    def _restore_inputs(self, ours: Mapping[str, Any], path: Any) -> None:
        try:
            for number, network in enumerate(self._networks()):
                for tops, source in network.sources:
                    state = ours["inputs"].get(f"{number}/{'/'.join(tops)}")
                    if state is not None and hasattr(source, "restore"):
                        source.restore(state)
            default_generator.set_state(ours["random"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CaffeError(f"{path}: the state of the inputs is damaged ({error!r})") from None

    def _prefix(self) -> str:
        """Return what names of snapshots begin with; by default that of the solver's file."""
        prefix = self.param.snapshot_prefix or str(self._path.with_suffix(""))
        return str(Path(prefix) / self._path.stem) if Path(prefix).is_dir() else prefix


def _solver_parameter(param: Any, path: Any) -> tuple[Message, Path]:
    if isinstance(param, SolverParameter):
        return param.copy(), Path("solver" if path is None else path)
    file = Path(param)
    return read_message_file(file, SolverParameter), file


def _check(param: Message) -> None:
    if not param.has("base_lr"):
        raise CaffeError("a solver needs base_lr, the learning rate")
    if not param.has("lr_policy"):
        raise CaffeError('a solver needs lr_policy, e.g. lr_policy: "fixed"')
    for name in ("iter_size", "average_loss"):
        if getattr(param, name) < 1:
            raise CaffeError(f"{name} must be positive. Received: {getattr(param, name)}")
    for name in ("max_iter", "snapshot", "display", "test_interval"):
        if getattr(param, name) < 0:
            raise CaffeError(f"{name} must not be negative. Received: {getattr(param, name)}")
