"""Module: a tree of parameters, buffers and other modules, with a forward function.

Attributes are ordinary attributes: assigning a Parameter or a Module records its name and kind, and
reading one costs nothing extra. Names, order and layouts are PyTorch's, so that existing weights
load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MethodType
from typing import Any, ClassVar, TypeVar

from ..autodiff.reverse import forget_gradients
from ..core import dtype as dt
from ..core.device import CPU, check_device, is_device
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.imports import injected
from ..core.modes import current_tracer, eagerly, modes
from ..core.shape import Shape
from ..core.snapshot import snapshot_of
from ..core.tensor import Tensor
from . import hooks, state
from .hooks import HookRemover
from .parameter import Parameter
from .printing import format_module, format_options
from .scopes import module_scope
from .starting_value import starting_value
from .state import LoadReport
from .summary import Summary, summarize
from .version import count_change

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"
M = TypeVar("M", bound="Module")
_FROM_ABOVE = {
    "compile": injected("Module.compile"),
    "evaluate": injected("Module.evaluate"),
    "export": injected("Module.export"),
    "fit": injected("Module.fit"),
    "predict": injected("Module.predict"),
}


class Module:
    """Base of all layers and models: subclass it, assign parameters and modules, write `forward`.

    >>> import weft as wf
    >>> class Scale(wf.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = wf.nn.Parameter(wf.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(wf.tensor([1.0, 2.0])).detach()
    tensor([2., 4.])
    """

    _kinds: dict[str, str]
    _transient: set[str]
    _hooks: dict[str, dict[object, hooks.Hook]]
    _printed: ClassVar[tuple[str, ...]] = ()  # attributes in the repr; of "*name" the value alone
    _pending = False  # True while an input size is unknown (see lazy.py)

    def __init__(self) -> None:
        self.__dict__.update(training=True, _kinds={}, _transient=set(), _hooks={})

    @property
    def training(self) -> bool:
        """Tell whether it trains (`train`) or is evaluated (`eval`)."""
        attributes = self.__dict__
        if modes.interpreters and (tracer := current_tracer()) is not None:
            # A program that is traced now is another one in the other mode.
            tracer.observe((id(attributes), "training"), lambda: attributes["training"])
        mode: bool = attributes["training"]
        return mode

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let modules made while a graph is built have parameters with values, as anywhere."""
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = eagerly(cls.__init__)  # type: ignore[method-assign]  # is the purpose

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise ArgumentTypeError(
            f"{type(self).__name__} defines no forward(); a Module subclass must"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, with the hooks around it if there are any."""
        if modes.interpreters and (tracer := current_tracer()) is not None:
            with module_scope(tracer, self):
                if not self._hooks:
                    return self.forward(*args, **kwargs)
                return hooks.call_with_hooks(self, args, kwargs)
        if not self._hooks:
            return self.forward(*args, **kwargs)
        return hooks.call_with_hooks(self, args, kwargs)

    # -- registering ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = self.__dict__.get("_kinds")
        if kinds is None:
            raise ArgumentTypeError(
                f"{type(self).__name__}: call super().__init__() before assigning {name!r}"
            )
        kind = _kind_of(value)
        if kind is not None:
            kinds[name] = kind
            self._transient.discard(name)
        elif name in kinds:
            _check_replacement(self, name, kinds[name], value)
        count_change()
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        """Find the methods that layers above add: compile, fit, evaluate, predict, export."""
        if name not in _FROM_ABOVE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return MethodType(_FROM_ABOVE[name].get(), self)

    def __delattr__(self, name: str) -> None:
        count_change()
        self._kinds.pop(name, None)
        self._transient.discard(name)
        super().__delattr__(name)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Register a parameter; None reserves the name for one that is switched off."""
        self._register(name, PARAMETER, parameter, Parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but not trained (running statistics ...).

        One that is not persistent stays out of the state dictionary.
        """
        if isinstance(tensor, Tensor):
            tensor = starting_value(tensor, f"register_buffer: {name!r}")
        self._register(name, BUFFER, tensor, Tensor)
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule under a name that need not be an identifier."""
        self._register(name, MODULE, module, Module)

    add_module = register_module

    def _register(self, name: str, kind: str, value: Any, wanted: type) -> None:
        _check_name(self, name, kind)
        if value is not None and not isinstance(value, wanted):
            raise ArgumentTypeError(
                f"register_{kind}: {name!r} must be a {wanted.__name__} or None. "
                f"Received: {type(value).__name__}"
            )
        count_change()
        self._kinds[name] = kind
        self.__dict__[name] = value

    # -- walking the tree ------------------------------------------------------------------------

    def _own(self, kind: str) -> Iterator[tuple[str, Any]]:
        for name, its_kind in self._kinds.items():
            if its_kind == kind and self.__dict__[name] is not None:
                yield name, self.__dict__[name]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules with their names."""
        return self._own(MODULE)

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, prefix: str = "", memo: set[int] | None = None
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it, each once, with dotted names."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self.named_children():
            yield from module.named_modules(_join(prefix, name), memo)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        """Yield tensors of a kind, each once even if several modules share it."""
        seen: set[int] = set()
        modules = self.named_modules(prefix) if recurse else iter([(prefix, self)])
        for path, module in modules:
            for name, tensor in module._own(kind):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield _join(path, name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield all parameters with dotted names; a shared one appears once."""
        return self._named(PARAMETER, prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield all parameters; a shared one appears once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield all buffers with dotted names."""
        return self._named(BUFFER, prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield all buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, path: str) -> Module:
        """Return the submodule at a dotted path ("" is the module itself)."""
        module = self
        for name in path.split(".") if path else ():
            module = module._find(MODULE, name, path)
        return module

    def get_parameter(self, path: str) -> Parameter:
        """Return the parameter at a dotted path."""
        return self._tensor_at(PARAMETER, path)  # type: ignore[no-any-return]  # by its kind

    def get_buffer(self, path: str) -> Tensor:
        """Return the buffer at a dotted path."""
        return self._tensor_at(BUFFER, path)  # type: ignore[no-any-return]  # by its kind

    def _tensor_at(self, kind: str, path: str) -> Any:
        owner, _, name = path.rpartition(".")
        return self.get_submodule(owner)._find(kind, name, path)

    def _find(self, kind: str, name: str, path: str) -> Any:
        found = self.__dict__.get(name)
        if self._kinds.get(name) != kind or found is None:
            known = ", ".join(n for n, _ in self._own(kind)) or "none"
            where = f" (of path {path!r})" if path != name else ""
            kind = "submodule" if kind == MODULE else kind
            raise ArgumentError(
                f"{type(self).__name__} has no {kind} {name!r}{where}; it has: {known}"
            )
        return found

    # -- state -----------------------------------------------------------------------------------

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Return all parameters and persistent buffers by dotted name: read-only snapshots.

        To change values, load changed copies (`x.clone()`) with `load_state_dict`.
        Shared tensors appear under each of their names, as in PyTorch.
        """
        slots = self._state_slots(prefix)
        for module, name in slots.values():
            if module._pending:
                raise ArgumentError(
                    f"{type(module).__name__}.{name} has no shape yet: run the model once on an "
                    "example input before taking its state"
                )
        return {name: snapshot_of(module.__dict__[a]) for name, (module, a) in slots.items()}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadReport:
        """Take parameters and buffers from a state; report what did not fit.

        With `strict`, anything missing, unexpected or mismatched raises and nothing is changed.
        Values are converted to the module's dtypes; with `assign` they keep their own.
        """
        state.check_mapping(state_dict)
        slots = self._state_slots()
        report = state.compare(slots, state_dict)
        if strict and report:
            raise state.misfit(self, report)
        refused = report.mismatched_names
        given = {n: v for n, v in state_dict.items() if n in slots and n not in refused}
        for prefix, module in self.named_modules():
            if module._pending:
                module._settle_for(given, f"{prefix}." if prefix else "")
        for name, value in given.items():
            module, attribute = slots[name]
            state.load(module.__dict__[attribute], value, assign)
        return report

    def _state_slots(
        self, prefix: str = "", *, transient: bool = False
    ) -> dict[str, tuple[Module, str]]:
        """Return where each tensor of the state is held: the module and the attribute."""
        slots: dict[str, tuple[Module, str]] = {}
        for name, kind in self._kinds.items():
            value = self.__dict__[name]
            if value is None or (name in self._transient and not transient):
                continue
            if kind == MODULE:
                slots.update(value._state_slots(f"{prefix}{name}.", transient=transient))
            else:
                slots[prefix + name] = (self, name)
        return slots

    def _expected_shape(self, attribute: str, state_dict: Mapping[str, Any], prefix: str) -> Shape:
        """Return the shape that a tensor of a state must have; open layers ask the state."""
        shape: Shape = self.__dict__[attribute].shape
        return shape

    def _settle_for(self, state_dict: Mapping[str, Any], prefix: str) -> None:
        """Take the input size from a state; layers that leave it open define this."""

    # -- modes and conversion ----------------------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Set training mode (dropout, batch statistics) on the whole tree."""
        if not isinstance(mode, bool):
            raise ArgumentTypeError(f"train: mode must be True or False. Received: {mode!r}")
        count_change()
        for module in self.modules():
            module.__dict__["training"] = mode
        return self

    def eval(self: M) -> M:
        """Set evaluation mode on the whole tree."""
        return self.train(False)

    def requires_grad_(self: M, flag: bool = True) -> M:
        """Make all parameters trainable, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(flag)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or set to zero) the gradients of all parameters."""
        forget_gradients(self.parameters(), set_to_none)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call a function on every submodule, children first, then on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self: M, *targets: Any, dtype: Any = None, device: Any = None) -> M:
        """Convert floating-point parameters and buffers to a dtype (or a tensor's), in place.

        With a device, put all of them there.
        """
        for target in targets:
            if is_device(target):
                device = target
            else:
                dtype = target.dtype if isinstance(target, Tensor) else target
        tensors = [*self.parameters(), *self.buffers()]
        if device is not None:
            where = check_device(device)
            state.move(tensors, where)
        if dtype is not None:
            state.convert(tensors, dt.as_dtype(dtype))
        return self

    def float(self: M) -> M:
        """Convert to float32."""
        return self.to(dt.float32)

    def double(self: M) -> M:
        """Convert to float64."""
        return self.to(dt.float64)

    def half(self: M) -> M:
        """Convert to float16."""
        return self.to(dt.float16)

    def bfloat16(self: M) -> M:
        """Convert to bfloat16."""
        return self.to(dt.bfloat16())

    def cpu(self: M) -> M:
        """Put all parameters and buffers on the CPU."""
        return self.to(device=CPU)

    # -- hooks -------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: hooks.Call, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookRemover:
        """Call `hook(module, args)` before forward; it may return other arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)` and may return such a pair.
        """
        return hooks.add_hook(self, hooks.BEFORE, hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook: hooks.Call, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookRemover:
        """Call `hook(module, args, output)` after forward; it may return another output."""
        return hooks.add_hook(self, hooks.AFTER, hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_full_backward_pre_hook(
        self, hook: hooks.Call, prepend: bool = False
    ) -> HookRemover:
        """Call `hook(module, grad_output)` before the module's backward; it may replace them."""
        return hooks.add_hook(self, hooks.GRAD_BEFORE, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: hooks.Call, prepend: bool = False) -> HookRemover:
        """Call `hook(module, grad_input, grad_output)` once backward has reached the inputs.

        Both are tuples of gradients; it may return other gradients for the inputs.
        """
        return hooks.add_hook(self, hooks.GRAD_AFTER, hook, prepend=prepend)

    # -- printing ----------------------------------------------------------------------------------

    def summary(self, *inputs: Any, dtype: Any = None, depth: int | None = None) -> Summary:
        """Return a table of the layers: output shapes, parameters, FLOPs and memory.

        inputs   example tensors, or shapes (tuples of ints, with the batch) of them; none:
                 parameters only
        dtype    of inputs given as shapes (default: that of the parameters)
        depth    how many levels of submodules to show (default: all)

        The model stays as it is: layers whose input size is open take it from what is given for
        this table only.

        >>> import weft as wf
        >>> net = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.ReLU())
        >>> net.summary((32, 4)).parameters
        40
        """
        return summarize(self, inputs, dtype, depth)

    def extra_repr(self) -> str:
        """Return the arguments to show in the repr; a layer lists or overrides them."""
        return format_options(self, self._printed)

    def __repr__(self) -> str:
        return format_module(self, [(n, repr(m)) for n, m in self.named_children()])


# -- helpers -------------------------------------------------------------------------------------


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return PARAMETER
    return MODULE if isinstance(value, Module) else None


def _check_replacement(module: Module, name: str, kind: str, value: Any) -> None:
    """Refuse to put something else in a registered place, which would silently drop it."""
    if value is None or (kind == BUFFER and isinstance(value, Tensor)):
        return
    raise ArgumentTypeError(
        f"{type(module).__name__}.{name} is a {kind}; assign another {kind} or None, or delete it "
        f"first. Received: {type(value).__name__}"
    )


def _check_name(module: Module, name: str, kind: str) -> None:
    text: Any = name
    if not isinstance(text, str) or not text or "." in text:
        raise ArgumentError(f"a name must be a non-empty string without dots. Received: {name!r}")
    known = module._kinds.get(name)
    if known != kind and hasattr(module, name):
        what = "" if known is None else f", a {known}"
        raise ArgumentError(f"{type(module).__name__} has an attribute {name!r} already{what}")


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
