"""TensorFlow 1's face of Weft: its names and conventions, over Weft's graphs and operators.

    import weft.tf1 as tf

or, for scripts as they are, `weft run script.py`. docs/faces/tf1.md says what runs.
"""

from __future__ import annotations

from typing import Any

from .. import keras as keras
from ..faces.absent import absent_names
from . import app as app
from . import compat as compat
from . import contrib as contrib
from . import data as data
from . import errors as errors
from . import estimator as estimator
from . import flags as flags
from . import gfile as gfile
from . import image as image
from . import initializers as initializers
from . import io as io
from . import layers as layers
from . import linalg as linalg
from . import logging as logging
from . import losses as losses
from . import math as math
from . import metrics as metrics
from . import nest as nest
from . import nn as nn
from . import python_io as python_io
from . import queue as queue
from . import random as random
from . import sparse as sparse
from . import summary as summary
from . import train as train
from .array_ops import broadcast_to as broadcast_to
from .array_ops import concat as concat
from .array_ops import expand_dims as expand_dims
from .array_ops import matrix_transpose as matrix_transpose
from .array_ops import pack as pack
from .array_ops import pad as pad
from .array_ops import parallel_stack as parallel_stack
from .array_ops import rank as rank
from .array_ops import reshape as reshape
from .array_ops import reverse as reverse
from .array_ops import reverse_v2 as reverse_v2
from .array_ops import roll as roll
from .array_ops import shape as shape
from .array_ops import shape_n as shape_n
from .array_ops import size as size
from .array_ops import split as split
from .array_ops import squeeze as squeeze
from .array_ops import stack as stack
from .array_ops import tile as tile
from .array_ops import transpose as transpose
from .array_ops import unpack as unpack
from .array_ops import unstack as unstack
from .config import ConfigProto as ConfigProto
from .config import GPUOptions as GPUOptions
from .config import GraphOptions as GraphOptions
from .config import OptimizerOptions as OptimizerOptions
from .config import RunMetadata as RunMetadata
from .config import RunOptions as RunOptions
from .control import case as case
from .control import cond as cond
from .control import control_dependencies as control_dependencies
from .control import group as group
from .control import no_op as no_op
from .control import tuple_ as tuple
from .control import while_loop as while_loop
from .dtypes import DType as DType
from .dtypes import as_dtype as as_dtype
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool as bool
from .dtypes import double as double
from .dtypes import float16 as float16
from .dtypes import float32 as float32
from .dtypes import float64 as float64
from .dtypes import half as half
from .dtypes import int8 as int8
from .dtypes import int16 as int16
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import string as string
from .dtypes import uint8 as uint8
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .file_ops import matching_files as matching_files
from .file_ops import read_file as read_file
from .file_ops import write_file as write_file
from .filling import fill as fill
from .filling import ones as ones
from .filling import ones_like as ones_like
from .filling import zeros as zeros
from .filling import zeros_like as zeros_like
from .framework import add_to_collection as add_to_collection
from .framework import colocate_with as colocate_with
from .framework import device as device
from .framework import disable_eager_execution as disable_eager_execution
from .framework import disable_v2_behavior as disable_v2_behavior
from .framework import enable_eager_execution as enable_eager_execution
from .framework import executing_eagerly as executing_eagerly
from .framework import get_collection as get_collection
from .framework import get_collection_ref as get_collection_ref
from .framework import get_default_session as get_default_session
from .framework import is_tensor as is_tensor
from .framework import name_scope as name_scope
from .framework import op_scope as op_scope
from .framework import placeholder_with_default as placeholder_with_default
from .functional import foldl as foldl
from .functional import foldr as foldr
from .functional import map_fn as map_fn
from .functional import scan as scan
from .gradients import AggregationMethod as AggregationMethod
from .gradients import gradients as gradients
from .gradients import hessians as hessians
from .graph import Graph as Graph
from .graph import Operation as Operation
from .graph import get_default_graph as get_default_graph
from .graph import reset_default_graph as reset_default_graph
from .indexing import boolean_mask as boolean_mask
from .indexing import gather as gather
from .indexing import gather_nd as gather_nd
from .indexing import one_hot as one_hot
from .indexing import sequence_mask as sequence_mask
from .indexing import slice_ as slice
from .indexing import strided_slice as strided_slice
from .indexing import where as where
from .keys import GraphKeys as GraphKeys
from .math_ops import abs as abs
from .math_ops import accumulate_n as accumulate_n
from .math_ops import acos as acos
from .math_ops import acosh as acosh
from .math_ops import add as add
from .math_ops import add_n as add_n
from .math_ops import asin as asin
from .math_ops import asinh as asinh
from .math_ops import atan as atan
from .math_ops import atan2 as atan2
from .math_ops import atanh as atanh
from .math_ops import batch_matmul as batch_matmul
from .math_ops import cast as cast
from .math_ops import ceil as ceil
from .math_ops import clip_by_value as clip_by_value
from .math_ops import cos as cos
from .math_ops import cosh as cosh
from .math_ops import cross as cross
from .math_ops import digamma as digamma
from .math_ops import div as div
from .math_ops import div_no_nan as div_no_nan
from .math_ops import divide as divide
from .math_ops import einsum as einsum
from .math_ops import equal as equal
from .math_ops import erf as erf
from .math_ops import erfc as erfc
from .math_ops import exp as exp
from .math_ops import expm1 as expm1
from .math_ops import floor as floor
from .math_ops import floor_div as floor_div
from .math_ops import floordiv as floordiv
from .math_ops import floormod as floormod
from .math_ops import greater as greater
from .math_ops import greater_equal as greater_equal
from .math_ops import identity as identity
from .math_ops import is_finite as is_finite
from .math_ops import is_inf as is_inf
from .math_ops import is_nan as is_nan
from .math_ops import less as less
from .math_ops import less_equal as less_equal
from .math_ops import lgamma as lgamma
from .math_ops import log as log
from .math_ops import log1p as log1p
from .math_ops import log_sigmoid as log_sigmoid
from .math_ops import logical_and as logical_and
from .math_ops import logical_not as logical_not
from .math_ops import logical_or as logical_or
from .math_ops import logical_xor as logical_xor
from .math_ops import matmul as matmul
from .math_ops import maximum as maximum
from .math_ops import minimum as minimum
from .math_ops import mod as mod
from .math_ops import multiply as multiply
from .math_ops import negative as negative
from .math_ops import not_equal as not_equal
from .math_ops import pow as pow
from .math_ops import realdiv as realdiv
from .math_ops import reciprocal as reciprocal
from .math_ops import rint as rint
from .math_ops import round as round
from .math_ops import rsqrt as rsqrt
from .math_ops import saturate_cast as saturate_cast
from .math_ops import sigmoid as sigmoid
from .math_ops import sign as sign
from .math_ops import sin as sin
from .math_ops import sinh as sinh
from .math_ops import sqrt as sqrt
from .math_ops import square as square
from .math_ops import squared_difference as squared_difference
from .math_ops import stop_gradient as stop_gradient
from .math_ops import subtract as subtract
from .math_ops import tan as tan
from .math_ops import tanh as tanh
from .math_ops import tensordot as tensordot
from .math_ops import to_double as to_double
from .math_ops import to_float as to_float
from .math_ops import to_int32 as to_int32
from .math_ops import to_int64 as to_int64
from .math_ops import truediv as truediv
from .matrices import diag as diag
from .matrices import diag_part as diag_part
from .matrices import eye as eye
from .matrices import lin_space as lin_space
from .matrices import linspace as linspace
from .matrices import matrix_band_part as matrix_band_part
from .matrices import matrix_diag as matrix_diag
from .matrices import matrix_diag_part as matrix_diag_part
from .matrices import meshgrid as meshgrid
from .matrices import range_ as range
from .nn.rnn import reverse_sequence as reverse_sequence
from .operators import attach_operators as _attach_operators
from .parsing import FixedLenFeature as FixedLenFeature
from .parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from .parsing import VarLenFeature as VarLenFeature
from .parsing import decode_csv as decode_csv
from .parsing import decode_raw as decode_raw
from .parsing import parse_example as parse_example
from .parsing import parse_single_example as parse_single_example
from .parsing import string_to_number as string_to_number
from .python_ops import Assert as Assert
from .python_ops import Print as Print
from .python_ops import assert_equal as assert_equal
from .python_ops import assert_greater as assert_greater
from .python_ops import assert_greater_equal as assert_greater_equal
from .python_ops import assert_less as assert_less
from .python_ops import assert_less_equal as assert_less_equal
from .python_ops import assert_non_negative as assert_non_negative
from .python_ops import assert_none_equal as assert_none_equal
from .python_ops import assert_positive as assert_positive
from .python_ops import assert_rank as assert_rank
from .python_ops import check_numerics as check_numerics
from .python_ops import numpy_function as numpy_function
from .python_ops import print_ as print
from .python_ops import py_func as py_func
from .python_ops import py_function as py_function
from .queues import FIFOQueue as FIFOQueue
from .queues import PaddingFIFOQueue as PaddingFIFOQueue
from .queues import QueueBase as QueueBase
from .queues import RandomShuffleQueue as RandomShuffleQueue
from .random_ops import multinomial as multinomial
from .random_ops import random_crop as random_crop
from .random_ops import random_gamma as random_gamma
from .random_ops import random_normal as random_normal
from .random_ops import random_shuffle as random_shuffle
from .random_ops import random_uniform as random_uniform
from .random_ops import set_random_seed as set_random_seed
from .random_ops import truncated_normal as truncated_normal
from .readers import FixedLengthRecordReader as FixedLengthRecordReader
from .readers import IdentityReader as IdentityReader
from .readers import ReaderBase as ReaderBase
from .readers import TextLineReader as TextLineReader
from .readers import TFRecordReader as TFRecordReader
from .readers import WholeFileReader as WholeFileReader
from .recording import constant as constant
from .recording import convert_to_tensor as convert_to_tensor
from .recording import placeholder as placeholder
from .reductions import arg_max as arg_max
from .reductions import arg_min as arg_min
from .reductions import argmax as argmax
from .reductions import argmin as argmin
from .reductions import bincount as bincount
from .reductions import count_nonzero as count_nonzero
from .reductions import cumprod as cumprod
from .reductions import cumsum as cumsum
from .reductions import global_norm as global_norm
from .reductions import norm as norm
from .reductions import reduce_all as reduce_all
from .reductions import reduce_any as reduce_any
from .reductions import reduce_euclidean_norm as reduce_euclidean_norm
from .reductions import reduce_logsumexp as reduce_logsumexp
from .reductions import reduce_max as reduce_max
from .reductions import reduce_mean as reduce_mean
from .reductions import reduce_min as reduce_min
from .reductions import reduce_prod as reduce_prod
from .reductions import reduce_std as reduce_std
from .reductions import reduce_sum as reduce_sum
from .reductions import reduce_variance as reduce_variance
from .scattering import scatter_add as scatter_add
from .scattering import scatter_nd as scatter_nd
from .scattering import scatter_sub as scatter_sub
from .scattering import scatter_update as scatter_update
from .scattering import segment_mean as segment_mean
from .scattering import segment_sum as segment_sum
from .scattering import unique as unique
from .scattering import unsorted_segment_sum as unsorted_segment_sum
from .session import InteractiveSession as InteractiveSession
from .session import Session as Session
from .shapes import Dimension as Dimension
from .shapes import TensorShape as TensorShape
from .sparse_values import SparseTensor as SparseTensor
from .sparse_values import SparseTensorValue as SparseTensorValue
from .sparse_values import sparse_tensor_to_dense as sparse_tensor_to_dense
from .summary_messages import Event as Event
from .summary_messages import HistogramProto as HistogramProto
from .summary_messages import Summary as Summary
from .tensor import Tensor as Tensor
from .tensor_array import TensorArray as TensorArray
from .train.averages import clip_by_average_norm as clip_by_average_norm
from .train.averages import clip_by_global_norm as clip_by_global_norm
from .train.averages import clip_by_norm as clip_by_norm
from .variable import Variable as Variable
from .variable import assign as assign
from .variable import assign_add as assign_add
from .variable import assign_sub as assign_sub
from .variable_scope import AUTO_REUSE as AUTO_REUSE
from .variable_scope import VariableScope as VariableScope
from .variable_scope import get_local_variable as get_local_variable
from .variable_scope import get_variable as get_variable
from .variable_scope import get_variable_scope as get_variable_scope
from .variable_scope import no_regularizer as no_regularizer
from .variable_scope import variable_op_scope as variable_op_scope
from .variable_scope import variable_scope as variable_scope
from .variables import all_variables as all_variables
from .variables import assert_variables_initialized as assert_variables_initialized
from .variables import global_variables as global_variables
from .variables import global_variables_initializer as global_variables_initializer
from .variables import initialize_all_variables as initialize_all_variables
from .variables import initialize_local_variables as initialize_local_variables
from .variables import initialize_variables as initialize_variables
from .variables import is_variable_initialized as is_variable_initialized
from .variables import local_variables as local_variables
from .variables import local_variables_initializer as local_variables_initializer
from .variables import model_variables as model_variables
from .variables import moving_average_variables as moving_average_variables
from .variables import report_uninitialized_variables as report_uninitialized_variables
from .variables import tables_initializer as tables_initializer
from .variables import trainable_variables as trainable_variables
from .variables import variables_initializer as variables_initializer

__version__ = VERSION = "1.15.5"  # of the names that this face has

_attach_operators()

newaxis = None
mul, sub, neg = multiply, subtract, negative
initialize_all_tables = tables_initializer
constant_initializer, zeros_initializer = initializers.Constant, initializers.Zeros
ones_initializer, random_normal_initializer = initializers.Ones, initializers.RandomNormal
random_uniform_initializer = initializers.RandomUniform
truncated_normal_initializer = initializers.TruncatedNormal
variance_scaling_initializer = initializers.VarianceScaling
uniform_unit_scaling_initializer = initializers.UniformUnitScaling
glorot_uniform_initializer = initializers.glorot_uniform
glorot_normal_initializer = initializers.glorot_normal
orthogonal_initializer = initializers.Orthogonal
matrix_inverse, matrix_determinant = linalg.inv, linalg.det
matrix_solve, cholesky, trace = linalg.solve, linalg.cholesky, linalg.trace
svd, qr, self_adjoint_eig = linalg.svd, linalg.qr, linalg.self_adjoint_eig
matrix_solve_ls, matrix_triangular_solve = linalg.lstsq, linalg.triangular_solve

_GRAPHS = "graphs of TensorFlow are not read: build the network, and restore its weights"
_REASONS = {
    "contrib_learn": "use tf.keras, or a session of your own",
    "sparse_placeholder": "there are no sparse tensors: use dense ones",
    "sparse_tensor_dense_matmul": "there are no sparse tensors: use tf.matmul",
    "complex64": "there are no complex numbers: use their real and imaginary parts",
    "complex": "there are no complex numbers: use their real and imaginary parts",
    "fft": "there are no Fourier transforms: use numpy.fft in tf.py_func",
    "custom_gradient": "use weft.custom_vjp",
    "RegisterGradient": "use weft.custom_vjp",
    "import_graph_def": _GRAPHS,
    "GraphDef": _GRAPHS,
    "distribute": "use weft's Trainer",
    "function": "leave the decorator out: a session runs compiled code",
    "GradientTape": "use tf.gradients, or weft.grad",
}
__getattr__ = absent_names(globals(), _REASONS)
