"""When extensions run and when training stops."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.train.helpers import batches, make_trainer
from weft.core.errors import WeftError
from weft.train import BestTrigger, IntervalTrigger, ManualTrigger, OnceTrigger, TimeTrigger
from weft.train.triggers import as_stop, as_trigger


def fired(trigger: Any, count: int, length: int = 5) -> list[int]:
    """Return the iterations after which a trigger fires."""
    trainer = make_trainer(stop=(count, "iteration"), loader=batches(length))
    found: list[int] = []
    trainer.extend(lambda t: found.append(t.iteration), trigger=trigger, name="probe")
    trainer.run()
    return found


def stand_in(**attributes: Any) -> Any:
    return SimpleNamespace(**attributes)


def updater_at(before: Fraction, now: Fraction) -> Any:
    """Return what stands between two positions, in epochs."""
    return stand_in(
        previous_position=before, position=now, previous_epoch=int(before), epoch=int(now)
    )


def test_interval_of_iterations() -> None:
    assert fired((3, "iteration"), 10) == [3, 6, 9]


def test_interval_of_epochs_fires_at_their_ends() -> None:
    assert fired((1, "epoch"), 11) == [5, 10]
    assert fired((2, "epoch"), 11) == [10]


@pytest.mark.parametrize("period", [0.1, 0.2, 0.3, 0.7])
def test_fractional_epochs_lose_nothing_to_rounding(period: float) -> None:
    exact = Fraction(str(period))
    expected = [n for n in range(1, 41) if Fraction(n - 1, 10) // exact != Fraction(n, 10) // exact]
    assert fired((period, "epoch"), 40, length=10) == expected


def test_extensions_of_epochs_are_visited_at_their_ends_in_their_order() -> None:
    trainer = make_trainer(stop=(7, "iteration"), loader=batches(3))
    found: list[tuple[str, int]] = []
    for name, trigger in (("a", (1, "epoch")), ("b", (2, "iteration")), ("c", (2, "epoch"))):
        trainer.extend(lambda t, n=name: found.append((n, t.iteration)), trigger=trigger, name=name)
    trainer.run()
    assert found == [("b", 2), ("a", 3), ("b", 4), ("a", 6), ("b", 6), ("c", 6)]


def test_period_shorter_than_an_iteration_fires_every_time() -> None:
    assert fired((0.01, "epoch"), 6) == [1, 2, 3, 4, 5, 6]


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 12))
def test_resumed_run_fires_where_the_whole_one_does(length: int, period: int, at: int) -> None:
    trigger = IntervalTrigger(Fraction(period, 3), "epoch")

    def place(n: int) -> Any:
        return stand_in(updater=updater_at(Fraction(n - 1, length), Fraction(n, length)))

    whole = [n for n in range(1, 25) if trigger(place(n))]
    parts = [n for n in range(1, at) if trigger(place(n))]
    parts += [n for n in range(at, 25) if trigger(place(n))]
    assert whole == parts


def test_manual_points() -> None:
    assert fired(ManualTrigger([0.5, 1, 1.9], "epoch"), 12) == [3, 5, 10]
    assert fired(ManualTrigger(4, "iteration"), 12) == [4]


def test_once() -> None:
    assert fired(OnceTrigger(), 5) == [1]
    again = OnceTrigger()
    again.load_state_dict({"fired": True})
    assert fired(again, 5) == []


def test_time_counts_from_the_last_firing() -> None:
    trigger = TimeTrigger(10)
    times = [3.0, 11.0, 12.0, 20.9, 21.0, 50.0]
    assert [trigger(stand_in(elapsed_time=t)) for t in times] == [
        False, True, False, False, True, True
    ]  # fmt: skip
    other = TimeTrigger(10)
    other.load_state_dict(trigger.state_dict())
    assert not other(stand_in(elapsed_time=59.0))


def test_best_ignores_missing_values_and_nan() -> None:
    trigger = BestTrigger("val/accuracy", mode="max")
    values = [None, float("nan"), 0.5, 0.5, 0.4, 0.6]
    seen = [trigger(stand_in(observation={} if v is None else {"val/accuracy": v})) for v in values]
    assert seen == [False, False, True, False, False, True]
    assert trigger.state_dict() == {"best": 0.6}


def test_stop_holds_beyond_the_end() -> None:
    stop = as_stop((2, "epoch"))
    assert stop is not None
    assert stop(stand_in(updater=updater_at(Fraction(5), Fraction(6))))
    half = as_stop((5.5, "epoch"))
    assert half is not None
    assert half(stand_in(updater=updater_at(Fraction(5), Fraction(11, 2))))
    assert not half(stand_in(updater=updater_at(Fraction(5), Fraction(16, 3))))


def test_stop_at_zero_does_nothing() -> None:
    assert fired((1, "iteration"), 0) == []


def test_functions_are_triggers() -> None:
    assert fired(lambda trainer: trainer.iteration % 4 == 1, 9) == [1, 5, 9]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_trigger((1, "epochs")), "'iteration' or 'epoch'. Received: 'epochs'"),
        (lambda: as_trigger((0, "epoch")), "greater than 0"),
        (lambda: as_trigger((-1, "epoch")), "greater than 0"),
        (lambda: as_trigger((float("nan"), "epoch")), "finite number"),
        (lambda: as_trigger(("1", "epoch")), "finite number. Received: '1'"),
        (lambda: as_trigger(5), r"a pair such as \(1, 'epoch'\)"),
        (lambda: as_trigger((1,)), "a pair"),
        (lambda: as_stop((-1, "epoch")), "must not end before"),
        (lambda: as_stop("epoch"), "stop must be a pair"),
        (lambda: ManualTrigger([1, "x"], "epoch"), "a point must be"),
        (lambda: TimeTrigger(0), "seconds must be greater"),
        (lambda: BestTrigger("loss", mode="least"), "'min' or 'max'. Received: 'least'"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        make()
