"""A count of all changes to modules: their attributes, their modes, their hooks.

Compiled functions depend on hundreds of attributes of the modules that they call. While the count
stands still none of them has changed, and nobody need look.
"""

from __future__ import annotations

MODULE_CHANGES = [0]  # a list of one, which written tests read without a call
_unseen: set[str] = set()
_counted: list[str] = []  # packages


def count_change() -> None:
    """Note that an attribute, a mode or a hook of some module changes."""
    MODULE_CHANGES[0] += 1


def leave_unseen(*names: str) -> None:
    """Say that what others leave at modules by these names is nothing that layers look at."""
    _unseen.update(names)


def is_unseen(name: str) -> bool:
    """Tell whether an attribute of a layer is nothing that it looks at."""
    return name in _unseen


def count_all_of(package: str) -> None:
    """Say that modules which a package declares change by assignments to attributes alone."""
    _counted.append(f"{package}.")


def is_all_counted(kind: type) -> bool:
    """Tell whether all changes of modules of a class are counted; a class derived of it is not."""
    return kind.__module__.startswith(tuple(_counted))
