"""A property that is computed once.

That of functools holds a lock of its class while it computes (until Python 3.12). A child that was
forked then, while another thread computed, would wait for that thread for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):  # noqa: N801 (a decorator, named as that of functools)
    """A property that the first look computes and keeps in the object; two threads may both do so.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         print("computing")
    ...         return 3
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[_Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object, owner: type) -> cached_property[_Value] | _Value:
        if instance is None:
            return self
        value = self.compute(instance)
        # What two threads computed is the same for both afterwards.
        kept: _Value = instance.__dict__.setdefault(self.name, value)
        return kept
