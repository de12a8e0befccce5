"""`tf.data.Dataset`: streams of elements, over the streams of `weft.data`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...data import IterableDataset, IterableSource
from ..dtypes import as_dtype, int64
from ..errors import InvalidArgumentError
from ..graph import get_default_graph
from ..recording import is_tensor
from ..shapes import TensorShape
from ..tensor import Tensor
from .elements import Element, Remembered, Seeded, batched, generated, in_turn, padded, stacked
from .functions import ElementFunction
from .given import (
    Resolve,
    common_shape,
    component_of,
    leaf_of,
    positive,
    resolver,
    row_of,
    shapes_of,
)
from .iterator import Iterator as DatasetIterator
from .nests import Component, flat, mapped, packed, spread
from .reading import matching_files

__all__ = ["Dataset"]

Make = Callable[[Resolve], IterableDataset]


class Dataset:
    """A stream of elements, each a tensor or a nest of them.

    structure   what is known of the components of an element
    make        makes the stream, of tuples of arrays, when the values of `inputs` are known
    inputs      tensors whose values it needs
    """

    def __init__(self, structure: Any, make: Make, inputs: Sequence[Any] = ()) -> None:
        self.structure = structure
        self.make = make
        self.inputs = tuple(dict.fromkeys(x for x in inputs if is_tensor(x)))

    # -- sources -----------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Return the dataset of one element."""
        leaves = [leaf_of(x) for x in flat(tensors)]
        structure = packed(tensors, [component_of(leaf) for leaf in leaves])
        return Dataset(
            structure,
            lambda resolve: IterableSource([tuple(resolve(leaf) for leaf in leaves)]),
            leaves,
        )

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Return the dataset of the rows of tensors of equal length."""
        leaves = [leaf_of(x) for x in flat(tensors)]
        parts = [component_of(leaf) for leaf in leaves]
        for part in parts:
            if part.shape.ndims == 0:
                raise ValueError("from_tensor_slices: tensors need a first dimension")
        structure = packed(tensors, [Component(p.dtype, TensorShape(p.shape[1:])) for p in parts])
        sizes = {p.shape.as_list()[0] for p in parts if p.shape.ndims is not None} - {None}
        if len(sizes) > 1:
            raise ValueError(f"Dimensions {' and '.join(map(str, sizes))} are not compatible")

        def make(resolve: Resolve) -> IterableDataset:
            arrays = [resolve(leaf) for leaf in leaves]
            count = len(arrays[0])
            if any(len(array) != count for array in arrays):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"from_tensor_slices: lengths differ: {[len(array) for array in arrays]}",
                )
            return IterableSource(
                lambda: (tuple(row_of(a, i) for a in arrays) for i in range(count))
            )

        return Dataset(structure, make, leaves)

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
    ) -> Dataset:
        """Return the dataset of what a Python generator yields."""
        if not callable(generator):
            raise TypeError("`generator` must be callable.")
        types = mapped(as_dtype, output_types)
        shapes = [None] * len(flat(types)) if output_shapes is None else shapes_of(output_shapes)
        if len(shapes) != len(flat(types)):
            raise TypeError("from_generator: output_shapes must be like output_types")
        parts = [Component(t, TensorShape(s)) for t, s in zip(flat(types), shapes, strict=True)]
        structure = packed(types, parts)
        given = [leaf_of(x) for x in args or ()]

        def make(resolve: Resolve) -> IterableDataset:
            values = [resolve(x) for x in given]
            return IterableSource(
                lambda: (generated(structure, parts, item) for item in generator(*values))
            )

        return Dataset(structure, make, given)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Return the dataset of integers, as Python's range has them."""
        given = [leaf_of(x, int64) for x in args]

        def make(resolve: Resolve) -> IterableDataset:
            numbers = range(*[int(resolve(x)) for x in given])
            return IterableSource(lambda: ((np.int64(n).reshape(()),) for n in numbers))

        return Dataset(Component(int64, TensorShape(())), make, given)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Return the dataset of elements that stand at the same place; the shortest ends it."""
        listed = tuple(datasets) if isinstance(datasets, list) else datasets
        parts = [_checked(part) for part in flat(listed)]
        structure = packed(listed, [part.structure for part in parts])

        def make(resolve: Resolve) -> IterableDataset:
            first, *others = [part.make(resolve) for part in parts]
            return first.zip(*others).map(lambda found: tuple(x for part in found for x in part))

        return Dataset(structure, make, [x for part in parts for x in part.inputs])

    @staticmethod
    def list_files(file_pattern: Any, shuffle: Any = None, seed: int | None = None) -> Dataset:
        """Return the dataset of the names of files that match a pattern."""
        made = Dataset.from_tensor_slices(matching_files(file_pattern))
        return made if shuffle is False else made.shuffle(1 << 20, seed)

    # -- stages ------------------------------------------------------------------------------------

    def _stage(
        self, structure: Any, make: Callable[[IterableDataset, Resolve], Any], inputs: Any = ()
    ) -> Dataset:
        return Dataset(
            structure, lambda resolve: make(self.make(resolve), resolve), [*self.inputs, *inputs]
        )

    def map(self, map_func: Any, num_parallel_calls: Any = None, **options: Any) -> Dataset:
        """Return the dataset of a function of each element."""
        function = ElementFunction(map_func, self.structure, "map")
        return self._stage(function.structure, lambda stream, resolve: stream.map(function))

    def filter(self, predicate: Any) -> Dataset:
        """Return the elements for which a function is true."""
        function = ElementFunction(predicate, self.structure, "filter")
        (part,) = flat(function.structure) or [None]
        if part is None or part.dtype.name != "bool":
            raise TypeError("filter: `predicate` must return a scalar boolean tensor.")
        return self._stage(
            self.structure,
            lambda stream, resolve: stream.filter(lambda element: bool(function(element)[0])),
        )

    def flat_map(self, map_func: Any) -> Dataset:
        """Return the elements of the datasets that a function makes of each element."""
        return self.interleave(map_func, 1)

    def interleave(
        self,
        map_func: Any,
        cycle_length: int = 1,
        block_length: int = 1,
        num_parallel_calls: Any = None,
        **options: Any,
    ) -> Dataset:
        """Return the elements of datasets that a function makes, of several of them in turn."""
        function = ElementFunction(
            map_func, self.structure, "flat_map", lambda made: isinstance(made, Dataset)
        )
        inner = function.result
        if not isinstance(inner, Dataset):
            raise TypeError("`map_func` must return a `Dataset` object.")

        def opened(element: Element) -> Iterator[Any]:
            values = dict(zip(function.fetched, function(element), strict=True))
            return iter(inner.make(resolver(values)))

        return self._stage(
            inner.structure,
            lambda stream, resolve: IterableSource(
                lambda: in_turn(iter(stream), opened, cycle_length, block_length)
            ),
        )

    def batch(self, batch_size: Any, drop_remainder: Any = False, **options: Any) -> Dataset:
        """Return the dataset of batches of successive elements."""
        size = leaf_of(batch_size, int64)
        structure = batched(self.structure, size, drop_remainder)
        return self._stage(
            structure,
            lambda stream, resolve: stream.batch(
                positive(resolve(size)), drop_last=bool(drop_remainder)
            ).map(stacked),
            [size],
        )

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """Return batches of elements of different sizes, filled up to the largest of each batch."""
        size = leaf_of(batch_size, int64)
        parts = flat(self.structure)
        shapes = (
            [part.shape for part in parts]
            if padded_shapes is None
            else [TensorShape(s) for s in shapes_of(padded_shapes)]
        )
        if len(shapes) != len(parts):
            raise ValueError(
                f"padded_batch: padded_shapes must be like the elements, {len(parts)} shapes. "
                f"Received: {len(shapes)}"
            )
        fills = spread(self.structure, padding_values, "padded_batch: padding_values")
        whole = [Component(p.dtype, s) for p, s in zip(parts, shapes, strict=True)]
        structure = batched(packed(self.structure, whole), size, drop_remainder)

        def joined(batch: list[Element]) -> Element:
            columns = list(zip(*batch, strict=True))
            return tuple(
                padded(column, part, fill)
                for column, part, fill in zip(columns, whole, fills, strict=True)
            )

        return self._stage(
            structure,
            lambda stream, resolve: stream.batch(
                positive(resolve(size)), drop_last=bool(drop_remainder)
            ).map(joined),
            [size],
        )

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: Any = None
    ) -> Dataset:
        """Return the elements in a random order, each drawn from a buffer of the next ones.

        A seed, of the dataset or the graph, says the order; every repetition has another one unless
        `reshuffle_each_iteration` is False.
        """
        size = leaf_of(buffer_size, int64)
        graph_seed = get_default_graph().seed
        number = (
            None if seed is None and graph_seed is None else hash((graph_seed or 0, int(seed or 0)))
        )

        def make(stream: IterableDataset, resolve: Resolve) -> IterableDataset:
            shuffled = stream.shuffle(positive(resolve(size)))
            if number is None:
                return shuffled
            return IterableSource(Seeded(shuffled, number, reshuffle_each_iteration is not False))

        return self._stage(self.structure, make, [size])

    def repeat(self, count: Any = None) -> Dataset:
        """Return the elements several times over; for ever by default."""
        times = leaf_of(-1 if count is None else count, int64)

        def make(stream: IterableDataset, resolve: Resolve) -> IterableDataset:
            number = int(resolve(times))
            return stream.repeat(None if number < 0 else number)

        return self._stage(self.structure, make, [times])

    def take(self, count: Any) -> Dataset:
        """Return the first elements; all for -1."""
        number = leaf_of(count, int64)

        def make(stream: IterableDataset, resolve: Resolve) -> IterableDataset:
            wanted = int(resolve(number))
            return stream if wanted < 0 else stream.take(wanted)

        return self._stage(self.structure, make, [number])

    def skip(self, count: Any) -> Dataset:
        """Return the elements without the first ones; none for -1."""
        number = leaf_of(count, int64)

        def make(stream: IterableDataset, resolve: Resolve) -> IterableDataset:
            wanted = int(resolve(number))
            return stream.take(0) if wanted < 0 else stream.skip(wanted)

        return self._stage(self.structure, make, [number])

    def prefetch(self, buffer_size: Any = -1) -> Dataset:
        """Return the same elements, made ahead by a thread."""
        size = leaf_of(buffer_size, int64)

        def make(stream: IterableDataset, resolve: Resolve) -> IterableDataset:
            number = int(resolve(size))
            return stream if number == 0 else stream.prefetch(2 if number < 0 else number)

        return self._stage(self.structure, make, [size])

    def cache(self, filename: Any = "") -> Dataset:
        """Return the same elements, kept in memory once they were all made."""
        return self._stage(
            self.structure, lambda stream, resolve: IterableSource(Remembered(stream))
        )

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Return the elements of this dataset and then of another one."""
        other = _checked(dataset)
        mine, theirs = flat(self.structure), flat(other.structure)
        if [p.dtype for p in mine] != [p.dtype for p in theirs]:
            raise TypeError(
                f"Two datasets to concatenate have different types {self.output_types} and "
                f"{other.output_types}"
            )
        parts = [
            Component(a.dtype, a.shape if a.shape == b.shape else common_shape(a.shape, b.shape))
            for a, b in zip(mine, theirs, strict=True)
        ]
        return self._stage(
            packed(self.structure, parts),
            lambda stream, resolve: stream.concat(other.make(resolve)),
            other.inputs,
        )

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Return every n-th element, from one of the first n on."""
        return self._stage(
            self.structure,
            lambda stream, resolve: IterableSource(
                lambda: (x for i, x in enumerate(stream) if i % int(num_shards) == int(index))
            ),
        )

    def enumerate(self, start: int = 0) -> Dataset:
        """Return pairs of numbers and elements."""
        counted = Dataset.range(start, 1 << 62)
        return Dataset.zip((counted, self))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return what a function makes of the dataset."""
        return transformation_func(self)

    def with_options(self, options: Any) -> Dataset:
        """Return the dataset: there is nothing to tune."""
        return self

    # -- iterators ---------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> DatasetIterator:
        """Return an iterator that goes through the dataset once in each session."""
        for tensor in self.inputs:
            resolver({})(tensor)  # raises for what must be initialized with
        return DatasetIterator(self.structure, self, initialize=False)

    def make_initializable_iterator(self, shared_name: Any = None) -> DatasetIterator:
        """Return an iterator that begins when its `initializer` runs."""
        return DatasetIterator(self.structure, self, initialize=True)

    @property
    def output_types(self) -> Any:
        """Return the types of the components."""
        return mapped(lambda part: part.dtype, self.structure)

    @property
    def output_shapes(self) -> Any:
        """Return the static shapes of the components."""
        return mapped(lambda part: part.shape, self.structure)

    @property
    def output_classes(self) -> Any:
        """Return the classes of the components: all are dense."""
        return mapped(lambda part: Tensor, self.structure)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} shapes: {self.output_shapes}, types: {self.output_types}>"


def _checked(dataset: Any) -> Dataset:
    if isinstance(dataset, Dataset):
        return dataset
    raise TypeError(f"expected a tf.data.Dataset. Received: {type(dataset).__name__}")
