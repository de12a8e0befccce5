"""Products with matrices, rows of tables, and blobs alone."""

import numpy as np
import pytest

from weft.caffe.errors import CaffeError

from .checking import check, layer, normal


def test_inner_products():
    text = 'type: "InnerProduct" inner_product_param { num_output: 3 }'
    check(text, normal(2, 2, 3), reference=lambda x, w, b: x.reshape(2, 6) @ w.T + b)
    text = 'type: "InnerProduct" inner_product_param { num_output: 2 axis: 2 transpose: true }'
    check(text, normal(2, 3, 4), reference=lambda x, w, b: x @ w + b)
    text = 'type: "InnerProduct" inner_product_param { num_output: 2 axis: -1 bias_term: false }'
    check(text, normal(2, 3, 4), reference=lambda x, w: x @ w.T)


def test_rows_of_a_table():
    index = np.array([[0, 2], [4, 2]])
    text = 'type: "Embed" embed_param { num_output: 3 input_dim: 5 }'

    def reference(x, w, b):
        return w[np.rint(x).astype(int)] + b

    check(text, index, reference=reference, differentiable=())


def test_a_blob_as_a_top():
    text = 'type: "Parameter" parameter_param { shape { dim: 2 dim: 3 } }'
    check(text, reference=lambda w: w)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type: "InnerProduct"', "num_output must be positive"),
        ('type: "Embed" embed_param { num_output: 3 }', "input_dim must be positive"),
        (
            'type: "InnerProduct" inner_product_param { num_output: 3 axis: 5 }',
            "axis 5 out of range for 2-D Blob",
        ),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(CaffeError, match=message):
        layer(text, normal(2, 2))
