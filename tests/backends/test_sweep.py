"""The sweep over all that a back end is held to: what hangs costs a sample."""

from __future__ import annotations

import json

import pytest

from tests.backends.sweep import SIZES, Piece, Watched, sweep, totals


class Scripted:
    """Stands for a watched process: some numbers hang, and some differ."""

    def __init__(self, hang=(), differ=()):
        self.counts = {**dict.fromkeys(SIZES, 0), "graphs": 12}
        self.hang, self.differ, self.asked = set(hang), set(differ), []

    def start(self):
        pass

    def run(self, piece, seconds):
        self.asked.append(piece)
        numbers = set(range(piece.first, piece.last))
        if numbers & self.hang:
            return {"error": f"hung: no answer within {seconds:.0f} seconds"}
        failed = [str(number) for number in sorted(numbers & self.differ)]
        return {"run": len(numbers), "left out": 0, "failed": failed}


def test_a_hang_costs_one_program_and_a_log_is_gone_on_with(tmp_path):
    log = tmp_path / "log.jsonl"
    found = sweep(Scripted(hang=[3], differ=[7, 11]), log, [], 1.0)
    assert found["graphs without result"] == 1
    assert found["graphs differ"] == 2
    assert found["graphs passed"] == 12 - 3
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["piece"] for entry in entries if "error" in entry] == [["graphs", 3, 4]]
    whole = Scripted()
    assert sweep(whole, log, [], 1.0) == found == totals(entries)
    assert whole.asked == []
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries[1:]))
    sweep(whole, log, [], 1.0)
    assert whole.asked == [Piece(*entries[0]["piece"])]


def test_another_process_begins_at_the_end(tmp_path):
    log = tmp_path / "log.jsonl"
    second = Scripted()

    class Meanwhile(Scripted):
        """Runs a piece while the other process runs all that is left."""

        def run(self, piece, seconds):
            found = super().run(piece, seconds)
            if len(self.asked) == 1:
                sweep(second, log, [], 1.0, last_first=True)
            return found

    first = Meanwhile()
    found = sweep(first, log, [], 1.0)
    assert [piece.first for piece in second.asked] == [10, 5, 0]
    assert [piece.first for piece in first.asked] == [0]
    assert found["graphs passed"] == 12  # not seventeen: the first piece was run by both


@pytest.mark.long
def test_a_process_that_takes_too_long_is_replaced():
    watched = Watched("reference")
    try:
        assert watched.run(Piece("control", 0, 1), 300)["failed"] == []
        assert "hung" in watched.run(Piece("registry", 0, 24), 0.0)["error"]
        assert watched.run(Piece("graphs", 0, 1), 300) == {"run": 1, "left out": 0, "failed": []}
    finally:
        watched.end()
