"""Links: objects that hold parameters, and chains of them."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from .backends.cuda import DummyDevice, check_device
from .variable import Parameter, as_array


class Link:
    """A part of a model: parameters that are assigned inside `with self.init_scope()`."""

    xp = np
    device = DummyDevice

    def __init__(self, **params: Any) -> None:
        self._params: dict[str, None] = {}  # as an ordered set
        self._persistent: dict[str, None] = {}
        self._scope = False
        self.name: str | None = None
        for name, shape in params.items():
            self.add_param(name, shape)

    # -- registering ---------------------------------------------------------------------------

    @contextmanager
    def init_scope(self) -> Iterator[None]:
        """Register the parameters, and links of chains, that are assigned inside the block."""
        if "_scope" not in self.__dict__:
            raise RuntimeError(
                f"call super().__init__() of {type(self).__name__} before init_scope()"
            )
        before, self._scope = self._scope, True
        try:
            yield
        finally:
            self._scope = before

    @property
    def within_init_scope(self) -> bool:
        """Whether assignments register what is assigned."""
        return bool(self.__dict__.get("_scope", False))

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_scope") and isinstance(value, Parameter):
            value.name = name
            self._params[name] = None
            self._persistent.pop(name, None)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._params.pop(name, None)
        self._persistent.pop(name, None)
        object.__delattr__(self, name)

    def add_param(
        self, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None
    ) -> None:
        """Register a parameter."""
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new parameter {name}: attribute exists")
        with self.init_scope():
            setattr(self, name, Parameter(initializer, shape))

    def add_persistent(self, name: str, value: Any) -> None:
        """Register a value that is saved with the parameters."""
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new persistent value {name}: attribute exists")
        self._persistent[name] = None
        object.__setattr__(self, name, value)

    def register_persistent(self, name: str) -> None:
        """Let an attribute be saved with the parameters."""
        if name not in self.__dict__:
            raise AttributeError(
                f"cannot register non-existent attribute {name} as a persistent value"
            )
        self._persistent[name] = None

    # -- calling -------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise TypeError(f"{type(self).__name__} object has neither __call__ nor forward")
        return forward(*args, **kwargs)

    # -- walking -------------------------------------------------------------------------------

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """Yield all parameters, those of this link in the order of their names first."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.is_initialized:
                yield parameter

    def namedparams(self, include_uninit: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield all parameters with paths: "/l1/W"."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.is_initialized:
                yield f"/{name}", parameter

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """Yield this link and all below it."""
        for _, link in self.namedlinks(skipself):
            yield link

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """Yield this link and all below it with their paths."""
        if not skipself:
            yield "/", self

    def children(self) -> Iterator[Link]:
        """Yield the links directly below."""
        return iter(())

    def count_params(self) -> int:
        """Return the number of all elements of parameters."""
        return sum(p.size for p in self.params(include_uninit=False))

    # -- gradients and values ------------------------------------------------------------------

    def cleargrads(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.params():
            parameter.cleargrad()

    def zerograds(self) -> None:
        """Let the gradients of all parameters be zero."""
        for parameter in self.params(include_uninit=False):
            parameter.zerograd()

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Take over the values of another link of the same structure."""
        theirs = dict(link.namedparams())
        for path, parameter in self.namedparams():
            if not parameter.is_initialized:
                parameter.initialize(theirs[path].shape)
            parameter.copydata(theirs[path])
        if copy_persistent:
            others = dict(link.namedlinks())
            for path, mine in self.namedlinks():
                for name in mine._persistent:
                    mine._set_persistent(name, mine_copy(others[path].__dict__[name]))

    def addgrads(self, link: Link) -> None:
        """Add the gradients of another link of the same structure."""
        theirs = dict(link.namedparams())
        for path, parameter in self.namedparams():
            parameter.addgrad(theirs[path])

    def _set_persistent(self, name: str, value: Any) -> None:
        """Give a saved value another content; what holds it keeps it if it is an array."""
        held = self.__dict__[name]
        if isinstance(held, np.ndarray) and held.shape == np.shape(value):
            np.copyto(held, as_array(value))
        elif isinstance(held, Tensor):
            held.copy_(value)
        else:
            object.__setattr__(self, name, value)

    def copy(self, mode: str = "share") -> Link:
        """Return a copy whose parameters share their values, copy them or draw new ("init")."""
        if mode not in ("share", "copy", "init"):
            raise ValueError(f"the mode of copy is 'share', 'copy' or 'init'. Received: {mode!r}")
        made = copying.copy(self)
        made.__dict__.update(
            _params=dict(self._params), _persistent=dict(self._persistent), name=None
        )
        for name in self._params:
            made.__dict__[name] = _copied(self.__dict__[name], mode)
        if mode != "share":
            for name in self._persistent:
                made.__dict__[name] = mine_copy(self.__dict__[name])
        return made

    def repeat(self, n_repeat: int, mode: str = "init") -> Any:
        """Return a Sequential of n copies."""
        from .sequential import Sequential  # noqa: PLC0415  (which is a link itself)

        return Sequential(*(self.copy(mode) for _ in range(n_repeat)))

    # -- places and updates --------------------------------------------------------------------

    def to_cpu(self) -> Link:
        """Return it: it is there."""
        return self

    to_chx = from_chx = to_intel64 = to_cpu

    def to_gpu(self, device: Any = None) -> Link:
        """Refuse: there is no device."""
        raise RuntimeError(
            "CUDA environment is not correctly set up: Weft's links are on the CPU; "
            "leave to_gpu() out (gpu=-1)"
        )

    def to_device(self, device: Any) -> Link:
        """Return it, if it is where it should be."""
        check_device(device)
        return self

    def enable_update(self) -> None:
        """Let optimizers change all parameters."""
        for parameter in self.params():
            parameter._tensor.requires_grad_(True)

    def disable_update(self) -> None:
        """Let optimizers leave all parameters alone."""
        for parameter in self.params():
            parameter._tensor.requires_grad_(False)

    @property
    def update_enabled(self) -> bool:
        """Whether optimizers change some parameter."""
        return any(parameter.requires_grad for parameter in self.params())

    # -- saving --------------------------------------------------------------------------------

    def serialize(self, serializer: Any) -> None:
        """Write the parameters and other saved values to a serializer, or read them from one."""
        for name in self._params:
            parameter = self.__dict__[name]
            found = serializer(name, parameter.array if parameter.is_initialized else None)
            if found is not None and not parameter.is_initialized:
                parameter.initialize(found.shape)
            if found is not None:
                parameter.array = np.asarray(found, parameter.dtype)
        for name in self._persistent:
            held = self.__dict__[name]
            plain = held.numpy() if isinstance(held, Tensor) else held
            found = serializer(name, plain)
            if found is not None and found is not plain:
                self._set_persistent(name, found)


class Composite(Link):
    """A link made of others, which a subclass names in `_named_children`."""

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        raise NotImplementedError

    def namedparams(self, include_uninit: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield all parameters with paths, each once."""
        seen: set[Parameter] = set()
        for path, parameter in self._all_params(include_uninit):
            if parameter not in seen:
                seen.add(parameter)
                yield path, parameter

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """Yield all parameters, each once."""
        seen = dict.fromkeys(super().params(include_uninit))
        for _, child in self._named_children():
            seen.update(dict.fromkeys(child.params(include_uninit)))
        return iter(seen)

    def _all_params(self, include_uninit: bool) -> Iterator[tuple[str, Parameter]]:
        yield from super().namedparams(include_uninit)
        for name, child in self._named_children():
            for path, parameter in child.namedparams(include_uninit):
                yield f"/{name}{path}", parameter

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """Yield this link and all below it with their paths."""
        if not skipself:
            yield "/", self
        for name, child in self._named_children():
            yield f"/{name}", child
            for path, link in child.namedlinks(skipself=True):
                yield f"/{name}{path}", link

    def serialize(self, serializer: Any) -> None:
        """Write all below to a serializer, or read it from one."""
        super().serialize(serializer)
        for name, child in self._named_children():
            child.serialize(serializer[name])


class Chain(Composite):
    """A link made of others, each with a name."""

    def __init__(self, **links: Link) -> None:
        super().__init__()
        self._children: dict[str, None] = {}
        for name, link in links.items():
            self.add_link(name, link)

    def __getitem__(self, name: str) -> Link:
        if name not in self._children:
            raise KeyError(
                f"there is no link {name!r}; there are {', '.join(sorted(self._children))}"
            )
        found: Link = self.__dict__[name]
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_scope") and isinstance(value, Link):
            if name in self.__dict__:
                raise AttributeError(f"cannot register a new link {name}: attribute exists")
            value.name = name
            self._children[name] = None
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._children.pop(name, None)
        super().__delattr__(name)

    def add_link(self, name: str, link: Link) -> None:
        """Register a link under a name."""
        if not isinstance(link, Link):
            raise TypeError(f"cannot register a non-link object as a child: {type(link).__name__}")
        with self.init_scope():
            setattr(self, name, link)

    def children(self) -> Iterator[Link]:
        """Yield the links directly below, in the order of their names."""
        return (self.__dict__[name] for name in sorted(self._children))

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        return ((name, self.__dict__[name]) for name in sorted(self._children))

    def copy(self, mode: str = "share") -> Chain:
        """Return a copy, with copies of all links below."""
        made: Any = super().copy(mode)
        made.__dict__["_children"] = dict(self._children)
        for name in self._children:
            made.__dict__[name] = self.__dict__[name].copy(mode)
            made.__dict__[name].name = name
        return made


class ChainList(Composite):
    """A link made of others, in order."""

    def __init__(self, *links: Link) -> None:
        super().__init__()
        self._links: list[Link] = []
        for link in links:
            self.add_link(link)

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_scope") and isinstance(value, Link):
            raise TypeError(
                'cannot register a new link within a "with chainlist.init_scope():" block'
            )
        super().__setattr__(name, value)

    def __getitem__(self, index: Any) -> Any:
        return self._links[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._links[index] = value
        for position, link in enumerate(self._links):
            link.name = str(position)

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def append(self, link: Link) -> None:
        """Add a link at the end."""
        self.add_link(link)

    def add_link(self, link: Link) -> None:
        """Add a link at the end."""
        if not isinstance(link, Link):
            raise TypeError(f"cannot register a non-link object as a child: {type(link).__name__}")
        link.name = str(len(self._links))
        self._links.append(link)

    def children(self) -> Iterator[Link]:
        """Yield the links directly below."""
        return iter(self._links)

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        return ((str(i), link) for i, link in enumerate(self._links))

    def copy(self, mode: str = "share") -> ChainList:
        """Return a copy, with copies of all links below."""
        made: Any = super().copy(mode)
        made.__dict__["_links"] = [link.copy(mode) for link in self._links]
        for position, link in enumerate(made._links):
            link.name = str(position)
        return made


def mine_copy(value: Any) -> Any:
    """Return a copy of a saved value."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return copying.deepcopy(value)


def _copied(parameter: Parameter, mode: str) -> Parameter:
    """Return a parameter for a copy of a link; one that is shared is shared with its gradient."""
    if mode == "init":
        shape = parameter.shape if parameter.is_initialized else None
        made = Parameter(parameter.initializer, shape)
    elif parameter.is_initialized:
        made = Parameter(parameter._tensor.numpy())
        made.initializer = parameter.initializer
        if mode == "share":
            made._tensor = parameter._tensor
    else:
        made = Parameter(parameter.initializer)
    made.name = parameter.name
    return made
