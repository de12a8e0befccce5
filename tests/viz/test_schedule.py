"""Pictures of schedules."""

from __future__ import annotations

import pytest

from weft.viz.schedule import ScheduledBatch, draw_schedule

BATCHES = [
    ScheduledBatch("add(3)", "elementwise", 64, 1),
    ScheduledBatch("matmul(3, shared 3x3)", "contraction", 12, 1),
    ScheduledBatch("add(3)", "elementwise", 5, 2),
]


def test_batches_of_one_label_share_a_row(tmp_path):
    text = draw_schedule("a run", BATCHES, tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == text
    assert text.count("<rect") == 4  # the paper, and three batches
    assert "add(3): 64 at once" in text
    assert ">matmul(3, shared 3x3)<" in text


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"suffix.*\.svg, \.png"):
        draw_schedule("a run", BATCHES, tmp_path / "run.txt")


def test_an_empty_schedule_is_a_picture_too():
    assert draw_schedule("nothing", []).startswith("<svg")
