"""TensorFlow 1's face of Weft."""

from .graph import *
from .dtypes import *
from .session import *
from .recording import placeholder, constant
from .variable import Variable, assign, assign_add
