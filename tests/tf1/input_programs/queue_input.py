# Records are written, read by a queue of file names, mixed into batches, and trained on.
import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
rng = np.random.RandomState(0)
truth = np.array([1.0, -2.0, 3.0], np.float32)


def _float_feature(value):
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


filenames = [os.path.join(folder, "part-%d.tfrecords" % i) for i in range(2)]
for filename in filenames:
    writer = tf.python_io.TFRecordWriter(filename)
    for _ in range(50):
        inputs = rng.randn(3).astype(np.float32)
        example = tf.train.Example(
            features=tf.train.Features(
                feature={
                    "inputs": _float_feature(inputs),
                    "target": _float_feature([float(inputs.dot(truth))]),
                }
            )
        )
        writer.write(example.SerializeToString())
    writer.close()


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized_example,
        features={
            "inputs": tf.FixedLenFeature([3], tf.float32),
            "target": tf.FixedLenFeature([1], tf.float32),
        },
    )
    return features["inputs"], features["target"]


filename_queue = tf.train.string_input_producer(filenames, num_epochs=20, seed=1)
row, value = read_and_decode(filename_queue)
rows, values = tf.train.shuffle_batch(
    [row, value], batch_size=20, num_threads=2, capacity=100, min_after_dequeue=40, seed=2
)
w = tf.Variable(tf.zeros([3, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - values))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())

sess = tf.Session()
sess.run(init_op)
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(sess=sess, coord=coord)
step = 0
try:
    while not coord.should_stop():
        _, loss_value = sess.run([train_op, loss])
        step += 1
except tf.errors.OutOfRangeError:
    print("Done training for %d steps, loss %g" % (step, loss_value))
finally:
    coord.request_stop()
coord.join(threads)
assert step == 100, step
assert np.allclose(sess.run(w)[:, 0], truth, atol=1e-2)
sess.close()
