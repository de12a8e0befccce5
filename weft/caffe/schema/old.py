"""Messages of old nets: `layers { type: CONVOLUTION }`, and `layers { layer { type: "conv" } }`.

`upgrade.py` turns them into what nets are today.
"""

from __future__ import annotations

MESSAGES = {
    "V1LayerParameter": """
        enum LayerType NONE=0 ABSVAL=35 ACCURACY=1 ARGMAX=30 BNLL=2 CONCAT=3 CONTRASTIVE_LOSS=37 \
CONVOLUTION=4 DATA=5 DECONVOLUTION=39 DROPOUT=6 DUMMY_DATA=32 EUCLIDEAN_LOSS=7 ELTWISE=25 EXP=38 \
FLATTEN=8 HDF5_DATA=9 HDF5_OUTPUT=10 HINGE_LOSS=28 IM2COL=11 IMAGE_DATA=12 INFOGAIN_LOSS=13 \
INNER_PRODUCT=14 LRN=15 MEMORY_DATA=29 MULTINOMIAL_LOGISTIC_LOSS=16 MVN=34 POOLING=17 POWER=26 \
RELU=18 SIGMOID=19 SIGMOID_CROSS_ENTROPY_LOSS=27 SILENCE=36 SOFTMAX=20 SOFTMAX_LOSS=21 SPLIT=22 \
SLICE=33 TANH=23 WINDOW_DATA=24 THRESHOLD=31
        2 string[] bottom
        3 string[] top
        4 string name
        32 NetStateRule[] include
        33 NetStateRule[] exclude
        5 LayerType type
        6 BlobProto[] blobs
        1001 string[] param
        1002 DimCheckMode[] blob_share_mode
        7 float[] blobs_lr
        8 float[] weight_decay
        35 float[] loss_weight
        27 AccuracyParameter accuracy_param
        23 ArgMaxParameter argmax_param
        9 ConcatParameter concat_param
        40 ContrastiveLossParameter contrastive_loss_param
        10 ConvolutionParameter convolution_param
        11 DataParameter data_param
        12 DropoutParameter dropout_param
        26 DummyDataParameter dummy_data_param
        24 EltwiseParameter eltwise_param
        41 ExpParameter exp_param
        13 HDF5DataParameter hdf5_data_param
        14 HDF5OutputParameter hdf5_output_param
        29 HingeLossParameter hinge_loss_param
        15 ImageDataParameter image_data_param
        16 InfogainLossParameter infogain_loss_param
        17 InnerProductParameter inner_product_param
        18 LRNParameter lrn_param
        22 MemoryDataParameter memory_data_param
        34 MVNParameter mvn_param
        19 PoolingParameter pooling_param
        21 PowerParameter power_param
        30 ReLUParameter relu_param
        38 SigmoidParameter sigmoid_param
        39 SoftmaxParameter softmax_param
        31 SliceParameter slice_param
        37 TanHParameter tanh_param
        25 ThresholdParameter threshold_param
        20 WindowDataParameter window_data_param
        36 TransformationParameter transform_param
        42 LossParameter loss_param
        1 V0LayerParameter layer
    """,
    "V0LayerParameter": """
        enum PoolMethod MAX=0 AVE=1 STOCHASTIC=2
        1 string name
        2 string type
        3 uint32 num_output
        4 bool biasterm = true
        5 FillerParameter weight_filler
        6 FillerParameter bias_filler
        7 uint32 pad = 0
        8 uint32 kernelsize
        9 uint32 group = 1
        10 uint32 stride = 1
        11 PoolMethod pool = MAX
        12 float dropout_ratio = 0.5
        13 uint32 local_size = 5
        14 float alpha = 1.
        15 float beta = 0.75
        22 float k = 1.
        16 string source
        17 float scale = 1
        18 string meanfile
        19 uint32 batchsize
        20 uint32 cropsize = 0
        21 bool mirror = false
        50 BlobProto[] blobs
        51 float[] blobs_lr
        52 float[] weight_decay
        53 uint32 rand_skip = 0
        54 float det_fg_threshold = 0.5
        55 float det_bg_threshold = 0.5
        56 float det_fg_fraction = 0.25
        58 uint32 det_context_pad = 0
        59 string det_crop_mode = warp
        60 int32 new_num = 0
        61 int32 new_channels = 0
        62 int32 new_height = 0
        63 int32 new_width = 0
        64 bool shuffle_images = false
        65 uint32 concat_dim = 1
        1001 HDF5OutputParameter hdf5_output_param
    """,
}
