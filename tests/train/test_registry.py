"""One registry for all front ends: names, defaults, and no second table of either."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.cli.assemble import build_loss, build_metrics, build_optimizer, build_run
from weft.cli.config import ConfigSource, read_source
from weft.cli.schedules import build_schedule
from weft.core.errors import ArgumentError
from weft.extend import register
from weft.nn import Module
from weft.train import WeftClassifier, estimators, get_loss, get_metric, get_optimizer, keras
from weft.train.losses import LOSSES
from weft.train.names import LAYERS, METRICS, OPTIMIZERS, REGISTRIES, SCHEDULES
from weft.train.registry import Registry, hint

PACKAGE = Path(wf.__file__).parent
CONFIG = """
[data.source]
type = "blobs"
n = 20
[model]
layers = [{type = "Linear", out_features = 3}]
"""
# What a schedule needs and no signature can know.
SCHEDULE_OPTIONS = {"gamma": 0.5, "step_size": 2, "milestones": [1], "T_0": 2}
SCHEDULE_OPTIONS |= {"max_lr": 0.1, "base_lr": 0.01, "swa_lr": 0.1}


def toml_source(path: Path, loss: str = "cross_entropy", **tables: str) -> ConfigSource:
    """Return a configuration whose loss, optimizer ... are given by name alone."""
    tables = {"optimizer": 'type = "sgd"', **tables}
    text = f'loss = "{loss}"\n' if "loss" not in tables else ""
    text += CONFIG + "".join(f"[{name}]\n{body}\n" for name, body in tables.items())
    file = path / "run.toml"
    file.write_text(text)
    return read_source(file)


def hyperparameters(optimizer: Any) -> dict[str, Any]:
    return {
        k: v for k, v in optimizer.param_groups[0].items() if k not in {"params", "param_names"}
    }


def settings(made: Any) -> dict[str, Any]:
    """Return the options that an object keeps under their own names."""
    return {k: v for k, v in vars(made).items() if isinstance(v, bool | int | float | str | tuple)}


def fitted_optimizer(name: str) -> Any:
    model = wf.nn.Linear(2, 1)
    keras.compile(model, name, "mse")
    keras.fit(model, np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    return model.__dict__["optimizer"]


def estimated_optimizer(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sklearn")
    made = []

    def spy(*args: Any, **options: Any) -> Any:
        made.append(get_optimizer(*args, **options))
        return made[-1]

    monkeypatch.setattr(estimators, "get_optimizer", spy)
    WeftClassifier(optimizer=name, epochs=1).fit(np.eye(4), [0, 1, 0, 1])
    return made[0]


# -- one set of defaults ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "muon"])  # of matrices alone
@pytest.mark.filterwarnings("ignore:.*LBFGS steps by values")  # so it runs eagerly
def test_an_optimizer_is_the_same_everywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_code = hyperparameters(OPTIMIZERS[name].make([wf.nn.Parameter(wf.tensor([1.0]))]))
    toml = build_optimizer(build_run(toml_source(tmp_path, optimizer=f'type = "{name}"')))
    assert hyperparameters(toml) == in_code
    if not toml.takes_dense:  # these faces have no layer with row-sparse gradients
        return
    assert hyperparameters(fitted_optimizer(name)) == in_code
    assert hyperparameters(estimated_optimizer(name, monkeypatch)) == in_code


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_the_same_everywhere(name: str, tmp_path: Path) -> None:
    source = toml_source(tmp_path, name)
    from_toml = build_loss(source, {"loss": {"type": name}})
    by_name = get_loss(name)
    in_code = LOSSES[name].make()
    assert type(from_toml.function) is type(by_name.function) is type(in_code)
    assert from_toml.traits == by_name.traits
    assert settings(from_toml.function) == settings(by_name.function) == settings(in_code)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_the_same_everywhere(name: str, tmp_path: Path) -> None:
    source = toml_source(tmp_path)
    (from_toml,) = build_metrics(source, {"metrics": [{"type": name}]}).values()
    by_name, in_code = get_metric(name), METRICS[name].make()
    assert type(from_toml) is type(by_name) is type(in_code)
    assert settings(from_toml) == settings(by_name) == settings(in_code)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_has_the_defaults_of_its_class(name: str, tmp_path: Path) -> None:
    entry = SCHEDULES[name]
    options = {k: v for k, v in SCHEDULE_OPTIONS.items() if k in entry.options}
    body = f'type = "{name}"\n' + "".join(f"{k} = {v}\n" for k, v in options.items())
    run = build_run(
        toml_source(
            tmp_path, optimizer='type = "sgd"\nmomentum = 0.9', schedule=body, trainer="epochs = 5"
        )
    )
    made = build_schedule(run.source, run.config, build_optimizer(run), 4)
    assert made is not None
    lengths = dict.fromkeys(("T_max", "max_iter", "total_iters", "total_steps"), 5)
    required = {
        k: lengths[k]
        for k, option in entry.options.items()
        if k in lengths and (option.required or "run" in entry.traits)
    }
    in_code = entry.make(build_optimizer(run), **options, **required)
    assert settings(made[0].schedule) == settings(in_code)


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_options_are_those_of_the_signature(registry: Registry) -> None:
    for name in registry:
        entry = registry[name]
        assert entry.options is entry.options
        # Runs are repeatable, and losses look for classes at axis 1: the only other defaults.
        assert set(entry.changes) <= {"seed", "classes_first"}


# -- own names -------------------------------------------------------------------------------------


def test_a_registered_name_serves_all_front_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(wf.optim.SGD):
        def __init__(self, params: Any, lr: float = 1e-6) -> None:
            super().__init__(params, lr)

    def cubed(output: Any, target: Any) -> Any:
        return ((output - target) ** 3).mean()

    for registry in (OPTIMIZERS, LOSSES, METRICS):
        monkeypatch.setattr(registry, "entries", dict(registry.entries))
    register("optimizers", "slow", Slow)
    register("losses", "cubed", lambda: cubed)
    register("metrics", "error", wf.train.metrics.MAE)
    model: Any = wf.nn.Linear(2, 1)
    model.compile("slow", "cubed", metrics=["error"])
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert model.optimizer.param_groups[0]["lr"] == 1e-6
    assert estimated_optimizer("slow", monkeypatch).param_groups[0]["lr"] == 1e-6
    run = build_run(toml_source(tmp_path, optimizer='type = "slow"'))
    assert isinstance(build_optimizer(run), Slow)


def test_messages_name_what_is_near() -> None:
    registry = Registry("thing")
    assert hint("x", registry) == "there are none"
    registry.add(("first", "one"), Module)
    assert list(registry) == ["first", "one"]
    assert len(registry) == 2
    assert registry["one"].name == "first"
    with pytest.raises(ArgumentError, match="there is no thing 'frist'; did you mean 'first'"):
        _ = registry["frist"]
    with pytest.raises(ArgumentError, match="no thing 'zzzzz'; there are: first, one"):
        _ = registry["zzzzz"]
    with pytest.raises(ArgumentError, match="there is a thing named 'one' already"):
        registry.add("one", Module)


# -- one table -------------------------------------------------------------------------------------


def tables_of_names(text: str) -> list[tuple[int, str, list[str]]]:
    """Return the literals of three or more registered names of one kind."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            parts: list[Any] = node.keys
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = node.elts
        else:
            continue
        words = {p.value for p in parts if isinstance(p, ast.Constant) and type(p.value) is str}
        for kind in ("optimizers", "losses", "metrics", "schedules"):
            known = sorted(words & set(REGISTRIES[kind]))
            if len(known) > 2:
                found.append((node.lineno, kind, known))
    return found


def test_a_table_of_names_is_found() -> None:
    assert tables_of_names("x = {'sgd': 1, 'adam': 2, 'lion': 3}") == [
        (1, "optimizers", ["adam", "lion", "sgd"])
    ]
    assert tables_of_names("x = ('mse', 'mae', 'other')") == []


def test_no_name_stands_in_a_second_table() -> None:
    owners = {"train/names.py", "train/losses.py", "train/metrics/registry.py"}
    second = [
        (file.relative_to(PACKAGE).as_posix(), *table)
        for package in ("train", "cli", "nn", "optim", "data", "io")
        for file in sorted((PACKAGE / package).rglob("*.py"))
        if file.relative_to(PACKAGE).as_posix() not in owners
        for table in tables_of_names(file.read_text(encoding="utf-8"))
    ]
    assert second == []


def test_layers_are_the_public_modules() -> None:
    for name in LAYERS:
        assert getattr(wf.nn, name, None) or getattr(wf.nn.models, name)
