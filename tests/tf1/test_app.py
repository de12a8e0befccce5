"""Flags, main functions, files and messages of TensorFlow 1's face."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import weft.tf1 as tf
from weft.cli import main
from weft.tf1.examples.tutorials.mnist import input_data
from weft.tf1.flags import Flags


def test_flags_are_read_from_the_command_line():
    flags = Flags()
    flags.define("rate", 0.1, "", float)
    flags.define("name", None, "", str)
    assert flags(["program", "--rate=0.5", "rest"]) == ["program", "rest"]
    assert flags.rate == 0.5
    assert flags.name is None
    flags.name = "x"
    assert flags.flag_values_dict() == {"rate": 0.5, "name": "x"}
    with pytest.raises(AttributeError, match="Unknown command line flag 'speed'"):
        _ = flags.speed


def test_a_program_with_flags_runs_by_its_main_function(tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text(
        "import tensorflow as tf\n"
        "flags = tf.app.flags\n"
        "flags.DEFINE_integer('steps', 3, 'how many')\n"
        "flags.DEFINE_boolean('loud', False, 'whether')\n"
        "FLAGS = flags.FLAGS\n"
        "def main(_):\n"
        "    print(FLAGS.steps, FLAGS.loud)\n"
        "if __name__ == '__main__':\n"
        "    tf.app.run()\n"
    )
    assert main(["run", str(script), "--steps=5", "--loud"]) == 0
    assert capsys.readouterr().out.strip() == "5 True"


def test_files_by_tensorflows_names(tmp_path):
    folder = str(tmp_path / "a" / "b")
    tf.gfile.MakeDirs(folder)
    with tf.gfile.GFile(f"{folder}/x.txt", "w") as file:
        file.write("hello")
    assert tf.gfile.Exists(f"{folder}/x.txt")
    assert tf.gfile.GFile(f"{folder}/x.txt").read() == "hello"
    assert tf.gfile.Glob(f"{folder}/*.txt") == [f"{folder}/x.txt"]
    tf.gfile.Copy(f"{folder}/x.txt", f"{folder}/y.txt")
    assert sorted(tf.gfile.ListDirectory(folder)) == ["x.txt", "y.txt"]
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.Copy(f"{folder}/x.txt", f"{folder}/y.txt")
    tf.gfile.DeleteRecursively(folder)
    assert not tf.gfile.IsDirectory(folder)
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        tf.gfile.GFile(f"{folder}/x.txt").read()


def test_messages_go_to_pythons_logging(caplog):
    with caplog.at_level(logging.INFO, "tensorflow"):
        tf.logging.info("step %d", 3)
    assert "step 3" in caplog.text


def test_digits_are_read_from_a_folder_and_not_downloaded(tmp_path):
    with pytest.raises(Exception, match=str(tmp_path)):
        input_data.read_data_sets(str(tmp_path))
    images = np.arange(5)
    data = input_data.DataSet(images, images * 10, seed=1)
    taken = [data.next_batch(2) for _ in range(5)]
    assert data.epochs_completed == 2
    assert sorted(np.concatenate([x for x, _ in taken])) == sorted([*range(5)] * 2)
    assert all((y == 10 * x).all() for x, y in taken)


def test_imports_of_modules_are_served(tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text(
        "import tensorflow.compat.v1 as tf\n"
        "from tensorflow.contrib import rnn\n"
        "from tensorflow.python.framework import ops\n"
    )
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow\.python"):
        main(["run", str(script)])
