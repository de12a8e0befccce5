"""When code for many sizes is made, and which of it takes what shapes."""

from __future__ import annotations

from weft.core.dim import unknown_size
from weft.core.errors import UnknownSizeError
from weft.graph.sized_code import MOST_SIZED, SizedCode

TYPES = [(unknown_size("a"), unknown_size("b"))]


class Code:
    """Code that takes some sizes only."""

    def __init__(self, pattern, most=10**9):
        self.pattern = pattern
        self.most = most

    def admits(self, sizes):
        return all(size <= self.most for size in sizes.values())

    def bind(self, sizes):
        return self.pattern, tuple(sizes.values())


class With(SizedCode):
    """Codes that are compiled in one way."""

    def __init__(self, compile):
        super().__init__(TYPES)
        self.compile = compile

    def find(self, shapes):
        return super().find(shapes, self.compile)


def test_code_is_made_when_a_size_has_changed_and_then_used():
    made = []
    code = With(lambda pattern, sizes: made.append(sizes) or Code(pattern))
    assert code.find(((4, 3),)) is None
    assert code.find(((5, 3),))[1] == (5,)
    assert code.find(((9, 3),))[1] == (9,)
    assert len(made) == 1
    assert code.find(((9, 7),))[1] == (9, 7)
    assert len(made) == 2


def test_sizes_that_code_does_not_admit_get_other_code():
    limits = iter((100, 1000))
    code = With(lambda pattern, sizes: Code(pattern, next(limits)))
    for size in (4, 5, 200, 50, 300):
        code.find(((size, 3),))
    assert code.find(((6, 3),)) is not None
    assert len(code._made) == 2


def test_a_size_that_must_be_a_number_stays_one():
    def compile(pattern, sizes):
        if not isinstance(pattern[0][1], int):
            raise UnknownSizeError("the second needs a number")
        return Code(pattern)

    code = With(compile)
    code.find(((4, 3),))
    found, sizes = code.find(((5, 6),))
    assert sizes == (5,)
    assert found[0][1] == 6
    assert code.why_fixed() == "the second needs a number"


def test_there_is_no_end_of_patterns_but_of_code():
    code = With(lambda pattern, sizes: Code(pattern, max(sizes.values())))
    for size in range(2, 40):
        code.find(((size, 3),))
    assert len(code._made) == MOST_SIZED
