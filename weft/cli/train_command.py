"""`weft train`: make a run directory and train in it, or continue in one."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..distributed import full_state_dict, restarts
from ..distributed.launcher.launch import launch
from ..io import save
from ..train import Trainer, evaluate
from ..train.extensions.files import write_text
from ..train.parallel import group_of
from ..train.summary import scalars_of
from .assemble import Run, build_run, build_updater
from .config import read_source
from .extensions import extend, is_first
from .launch_command import launch_options, refuse_rank_options
from .run_directory import (
    LOGS,
    RESULTS,
    WEIGHTS,
    changed_keys,
    choose_directory,
    write_files,
)
from .run_schema import resolve
from .solver_command import is_solver, refuse_solver_options, train_solver


def train(options: Namespace) -> int:
    """Train as a configuration says, or a solver of Caffe's."""
    if is_solver(options.config):
        return train_solver(options)
    refuse_solver_options(options)
    if options.ranks is not None:
        return _train_in_ranks(options)
    refuse_rank_options(options)
    options.resume = "auto" if restarts() else options.resume
    source = read_source(options.config, options.set)
    run = build_run(source)
    directory = choose_directory(source, run.config, options.out, options.resume)
    trainer = Trainer(build_updater(run), stop=_stop(run.config["trainer"]), out=directory)
    notes = extend(trainer, run)
    if options.dry_run:
        _announce(run, directory, notes)
        print("the configuration is good; nothing was trained (--dry-run)")
        return 0
    _resume(trainer, run, directory, options.resume)
    if is_first(run.config):
        write_files(directory, run.config, _facts(run))
        _announce(run, directory, notes)
    trainer.run()
    _finish(trainer, run, directory)
    return 0


def _train_in_ranks(options: Namespace) -> int:
    """Train in many processes, all of them in one run directory."""
    source = read_source(options.config, options.set)
    config = resolve(source)
    directory = choose_directory(source, config, options.out, options.resume)
    changes = [] if config["trainer"]["parallel"] else ["trainer.parallel=true"]
    if config["trainer"]["progress"] == "auto" and not sys.stdout.isatty():
        changes.append("trainer.progress=false")
    arguments = ["-m", "weft.cli", "train", options.config, "--out", str(directory)]
    arguments += ["--resume", options.resume] if options.resume is not None else []
    arguments += [part for change in (*options.set, *changes) for part in ("--set", change)]
    arguments += [flag for flag in ("--debug", "--dry-run") if getattr(options, _name(flag))]
    return launch(arguments, launch_options(options, logs=str(directory / LOGS)))


def _name(flag: str) -> str:
    return flag.strip("-").replace("-", "_")


def _stop(settings: Mapping[str, Any]) -> tuple[Any, str]:
    if "iterations" in settings:
        return settings["iterations"], "iteration"
    return settings["epochs"], "epoch"


def _resume(trainer: Trainer, run: Run, directory: Path, resume: str | None) -> None:
    if resume is None:
        return
    changed = changed_keys(directory, run.config)
    if changed:
        print(f"resuming with other settings than before: {', '.join(changed[:10])}")
    is_run = resume == "auto" or Path(resume) == directory
    if trainer.resume("auto" if is_run else resume):
        print(f"resumed at epoch {trainer.epoch_detail:g}, iteration {trainer.iteration}")
    else:
        print("there is no checkpoint to resume from; starting at the beginning")


def _announce(run: Run, directory: Path, notes: list[str]) -> None:
    sizes = ", ".join(f"{name} {len(data)}" for name, data in run.data.splits.items())
    parameters = sum(p.size for p in run.model.parameters())
    print(f"data: {sizes}    model: {parameters:,} parameters    run directory: {directory}")
    for note in notes:
        print(f"note: {note}")


def _facts(run: Run) -> dict[str, Any]:
    tensors = [x for x in run.example if hasattr(x, "shape")]
    shapes, dtypes = [list(x.shape[1:]) for x in tensors], [x.dtype.name for x in tensors]
    return {**run.data.facts, "input_shapes": shapes, "input_dtypes": dtypes}


def _finish(trainer: Trainer, run: Run, directory: Path) -> None:
    """Save the final weights, and evaluate them on the test data: processes do it together."""
    weights = full_state_dict(run.model)
    results: dict[str, Any] = {"epoch": trainer.epoch_detail, "iteration": trainer.iteration}
    group = group_of(trainer.updater)
    is_test = run.config["trainer"]["test"] and "test" in run.data.splits
    if is_test and (group is not None or is_first(run.config)):
        results["test"] = scalars_of(
            evaluate(
                run.objective,
                run.loader("test"),
                run.metrics(),
                compile=run.config["compile"],
                group=group,
            )
        )
    if is_first(run.config):
        _write(trainer, run, directory, weights, results)


def _write(
    trainer: Trainer, run: Run, directory: Path, weights: Any, results: dict[str, Any]
) -> None:
    """Write and show what a run has come to."""
    if trainer.stop_reason:
        print(f"stopped: {trainer.stop_reason}")
    save(directory / WEIGHTS, weights, {"config": run.config, **run.data.facts})
    if "test" in results:
        print("test  " + "  ".join(f"{k} {v:.4g}" for k, v in results["test"].items()))
    write_text(directory / RESULTS, json.dumps(results, indent=1) + "\n")
    print(f"saved {directory / WEIGHTS}")
