"""The entry point: the options of each command, and errors as one line instead of a traceback."""

from __future__ import annotations

import argparse
import errno
import importlib.metadata
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import WeftError
from ..core.installed import version
from ..serve import ServeLimits
from .caffe_command import convert_caffe
from .caffe_data_command import add_data_commands
from .errors import ConfigError, UsageError
from .evaluate_command import evaluate_run
from .export_command import batches_of, export_run
from .graph_command import draw_graph
from .info_command import info
from .launch_command import add_rank_options, launch_script
from .predict_command import predict
from .run_command import run_script
from .serve_command import serve
from .solver_command import add_solver_options
from .time_command import time_layers
from .train_command import train

GROUP = "weft.extensions"
OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # 130 is what shells report for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 1 (failed), 2 (bad input), 130 (Ctrl-C)."""
    options = parser().parse_args(arguments)
    try:
        _load_extensions()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status: int = options.run_command(options)
        return status
    except KeyboardInterrupt:
        print("weft: stopped by Ctrl-C; what was saved can be resumed", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has gone, as with `| head`
        sys.stdout = None  # or the exit would try to flush it
        return FAILED
    except (WeftError, OSError) as error:
        if options.debug:
            traceback.print_exc()
        print(f"weft: error: {_message(error)}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, ConfigError | UsageError) else FAILED


def _message(error: Exception) -> str:
    """Return what to print; a full disk met in passing (a log line) gets the advice it needs."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full and "free some space" not in str(error):
        return f"{error}; free some space or choose another directory: saved checkpoints are intact"
    return str(error)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="weft", description="Train, test and use networks that TOML files describe."
    )
    top.add_argument("--version", action="version", version=f"weft {version('weft')}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_train(commands)
    _add_test(commands)
    _add_predict(commands)
    _add_serve(commands)
    _add_time(commands)
    _add_graph(commands)
    _add_export(commands)
    _add_info(commands)
    _add_run(commands)
    _add_launch(commands)
    _add_caffe(commands)
    return top


def _command(commands: Any, name: str, run: Callable[..., int], about: str) -> Any:
    made = commands.add_parser(name, help=about, description=about)
    made.set_defaults(run_command=run)
    made.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a value of the configuration, e.g. --set trainer.epochs=5",
    )
    made.add_argument(
        "--device",
        dest="set",
        action="append",
        type=lambda name: f"device={name}",
        metavar="NAME",
        help="where to run, as `weft info` lists it; sets `device` of the configuration",
    )
    return made


def _add_train(commands: Any) -> None:
    made = _command(commands, "train", train, "train a model in a run directory")
    made.add_argument("config", help="a TOML file, or a solver of Caffe's (.prototxt)")
    made.add_argument("--out", metavar="DIR", help="the run directory (default: runs/NAME-001)")
    made.add_argument(
        "--resume",
        metavar="auto|PATH",
        help="continue the newest run of that name, if there is one; or a run or checkpoint",
    )
    made.add_argument("--dry-run", action="store_true", help="only check the configuration")
    _add_compile(made)
    add_solver_options(made, _at_least(1))
    add_rank_options(made.add_argument_group("many processes"))


def _add_test(commands: Any) -> None:
    made = _command(commands, "test", evaluate_run, "evaluate trained weights")
    made.add_argument("run", help="a run directory, or a TOML file with --weights")
    _add_weights(made)
    made.add_argument("--split", default="test", choices=("train", "val", "test"))
    made.add_argument("--out", metavar="FILE", help="write the figures as JSON")
    _add_compile(made)


def _add_predict(commands: Any) -> None:
    made = _command(commands, "predict", predict, "apply a trained model to new samples")
    made.add_argument("run", help="a run directory, or a TOML file with --weights")
    made.add_argument("inputs", nargs="+", help="images, folders of images, CSV, Parquet, npz, npy")
    _add_weights(made)
    made.add_argument("--out", metavar="FILE", help="a .csv or .json file (default: the terminal)")
    made.add_argument("--format", choices=("csv", "json"), help="default: by the name of --out")
    made.add_argument("--top", type=_at_least(1), default=1, help="so many classes of each sample")
    made.add_argument("--batch-size", type=_at_least(1), metavar="N")
    _add_compile(made)


def _add_serve(commands: Any) -> None:
    made = _command(commands, "serve", serve, "answer requests over HTTP with a trained model")
    made.add_argument("run", help="a run directory, a saved graph, or a TOML file with --weights")
    _add_weights(made)
    made.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine alone")
    made.add_argument("--port", type=_at_least(0), default=8000, help="0: any that is free")
    made.add_argument("--outputs", metavar="A,B", help="of a saved graph: what to compute")
    defaults = ServeLimits()
    counts = {
        "batch": "most items of a batch; 1: no batching",
        "queue": "most items that wait; others are refused (503)",
        "body": "most bytes of a request",
        "connections": "most clients at a time",
    }
    for name, about in counts.items():
        usual = getattr(defaults, f"max_{name}")
        _add_limit(made, f"max-{name}", _at_least(1), usual, about)
    wait = "how long an item waits for others, in milliseconds"
    _add_limit(made, "max-wait-ms", float, 1000 * defaults.max_wait, wait)
    _add_limit(made, "timeout", float, defaults.timeout, "seconds for a request")
    _add_limit(made, "grace", float, defaults.grace, "seconds for those in flight at the end")
    made.add_argument("--threads", type=_at_least(1), metavar="N", help="threads of the model")
    _add_compile(made)


def _add_limit(made: Any, name: str, kind: Any, usual: Any, about: str) -> None:
    made.add_argument(
        f"--{name}", type=kind, default=usual, metavar="N", help=f"{about} (default: {usual})"
    )


def _add_time(commands: Any) -> None:
    made = _command(commands, "time", time_layers, "measure each layer, forward and backward")
    made.add_argument("run", help="a TOML file or a run directory")
    made.add_argument("--batch-size", type=_at_least(1), metavar="N")
    made.add_argument("--repeat", type=_at_least(1), default=10, metavar="N")
    made.add_argument("--json", action="store_true", help="print seconds as JSON")


def _add_graph(commands: Any) -> None:
    made = _command(commands, "graph", draw_graph, "draw the graph of a model, and list its scopes")
    made.add_argument("run", help="a TOML file, a run directory, or a saved graph")
    made.add_argument(
        "--out",
        default="graph.svg",
        metavar="FILE",
        help="a .svg, .png, .dot or .gv file (default: graph.svg)",
    )
    made.add_argument(
        "--depth",
        type=_at_least(0),
        metavar="N",
        help="open so many scopes inside one another; deeper ones become one box each",
    )
    made.add_argument(
        "--training", action="store_true", help="with the loss, its gradients and the update"
    )
    made.add_argument(
        "--tensorboard", metavar="DIR", help="write it for TensorBoard's graph tab too"
    )


def _add_export(commands: Any) -> None:
    made = _command(commands, "export", export_run, "write a trained model to a library for C")
    made.add_argument("run", help="a run directory, or a TOML file with --weights")
    _add_weights(made)
    made.add_argument(
        "-o",
        "--out",
        default="model.so",
        metavar="FILE",
        help="the library; a header of C is written beside it (default: model.so)",
    )
    made.add_argument(
        "--batches",
        type=batches_of,
        default="1",
        metavar="N,M-K",
        help="sizes of batches that it takes, e.g. 1,8,32 or 1-64 (default: 1)",
    )
    made.add_argument(
        "--target",
        default="native",
        help="processors that it is for: native (this one), sse2, avx2, avx512",
    )
    made.add_argument("--threads", type=_at_least(1), metavar="N", help="the work is divided for")
    made.add_argument(
        "--beside", action="store_true", help="put the weights into a file of their own"
    )
    made.add_argument("--prefix", default="weft", help="of the names of functions")


def _add_info(commands: Any) -> None:
    made = _command(commands, "info", info, "show this installation, a run, a file, or a name")
    made.add_argument(
        "target",
        nargs="?",
        help="a TOML file, run directory or safetensors file; a list (layers, optimizers, ...); "
        "or a name in one (Conv2d, adam)",
    )
    made.add_argument("--json", action="store_true", help="print the installation as JSON")


def _add_run(commands: Any) -> None:
    about = "run a script of another framework, served by Weft"
    made = commands.add_parser("run", help=about, description=about)
    made.set_defaults(run_command=run_script)
    made.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    made.add_argument(
        "--report", action="store_true", help="list what the script missed, or was not captured"
    )
    made.add_argument(
        "--jit", action="store_true", help="run steps of programs for PyTorch as compiled programs"
    )
    made.add_argument("script", help="a Python file")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")


def _add_launch(commands: Any) -> None:
    about = "run a script in many processes, on one or more hosts"
    made = commands.add_parser("launch", help=about, description=about)
    made.set_defaults(run_command=launch_script)
    made.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    add_rank_options(made)
    made.add_argument(
        "--survive",
        action="store_true",
        help="if a rank is lost let the others go on, instead of ending all",
    )
    made.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name")
    made.add_argument("script", help="a Python file")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")


def _add_caffe(commands: Any) -> None:
    about = "convert nets of Caffe, and make what they read"
    made = commands.add_parser("caffe", help=about, description=about)
    actions = made.add_subparsers(title="actions", required=True, metavar="ACTION")

    def add(name: str, run: Callable[..., int], about: str) -> Any:
        action = actions.add_parser(name, help=about, description=about)
        action.set_defaults(run_command=run)
        action.add_argument("--debug", action="store_true", help="show tracebacks of errors")
        return action

    about = "convert a net: into graphs, safetensors, and today's forms"
    action = add("convert", convert_caffe, about)
    action.add_argument("net", help="a prototxt file, of any age")
    action.add_argument("weights", nargs="?", help="a .caffemodel (or .h5) file")
    action.add_argument(
        "-o",
        "--out",
        required=True,
        metavar="FILE",
        help=".weft (a graph), .safetensors, .prototxt, .caffemodel or .h5",
    )
    action.add_argument("--phase", choices=("TRAIN", "TEST"), default="TEST")
    add_data_commands(add)


def _add_weights(made: Any) -> None:
    made.add_argument(
        "--weights",
        default="auto",
        metavar="auto|final|last|best|PATH",
        help="which weights: the final ones (default), the last or best checkpoint, or a file",
    )


def _add_compile(made: Any) -> None:
    made.add_argument(
        "--compile",
        dest="set",
        action="append",
        type=_compile_setting,
        metavar="auto|true|false",
        help="run as compiled programs: auto (eagerly where that cannot be), true (or else an "
        "error), false (eagerly); sets `compile` of the configuration",
    )


def _compile_setting(text: str) -> str:
    if text not in {"auto", "true", "false"}:
        raise argparse.ArgumentTypeError(f"must be auto, true or false. Received: {text}")
    return f"compile={text}"


def _at_least(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}. Received: {text}")
        return value

    return integer


def _load_extensions() -> None:
    """Load what installed packages register for configurations (see weft.extend.register)."""
    for point in importlib.metadata.entry_points(group=GROUP):
        point.load()


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"weft: warning: {message}", file=sys.stderr)
