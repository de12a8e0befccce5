"""Messages of nets: the net itself, its layers, blobs and states."""

from __future__ import annotations

ENUMS = ("enum Phase TRAIN=0 TEST=1", "enum DimCheckMode STRICT=0 PERMISSIVE=1")

MESSAGES = {
    "BlobShape": "1 int64[packed] dim",
    "BlobProto": """
        7 BlobShape shape
        5 float[packed] data
        6 float[packed] diff
        8 double[packed] double_data
        9 double[packed] double_diff
        1 int32 num = 0
        2 int32 channels = 0
        3 int32 height = 0
        4 int32 width = 0
    """,
    "BlobProtoVector": "1 BlobProto[] blobs",
    "Datum": """
        1 int32 channels
        2 int32 height
        3 int32 width
        4 bytes data
        5 int32 label
        6 float[] float_data
        7 bool encoded = false
    """,
    "FillerParameter": """
        enum VarianceNorm FAN_IN=0 FAN_OUT=1 AVERAGE=2
        1 string type = constant
        2 float value = 0
        3 float min = 0
        4 float max = 1
        5 float mean = 0
        6 float std = 1
        7 int32 sparse = -1
        8 VarianceNorm variance_norm = FAN_IN
    """,
    "NetState": """
        1 Phase phase = TEST
        2 int32 level = 0
        3 string[] stage
    """,
    "NetStateRule": """
        1 Phase phase
        2 int32 min_level
        3 int32 max_level
        4 string[] stage
        5 string[] not_stage
    """,
    "ParamSpec": """
        1 string name
        2 DimCheckMode share_mode
        3 float lr_mult = 1.0
        4 float decay_mult = 1.0
    """,
    "NetParameter": """
        1 string name
        3 string[] input
        8 BlobShape[] input_shape
        4 int32[] input_dim
        5 bool force_backward = false
        6 NetState state
        7 bool debug_info = false
        100 LayerParameter[] layer
        2 V1LayerParameter[] layers
    """,
    "LayerParameter": """
        1 string name
        2 string type
        3 string[] bottom
        4 string[] top
        10 Phase phase
        5 float[] loss_weight
        6 ParamSpec[] param
        7 BlobProto[] blobs
        11 bool[] propagate_down
        8 NetStateRule[] include
        9 NetStateRule[] exclude
        100 TransformationParameter transform_param
        101 LossParameter loss_param
        102 AccuracyParameter accuracy_param
        103 ArgMaxParameter argmax_param
        139 BatchNormParameter batch_norm_param
        141 BiasParameter bias_param
        148 ClipParameter clip_param
        104 ConcatParameter concat_param
        105 ContrastiveLossParameter contrastive_loss_param
        106 ConvolutionParameter convolution_param
        144 CropParameter crop_param
        107 DataParameter data_param
        108 DropoutParameter dropout_param
        109 DummyDataParameter dummy_data_param
        110 EltwiseParameter eltwise_param
        140 ELUParameter elu_param
        137 EmbedParameter embed_param
        111 ExpParameter exp_param
        135 FlattenParameter flatten_param
        112 HDF5DataParameter hdf5_data_param
        113 HDF5OutputParameter hdf5_output_param
        114 HingeLossParameter hinge_loss_param
        115 ImageDataParameter image_data_param
        116 InfogainLossParameter infogain_loss_param
        117 InnerProductParameter inner_product_param
        143 InputParameter input_param
        134 LogParameter log_param
        118 LRNParameter lrn_param
        119 MemoryDataParameter memory_data_param
        120 MVNParameter mvn_param
        145 ParameterParameter parameter_param
        121 PoolingParameter pooling_param
        122 PowerParameter power_param
        131 PReLUParameter prelu_param
        130 PythonParameter python_param
        146 RecurrentParameter recurrent_param
        136 ReductionParameter reduction_param
        123 ReLUParameter relu_param
        133 ReshapeParameter reshape_param
        142 ScaleParameter scale_param
        124 SigmoidParameter sigmoid_param
        125 SoftmaxParameter softmax_param
        132 SPPParameter spp_param
        126 SliceParameter slice_param
        147 SwishParameter swish_param
        127 TanHParameter tanh_param
        128 ThresholdParameter threshold_param
        138 TileParameter tile_param
        129 WindowDataParameter window_data_param
    """,
}
