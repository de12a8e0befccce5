"""`tf.contrib.rnn`: cells and static networks."""

from __future__ import annotations

from ...faces.absent import absent_names
from ..nn.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from ..nn.rnn import static_rnn as static_rnn
from ..nn.rnn_cell import BasicLSTMCell as BasicLSTMCell
from ..nn.rnn_cell import BasicRNNCell as BasicRNNCell
from ..nn.rnn_cell import DeviceWrapper as DeviceWrapper
from ..nn.rnn_cell import DropoutWrapper as DropoutWrapper
from ..nn.rnn_cell import GRUCell as GRUCell
from ..nn.rnn_cell import LSTMCell as LSTMCell
from ..nn.rnn_cell import LSTMStateTuple as LSTMStateTuple
from ..nn.rnn_cell import MultiRNNCell as MultiRNNCell
from ..nn.rnn_cell import ResidualWrapper as ResidualWrapper
from ..nn.rnn_cell import RNNCell as RNNCell

LSTMBlockCell = LSTMBlockFusedCell = BasicLSTMCell
_REASONS = {
    "AttentionCellWrapper": "write the attention by tf.matmul and tf.nn.softmax",
    "LayerNormBasicLSTMCell": "use LSTMCell",
}
__getattr__ = absent_names(globals(), _REASONS)
