"""The command line: `weft train`, `test`, `predict`, `serve`, `time` and `info`.

Enter: a TOML file and options. Leave: a run directory, files of predictions, tables on the
terminal. It stands on everything else; nothing imports it.
"""

from ..train.names import REGISTRIES, register
from .errors import ConfigError, UsageError
from .main import main

__all__ = ["REGISTRIES", "ConfigError", "UsageError", "main", "register"]
