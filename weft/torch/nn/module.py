"""Module: Weft's, whose tensors and results are those of this face."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ... import nn as core_nn
from ...core import tensor as core
from ...core.errors import WeftError
from ..adoption import adopt
from ..capturing import capturing
from ..devices import conversion, no_cuda, usable_device
from ..phrasing import phrased
from ..views import whole
from .state_hooks import (
    AFTER_LOADING,
    AFTER_SAVING,
    BEFORE_LOADING,
    BEFORE_SAVING,
    registering,
    run_hooks,
)

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found: names that are missing, and names that are unknown."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class ModuleClass(type):
    """A module of Weft's is one of this face: of the base, or of the class of its name."""

    behind: type | None = None

    def __instancecheck__(cls, instance: Any) -> bool:
        behind = cls.__dict__.get("_behind")
        if behind is not None:
            return isinstance(instance, behind)
        return super().__instancecheck__(instance)


class Module(core_nn.Module, metaclass=ModuleClass):
    """Base of all layers and models: subclass it, assign parameters and modules, write `forward`.

    >>> from weft import torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(torch.tensor([1.0, 2.0]))
    tensor([2., 4.], grad_fn=<MulBackward0>)
    """

    _behind = core_nn.Module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, with the hooks around it if there are any."""
        if capturing.on and capturing.wants():
            return capturing.call(self, args, kwargs)
        return super().__call__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: a subclass says what a module computes."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, core_nn.Parameter):
            adopt(value)
        kinds = self.__dict__.get("_kinds")
        if kinds is None and isinstance(value, (core_nn.Parameter, core_nn.Module)):
            what = "parameters" if isinstance(value, core_nn.Parameter) else "module"
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if kinds is not None and kinds.get(name) == PARAMETER and _is_other_tensor(value):
            raise TypeError(
                f"cannot assign '{value.type()}' as parameter '{name}' (torch.nn.Parameter or "
                "None expected)"
            )
        super().__setattr__(name, value)

    # -- tables of what it holds -----------------------------------------------------------------

    def _table_of(self, kind: str) -> dict[str, Any]:
        return OrderedDict((n, self.__dict__[n]) for n, k in self._kinds.items() if k == kind)

    @property
    def _modules(self) -> dict[str, Any]:
        return self._table_of(MODULE)

    @property
    def _parameters(self) -> dict[str, Any]:
        return self._table_of(PARAMETER)

    @property
    def _buffers(self) -> dict[str, Any]:
        return self._table_of(BUFFER)

    @phrased
    def register_parameter(self, name: str, param: Any) -> None:
        """Register a parameter; None reserves the name for one that is switched off."""
        super().register_parameter(name, adopt(param))

    @phrased
    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but not trained."""
        super().register_buffer(name, adopt(tensor), persistent)
        held = self.__dict__[name]
        if isinstance(held, core.Tensor):
            self.__dict__[name] = adopt(held)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield all parameters with dotted names; a shared one appears once."""
        return super().named_parameters(prefix, recurse)

    def named_modules(  # type: ignore[override]  # PyTorch's order of arguments
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield this module and all below it, each once, with dotted names."""
        if isinstance(memo, str):  # as Weft's own code calls it
            prefix, memo = memo, prefix or None
        return super().named_modules(prefix, memo)

    # -- state -----------------------------------------------------------------------------------

    def _state_slots(self, prefix: str = "", *, transient: bool = False) -> dict[str, Any]:
        """Return where each tensor of the state is held: a module's own before its parts'."""
        slots: dict[str, Any] = {}
        for kind in (PARAMETER, BUFFER):
            for name, held in self._table_of(kind).items():
                if held is not None and (transient or name not in self._transient):
                    slots[prefix + name] = (self, name)
        for name, part in self._table_of(MODULE).items():
            if part is not None:
                slots |= part._state_slots(f"{prefix}{name}.", transient=transient)
        return slots

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by name, as views: training is seen."""
        found: dict[str, Any] = OrderedDict() if destination is None else destination
        run_hooks(self, BEFORE_SAVING, prefix, lambda name: (name, keep_vars))
        for name, (module, attribute) in self._state_slots(prefix).items():
            tensor = adopt(module.__dict__[attribute])
            found[name] = tensor if keep_vars else whole(tensor)
        run_hooks(self, AFTER_SAVING, prefix, lambda name: (found, name, {}))
        return found

    def load_state_dict(  # type: ignore[override]  # PyTorch's result
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take parameters and buffers from a state; return the names that did not fit."""
        if isinstance(state_dict, Mapping):
            state: dict[str, Any] = OrderedDict(state_dict)
            run_hooks(self, BEFORE_LOADING, "", lambda name: (state, name, {}, strict, [], [], []))
            state_dict = state
        report = _compared(self, state_dict)
        problems = _problems(report, strict)
        if problems:
            joined = "\n\t".join(problems)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{joined}"
            )
        super().load_state_dict(state_dict, strict=False, assign=assign)
        keys = IncompatibleKeys(report.missing, report.unexpected)
        run_hooks(self, AFTER_LOADING, "", lambda name: (keys,))
        return keys

    register_state_dict_pre_hook = registering(BEFORE_SAVING)
    register_state_dict_post_hook = registering(AFTER_SAVING)
    register_load_state_dict_pre_hook = registering(BEFORE_LOADING)
    register_load_state_dict_post_hook = registering(AFTER_LOADING)
    _register_state_dict_hook = register_state_dict_post_hook
    _register_load_state_dict_pre_hook = registering(BEFORE_LOADING, with_module=False)

    # -- places and dtypes -----------------------------------------------------------------------

    @phrased
    def to(self, *targets: Any, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        """Convert floating-point parameters and buffers to a dtype, in place."""
        dtype, device = conversion(targets, dtype, device)
        where = None if device is None else usable_device(device)
        return super().to(dtype=dtype, device=where)

    def cuda(self, device: Any = None) -> Any:
        """Refuse: there is no such device."""
        raise no_cuda()

    def type(self, dst_type: Any) -> Any:
        """Convert floating-point parameters and buffers to a dtype, in place."""
        return self.to(getattr(dst_type, "dtype", dst_type))

    def share_memory(self) -> Any:
        """Return the module itself."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let `forward` run by compiled programs."""
        from ...capture import jit  # noqa: PLC0415  (only for those who ask)

        self.__dict__["forward"] = jit(self.forward)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Call a hook once backward has reached the inputs."""
        return self.register_full_backward_hook(hook)

    get_submodule = phrased(core_nn.Module.get_submodule)
    get_parameter = phrased(core_nn.Module.get_parameter)
    get_buffer = phrased(core_nn.Module.get_buffer)

    @phrased
    def add_module(self, name: str, module: Any) -> None:
        """Register a submodule under a name."""
        self.register_module(name, module)

    def set_extra_state(self, state: Any) -> None:
        """Take what a subclass keeps besides tensors."""
        raise RuntimeError("a module that has get_extra_state defines set_extra_state too")

    def get_extra_state(self) -> Any:
        """Return what a subclass keeps besides tensors."""
        raise RuntimeError("a module without extra state was asked for it")


def _is_other_tensor(value: Any) -> bool:
    return isinstance(value, core.Tensor) and not isinstance(value, core_nn.Parameter)


def _compared(module: Any, state: Any) -> Any:
    if not isinstance(state, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state)}.")
    slots = module._state_slots()
    missing = [name for name in slots if name not in state]
    unexpected = [name for name in state if name not in slots]
    wrong = []
    for name, (owner, attribute) in slots.items():
        if name in state:
            try:
                own = tuple(owner._expected_shape(attribute, state, name[: -len(attribute)]))
            except WeftError:
                own = tuple(state[name].shape)
            given = tuple(getattr(state[name], "shape", ()))
            if own != given:
                wrong.append((name, given, own))
    return _Comparison(missing, unexpected, wrong)


class _Comparison(NamedTuple):
    missing: list[str]
    unexpected: list[str]
    wrong: list[tuple[str, Any, Any]]


def _problems(report: Any, strict: bool) -> list[str]:
    """Return what is wrong with a state, in PyTorch's words."""
    found = []
    if strict and report.unexpected:
        names = ", ".join(f'"{n}"' for n in report.unexpected)
        found.append(f"Unexpected key(s) in state_dict: {names}. ")
    if strict and report.missing:
        names = ", ".join(f'"{n}"' for n in report.missing)
        found.append(f"Missing key(s) in state_dict: {names}. ")
    for name, given, own in report.wrong:
        found.append(
            f"size mismatch for {name}: copying a param with shape torch.Size({list(given)}) from "
            f"checkpoint, the shape in current model is torch.Size({list(own)})."
        )
    return found
