"""`chainer.training`: the loop, its updaters, extensions and triggers."""

from __future__ import annotations

from . import extensions, triggers, updaters
from .extension import PRIORITY_EDITOR, PRIORITY_READER, PRIORITY_WRITER, Extension, make_extension
from .trainer import Trainer
from .triggers import IntervalTrigger, get_trigger
from .updater import ParallelUpdater, StandardUpdater, Updater

__all__ = [
    "PRIORITY_EDITOR",
    "PRIORITY_READER",
    "PRIORITY_WRITER",
    "Extension",
    "IntervalTrigger",
    "ParallelUpdater",
    "StandardUpdater",
    "Trainer",
    "Updater",
    "extensions",
    "get_trigger",
    "make_extension",
    "triggers",
    "updaters",
]
