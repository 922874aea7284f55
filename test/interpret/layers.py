# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Layers that mean one thing in train_step and another afterwards: batch normalisation, dropout, noise."""
import math
import random
import statistics

from reference import close, run, uniform

random.seed(1)


def check(holds, message):
    if not holds:
        raise SystemExit(message)


# Batch normalisation: one step without learning moves the averages; eval_step normalises with them.
def batch_normalization(options):
    return f"""mt.model @m {{
  %x = mt.input "x" : tensor<?x2x3xf32>
  %t = mt.target "t" : tensor<?x2x3xf32>
  %g = mt.variable "gamma" init(ones) : tensor<3xf32>
  %b = mt.variable "beta" init(zeros) : tensor<3xf32>
  %m = mt.variable "mean" init(zeros) frozen : tensor<3xf32>
  %v = mt.variable "variance" init(ones) frozen : tensor<3xf32>
  %y = mt.batch_normalization %x, %g, %b, %m, %v momentum = 0.75 epsilon = 0.01{options}
       : tensor<?x2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  %l = mt.mean_squared_error %y, %t : tensor<?x2x3xf32>, tensor<?x2x3xf32>
  mt.loss "loss", %l : tensor<?x2xf32>
  mt.output "y", %y : tensor<?x2x3xf32>
  mt.sgd <{{learning_rate = 0.0 : f32}}>
}}
"""


SAMPLES = 7
x = [1000 + random.gauss(0, 2) for _ in range(SAMPLES * 6)]
t = [random.gauss(0, 1) for _ in x]
data = {("INPUT", "x"): x, ("INPUT", "t"): t, ("SET", "mean"): [1, 2, 3], ("SET", "variance"): [2, 1, 0.5]}
channel = [x[c::3] for c in range(3)]
mean, variance = [statistics.fmean(c) for c in channel], [statistics.pvariance(c) for c in channel]


def loss(mean, variance):
    return statistics.fmean(((a - mean[i % 3]) / math.sqrt(variance[i % 3] + 0.01) - b) ** 2 for i,
                            (a, b) in enumerate(zip(x, t)))


moved = [o * 0.75 + n * 0.25 for o, n in zip([1, 2, 3], mean)], [o * 0.75 + n * 0.25 for o,
                                                                 n in zip([2, 1, 0.5], variance)]
found, results = run(batch_normalization(""), ["train_step", "eval_step"], data)
close(found["mean"], moved[0], "moving mean")
close(found["variance"], moved[1], "moving variance")
close(results["loss"], [loss(mean, variance), loss(*moved)], "loss with batch normalisation")
found, results = run(batch_normalization(" frozen"), ["train_step", "eval_step"], data)
close(found["mean"], [1, 2, 3], "moving mean of a frozen layer")
close(results["loss"], [loss([1, 2, 3], [2, 1, 0.5])] * 2, "loss with a frozen layer")

# Statistics of each shard's own: samples 0 and 1, 2 and 3, 4 and 5, 6. The averages move by the mean over the samples.
LOCAL = ("module attributes {mt.compilation = #mt.compilation<shards = 4, shard_rows = 2, local_statistics = true>} "
         "{\n%s}\n")
groups = [range(i, min(i + 12, len(x))) for i in range(0, len(x), 12)]
means = [[statistics.fmean(x[i] for i in group if i % 3 == c) for c in range(3)] for group in groups]
variances = [[statistics.pvariance([x[i] for i in group if i % 3 == c]) for c in range(3)] for group in groups]
found, results = run(LOCAL % batch_normalization(""), ["train_step"], data)
expected = statistics.fmean(((x[i] - means[g][i % 3]) / math.sqrt(variances[g][i % 3] + 0.01) - t[i]) ** 2 for g,
                            group in enumerate(groups) for i in group)
close(results["loss"], [expected], "loss with statistics of shards")
for name, first, values in (("mean", [1, 2, 3], means), ("variance", [2, 1, 0.5], variances)):
    close(found[name], [o * 0.75 + 0.25 * sum(v[c] * len(g) for v, g in zip(values, groups)) / len(x) for c,
                        o in enumerate(first)], f"moving {name} of shards")
# Their gradient, by differences: a rate of 1 leaves it in the variables.
weighted = """%w = mt.variable "w" init(ones) : tensor<2x3xf32>
  %0 = mt.mul %x, %w : tensor<?x2x3xf32>, tensor<2x3xf32>
  %y = mt.batch_normalization %0"""
text = batch_normalization("").replace("%y = mt.batch_normalization %x", weighted)
text = text.replace("learning_rate = 0.0", "learning_rate = 1.0")
data = {("INPUT", "x"): [a - 1000 for a in x], ("INPUT", "t"): t, ("SET", "gamma"): [0.5, 1.5, -1],
        ("SET", "beta"): [0.1, 0.2, 0.3]}
start = {"w": [0.5, 0.75, 1, 1.25, 1.5, 2], "gamma": [0.5, 1.5, -1], "beta": [0.1, 0.2, 0.3]}


def trained(values):
    return run(LOCAL % text, ["train_step"], data | {("SET", name): v for name, v in values.items()})


found, _ = trained(start)
for name, values in start.items():
    for i in range(len(values)):
        high, low = ([v + d * (i == j) for j, v in enumerate(values)] for d in (2 ** -7, -2 ** -7))
        losses = [trained(start | {name: at})[1]["loss"][0] for at in (high, low)]
        difference = (losses[0] - losses[1]) / 2 ** -6
        check(abs(values[i] - found[name][i] - difference) < 1e-3,
              f"gradient of {name}[{i}]: expected {difference}, found {values[i] - found[name][i]}")

# Dropout: y = sum of |dropout(x w) + 100|, so that dw = x mask / (1 - rate) whatever the values.
WIDTH, ROWS, SEED = 64, 24, 12345678901


def noisy(layer, step=""):
    return f"""mt.model @m {{
  %x = mt.input "x" : tensor<?x{WIDTH}xf32>
  %t = mt.target "t" : tensor<?x{WIDTH}xf32>
  %w = mt.variable "w" init(ones) : tensor<{WIDTH}xf32>
  {"%i = mt.iteration" if step else ""}
  %0 = mt.mul %x, %w : tensor<?x{WIDTH}xf32>, tensor<{WIDTH}xf32>
  %y = mt.{layer} {step}: tensor<?x{WIDTH}xf32>
  %l = mt.mean_absolute_error %y, %t : tensor<?x{WIDTH}xf32>, tensor<?x{WIDTH}xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "y", %y : tensor<?x{WIDTH}xf32>
  mt.sgd <{{learning_rate = 1.0 : f32}}>
}}
"""


x = [random.uniform(0.5, 1.5) for _ in range(ROWS * WIDTH)]
data = {("INPUT", "x"): x, ("INPUT", "t"): [-100.0] * len(x)}
for rate in (0.5, 0.2):
    layer = f'dropout %0 "drop" rate = {rate} '
    masks = {}
    for step in range(2):
        found, _ = run(noisy(layer, "step(%i) "), ["train_step"] * step + ["predict"], data, SEED)
        weights = [1.0] * WIDTH if not step else found["w"]
        kept = [uniform(SEED, "drop", step, i) >= rate for i in range(len(x))]
        close(found["y"], [a * weights[i % WIDTH] * k / (1 - rate) for i, (a, k) in enumerate(zip(x, kept))],
              "dropout's mask")
        masks[step] = kept
    check(masks[0] != masks[1], "expected another mask in the next step, found the same")
    check(masks[0] != [uniform(SEED, "other", 0, i) >= rate for i in range(len(x))],
          "expected another mask of another stream, found the same")
    share, sigma = sum(masks[0]) / len(x), math.sqrt(rate * (1 - rate) / len(x))
    check(abs(share - (1 - rate)) < 4 * sigma, f"expected a share of {1 - rate} kept, found {share}")
    # In a model without steps: active in train_step, forward and backward with one mask; gone in eval_step and predict.
    found, results = run(noisy(layer), ["eval_step", "train_step", "predict"], data, SEED)
    scaled = [a * k / (1 - rate) for a, k in zip(x, masks[0])]
    close(results["loss"], [statistics.fmean(x) + 100, statistics.fmean(scaled) + 100], "loss with dropout")
    close(found["w"], [1 - sum(scaled[c::WIDTH]) / len(x) for c in range(WIDTH)], "gradient through dropout")
    close(found["y"], [a * found["w"][i % WIDTH] for i, a in enumerate(x)], "predict without dropout")

# Whole columns drop together where the row axis of a sample is shared.
text = noisy('dropout %0 "drop" rate = 0.5 shared = [1] ', "step(%i) ")
found, _ = run(text, ["predict"], data, SEED)
close(found["y"], [a * 2 * (uniform(SEED, "drop", 0, i // WIDTH) >= 0.5) for i, a in enumerate(x)], "shared dropout")

normal = statistics.NormalDist()
z = [normal.inv_cdf(uniform(SEED, "noise", 0, i) + 2.0**-25) for i in range(len(x))]
for layer, function in [('gaussian_noise %0 "noise" stddev = 0.5 ', lambda a, n: a + 0.5 * n),
                        ('gaussian_dropout %0 "noise" rate = 0.2 ', lambda a, n: a * (1 + 0.5 * n))]:
    found, _ = run(noisy(layer, "step(%i) "), ["predict"], data, SEED)
    close(found["y"], [function(a, n) for a, n in zip(x, z)], layer)
    found, results = run(noisy(layer), ["eval_step", "predict"], data, SEED)
    close(found["y"], x, layer + "in predict")
check(abs(statistics.fmean(z)) < 4 / math.sqrt(len(z)), "expected a mean of 0")
check(abs(statistics.pvariance(z) - 1) < 4 * math.sqrt(2 / len(z)), "expected a variance of 1")
print("layers")
