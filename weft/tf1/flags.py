"""`tf.app.flags`: what programs take from their command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "FLAGS",
    "DEFINE_bool",
    "DEFINE_boolean",
    "DEFINE_enum",
    "DEFINE_float",
    "DEFINE_integer",
    "DEFINE_list",
    "DEFINE_string",
]


class Flags:
    """Values by name; they are read from the command line when one is first asked for."""

    def __init__(self) -> None:
        self.__dict__["_parser"] = argparse.ArgumentParser(allow_abbrev=False)
        self.__dict__["_values"] = {}
        self.__dict__["_defined"] = {}
        self.__dict__["_parsed"] = False

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read a command line; return what is no flag, the name of the program first."""
        found, left = self._parser.parse_known_args(list(argv)[1:])
        self._values.update({k: v for k, v in vars(found).items() if k not in self._values})
        self.__dict__["_parsed"] = True
        return [argv[0], *left] if argv else left

    def define(
        self, name: str, default: Any, help: str, kind: Callable[[str], Any], **options: Any
    ) -> None:
        """Add a flag; one that is there already takes the new default."""
        if name in self._defined:
            self._parser.set_defaults(**{name: default})
            return
        self._defined[name] = default
        self._parser.add_argument(
            f"--{name}", f"-{name}", default=default, help=help, type=kind, **options
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._parsed:
            self(sys.argv)
        if name in self._values:
            return self._values[name]
        if name in self._defined:  # defined after the command line was read
            return self._defined[name]
        raise AttributeError(f"Unknown command line flag '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def flag_values_dict(self) -> dict[str, Any]:
        """Return all values by name."""
        return {name: getattr(self, name) for name in self._defined}

    def __iter__(self) -> Any:
        return iter(self._defined)


FLAGS = Flags()


def _truth(text: str) -> bool:
    if text.lower() in ("true", "t", "1", "yes"):
        return True
    if text.lower() in ("false", "f", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"Non-boolean argument to boolean flag: {text!r}")


def DEFINE_string(flag_name: str, default_value: Any, docstring: str = "", **options: Any) -> None:
    """Define a flag of text."""
    FLAGS.define(flag_name, default_value, docstring, str)


def DEFINE_integer(flag_name: str, default_value: Any, docstring: str = "", **options: Any) -> None:
    """Define a flag of a whole number."""
    FLAGS.define(flag_name, default_value, docstring, int)


def DEFINE_float(flag_name: str, default_value: Any, docstring: str = "", **options: Any) -> None:
    """Define a flag of a number."""
    FLAGS.define(flag_name, default_value, docstring, float)


def DEFINE_boolean(flag_name: str, default_value: Any, docstring: str = "", **options: Any) -> None:
    """Define a flag that is set or not."""
    FLAGS.define(flag_name, default_value, docstring, _truth, nargs="?", const=True)


def DEFINE_enum(
    flag_name: str, default_value: Any, enum_values: Any, docstring: str = "", **options: Any
) -> None:
    """Define a flag with one of some texts."""
    FLAGS.define(flag_name, default_value, docstring, str, choices=list(enum_values))


def DEFINE_list(flag_name: str, default_value: Any, docstring: str = "", **options: Any) -> None:
    """Define a flag of texts between commas."""
    default = default_value.split(",") if isinstance(default_value, str) else default_value
    FLAGS.define(flag_name, default, docstring, lambda text: text.split(","))


DEFINE_bool = DEFINE_boolean
