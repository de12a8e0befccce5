# K-means in the graph: assignments, means by segments, a loop until nothing changes.
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(11)
N, K = 300, 3
true = np.array([[0., 0.], [4., 4.], [0., 5.]])
sample = np.concatenate([c + 0.5 * rng.randn(N // K, 2) for c in true]).astype(np.float32)

points = tf.Variable(sample, trainable=False)
cluster_assignments = tf.Variable(tf.zeros([N], dtype=tf.int64))
centroids = tf.Variable(tf.slice(points.initialized_value(), [99, 0], [K, 2]))
rep_centroids = tf.reshape(tf.tile(centroids, [N, 1]), [N, K, 2])
rep_points = tf.reshape(tf.tile(points, [1, K]), [N, K, 2])
sum_squares = tf.reduce_sum(tf.square(rep_points - rep_centroids), reduction_indices=2)
best_centroids = tf.argmin(sum_squares, 1)
did_assignments_change = tf.reduce_any(tf.not_equal(best_centroids, cluster_assignments))


def bucket_mean(data, bucket_ids, num_buckets):
    total = tf.unsorted_segment_sum(data, bucket_ids, num_buckets)
    count = tf.unsorted_segment_sum(tf.ones_like(data), bucket_ids, num_buckets)
    return total / count


means = bucket_mean(points, best_centroids, K)
with tf.control_dependencies([did_assignments_change]):
    do_updates = tf.group(centroids.assign(means), cluster_assignments.assign(best_centroids))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    changed, iters = True, 0
    while changed and iters < 100:
        iters += 1
        [changed, _] = sess.run([did_assignments_change, do_updates])
    found = sess.run(centroids)
    print("iterations", iters, "centres", found.tolist())
    errors = [np.min(np.linalg.norm(found - c, axis=1)) for c in true]
    assert max(errors) < 0.3 and 1 < iters < 100, errors
