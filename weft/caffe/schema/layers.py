"""Messages of layers that compute: what each kind of layer can be told, with Caffe's defaults."""

from __future__ import annotations

_ENGINE = "enum Engine DEFAULT=0 CAFFE=1 CUDNN=2"

MESSAGES = {
    "LossParameter": """
        enum NormalizationMode FULL=0 VALID=1 BATCH_SIZE=2 NONE=3
        1 int32 ignore_label
        3 NormalizationMode normalization = VALID
        2 bool normalize
    """,
    "AccuracyParameter": """
        1 uint32 top_k = 1
        2 int32 axis = 1
        3 int32 ignore_label
    """,
    "ArgMaxParameter": """
        1 bool out_max_val = false
        2 uint32 top_k = 1
        3 int32 axis
    """,
    "ClipParameter": """
        1 float min
        2 float max
    """,
    "ConcatParameter": """
        2 int32 axis = 1
        1 uint32 concat_dim = 1
    """,
    "BatchNormParameter": """
        1 bool use_global_stats
        2 float moving_average_fraction = .999
        3 float eps = 1e-5
    """,
    "BiasParameter": """
        1 int32 axis = 1
        2 int32 num_axes = 1
        3 FillerParameter filler
    """,
    "ContrastiveLossParameter": """
        1 float margin = 1.0
        2 bool legacy_version = false
    """,
    "ConvolutionParameter": f"""
        {_ENGINE}
        1 uint32 num_output
        2 bool bias_term = true
        3 uint32[] pad
        4 uint32[] kernel_size
        6 uint32[] stride
        18 uint32[] dilation
        9 uint32 pad_h = 0
        10 uint32 pad_w = 0
        11 uint32 kernel_h
        12 uint32 kernel_w
        13 uint32 stride_h
        14 uint32 stride_w
        5 uint32 group = 1
        7 FillerParameter weight_filler
        8 FillerParameter bias_filler
        15 Engine engine = DEFAULT
        16 int32 axis = 1
        17 bool force_nd_im2col = false
    """,
    "CropParameter": """
        1 int32 axis = 2
        2 uint32[] offset
    """,
    "DropoutParameter": """
        1 float dropout_ratio = 0.5
        2 bool scale_train = true
    """,
    "EltwiseParameter": """
        enum EltwiseOp PROD=0 SUM=1 MAX=2
        1 EltwiseOp operation = SUM
        2 float[] coeff
        3 bool stable_prod_grad = true
    """,
    "ELUParameter": "1 float alpha = 1",
    "EmbedParameter": """
        1 uint32 num_output
        2 uint32 input_dim
        3 bool bias_term = true
        4 FillerParameter weight_filler
        5 FillerParameter bias_filler
    """,
    "ExpParameter": """
        1 float base = -1.0
        2 float scale = 1.0
        3 float shift = 0.0
    """,
    "FlattenParameter": """
        1 int32 axis = 1
        2 int32 end_axis = -1
    """,
    "HingeLossParameter": """
        enum Norm L1=1 L2=2
        1 Norm norm = L1
    """,
    "InfogainLossParameter": """
        1 string source
        2 int32 axis = 1
    """,
    "InnerProductParameter": """
        1 uint32 num_output
        2 bool bias_term = true
        3 FillerParameter weight_filler
        4 FillerParameter bias_filler
        5 int32 axis = 1
        6 bool transpose = false
    """,
    "InputParameter": "1 BlobShape[] shape",
    "LogParameter": """
        1 float base = -1.0
        2 float scale = 1.0
        3 float shift = 0.0
    """,
    "LRNParameter": f"""
        enum NormRegion ACROSS_CHANNELS=0 WITHIN_CHANNEL=1
        {_ENGINE}
        1 uint32 local_size = 5
        2 float alpha = 1.
        3 float beta = 0.75
        4 NormRegion norm_region = ACROSS_CHANNELS
        5 float k = 1.
        6 Engine engine = DEFAULT
    """,
    "MVNParameter": """
        1 bool normalize_variance = true
        2 bool across_channels = false
        3 float eps = 1e-9
    """,
    "ParameterParameter": "1 BlobShape shape",
    "PoolingParameter": f"""
        enum PoolMethod MAX=0 AVE=1 STOCHASTIC=2
        enum RoundMode CEIL=0 FLOOR=1
        {_ENGINE}
        1 PoolMethod pool = MAX
        4 uint32 pad = 0
        9 uint32 pad_h = 0
        10 uint32 pad_w = 0
        2 uint32 kernel_size
        5 uint32 kernel_h
        6 uint32 kernel_w
        3 uint32 stride = 1
        7 uint32 stride_h
        8 uint32 stride_w
        11 Engine engine = DEFAULT
        12 bool global_pooling = false
        13 RoundMode round_mode = CEIL
    """,
    "PowerParameter": """
        1 float power = 1.0
        2 float scale = 1.0
        3 float shift = 0.0
    """,
    "PReLUParameter": """
        1 FillerParameter filler
        2 bool channel_shared = false
    """,
    "PythonParameter": """
        1 string module
        2 string layer
        3 string param_str
        4 bool share_in_parallel = false
    """,
    "RecurrentParameter": """
        1 uint32 num_output = 0
        2 FillerParameter weight_filler
        3 FillerParameter bias_filler
        4 bool debug_info = false
        5 bool expose_hidden = false
    """,
    "ReductionParameter": """
        enum ReductionOp SUM=1 ASUM=2 SUMSQ=3 MEAN=4
        1 ReductionOp operation = SUM
        2 int32 axis = 0
        3 float coeff = 1.0
    """,
    "ReLUParameter": f"""
        {_ENGINE}
        1 float negative_slope = 0
        2 Engine engine = DEFAULT
    """,
    "ReshapeParameter": """
        1 BlobShape shape
        2 int32 axis = 0
        3 int32 num_axes = -1
    """,
    "ScaleParameter": """
        1 int32 axis = 1
        2 int32 num_axes = 1
        3 FillerParameter filler
        4 bool bias_term = false
        5 FillerParameter bias_filler
    """,
    "SigmoidParameter": f"""
        {_ENGINE}
        1 Engine engine = DEFAULT
    """,
    "SliceParameter": """
        3 int32 axis = 1
        2 uint32[] slice_point
        1 uint32 slice_dim = 1
    """,
    "SoftmaxParameter": f"""
        {_ENGINE}
        1 Engine engine = DEFAULT
        2 int32 axis = 1
    """,
    "SwishParameter": "1 float beta = 1",
    "TanHParameter": f"""
        {_ENGINE}
        1 Engine engine = DEFAULT
    """,
    "TileParameter": """
        1 int32 axis = 1
        2 int32 tiles
    """,
    "ThresholdParameter": "1 float threshold = 0",
    "SPPParameter": f"""
        enum PoolMethod MAX=0 AVE=1 STOCHASTIC=2
        {_ENGINE}
        1 uint32 pyramid_height
        2 PoolMethod pool = MAX
        6 Engine engine = DEFAULT
    """,
}
