# Training in a monitored session, which saves, prints, stops, and is taken up again.
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
checkpoint_dir = tempfile.mkdtemp()


def run(last_step):
    tf.reset_default_graph()
    rng = np.random.RandomState(0)
    inputs = rng.randn(200, 4).astype(np.float32)
    targets = inputs.dot(np.float32([[1], [2], [3], [4]]))
    dataset = tf.data.Dataset.from_tensor_slices((inputs, targets)).repeat().batch(20)
    x, y = dataset.make_one_shot_iterator().get_next()
    global_step = tf.train.get_or_create_global_step()
    prediction = tf.layers.dense(x, 1, use_bias=False, name="line")
    loss = tf.reduce_mean(tf.square(prediction - y))
    tf.summary.scalar("loss", loss)
    train_op = tf.train.AdagradOptimizer(1.0).minimize(loss, global_step=global_step)
    hooks = [
        tf.train.StopAtStepHook(last_step=last_step),
        tf.train.NanTensorHook(loss),
        tf.train.LoggingTensorHook({"step": global_step, "loss": loss}, every_n_iter=50),
    ]
    steps = 0
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=checkpoint_dir, hooks=hooks, save_checkpoint_secs=60
    ) as mon_sess:
        while not mon_sess.should_stop():
            _, value = mon_sess.run([train_op, loss])
            steps += 1
    return steps, value


assert run(100)[0] == 100
steps, value = run(300)
assert steps == 200, steps
assert value < 1e-2, value
reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(checkpoint_dir))
assert reader.get_tensor("global_step") == 300
assert np.allclose(reader.get_tensor("line/kernel")[:, 0], [1, 2, 3, 4], atol=0.05)
