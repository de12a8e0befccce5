"""Monitored sessions and their hooks."""

import logging

import numpy as np
import pytest

import weft.tf1 as tf

pytest.importorskip("tensorboardX")


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def a_training():
    """Return the operation of a step and the loss of a small problem."""
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    loss = tf.square(w, name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return train, loss, w


def test_training_stops_saves_and_goes_on(tmp_path):
    for last in (5, 8):
        tf.reset_default_graph()
        train, loss, _ = a_training()
        tf.summary.scalar("loss", loss)
        count = 0
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path),
            hooks=[tf.train.StopAtStepHook(last_step=last)],
            save_checkpoint_steps=2,
            save_checkpoint_secs=None,
            save_summaries_steps=1,
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
                count += 1
        assert count == (5 if last == 5 else 3)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == str(tmp_path / "model.ckpt-8")
    reader = tf.train.NewCheckpointReader(latest)
    assert reader.get_tensor("global_step") == 8
    assert reader.get_tensor("w") == pytest.approx(0.8**8)


def test_stopping_after_so_many_steps():
    train, _, _ = a_training()
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=3)]) as sess:
        while not sess.should_stop():
            sess.run(train)
        with pytest.raises(RuntimeError, match="even after should_stop"):
            sess.run(train)
    assert sess.should_stop()
    with pytest.raises(RuntimeError, match="closed session"):
        sess.run(train)
    with pytest.raises(ValueError, match="Exactly one of num_steps"):
        tf.train.StopAtStepHook()


def test_the_end_of_the_input_ends_the_session():
    number = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    found = []
    with tf.train.MonitoredTrainingSession() as sess:
        while not sess.should_stop():
            found.append(int(sess.run(number)))
    assert found == [0, 1, 2]


def test_queues_are_filled():
    queue = tf.train.string_input_producer(["a", "b"], num_epochs=1, shuffle=False)
    name = queue.dequeue()
    found = []
    with tf.train.SingularMonitoredSession() as sess:
        while not sess.should_stop():
            found.append(sess.run(name))
    assert found == [b"a", b"b"]


def test_hooks_see_every_run():
    train, loss, _ = a_training()
    x = tf.placeholder(tf.float32, [])
    seen = loss + x
    calls = []

    class Watch(tf.train.SessionRunHook):
        def begin(self):
            calls.append("begin")

        def after_create_session(self, session, coord):
            calls.append("created")

        def before_run(self, run_context):
            assert run_context.original_args.fetches is train
            return tf.train.SessionRunArgs(seen, feed_dict={x: 1.0})

        def after_run(self, run_context, run_values):
            calls.append(float(run_values.results))
            run_context.request_stop()

        def end(self, session):
            calls.append("end")

    with tf.train.MonitoredSession(hooks=[Watch()]) as sess:
        assert sess.run(train) is None
        assert sess.should_stop()
    assert calls == ["begin", "created", 2.0, "end"]


def test_errors_close_the_session_without_ending_hooks():
    train, _, _ = a_training()
    ended = []

    class Watch(tf.train.SessionRunHook):
        def end(self, session):
            ended.append(1)

    def broken():
        with tf.train.MonitoredSession(hooks=[Watch()]) as sess:
            sess.run(train)
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert not ended


def test_logging(caplog):
    train, loss, _ = a_training()
    hooks = [
        tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=2),
        tf.train.LoggingTensorHook(
            [loss], at_end=True, formatter=lambda found: f"end {len(found)}"
        ),
        tf.train.StopAtStepHook(5),
    ]
    with caplog.at_level(logging.INFO, "tensorflow"):
        logging.getLogger("tensorflow").addHandler(caplog.handler)
        try:
            with tf.train.MonitoredSession(hooks=hooks) as sess:
                while not sess.should_stop():
                    sess.run(train)
        finally:
            logging.getLogger("tensorflow").removeHandler(caplog.handler)
    lines = list(dict.fromkeys(record.getMessage() for record in caplog.records))
    assert len([line for line in lines if line.startswith("loss = ")]) == 3
    assert lines[-1] == "end 1"
    with pytest.raises(ValueError, match="invalid every_n_iter"):
        tf.train.LoggingTensorHook([loss], every_n_iter=0)
    with pytest.raises(ValueError, match="exactly one of every_n_iter"):
        tf.train.LoggingTensorHook([loss])


def test_losses_that_are_no_numbers_stop():
    x = tf.placeholder(tf.float32, [])
    loss = x * 1.0
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as sess:
        sess.run(loss, {x: 1.0})
        with pytest.raises(tf.train.NanLossDuringTrainingError):
            sess.run(loss, {x: np.nan})
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [])
    loss = x * 1.0
    hook = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(loss, {x: np.nan})
        assert sess.should_stop()


def test_scaffolds_and_other_hooks(tmp_path):
    train, loss, w = a_training()
    values = []
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: values.append(session.run(w)))
    final = tf.train.FinalOpsHook(loss)
    x = tf.placeholder(tf.float32, [])
    hooks = [
        final,
        tf.train.FeedFnHook(lambda: {x: 3.0}),
        tf.train.StepCounterHook(1, output_dir=str(tmp_path)),
        tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1, listeners=[Stopper()]),
    ]
    creator = tf.train.ChiefSessionCreator(scaffold)
    with tf.train.MonitoredSession(creator, hooks) as sess:
        assert sess.run([train, x])[1] == 3.0
        assert sess.should_stop()
        assert sess.graph is w.graph
    assert values == [1.0]
    assert final.final_ops_values == pytest.approx(0.64)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-1")


class Stopper(tf.train.CheckpointSaverListener):
    def after_save(self, session, global_step_value):
        return global_step_value == 1


def test_step_functions():
    train, _, w = a_training()
    with tf.train.MonitoredSession() as sess:

        def step(context):
            context.run_with_hooks(train)
            return context.session.run(w)

        assert sess.run_step_fn(step) == pytest.approx(0.8)


def test_timers():
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    assert timer.should_trigger_for_step(0)
    timer.update_last_triggered_step(0)
    assert [timer.should_trigger_for_step(i) for i in (0, 2, 3)] == [False, False, True]
    assert timer.update_last_triggered_step(3)[1] == 3
    assert timer.last_triggered_step() == 3
    with pytest.raises(ValueError, match="exactly one of every_secs and every_steps"):
        tf.train.SecondOrStepTimer()


def test_hooks_without_a_step_say_what_to_do(tmp_path):
    tf.get_variable("w", [])
    with pytest.raises(RuntimeError, match="get_or_create_global_step"):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(3)])
