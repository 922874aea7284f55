# SPDX-License-Identifier: Apache-2.0
"""read_events.py FOLDER: what TensorBoard itself reads in a folder of event files, by the plug-in that shows it."""
import sys

from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util

log = plugin_event_accumulator.EventAccumulator(
    sys.argv[1], tensor_size_guidance={"scalars": 0, "histograms": 0, "text": 0})
log.Reload()


def points(tag):
    return [(point.step, tensor_util.make_ndarray(point.tensor_proto)) for point in log.Tensors(tag)]


for plugin in ("scalars", "histograms", "text"):
    print(f"{plugin}:", *sorted(log.PluginTagToContent(plugin)))
print("batch_loss at steps", *(step for step, _ in points("batch_loss")))
epochs = points("dense/kernel/histogram")
print(f"histogram dense/kernel: {len(epochs)} epochs, {int(epochs[-1][1][:, 2].sum())} values in {len(epochs[-1][1])} "
      "buckets")
nodes = log.Graph().node
print(f"graph of {len(nodes)} nodes,", "matmul" if any(node.op == "matmul" for node in nodes) else "nothing",
      "among them")
print("run:", points("run")[0][1].item().decode().strip().splitlines()[0])
