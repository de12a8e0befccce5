"""What torch_database.py does not compare, what the face does not have, and what differs: why."""

from __future__ import annotations

from weft.torch.names import names

# Whose numbers need not be PyTorch's: random, or whatever memory held.
DRAWN = names("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided rand rand_like randn
    randn_like randint randint_like normal bernoulli multinomial cauchy exponential geometric
    log_normal uniform pca_lowrank svd_lowrank nn.functional.dropout nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout
    nn.functional.rrelu nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.multi_head_attention_forward nn.functional.scaled_dot_product_attention
""")

# Not of tensors that Weft has, by how names begin.
OUT_OF_SCOPE = {
    "fft.": "complex",
    "sparse.": "sparse",
    "to_sparse": "sparse",
    "jiterator": "internal: CUDA source",
    "torch.ops.": "internal",
    "torch._scaled": "internal: 8-bit floats",
}

_COMPLEX = names("""
    cdouble cfloat chalf complex imag istft linalg.eig linalg.eigvals polar stft view_as_complex
    view_as_real
""")
_INTERNAL = names("""
    _batch_norm_with_update _chunk_cat _native_batch_norm_legit _segment_reduce
    _softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate
    _upsample_bilinear2d_aa hash_tensor max_pool2d_with_indices_backward native_dropout_backward
    slice
""")

# Names that the face does not have.
ABSENT = {**dict.fromkeys(_COMPLEX, "complex"), **dict.fromkeys(_INTERNAL, "internal")}

# Entries of which some samples differ, and why.
_TRIANGLE = (
    "one triangle is read. Ours are gradients of its elements; PyTorch's are those of matrices "
    "that stay symmetric (or triangular) when they change"
)
REASONS = {
    **dict.fromkeys(
        names("""
            cholesky_inverse cholesky_solve linalg.eigh linalg.eigvalsh linalg.pinv.hermitian
        """),
        _TRIANGLE,
    ),
    "as_strided.partial_views": "reads beyond a view give no gradient to the view",
    "as_strided_scatter": "PyTorch gives elements that are written over a gradient",
    "cov": "PyTorch adds weights of 32 bits up in 32 bits, and we in those of the data",
    "histogramdd": "edges that do not ascend are refused; PyTorch searches in them all the same",
    "nn.functional.ctc_loss": "PyTorch's gradient takes log_probs to be results of log_softmax",
    "nn.functional.rms_norm": "eps below zero is refused",
    "special.bessel_j0": "ours is SciPy's up to 1e-15, PyTorch's up to 1e-6",
    "special.bessel_y1": "ours is SciPy's up to 1e-15, PyTorch's up to 1e-6",
}
