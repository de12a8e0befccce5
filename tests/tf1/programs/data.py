# Digits of 8 x 8 pixels, which come with Weft, in the shape of the tutorials' input_data.
import numpy as np


class DataSet(object):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.num_examples = len(images)
        self._at = 0
        self._rng = np.random.RandomState(1)
        self._order = np.arange(len(images))

    def next_batch(self, batch_size):
        if self._at + batch_size > self.num_examples:
            self._rng.shuffle(self._order)
            self._at = 0
        chosen = self._order[self._at:self._at + batch_size]
        self._at += batch_size
        return self.images[chosen], self.labels[chosen]


class Datasets(object):
    pass


def read_data_sets(one_hot=True):
    from weft.data import load_digits
    images, labels = [np.asarray(x.numpy()) for x in load_digits(flat=True).tensors]
    images = images.astype(np.float32)
    images = images / images.max()
    if one_hot:
        labels = np.eye(10)[labels]
    order = np.random.RandomState(0).permutation(len(images))
    images, labels = images[order], labels[order]
    found = Datasets()
    found.train = DataSet(images[:1500], labels[:1500])
    found.test = DataSet(images[1500:], labels[1500:])
    return found
