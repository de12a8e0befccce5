"""caffe.Classifier: images in, probabilities out."""

import numpy as np

from weft import caffe
from weft.caffe.message import NetParameter
from weft.caffe.text import read_message

TEXT = """input: "data" input_shape { dim: 4 dim: 3 dim: 5 dim: 5 }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
    layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }"""


def test_probabilities_of_images(tmp_path):
    proto = read_message(TEXT, NetParameter)
    weights = str(tmp_path / "w.caffemodel")
    caffe.Net(proto, caffe.TEST).save(weights)
    made = caffe.Classifier(
        proto, weights, image_dims=(8, 8), mean=np.ones(3), raw_scale=255, channel_swap=(2, 1, 0)
    )
    images = [np.random.default_rng(i).random((10, 12, 3)) for i in range(3)]
    found = made.predict(images)
    assert found.shape == (3, 6)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    centre = made.predict(images, oversample=False)
    crops = [caffe.io.resize_image(image, (8, 8))[1:6, 1:6] for image in images]
    inputs = np.stack([made.transformer.preprocess("data", crop) for crop in crops])
    np.testing.assert_allclose(centre, made.forward_all(data=inputs)["prob"], rtol=1e-6)
