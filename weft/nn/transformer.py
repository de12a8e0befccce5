"""Transformer layers and stacks (Vaswani et al. 2017, arXiv:1706.03762), as PyTorch names them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentTypeError, ShapeError
from ..core.tensor import Tensor, wrap
from . import init
from .arguments import as_choice, as_flag, as_size
from .attention import MultiheadAttention
from .calls import F
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .norm import LayerNorm
from .rnn_cells import same_dims

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What encoder and decoder layers share: their parts, and where the norms stand."""

    attentions: ClassVar[tuple[str, ...]]  # the names of the attention blocks, in order

    def __init__(  # noqa: PLR0913  (PyTorch's options)
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.norm_first = as_flag(self, "norm_first", norm_first)
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in self.attentions:
            heads = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
            self.add_module(name, heads)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        blocks = range(1, len(self.attentions) + 2)
        for i in blocks:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for i in blocks:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _checked_activation(self, activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        activation = self.activation
        hidden = self.linear1(x)
        hidden = (
            getattr(F, activation)(hidden) if isinstance(activation, str) else activation(hidden)
        )
        result: Tensor = self.linear2(self.dropout(hidden))
        return result

    def _add(self, x: Tensor, block: Callable[[Tensor], Tensor], number: int) -> Tensor:
        """Return x plus a block's dropped-out output, normalised before or after.

        Normalising first leaves the residual path untouched (Xiong et al. 2020,
        arXiv:2002.04745); the paper normalises the sum.
        """
        norm: Any = getattr(self, f"norm{number}")
        dropout: Any = getattr(self, f"dropout{number}")
        first = self.norm_first
        result: Tensor = x + dropout(block(norm(x))) if first else norm(x + dropout(block(x)))
        return result


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net, each with a residual connection and a norm.

    activation   "relu", "gelu" or a function
    norm_first   normalise the input of each block instead of the sum after it
    batch_first  input is (batch, length, d_model) instead of (length, batch, d_model)
    bias         False leaves out the biases of all linear maps and norms

    >>> import weft as wf
    >>> layer = TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(wf.zeros(5, 3, 8)).shape
    (5, 3, 8)
    """

    attentions = ("self_attn",)
    self_attn: MultiheadAttention

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output; masks are those of MultiheadAttention."""

        def attend(x: Tensor) -> Tensor:
            return _attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)

        return self._add(self._add(src, attend, 1), self._feed_forward, 2)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward net.

    The options are those of TransformerEncoderLayer.

    >>> import weft as wf
    >>> layer = TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(wf.zeros(4, 3, 8), wf.zeros(5, 3, 8)).shape
    (4, 3, 8)
    """

    attentions = ("self_attn", "multihead_attn")
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output; `memory` is what the encoder returned."""

        def attend_self(x: Tensor) -> Tensor:
            return _attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_memory(x: Tensor) -> Tensor:
            masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
            return _attend(self.multihead_attn, x, memory, *masks)

        x = self._add(tgt, attend_self, 1)
        return self._add(self._add(x, attend_memory, 2), self._feed_forward, 3)


class _Stack(Module):
    """Copies of a layer, and a last norm if one is given."""

    def __init__(self, layer: Any, num_layers: Any, norm: Module | None) -> None:
        super().__init__()
        if not isinstance(layer, Module):
            raise ArgumentTypeError(
                f"{type(self).__name__}: the layer must be a Module. "
                f"Received: {type(layer).__name__}"
            )
        self.num_layers = as_size(self, "num_layers", num_layers, 0)
        self.layers = ModuleList([deepcopy(layer) for _ in range(self.num_layers)])
        self.norm = norm

    def _normalised(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of copies of an encoder layer, and a last norm if one is given.

    `enable_nested_tensor` and `mask_check` are taken for programs written for PyTorch, where they
    choose between implementations; here they change nothing.

    >>> import weft as wf
    >>> layer = TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> TransformerEncoder(layer, num_layers=2)(wf.zeros(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the output of the last layer, normalised."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return self._normalised(src)


class TransformerDecoder(_Stack):
    """A stack of copies of a decoder layer, and a last norm if one is given.

    >>> import weft as wf
    >>> layer = TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> TransformerDecoder(layer, num_layers=2)(wf.zeros(4, 3, 8), wf.zeros(5, 3, 8)).shape
    (4, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the output of the last layer, normalised."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return self._normalised(tgt)


class Transformer(Module):
    """An encoder and a decoder with the defaults of the paper.

    `custom_encoder` and `custom_decoder` take the places of the stacks made here; the other options
    are those of TransformerEncoderLayer.

    >>> import weft as wf
    >>> model = Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
    >>> model(wf.zeros(5, 3, 8), wf.zeros(4, 3, 8)).shape
    (4, 3, 8)
    """

    def __init__(  # noqa: PLR0913, PLR0917  (PyTorch's signature)
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.d_model = as_size(self, "d_model", d_model)
        self.nhead = as_size(self, "nhead", nhead)
        self.batch_first = as_flag(self, "batch_first", batch_first)
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        flags = (batch_first, norm_first, bias)
        place: dict[str, Any] = {"device": device, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*sizes, *flags, **place)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*sizes, *flags, **place)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all matrices as Glorot and Bengio propose."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(  # noqa: PLR0913, PLR0917  (PyTorch's signature)
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output for `tgt`, given the source sequence `src`."""
        self._check_inputs(src, tgt)
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    def _check_inputs(self, src: Tensor, tgt: Tensor) -> None:
        batch = 0 if self.batch_first else 1
        same_batch = src.ndim != 3 or same_dims(
            src.shape[batch : batch + 1], tgt.shape[batch : batch + 1]
        )
        fits = src.ndim == tgt.ndim and src.ndim in (2, 3) and same_batch
        if not fits or {src.shape[-1], tgt.shape[-1]} - {self.d_model, None}:
            raise ShapeError(
                f"Transformer: src and tgt must have one batch size and d_model={self.d_model} "
                f"features. Received: {src.shape} and {tgt.shape}"
            )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, *, dtype: Any = None) -> Tensor:
        """Return the causal mask to add to scores: 0 up to the diagonal, -inf above it."""
        size = as_size("generate_square_subsequent_mask", "sz", sz, least=0)
        wanted = dt.default_float() if dtype is None else dt.as_dtype(dtype)
        return wrap(np.where(np.tri(size, dtype=bool), 0.0, -np.inf).astype(wanted))


# -- helpers -------------------------------------------------------------------------------------


def _attend(
    attention: Module,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor:
    output: Tensor = attention(
        x,
        memory,
        memory,
        key_padding_mask=padding,
        need_weights=False,
        attn_mask=mask,
        is_causal=is_causal,
    )[0]
    return output


def _checked_activation(layer: Module, activation: Any) -> Any:
    if isinstance(activation, str):
        return as_choice(layer, "activation", activation, ("relu", "gelu"))
    if not callable(activation):
        raise ArgumentTypeError(
            f"{type(layer).__name__}: activation must be 'relu', 'gelu' or a function. "
            f"Received: {activation!r}"
        )
    return activation
