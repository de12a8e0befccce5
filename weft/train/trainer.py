"""Trainer: the training loop, with extensions beside it.

    updater   one iteration of training
    trigger   when something happens
    extension what happens: evaluation, logs, checkpoints ...

One iteration: a fresh observation, `updater.update()`, then each extension by descending priority.
A run ends at `stop`, when an extension asks for it, or on Ctrl-C, which takes effect after the
iteration; in all these cases every extension's `finish` runs, and the checkpoint is saved there. An
exception goes to every extension's `on_error`. Whatever happens, `finalize` of all extensions runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.rng import default_generator
from .captured import Compile, checked_compile
from .checks import free_name
from .extension import Extension, ExtensionEntry, as_extension
from .interrupts import INTERRUPTED, deferred_interrupts
from .triggers import as_stop
from .updater import Updater


class Trainer:
    """Run an updater until the end, with extensions.

    updater      makes one iteration
    stop         (count, "epoch" | "iteration"), a function of the trainer, or None: on request only
    out          the directory that extensions write to
    extensions   to begin with; see `extend`
    compile      whether steps and evaluations run as compiled programs: "auto", True or False (see
                 captured.py); None: as the updater was told
    device       where the model is to be, and batches beside it; None: where it is

    >>> import weft as wf
    >>> w = wf.nn.Parameter(wf.tensor([0.0]))
    >>> updater = Updater(
    ...     lambda x: x * w,
    ...     wf.optim.SGD([w], lr=0.25),
    ...     lambda output, target: ((output - target) ** 2).sum(),
    ...     [(wf.tensor([1.0]), wf.tensor([3.0]))],
    ... )
    >>> trainer = Trainer(updater, stop=(2, "epoch"), out=None)
    >>> @trainer.extend(trigger=(1, "epoch"))
    ... def show(trainer):
    ...     print(trainer.epoch, trainer.observation)
    >>> trainer.run()
    1 {'train/loss': 9.0}
    2 {'train/loss': 2.25}
    """

    def __init__(
        self,
        updater: Updater,
        stop: Any = None,
        out: str | Path | None = "result",
        extensions: Iterable[Any] = (),
        *,
        compile: Compile | None = None,
        device: Any = None,
    ) -> None:
        self.updater = updater
        if device is not None:
            updater.place(device)
        if compile is not None:
            updater.compile = checked_compile(compile)
        self.stop = as_stop(stop)
        self.out = None if out is None else Path(out)
        self.observation: dict[str, Any] = {}
        self.stop_reason: str | None = None
        self.write: Callable[[str], None] = print_line
        self.timings: dict[str, float] = {}
        self._entries: dict[str, ExtensionEntry] = {}
        self._often: list[ExtensionEntry] = []  # those visited also where no epoch is complete
        self._pending: Mapping[str, Any] = {}  # saved states of extensions not added yet
        self._elapsed_before = 0.0
        self._started_at: float | None = None
        for extension in extensions:
            self.extend(extension)

    # -- where training stands -----------------------------------------------------------------

    @property
    def iteration(self) -> int:
        """Return the number of completed iterations."""
        return self.updater.iteration

    @property
    def epoch(self) -> int:
        """Return the number of completed epochs."""
        return self.updater.epoch

    @property
    def epoch_detail(self) -> float:
        """Return the number of epochs with its fraction."""
        return self.updater.epoch_detail

    @property
    def model(self) -> Any:
        """Return the model that is trained."""
        return self.updater.model

    @property
    def elapsed_time(self) -> float:
        """Return the seconds spent in training, those of resumed runs included."""
        running = 0.0 if self._started_at is None else time.perf_counter() - self._started_at
        return self._elapsed_before + running

    def out_path(self, name: str | Path) -> Path:
        """Return a path in the output directory, which is made if need be."""
        if self.out is None:
            raise ArgumentError(f"to write {name}, the trainer needs a directory: Trainer(out=...)")
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    # -- extensions -------------------------------------------------------------------------------

    def extend(
        self,
        extension: Any = None,
        *,
        name: str | None = None,
        trigger: Any = None,
        priority: int | None = None,
    ) -> Any:
        """Add an extension or a function of the trainer; without one, return a decorator.

        name       must be unique; without it, that of the class or function, with a number if taken
        trigger    (period, "epoch" | "iteration") or a function of the trainer that returns a bool
        priority   larger comes first
        """
        if extension is None:
            return lambda function: self.extend(
                function, name=name, trigger=trigger, priority=priority
            )
        made = as_extension(extension)
        chosen = self._checked_name(name) if name else free_name(made.default_name, self._entries)
        entry = ExtensionEntry(made, chosen, trigger, priority)
        self._entries[chosen] = entry
        if chosen in self._pending:
            entry.load_state_dict(self._pending[chosen])
        return extension

    def get_extension(self, name: str) -> Any:
        """Return an extension by its name."""
        if name not in self._entries:
            known = ", ".join(self._entries) or "none"
            raise ArgumentError(f"there is no extension {name!r}; there are: {known}")
        found = self._entries[name].extension
        return getattr(found, "function", found)

    @property
    def extensions(self) -> dict[str, Extension]:
        """Return the extensions by name, in the order they are visited."""
        return {entry.name: entry.extension for entry in self._ordered()}

    def _ordered(self) -> list[ExtensionEntry]:
        return sorted(self._entries.values(), key=lambda entry: -entry.priority)

    def _checked_name(self, name: str) -> str:
        if name in self._entries:
            raise ArgumentError(f"there is an extension named {name!r} already")
        return name

    # -- running ----------------------------------------------------------------------------------

    def run(self, resume: Any = None) -> None:
        """Train until the end.

        resume   "auto" continues from the latest good checkpoint if there is one; a path from that
                 one

        After Ctrl-C everything is saved and closed, and KeyboardInterrupt is raised.
        """
        if self._started_at is not None:
            raise ArgumentError("this trainer is running already")
        if resume is not None:
            self.resume(resume)
        self.stop_reason = None
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
        with deferred_interrupts(lambda: self.request_stop(INTERRUPTED)) as interrupt:
            self._run_and_clean_up()
        if interrupt.requested:
            raise KeyboardInterrupt

    def request_stop(self, reason: str) -> None:
        """Let the run end after this iteration."""
        self.stop_reason = self.stop_reason or reason

    def _run_and_clean_up(self) -> None:
        entries = self._ordered()
        self._started_at = time.perf_counter()
        try:
            self._run(entries)
        except BaseException as error:
            self._clean_up_after(error, entries)
            raise
        else:
            failures = _call_all(entries, lambda x: x.finalize())
            if failures:
                raise failures[0]
        finally:
            self._elapsed_before = self.elapsed_time
            self._started_at = None
            self.updater.finish()

    def _clean_up_after(self, error: BaseException, entries: list[ExtensionEntry]) -> None:
        failures = _call_all(entries, lambda extension: extension.on_error(self, error))
        failures += _call_all(entries, lambda extension: extension.finalize())
        for failure in failures:
            error.add_note(f"and in an extension: {type(failure).__name__}: {failure}")

    def _run(self, entries: list[ExtensionEntry]) -> None:
        self.updater.start()
        for entry in entries:
            entry.initialize(self)
        self._often = [entry for entry in entries if not entry.waits_for_epochs]
        while not self.updater.serves and not self._at_end():
            self._iterate(entries)
        self.updater.conclude()
        # Backwards: the state is saved before others change the model for good (best weights ...).
        for entry in reversed(entries):
            entry.extension.finish(self)

    def _at_end(self) -> bool:
        if self.stop_reason is not None:
            return True
        return self.stop is not None and self.stop(self)

    def _iterate(self, entries: list[ExtensionEntry]) -> None:
        self.observation = {}
        timings, updater = self.timings, self.updater
        before = time.perf_counter()
        self.observation.update(updater.update())
        now = time.perf_counter()
        timings["update"] = timings.get("update", 0.0) + now - before
        for entry in self._often if updater.epoch == updater.previous_epoch else entries:
            entry.visit(self)
            before, now = now, time.perf_counter()  # one look at the clock between two of them
            timings[entry.name] = timings.get(entry.name, 0.0) + now - before

    # -- state ------------------------------------------------------------------------------------

    def resume(self, source: Any) -> bool:
        """Continue from a checkpoint: a path, or "auto" for the latest good one, if there is any.

        Tell whether there was one.
        """
        for entry in self._entries.values():
            load = getattr(entry.extension, "load_checkpoint", None)
            if load is not None:
                state = load(self, source)
                if state is not None:
                    self.load_state_dict(state)
                return state is not None
        raise ArgumentError("to resume, the trainer needs the extension Checkpoint")

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs to continue as if it had not been interrupted."""
        return {
            "updater": self.updater.state_dict(),
            "random": default_generator.get_state(),
            "elapsed_time": self.elapsed_time,
            "extensions": {name: entry.state_dict() for name, entry in self._entries.items()},
        }

    def load_state_dict(self, state: Any) -> None:
        """Continue where `state_dict` was taken.

        States of extensions that are not there yet wait for them; new ones start afresh.
        """
        if not isinstance(state, Mapping) or not {"updater", "extensions"} <= state.keys():
            raise ArgumentTypeError(
                "Trainer.load_state_dict takes what state_dict returned, with 'updater' and "
                f"'extensions'. Received: {state!r:.60}"
            )
        self.updater.load_state_dict(state["updater"])
        self._elapsed_before = float(state["elapsed_time"])
        self._pending = state["extensions"]
        for name, entry in self._entries.items():
            if name in self._pending:
                entry.load_state_dict(self._pending[name])
        default_generator.set_state(state["random"])


def print_line(text: str) -> None:
    """Print a line; a progress bar puts its own function in this place."""
    print(text, flush=True)


def _call_all(
    entries: list[ExtensionEntry], act: Callable[[Extension], Any]
) -> list[BaseException]:
    """Call a function for every extension, also after failures; return the failures."""
    failures: list[BaseException] = []
    for entry in entries:
        try:
            act(entry.extension)
        except BaseException as failure:
            failures.append(failure)
    return failures
