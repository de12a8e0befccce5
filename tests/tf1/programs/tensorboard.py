# Loss, accuracy, weights and images for TensorBoard.
import glob
import os
import tempfile

import tensorflow as tf

import data

tf.set_random_seed(14)
digits = data.read_data_sets()
logs_path = tempfile.mkdtemp()
x = tf.placeholder(tf.float32, [None, 64], name='InputData')
y = tf.placeholder(tf.float32, [None, 10], name='LabelData')
W = tf.Variable(tf.zeros([64, 10]), name='Weights')
b = tf.Variable(tf.zeros([10]), name='Bias')
with tf.name_scope('Model'):
    pred = tf.nn.softmax(tf.matmul(x, W) + b)
with tf.name_scope('Loss'):
    cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
with tf.name_scope('SGD'):
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    grads = list(zip(tf.gradients(cost, tf.trainable_variables()), tf.trainable_variables()))
    apply_grads = optimizer.apply_gradients(grads_and_vars=grads)
with tf.name_scope('Accuracy'):
    acc = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1)), tf.float32))
tf.summary.scalar("loss", cost)
tf.summary.scalar("accuracy", acc)
for var in tf.trainable_variables():
    tf.summary.histogram(var.name, var)
for grad, var in grads:
    tf.summary.histogram(var.name + '/gradient', grad)
merged_summary_op = tf.summary.merge_all()

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    summary_writer = tf.summary.FileWriter(logs_path, graph=tf.get_default_graph())
    for step in range(300):
        batch_xs, batch_ys = digits.train.next_batch(100)
        _, c, summary = sess.run([apply_grads, cost, merged_summary_op], feed_dict={x: batch_xs, y: batch_ys})
        if step % 20 == 0:
            summary_writer.add_summary(summary, step)
    summary_writer.close()
    score = acc.eval({x: digits.test.images, y: digits.test.labels})
    print("Accuracy:", score)

(written,) = glob.glob(os.path.join(logs_path, "*tfevents*"))
tags, steps = set(), []
for event in tf.train.summary_iterator(written):
    for value in event.summary.value:
        tags.add(value.tag)
        if value.tag.startswith("loss"):
            steps.append((event.step, value.simple_value))
print(sorted(tags), steps[-1])
assert len(steps) == 15 and steps[-1][1] < steps[0][1] and score > 0.92, score
