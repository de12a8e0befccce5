"""Run the examples of training as a user would: programs, and configurations for `weft train`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
WEFT = ("-c", "from weft.cli import main; raise SystemExit(main())")
# The packages that most of them need; gymnasium is asked for where it is used.
for _package in ("matplotlib", "PIL", "safetensors", "sklearn"):
    pytest.importorskip(_package)


def run_python(arguments: Sequence[str], directory: Path) -> str:
    """Run Python in a directory with warnings as errors; return what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        # Matrices this small gain nothing from threads, which wait for one another in a spin.
        "OPENBLAS_NUM_THREADS": "1",
    }
    process = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        check=False,  # a failure is reported with its traceback, below
        cwd=directory,
        encoding="utf-8",
        env=environment,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stderr == ""
    return process.stdout


def run_example(name: str, directory: Path, *options: str) -> str:
    return run_python([str(EXAMPLES / f"{name}.py"), *options], directory)


def train(name: str, directory: Path, *settings: str, out: str = "run") -> Path:
    """Run `weft train` on an example; return the run directory."""
    options = [part for setting in settings for part in ("--set", setting)]
    config = str(EXAMPLES / f"{name}.toml")
    run_python([*WEFT, "train", config, "--out", out, *options], directory)
    return directory / out


def figures(pattern: str, output: str) -> list[float]:
    """Return the numbers of the line that fits a pattern."""
    match = re.search(pattern, output, re.MULTILINE)
    assert match is not None, output
    return [float(number) for number in match.groups()]


def results(run: Path) -> dict[str, float]:
    """Return the figures of the test at the end of a run."""
    found: dict[str, float] = json.loads((run / "results.json").read_text())["test"]
    return found


def image_size(path: Path) -> tuple[int, int]:
    from PIL import Image  # noqa: PLC0415  (the module is skipped where it is missing)

    with Image.open(path) as image:
        size: tuple[int, int] = image.size
        return size


def log_of(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_every_example_is_described() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".toml"}}
    described = re.findall(
        r"^\| \[(\w+\.\w+)\]\(\1\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(described) == sorted(names)


# -- programs ------------------------------------------------------------------------------------


def check_vae(output: str, directory: Path, share: float) -> None:
    before, after = figures(r"^reconstruction error: (\S+) -> (\S+)$", output)
    assert after < share * before
    for name in ("samples.png", "reconstructions.png"):
        assert image_size(directory / "vae" / name) == (16 * 10 * 4, 8 * 10 * 4)
    assert (directory / "vae" / "curves.png").is_file()
    assert len(log_of(directory / "vae")) >= 5


def test_autoencoder_vae(tmp_path: Path) -> None:
    output = run_example("autoencoder_vae", tmp_path, "--quick", "--out", "vae")
    check_vae(output, tmp_path, share=0.6)


@pytest.mark.long
def test_autoencoder_vae_at_full_size(tmp_path: Path) -> None:
    check_vae(run_example("autoencoder_vae", tmp_path, "--out", "vae"), tmp_path, share=0.2)


def test_autoencoder_vae_repeats_itself(tmp_path: Path) -> None:
    run_example("autoencoder_vae", tmp_path, "--epochs=1", "--out=a")
    run_example("autoencoder_vae", tmp_path, "--epochs=1", "--out=b")
    a, b = (tmp_path / name / "samples.png" for name in "ab")
    assert a.read_bytes() == b.read_bytes()


def test_cartpole_dqn_learns_something(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    output = run_example("cartpole_dqn", tmp_path, "--quick")
    (score,) = figures(r"^mean return: (\S+) \((?:NOT )?solved: 475\)$", output)
    assert score > 50  # random pushes make 22


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_cartpole_dqn_solves_the_task(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    output = run_example("cartpole_dqn", tmp_path, f"--seed={seed}")
    (score,) = figures(r"^mean return: (\S+) \(solved: 475\)$", output)
    assert 475 <= score <= 500


def check_transfer(output: str) -> tuple[float, float]:
    """Return the accuracies without and with transfer."""
    assert "missing in the file: head.1.weight, head.1.bias\n" in output
    assert "not wanted by the network: head.bias, head.weight\n" in output
    (first,) = figures(r"^digits 0-4: accuracy (\S+)% on images", output)
    assert first > 80
    (without,) = figures(r"^accuracy without transfer: (\S+)%$", output)
    (with_it,) = figures(r"^accuracy with transfer: (\S+)%$", output)
    return without, with_it


def test_transfer_learning(tmp_path: Path) -> None:
    output = run_example("transfer_learning", tmp_path, "--quick", "--out", "weights")
    _, with_it = check_transfer(output)
    assert with_it > 30  # guessing among five makes 20
    assert (tmp_path / "weights" / "digits_0_to_4.safetensors").is_file()


@pytest.mark.long
def test_transfer_helps(tmp_path: Path) -> None:
    without, with_it = check_transfer(run_example("transfer_learning", tmp_path))
    assert with_it > without + 5


def check_four_ways(output: str) -> None:
    *ways, last = output.splitlines()
    assert [line.split()[0] for line in ways] == ["by_loop", "by_fit", "by_trainer", "by_command"]
    (digest,) = {line.split()[1] for line in ways}
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert last == "identical"


def test_four_ways(tmp_path: Path) -> None:
    check_four_ways(run_example("four_ways", tmp_path, "--quick"))
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_four_ways_at_full_size(tmp_path: Path) -> None:
    check_four_ways(run_example("four_ways", tmp_path))


def test_make_image_folder(tmp_path: Path) -> None:
    output = run_example("make_image_folder", tmp_path, "--quick")
    assert output == f"images: 80 in {Path('runs', 'shapes')}\n"
    folders = sorted((tmp_path / "runs" / "shapes").iterdir())
    assert [folder.name for folder in folders] == ["circle", "cross", "square", "triangle"]
    for folder in folders:
        assert len(list(folder.glob("*.png"))) == 20
        assert image_size(folder / "0000.png") == (32, 32)


# -- configurations ------------------------------------------------------------------------------


def test_digits_learns_in_a_few_epochs(tmp_path: Path) -> None:
    run = train("digits", tmp_path, "trainer.epochs=4")
    assert results(run)["accuracy"] > 0.93
    for name in ("config.toml", "curves.png", "log.jsonl", "model.safetensors"):
        assert (run / name).is_file()
    assert len(log_of(run)) == 4


@pytest.mark.long
def test_digits_reaches_97_percent(tmp_path: Path) -> None:
    assert results(train("digits", tmp_path))["accuracy"] >= 0.97


@pytest.mark.long
def test_transfer_continues_the_digits(tmp_path: Path) -> None:
    train("digits", tmp_path, "trainer.epochs=4", out="first")
    weights = "model.weights.path=first/model.safetensors"
    run = train("transfer", tmp_path, weights, out="second")
    assert results(run)["accuracy"] > 0.9


def test_resnet_reads_the_image_folder(tmp_path: Path) -> None:
    run_example("make_image_folder", tmp_path, "--quick")
    source = 'data.source={type="image_folder", root="runs/shapes"}'
    run = train("resnet", tmp_path, source, "trainer.epochs=2")
    assert len(log_of(run)) == 2
    facts = json.loads((run / "run.json").read_text())
    assert facts["classes"] == ["circle", "cross", "square", "triangle"]


@pytest.mark.long
def test_resnet_tells_shapes_apart(tmp_path: Path) -> None:
    run_example("make_image_folder", tmp_path)
    source = 'data.source={type="image_folder", root="runs/shapes"}'
    assert results(train("resnet", tmp_path, source))["accuracy"] > 0.95


def test_char_lm_writes_text(tmp_path: Path) -> None:
    run = train("char_lm", tmp_path, "data.source.limit=20_000", "trainer.epochs=1")
    assert np.isfinite(results(run)["perplexity"])
    assert len((run / "samples.txt").read_text()) > 100


@pytest.mark.long
def test_char_lm_learns(tmp_path: Path) -> None:
    run = train("char_lm", tmp_path)
    assert results(run)["perplexity"] < 12  # an untrained model has about 100


def test_vae_configuration_draws_samples(tmp_path: Path) -> None:
    run = train("vae", tmp_path, "trainer.epochs=5")
    assert log_of(run)[-1]["val/loss"] < log_of(run)[0]["val/loss"]
    assert (run / "samples.png").is_file()


def test_nine_faces_write_one_graph(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    output = run_example("by_face/compare", tmp_path)
    assert figures(r"^graphs: (\d+)$", output) == [1]
    assert figures(r"^weights of compiled faces: (\d+)$", output) == [1]
    (difference,) = figures(r"^largest difference: (\S+)$", output)
    assert difference < 1e-5
    assert output.count("  graph ") == 9
