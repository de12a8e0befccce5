"""Messages of solvers, and of what they save.

`SolverState.weft` is ours: where inputs and random numbers stand. Caffe passes over it.
"""

from __future__ import annotations

MESSAGES = {
    "SolverParameter": """
        enum SnapshotFormat HDF5=0 BINARYPROTO=1
        enum SolverMode CPU=0 GPU=1
        enum SolverType SGD=0 NESTEROV=1 ADAGRAD=2 RMSPROP=3 ADADELTA=4 ADAM=5
        24 string net
        25 NetParameter net_param
        1 string train_net
        2 string[] test_net
        21 NetParameter train_net_param
        22 NetParameter[] test_net_param
        26 NetState train_state
        27 NetState[] test_state
        3 int32[] test_iter
        4 int32 test_interval = 0
        19 bool test_compute_loss = false
        32 bool test_initialization = true
        5 float base_lr
        6 int32 display
        33 int32 average_loss = 1
        7 int32 max_iter
        36 int32 iter_size = 1
        8 string lr_policy
        9 float gamma
        10 float power
        11 float momentum
        12 float weight_decay
        29 string regularization_type = L2
        13 int32 stepsize
        34 int32[] stepvalue
        35 float clip_gradients = -1
        14 int32 snapshot = 0
        15 string snapshot_prefix
        16 bool snapshot_diff = false
        37 SnapshotFormat snapshot_format = BINARYPROTO
        17 SolverMode solver_mode = GPU
        18 int32 device_id = 0
        20 int64 random_seed = -1
        40 string type = SGD
        31 float delta = 1e-8
        39 float momentum2 = 0.999
        38 float rms_decay = 0.99
        23 bool debug_info = false
        28 bool snapshot_after_train = true
        30 SolverType solver_type = SGD
        41 bool layer_wise_reduce = true
        42 string[] weights
    """,
    "SolverState": """
        1 int32 iter
        2 string learned_net
        3 BlobProto[] history
        4 int32 current_step = 0
        20190 bytes weft
    """,
}
