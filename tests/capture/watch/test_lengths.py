"""Lengths of containers that grow are numbers of a recording, where the user's code asks."""

import builtins
from collections import deque

from tests.capture.watch.watching import Leaf, watched
from weft.capture.watch.lengths import LengthPlace, RecordedLengths


class Count(Leaf):
    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Count(f"{self.text} + {other}")


def test_the_length_of_what_grows_changes_from_call_to_call():
    items = [1]
    (place,) = watched(lambda: [items.append(0), len(items)]).changing
    assert isinstance(place, LengthPlace)
    assert place.text == "the length of items"


def test_a_length_is_a_number_plus_what_was_added():
    items, found = [1, 2], []

    def f():
        found.append((len(items), items.append(0), len(items), len([7])))

    watch = watched(f, numbers={LengthPlace(items): Count("n")})
    assert watch.refusal is None
    first, _, second, other = found[0]
    assert (first.text, second.text, other) == ("n", "n + 1", 1)
    assert not any("length" in guard.text for guard in watch.guards)
    assert len is builtins.len
    assert len(items) == 3


def test_a_length_is_guarded_where_it_decides_otherwise():
    items = [1]

    def f():
        return 1 if items else 2

    assert watched(f).changing == []
    assert any("length" in guard.text for guard in watched(f).guards)


def test_containers_without_a_number_keep_their_len():
    lengths = RecordedLengths({})
    with lengths:
        assert len([1]) == 1
    assert not lengths.has([])


def test_sets_and_dictionaries_do_not_grow_by_what_they_had():
    for change, holder in [
        (set.add, {1}),
        (dict.setdefault, {1: 1}),
        (deque.append, deque([1], 2)),
    ]:

        def f(change=change, holder=holder):
            change(holder, 2)
            return len(holder)

        assert not any(isinstance(place, LengthPlace) for place in watched(f).changing)


def test_other_lengths_are_guarded_while_one_is_a_number():
    items, others = [1], [1, 2]

    def f():
        items.append(0)
        return len(items), len(others)

    watch = watched(f, numbers={LengthPlace(items): Count("n")})
    assert [guard.text for guard in watch.guards if "length" in guard.text] == [
        "the length of others"
    ]
