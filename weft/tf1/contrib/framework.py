"""`tf.contrib.framework`: variables and nests."""

from __future__ import annotations

from ...faces.absent import absent_names
from .. import nest as nest
from ..train.schedules import create_global_step as create_global_step
from ..train.schedules import get_global_step as get_global_step
from ..train.schedules import get_or_create_global_step as get_or_create_global_step
from ..variables import global_variables as get_variables
from ..variables import model_variables as get_model_variables
from ..variables import trainable_variables as get_trainable_variables

__all__ = ["get_model_variables", "get_trainable_variables", "get_variables"]
__getattr__ = absent_names(globals(), {"arg_scope": "give the arguments to each layer"})
