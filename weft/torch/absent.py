"""What the modules of this face say of PyTorch's names that they do not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..faces.absent import absent_names
from .names import names

_UNSERVED = ": PyTorch's face does not serve it; docs/faces/torch.md says what it serves"


def absent(module: dict[str, Any], reasons: Mapping[str, str]) -> Callable[[str], Any]:
    """Return `__getattr__` for a module of this face, whose globals are given."""
    shown = module["__name__"].removeprefix("weft.")
    return absent_names(module, reasons, _UNSERVED, shown=shown)


def _because(words: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names(words), reason)


# What `torch` itself lacks, with what to use.
TORCH = {
    **_because(
        """
        fft stft istft complex polar imag view_as_complex view_as_complex_copy view_as_real
        view_as_real_copy complex32 complex64 complex128 cfloat cdouble chalf eig
        ComplexFloatStorage ComplexDoubleStorage
        """,
        "complex numbers are not served",
    ),
    **_because(
        """
        sparse sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc sparse_coo_tensor
        sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor smm spmm hspmm sspaddmm saddmm
        """,
        "sparse tensors are not served; row-sparse gradients are wf.RowSparse",
    ),
    **_because("nested jagged", "nested tensors are not served; use wf.ragged, see docs/ragged.md"),
    **_because(
        """
        quantization ao qint8 qint32 quint8 quint4x2 quint2x4 qscheme quantize_per_tensor
        quantize_per_channel quantize_per_tensor_dynamic dequantize empty_quantized
        fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
        """,
        "quantization is not served",
    ),
    **_because("ScriptModule ScriptFunction", "use torch.compile"),
    **_because("lstm lstm_cell", "use torch.nn.LSTM or torch.nn.LSTMCell"),
    **_because("gru gru_cell", "use torch.nn.GRU or torch.nn.GRUCell"),
    **_because(
        "rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell", "use torch.nn.RNN or torch.nn.RNNCell"
    ),
    **_because("mtia accelerator Stream Event", "the CPU is the only device"),
    "symeig": "use torch.linalg.eigh",
    "lstsq": "use torch.linalg.lstsq",
    "solve": "use torch.linalg.solve",
    "matrix_rank": "use torch.linalg.matrix_rank",
    "nuclear_norm": "use torch.linalg.matrix_norm(A, 'nuc')",
    "frobenius_norm": "use torch.linalg.norm",
    "orgqr": "use torch.linalg.householder_product",
    "range": "use torch.arange, which leaves the end out",
    "fx": "graphs are wf.Graph, see docs/graphs.md",
    "export": "use wf.export, see docs/export.md",
    "onnx": "use wf.export, see docs/export.md",
    "profiler": "use executable.profile(), see docs/debugging.md",
    "hub": "give torch.load a file that is here already",
    "library": "declare operators by weft.extend, see CONTRIBUTING.md",
    "package": "use torch.save(model.state_dict(), path)",
}
