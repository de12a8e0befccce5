# Digits of 8 x 8 pixels, which come with Weft, in the shape in which chainer.datasets gives MNIST.
import chainer
import numpy as np


def get_digits(withlabel=True, ndim=1):
    from weft.data import load_digits
    images, labels = [np.asarray(x.numpy()) for x in load_digits(flat=True).tensors]
    order = np.random.RandomState(0).permutation(len(images))
    images = images[order].astype(np.float32) / images.max()
    labels = labels[order].astype(np.int32)
    if ndim == 3:
        images = images.reshape(-1, 1, 8, 8)
    if not withlabel:
        return images[:1500], images[1500:]
    return (chainer.datasets.TupleDataset(images[:1500], labels[:1500]),
            chainer.datasets.TupleDataset(images[1500:], labels[1500:]))
