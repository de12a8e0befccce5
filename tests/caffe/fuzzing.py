"""Mutations of texts and bytes, and nets with every kind of layer to mutate."""

import re

EVERY_LAYER = """
name: "every" state { level: 1 stage: "a" }
layer { name: "data" type: "Input" top: "data" top: "label" input_param {
  shape { dim: 2 dim: 4 dim: 8 dim: 8 } shape { dim: 2 } } }
layer { name: "made" type: "DummyData" top: "made" dummy_data_param {
  num: 2 channels: 4 height: 8 width: 8 data_filler { type: "uniform" min: -1 max: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { name: "w" lr_mult: 1 }
  param { lr_mult: 2 decay_mult: 0 } convolution_param { num_output: 4 kernel_size: 3 pad: 1
  group: 2 weight_filler { type: "xavier" variance_norm: AVERAGE } bias_filler { value: 0.1 } } }
layer { name: "deconv" type: "Deconvolution" bottom: "conv" top: "deconv" convolution_param {
  num_output: 2 kernel_h: 2 kernel_w: 3 stride: 2 dilation: 1 weight_filler { type: "msra" } } }
layer { name: "crop" type: "Crop" bottom: "deconv" bottom: "data" top: "crop"
  crop_param { axis: 2 offset: 1 } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param {
  pool: AVE kernel_size: 3 stride: 2 pad: 1 round_mode: CEIL } }
layer { name: "lrn" type: "LRN" bottom: "pool" top: "lrn" lrn_param {
  local_size: 3 alpha: 1e-4 beta: 0.75 norm_region: WITHIN_CHANNEL } }
layer { name: "bn" type: "BatchNorm" bottom: "lrn" top: "bn" batch_norm_param { eps: 1e-3 } }
layer { name: "scale" type: "Scale" bottom: "bn" top: "bn" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" relu_param { negative_slope: 0.1 } }
layer { name: "prelu" type: "PReLU" bottom: "bn" top: "prelu" }
layer { name: "mvn" type: "MVN" bottom: "prelu" top: "mvn" mvn_param { across_channels: true } }
layer { name: "power" type: "Power" bottom: "mvn" top: "power" power_param { scale: 2 shift: 9 } }
layer { name: "slice" type: "Slice" bottom: "power" top: "s1" top: "s2" slice_param { axis: 1
  slice_point: 2 } }
layer { name: "elt" type: "Eltwise" bottom: "s1" bottom: "s2" top: "elt" eltwise_param {
  operation: SUM coeff: 1 coeff: -0.5 } }
layer { name: "tile" type: "Tile" bottom: "elt" top: "tile" tile_param { axis: 1 tiles: 2 } }
layer { name: "spp" type: "SPP" bottom: "tile" top: "spp" spp_param { pyramid_height: 2 } }
layer { name: "im2col" type: "Im2col" bottom: "tile" top: "im2col" convolution_param {
  kernel_size: 2 } }
layer { name: "reshape" type: "Reshape" bottom: "im2col" top: "reshape" reshape_param {
  shape { dim: 0 dim: -1 } } }
layer { name: "flat" type: "Flatten" bottom: "made" top: "flat" flatten_param { axis: 1 } }
layer { name: "concat" type: "Concat" bottom: "spp" bottom: "reshape" bottom: "flat" top: "concat"
  concat_param { axis: 1 } }
layer { name: "drop" type: "Dropout" bottom: "concat" top: "concat" dropout_param {
  dropout_ratio: 0.4 } }
layer { name: "ip" type: "InnerProduct" bottom: "concat" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "gaussian" std: 0.01 sparse: 3 } } }
layer { name: "embed" type: "Embed" bottom: "label" top: "embed" embed_param {
  num_output: 5 input_dim: 5 } }
layer { name: "reduce" type: "Reduction" bottom: "embed" top: "reduce" reduction_param {
  operation: MEAN axis: 1 coeff: 2 } }
layer { name: "steps" type: "Reshape" bottom: "embed" top: "steps" reshape_param {
  shape { dim: 2 dim: 1 dim: 5 } } }
layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param { shape { dim: 2 dim: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "lstm" recurrent_param {
  num_output: 3 weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
layer { name: "quiet" type: "Silence" bottom: "lstm" bottom: "reduce" bottom: "crop" }
layer { name: "acc" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" accuracy_param {
  top_k: 2 } include { phase: TEST min_level: 0 } }
layer { name: "argmax" type: "ArgMax" bottom: "ip" top: "argmax" argmax_param { top_k: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
  loss_weight: 0.5 loss_param { ignore_label: 3 normalization: VALID }
  propagate_down: [true, false] }
"""

OLD = """
name: "old" input: "data" input_dim: 1 input_dim: 3 input_dim: 12 input_dim: 12
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1 blobs_lr: 2
  weight_decay: 1 weight_decay: 0 convolution_param { num_output: 4 kernel_size: 3 stride: 2 } }
layers { bottom: "conv" top: "pool" layer { name: "pool" type: "pool" kernelsize: 2 stride: 2
  pool: MAX } }
layers { name: "prob" type: SOFTMAX bottom: "pool" top: "prob" }
"""

NUMBERS = (
    *("0", "-1", "1", "2", "3", "255", "65536", "2147483647", "4294967295", "-2147483648"),
    *("99999999999999999999", "1e38", "1e999", "nan", "inf", "-inf", "0.5", "1.5", "0x7fffffff"),
)
_PIECE = re.compile(r'"[^"]*"|[A-Za-z_][\w.]*|-?[\d.]+(?:e-?\d+)?|\s+|.', re.DOTALL)
_NUMBER = re.compile(r"-?[\d.]+(?:e-?\d+)?$")
_LETTERS = "{}[]<>:;,#\"'\\\0\n\t\r -+.ex0919é\U0001f600\ud800"


def mutated_text(text, rng):
    """Return a text with one to four mutations, of pieces or of letters."""
    pieces = _PIECE.findall(text)
    for _ in range(rng.randint(1, 4)):
        _mutate(pieces, rng)
    return "".join(pieces)


def _mutate(pieces, rng):
    at = rng.randrange(len(pieces))
    kind = rng.randrange(9)
    if kind == 0:
        del pieces[at : at + rng.choice((1, 1, 2, 5))]
        if not pieces:
            pieces.append("")
    elif kind == 1:
        pieces[at:at] = pieces[at : at + rng.choice((1, 3, 20))]
    elif kind == 2:
        other = rng.randrange(len(pieces))
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif kind in {3, 4, 5}:
        places = [i for i, piece in enumerate(pieces) if _NUMBER.match(piece)]
        pieces[rng.choice(places or [at])] = rng.choice(NUMBERS)
    elif kind == 6:
        names = [i for i, piece in enumerate(pieces) if piece[:1].isalpha() or piece[:1] == '"']
        if names:
            pieces[rng.choice(names)] = pieces[rng.choice(names)]
    elif kind == 7:
        del pieces[rng.randrange(len(pieces)) :]
        pieces.append(" ")
    else:
        piece, where = pieces[at], rng.randrange(len(pieces[at]) + 1)
        pieces[at] = piece[:where] + rng.choice(_LETTERS) * rng.choice((1, 1, 1000)) + piece[where:]


def mutated_bytes(data, rng):
    """Return bytes with one to eight mutations."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(made) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(made):
            made[at] = rng.randrange(256)
        elif kind == 1:
            made[at:at] = bytes(rng.choice((0, 1, 0x80, 0xFF)) for _ in range(rng.randint(1, 9)))
        elif kind == 2:
            del made[at : at + rng.randint(1, 30)]
        elif kind == 3:
            other = rng.randrange(len(made) + 1)
            made[at:at] = made[other : other + rng.randint(1, 200)]
        else:
            del made[max(at, len(made) // 4) :]
    return bytes(made)
