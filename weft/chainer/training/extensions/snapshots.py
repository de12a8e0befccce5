"""Snapshots: the run, or a part of it, as a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....train.extensions.files import write_whole
from ...serializers import load_npz, save_npz
from ..extension import Extension


class _Snapshot(Extension):
    trigger = (1, "epoch")
    priority = -100

    def __init__(
        self, target: Any, savefun: Callable[[Any, Any], Any], filename: Any, autoload: bool
    ) -> None:
        self._target, self._save, self._filename, self._autoload = (
            target,
            savefun,
            filename,
            autoload,
        )

    @property
    def default_name(self) -> str:
        """The name used when none is given."""
        return "snapshot" if self._target is None else "snapshot_object"

    def initialize(self, trainer: Any) -> None:
        """Go on from the newest snapshot, if that is wanted."""
        if self._autoload:
            pattern = self._filename.partition("{")[0] if isinstance(self._filename, str) else ""
            found = (
                [p for p in trainer.out.glob(f"{pattern}*") if p.is_file()]
                if trainer.out.is_dir()
                else []
            )
            if found:
                load_npz(max(found, key=lambda p: p.stat().st_mtime), self._target or trainer)

    def __call__(self, trainer: Any) -> None:
        """Write the file."""
        name = (
            self._filename(trainer) if callable(self._filename) else self._filename.format(trainer)
        )
        whole = self._target if self._target is not None else trainer
        write_whole(trainer.out_path(name), lambda path: self._save(path, whole))


def snapshot(
    savefun: Callable[[Any, Any], Any] = save_npz,
    filename: Any = "snapshot_iter_{.updater.iteration}",
    *,
    target: Any = None,
    autoload: bool = False,
    **_: Any,
) -> Extension:
    """Return an extension that saves the whole trainer."""
    return _Snapshot(target, savefun, filename, autoload)


def snapshot_object(
    target: Any,
    filename: Any,
    savefun: Callable[[Any, Any], Any] = save_npz,
    *,
    autoload: bool = False,
    **_: Any,
) -> Extension:
    """Return an extension that saves an object."""
    return _Snapshot(target, savefun, filename, autoload)
