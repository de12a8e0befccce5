"""Results of rules that are kept by operator, attributes and types."""

from weft.lower.remember import remembered


def test_results_are_kept():
    calls = []

    @remembered
    def rule(op, attrs, *types):
        calls.append((op, attrs, types))
        return len(calls)

    assert rule("op", (1,), "a") == rule("op", (1,), "a") == 1
    assert rule("op", (2,), "a") == 2
    assert rule("other", (1,), "a") == 3
    assert rule("op", (1,), "b") == 4
    assert rule.__name__ == "rule"


def test_equal_attributes_of_other_types_are_others():
    rule = remembered(lambda op, attrs, *types: type(attrs[0]))
    assert [rule("op", (value,)) for value in (1, 1.0, True)] == [int, float, bool]


def test_attributes_that_are_no_keys_are_not_kept():
    calls = []
    rule = remembered(lambda op, attrs: calls.append(attrs))
    rule("op", ([1],))
    rule("op", ([1],))
    assert len(calls) == 2
