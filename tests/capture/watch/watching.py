"""What tests of watched calls share."""

from weft.capture.watch import Watch


class Leaf:
    """A recorded value."""


def is_leaf(value):
    return isinstance(value, Leaf)


class Thing:
    """An object with attributes."""

    shared = 1

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def method(self):
        return self.shared


def watched(function, *args, **options):
    """Watch a call, and return the watch."""
    watch = Watch(function, args, opaque=is_leaf, recorded=is_leaf, **options)
    with watch:
        watch.result = function(*args)
    assert "could not be followed" not in str(watch.refusal)
    return watch


def check_guarded(function, change, *args):
    """Check that a function can be repeated until something changes that it read."""
    watch = watched(function, *args)
    assert watch.refusal is None
    holds = watch.guards.compile()
    assert holds()
    assert watch.guards.failed() == []
    change()
    assert not holds()
    assert watch.guards.failed()
    return watch.guards.failed()


def check_unguarded(function, change, *args):
    """Check that a function can still be repeated after a change."""
    watch = watched(function, *args)
    assert watch.refusal is None
    change()
    assert watch.guards.compile()()


def check_repeated(function, pictured, *args):
    """Check that taking a call back and repeating its effects leaves what the call left."""
    before = repr(pictured())
    watch = watched(function, *args)
    assert watch.refusal is None
    after = repr(pictured())
    watch.undo()
    assert repr(pictured()) == before
    watch.effects.apply(lambda leaf: leaf)
    assert repr(pictured()) == after
    return watch
