"""`tf.data.Iterator`: operations that give the next element of a dataset, in each session."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..dtypes import as_dtype, string
from ..errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from ..host import host_operation
from ..shapes import TensorShape
from .given import resolver, shapes_of
from .nests import Component, flat, mapped, packed

__all__ = ["Iterator"]

_numbers = count(1)
_by_handle: WeakValueDictionary[bytes, Iterator] = WeakValueDictionary()


class Iterator:
    """Where a session stands in a dataset."""

    def __init__(self, structure: Any, dataset: Any = None, *, initialize: bool = True) -> None:
        self.structure = structure
        self._dataset = dataset
        self._initialize = initialize
        self._states: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._handle = b"weft iterator %d" % next(_numbers)
        _by_handle[self._handle] = self
        self._initializer: Any = None

    # -- others than a dataset's own ---------------------------------------------------------------

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Return an iterator for any dataset of a structure; see `make_initializer`."""
        return Iterator(_structure(output_types, output_shapes))

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> FedIterator:
        """Return an iterator that stands for the one whose handle is fed."""
        return FedIterator(_structure(output_types, output_shapes), string_handle)

    # -- operations --------------------------------------------------------------------------------

    @property
    def initializer(self) -> Any:
        """Return the operation that begins the dataset anew."""
        if not self._initialize or self._dataset is None:
            raise ValueError(
                "Iterator does not have an initializer."
                if self._dataset is not None
                else "Iterator does not have an initializer; use make_initializer(dataset)."
            )
        if self._initializer is None:
            self._initializer = self.make_initializer(self._dataset)
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Any:
        """Return an operation that begins a dataset in this iterator."""
        self._check(dataset)
        return host_operation(
            "MakeIterator",
            lambda session, *values: self._begin(session, dataset, values),
            list(dataset.inputs),
            name=name or "MakeIterator",
        )

    def get_next(self, name: str | None = None) -> Any:
        """Return tensors that have the next element in each run that fetches one of them."""
        return _next_element(self.structure, self.next_value, [], name)

    def string_handle(self, name: str | None = None) -> Any:
        """Return a tensor whose value is fed where iterators are chosen."""
        return host_operation(
            "IteratorToStringHandle",
            lambda session: [self._handle],
            outputs=[(string, ())],
            name=name or "IteratorToStringHandle",
        )

    @property
    def output_types(self) -> Any:
        """Return the types of the components."""
        return mapped(lambda part: part.dtype, self.structure)

    @property
    def output_shapes(self) -> Any:
        """Return the static shapes of the components."""
        return mapped(lambda part: part.shape, self.structure)

    # -- runs --------------------------------------------------------------------------------------

    def next_value(self, session: Any) -> Sequence[Any]:
        """Return the components of the next element in a session."""
        state = self._states.get(session)
        if state is None:
            if self._initialize:
                raise FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before getting the "
                    "next element.\n\t [[node IteratorGetNext]]",
                )
            self._begin(session, self._dataset, ())
            state = self._states[session]
        found: Sequence[Any] | None = next(state, None)
        if found is None:
            raise OutOfRangeError(None, None, "End of sequence\n\t [[node IteratorGetNext]]")
        return found

    def _begin(self, session: Any, dataset: Any, values: Sequence[Any]) -> None:
        resolve = resolver(dict(zip(dataset.inputs, values, strict=False)))
        self._states[session] = iter(dataset.make(resolve))

    def _check(self, dataset: Any) -> None:
        mine, theirs = flat(self.structure), flat(dataset.structure)
        if [part.dtype for part in mine] != [part.dtype for part in theirs]:
            raise TypeError(
                f"Expected output types {self.output_types!r} but got dataset with output types "
                f"{dataset.output_types!r}."
            )
        for a, b in zip(mine, theirs, strict=True):
            if not a.shape.is_compatible_with(b.shape):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got "
                    f"dataset with output shapes {dataset.output_shapes!r}."
                )


class FedIterator:
    """An iterator that stands for the one whose handle is fed."""

    def __init__(self, structure: Any, handle: Any) -> None:
        self.structure = structure
        self._handle = handle

    def get_next(self, name: str | None = None) -> Any:
        """Return tensors that have the next element of the iterator that is fed."""

        def call(session: Any, handle: Any) -> Sequence[Any]:
            found = _by_handle.get(handle.item() if hasattr(handle, "item") else handle)
            if found is None:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{handle!r:.60} is no handle of an iterator; feed sess.run(iterator."
                    "string_handle())",
                )
            return found.next_value(session)

        return _next_element(self.structure, call, [self._handle], name)


def _next_element(structure: Any, call: Any, inputs: Sequence[Any], name: str | None) -> Any:
    parts = flat(structure)
    made = host_operation(
        "IteratorGetNext",
        call,
        inputs,
        outputs=[(part.dtype, part.shape) for part in parts],
        name=name or "IteratorGetNext",
    )
    return packed(structure, made if len(parts) > 1 else [made])


def _structure(types: Any, shapes: Any) -> Any:
    kinds = mapped(as_dtype, types)
    listed = [None] * len(flat(kinds)) if shapes is None else shapes_of(shapes)
    parts = [Component(k, TensorShape(s)) for k, s in zip(flat(kinds), listed, strict=True)]
    return packed(kinds, parts)
