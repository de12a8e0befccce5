"""Reading a configuration: a TOML file with `--set` on top, and a place for every value in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import WeftError
from ..train.registry import hint
from .errors import BUILD_ERRORS, ConfigError
from .toml_lines import Path as Keys
from .toml_lines import key_lines

_MAX_BYTES = 10_000_000
_MAX_DEPTH = 100
_LONG_KEY = re.compile(r"(?:[\w-]+ *\. *){1000}")  # tomllib takes time that grows as its square


@dataclass
class ConfigSource:
    """A configuration as it was written: its values, and where each stands."""

    path: Path
    data: dict[str, Any]
    lines: dict[Keys, int]
    overrides: set[Keys] = field(default_factory=set)

    def where(self, keys: Keys) -> str:
        """Return "file.toml:12" or "--set trainer.epochs" for a value, or what contains it."""
        for end in range(len(keys), 0, -1):
            part = keys[:end]
            if part in self.overrides:
                return f"--set {dotted(part)}"
            if part in self.lines:
                return f"{self.path.name}:{self.lines[part]}"
        return self.path.name

    def is_override(self, keys: Keys) -> bool:
        """Tell whether a value came from the command line."""
        return any(keys[:end] in self.overrides for end in range(1, len(keys) + 1))

    def directory_of(self, keys: Keys) -> Path:
        """Return the directory a relative path is meant from: the file's, or the current one."""
        return Path.cwd() if self.is_override(keys) else self.path.resolve().parent

    def error(self, keys: Keys, message: str) -> ConfigError:
        """Return an error that begins with the place."""
        return ConfigError(f"{self.where(keys)}: {message}")

    def blame(self, keys: Keys, error: Exception, what: str = "") -> ConfigError:
        """Return an error raised while a table was used, at the key that it speaks of."""
        table = self.get(keys)
        named = _mentioned(str(error), table) if isinstance(table, Mapping) else []
        place = (*keys, named[0]) if len(named) == 1 else keys
        message = str(error) if isinstance(error, WeftError | OSError) else _described(error)
        return self.error(place, f"{what}: {message}" if what else message)

    @contextmanager
    def blaming(self, keys: Keys, what: str = "") -> Iterator[None]:
        """Raise what goes wrong in a block as an error of the table it used."""
        try:
            yield
        except BUILD_ERRORS as error:
            raise self.blame(keys, error, what) from error

    def get(self, keys: Keys) -> Any:
        """Return a value by its path, or None."""
        value: Any = self.data
        for key in keys:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def read_source(path: str | Path, settings: Iterable[str] = ()) -> ConfigSource:
    """Read a TOML file and put settings ("trainer.epochs=5") over it."""
    file = Path(path)
    text = _read_text(file)
    if _LONG_KEY.search(text):
        raise ConfigError(_too_deep(file.name))
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(_too_deep(file.name)) from None
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise ConfigError(_syntax_message(file, str(error))) from None
    check_depth(data, file.name)
    source = ConfigSource(file, data, key_lines(text))
    for setting in settings:
        _override(source, setting)
    return source


def check_depth(data: Any, name: str) -> None:
    """Raise if tables and lists lie within one another so deep that no configuration means it."""
    level = [data]
    for _ in range(_MAX_DEPTH):
        containers = [x.values() if isinstance(x, dict) else x for x in level]
        level = [y for x in containers for y in x if isinstance(y, dict | list)]
        if not level:
            return
    raise ConfigError(_too_deep(name))


def _too_deep(name: str) -> str:
    return f"{name}: tables and lists are nested more than {_MAX_DEPTH} levels deep"


def dotted(keys: Keys) -> str:
    """Return a path as it is written after --set.

    >>> dotted(("model", "layers", 0, "type"))
    'model.layers.0.type'
    """
    return ".".join(map(str, keys))


def _read_text(file: Path) -> str:
    if file.is_dir():
        raise ConfigError(f"{file} is a directory; name a TOML file")
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no file {file}{_similar_file(file)}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror or error}") from None
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"{file} has {len(content)} bytes, which is no configuration")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ConfigError(
            f"{file.name}:{line}: expected text in UTF-8, found the byte {byte:#04x}"
        ) from None


def _similar_file(file: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.suffix == ".toml"]
    except OSError:
        return ""
    found = hint(file.name, names)
    return f"; {found}" if found.startswith("did") else ""


def _syntax_message(file: Path, message: str) -> str:
    """Return tomllib's message with the line in front, where all messages have it."""
    match = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    line = f":{match.group(1)}" if match and match.group(1) else ""
    what = message[: match.start()].strip() if match else message
    column = f" (column {match.group(2)})" if match and match.group(2) else " (at the end)"
    return f"{file.name}{line}: this is not TOML: {what}{column}"


# -- --set ---------------------------------------------------------------------------------------


def _override(source: ConfigSource, setting: str) -> None:
    """Put one setting over a configuration; tables on the way are made."""
    name, equals, text = setting.partition("=")
    keys = [key.strip() for key in name.split(".")]
    if not equals or not all(keys):
        raise ConfigError(
            f"--set takes key=value, e.g. --set trainer.epochs=5. Received: {setting!r}"
        )
    path: Keys = ()
    here: Any = source.data
    for key in keys[:-1]:
        step = _step(source, path, here, key)
        path = (*path, step)
        here = here[step]
    last = _step(source, path, here, keys[-1], make=False)
    here[last] = _parsed(text)
    source.overrides.add((*path, last))


def _step(source: ConfigSource, path: Keys, here: Any, key: str, *, make: bool = True) -> str | int:
    """Return the key or index that a part of a setting means in a table or list."""
    if isinstance(here, list):
        return _index(path, here, key)
    if not isinstance(here, dict):
        raise ConfigError(
            f"--set: {dotted(path)} is {here!r}, which has no {key!r} ({source.where(path)})"
        )
    if make and key not in here:
        here[key] = {}
        source.overrides.add((*path, key))
    return key


def _index(path: Keys, here: list[Any], key: str) -> int:
    """Return a position in a list, given as a number or as the name of a table in it."""
    if key.isdigit() and int(key) < len(here):
        return int(key)
    names = [item.get("name") if isinstance(item, dict) else None for item in here]
    if key in names:
        return names.index(key)
    known = ", ".join(str(name or i) for i, name in enumerate(names))
    raise ConfigError(f"--set: {dotted(path)} has no {key!r}; it has {known}")


def _parsed(text: str) -> Any:
    """Return a value written as TOML; what is no TOML is text, so that quotes can be left out."""
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, KeyError):
        return text.strip()
    except RecursionError:
        raise ConfigError(_too_deep("--set")) from None
    check_depth([value], "--set")
    return value


# -- helpers -------------------------------------------------------------------------------------


def _mentioned(message: str, table: Mapping[str, Any]) -> list[str]:
    """Return the keys that a message names, or else those whose text it quotes (a path)."""
    named = [key for key in table if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", message)]
    if named:
        return named
    return [
        k for k, v in table.items() if k != "type" and isinstance(v, str) and v and v in message
    ]


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
