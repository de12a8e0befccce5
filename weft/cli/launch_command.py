"""`weft launch`, and -n of `weft train`: the same program in many processes, on many hosts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from ..distributed.launcher.launch import LaunchOptions, launch
from .errors import UsageError

# Options with a value: name, metavar, type and what it is for.
_VALUES: tuple[tuple[str, str, Callable[[str], Any], str], ...] = (
    ("hosts", "A,B:4", str, "where ranks run, with how many on each; default: on this host"),
    ("threads", "N", int, "threads of each rank; default: the host's processors, divided"),
    ("memory", "SIZE", str, "what the ranks of a host may have together, e.g. 8G"),
    ("max-restarts", "N", int, "start again, from the last checkpoint, if a rank is lost"),
    ("silence", "SECONDS", float, "a rank that gives no sign of life for so long is lost (10)"),
    ("logs", "DIR", str, "where the log of each rank goes"),
    ("address", "HOST", str, "this host's name, as the others know it"),
    ("agent", "COMMAND", str, "what starts a process on another host, instead of ssh"),
)


def add_rank_options(made: Any) -> None:
    """Add the options of a command that may run in many processes."""
    made.add_argument("-n", "--ranks", type=int, metavar="N", help="run in so many processes")
    for name, shown, kind, about in _VALUES:
        made.add_argument(f"--{name}", type=kind, metavar=shown, help=about)
    made.add_argument(
        "--mpi", action="append", default=[], metavar="OPTION", help="one more option for mpiexec"
    )


def launch_options(options: Namespace, **further: Any) -> LaunchOptions:
    """Return how a command is to be run in many processes."""
    names = [name.replace("-", "_") for name, *_ in _VALUES]
    given = {name: getattr(options, name) for name in names}
    chosen = {name: value for name, value in given.items() if value is not None}
    return LaunchOptions(options.ranks, mpi=tuple(options.mpi), **{**further, **chosen})


def refuse_rank_options(options: Namespace) -> None:
    """Refuse options for many processes that were given without -n."""
    given = [name for name, *_ in _VALUES if getattr(options, name.replace("-", "_")) is not None]
    if given:
        raise UsageError(f"--{given[0]} is for many processes: say how many with -n")


def launch_script(options: Namespace) -> int:
    """Run a script in many processes; return its exit status."""
    options.ranks = options.ranks or 1
    arguments = ["-m"] * options.module + [options.script, *options.arguments]
    return launch(arguments, launch_options(options, survive=options.survive))
