# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Every optimizer, option and schedule against Keras' formulas, written here a second time: four steps of two
weights."""
import math

from reference import close, run

X, T, START = [1.5, -0.5], [3.0, 2.0], [0.4, -0.7]
STEPS = 4


def model(optimizer, extra=""):
    return f"""mt.model @m {{
  %x = mt.input "x" : tensor<?x2xf32>
  %t = mt.target "t" : tensor<?x2xf32>
  %w = mt.variable "w" init(zeros) : tensor<2xf32>
  %p = mt.mul %x, %w : tensor<?x2xf32>, tensor<2xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x2xf32>, tensor<?x2xf32>
  mt.loss "loss", %l : tensor<?xf32>
  {extra}
  {optimizer}
}}
"""


def gradient(w):
    return [(x * v - t) * x for x, v, t in zip(X, w, T)]


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def adam(amsgrad=False, b1=0.9, b2=0.999, eps=1e-7):
    s = [[0.0, 0.0, 0.0] for _ in START]

    def step(w, g, t, lr):
        alpha = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
        out = []
        for x, d, a in zip(w, g, s):
            a[0] += (d - a[0]) * (1 - b1)
            a[1] += (d * d - a[1]) * (1 - b2)
            a[2] = max(a[2], a[1])
            out.append(x - a[0] * alpha / (math.sqrt(a[2] if amsgrad else a[1]) + eps))
        return out
    return step


def adamax(b1=0.9, b2=0.999, eps=1e-7):
    s = [[0.0, 0.0] for _ in START]

    def step(w, g, t, lr):
        out = []
        for x, d, a in zip(w, g, s):
            a[0] += (d - a[0]) * (1 - b1)
            a[1] = max(b2 * a[1], abs(d))
            out.append(x - lr * a[0] / ((1 - b1**t) * (a[1] + eps)))
        return out
    return step


def nadam(b1=0.9, b2=0.999, eps=1e-7):
    s, product = [[0.0, 0.0] for _ in START], [1.0]

    def step(w, g, t, lr):
        u, following = b1 * (1 - 0.5 * 0.96**t), b1 * (1 - 0.5 * 0.96 ** (t + 1))
        product[0] *= u
        out = []
        for x, d, a in zip(w, g, s):
            a[0] += (d - a[0]) * (1 - b1)
            a[1] += (d * d - a[1]) * (1 - b2)
            m = following * a[0] / (1 - product[0] * following) + (1 - u) * d / (1 - product[0])
            out.append(x - m * lr / (math.sqrt(a[1] / (1 - b2**t)) + eps))
        return out
    return step


def lamb(b1=0.9, b2=0.999, eps=1e-7):
    s = [[0.0, 0.0] for _ in START]

    def step(w, g, t, lr):
        update = []
        for d, a in zip(g, s):
            a[0] += (d - a[0]) * (1 - b1)
            a[1] += (d * d - a[1]) * (1 - b2)
            update.append(a[0] / (1 - b1**t) / (math.sqrt(a[1] / (1 - b2**t)) + eps))
        ratio = norm(w) / norm(update) if norm(w) > 0 and norm(update) > 0 else 1
        return [x - ratio * lr * d for x, d in zip(w, update)]
    return step


def adagrad(start=0.1, eps=1e-7):
    s = [start for _ in START]

    def step(w, g, t, lr):
        for i, d in enumerate(g):
            s[i] += d * d
        return [x - lr * d / math.sqrt(a + eps) for x, d, a in zip(w, g, s)]
    return step


def adadelta(rho=0.95, eps=1e-7):
    s = [[0.0, 0.0] for _ in START]

    def step(w, g, t, lr):
        out = []
        for x, d, a in zip(w, g, s):
            a[0] = rho * a[0] + (1 - rho) * d * d
            delta = -math.sqrt(a[1] + eps) * d / math.sqrt(a[0] + eps)
            a[1] = rho * a[1] + (1 - rho) * delta * delta
            out.append(x + lr * delta)
        return out
    return step


def rmsprop(rho=0.9, eps=1e-7):
    s = [0.0 for _ in START]

    def step(w, g, t, lr):
        for i, d in enumerate(g):
            s[i] = rho * s[i] + (1 - rho) * d * d
        return [x - lr * d / math.sqrt(a + eps) for x, d, a in zip(w, g, s)]
    return step


def lion(b1=0.9, b2=0.99):
    s = [0.0 for _ in START]

    def step(w, g, t, lr):
        out = [x - lr * math.copysign(1, m * b1 + d * (1 - b1)) for x, d, m in zip(w, g, s)]
        for i, d in enumerate(g):
            s[i] = s[i] * b2 + d * (1 - b2)
        return out
    return step


def sgd():
    return lambda w, g, t, lr: [x - lr * d for x, d in zip(w, g)]


def train(step, rate=lambda i: 0.1, clip=lambda g: g, decay=0.0, ema=None, every=None):
    w, average = list(START), [0.0 for _ in START]
    for i in range(STEPS):
        g = clip(gradient(w))
        w = [x - x * decay * rate(i) for x in w]
        w = step(w, g, i + 1, rate(i))
        if ema is not None:
            m = ema if i else 0.0
            average = [m * a + (1 - m) * x for a, x in zip(average, w)]
            if every and (i + 1) % every == 0:
                w = list(average)
    return w, average


def scaled(g, bound):
    return [x * bound / max(norm(g), bound) for x in g]


LR = "learning_rate = 0.1 : f32"
CASES = {
    "adam": (f"mt.adam <{{{LR}}}>", train(adam())),
    "amsgrad": (f"mt.adam <{{{LR}, amsgrad}}>", train(adam(amsgrad=True))),
    "adamw": (f"mt.adamw <{{{LR}, weight_decay = 0.3 : f32}}>", train(adam(), decay=0.3)),
    "adamw default": (f"mt.adamw <{{{LR}}}>", train(adam(), decay=0.004)),
    "adamax": (f"mt.adamax <{{{LR}}}>", train(adamax())),
    "nadam": (f"mt.nadam <{{{LR}}}>", train(nadam())),
    "lamb": (f"mt.lamb <{{{LR}}}>", train(lamb())),
    "adagrad": (f"mt.adagrad <{{{LR}, initial_accumulator_value = 0.2 : f32}}>", train(adagrad(0.2))),
    "adadelta": (f"mt.adadelta <{{learning_rate = 1.0 : f32, epsilon = 0.01 : f32}}>",
                 train(adadelta(eps=0.01), lambda i: 1.0)),
    "rmsprop": (f"mt.rmsprop <{{{LR}, weight_decay = 0.1 : f32}}>", train(rmsprop(), decay=0.1)),
    "lion": (f"mt.lion <{{{LR}}}>", train(lion())),
    "clipnorm": (f"mt.sgd <{{{LR}, clipnorm = 0.5 : f32}}>", train(sgd(), clip=lambda g: scaled(g, 0.5))),
    "clipnorm above": (f"mt.sgd <{{{LR}, clipnorm = 50.0 : f32}}>", train(sgd())),
    "clipvalue": (f"mt.sgd <{{{LR}, clipvalue = 0.25 : f32}}>",
                  train(sgd(), clip=lambda g: [max(-0.25, min(0.25, x)) for x in g])),
    "global_clipnorm": (f"mt.sgd <{{{LR}, global_clipnorm = 0.5 : f32}}>", train(sgd(), clip=lambda g: scaled(g, 0.5))),
    "ema": (f"mt.sgd <{{{LR}, ema_momentum = 0.75 : f32}}>", train(sgd(), ema=0.75)),
    "ema overwrites": (f"mt.adam <{{{LR}, ema_momentum = 0.75 : f32, ema_overwrite_frequency = 2 : i64}}>",
                       train(adam(), ema=0.75, every=2)),
}
for name, (optimizer, (weights, average)) in CASES.items():
    found, _ = run(model(optimizer), ["train_step"] * STEPS,
                   {("INPUT", "x"): X, ("INPUT", "t"): T, ("SET", "w"): START})
    close(found["w"], weights, name)
    if "ema_momentum" in optimizer:
        close([v for k, v in found.items() if k.endswith("/w_average")][0], average, name + ", average")

INITIAL = "initial_learning_rate = 0.2 : f32"
SCHEDULES = {
    f"exponential_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, decay_rate = 0.5 : f32}}>":
        lambda i: 0.2 * 0.5 ** (i / 2),
    f"exponential_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, decay_rate = 0.5 : f32, staircase}}>":
        lambda i: 0.2 * 0.5 ** (i // 2),
    f"inverse_time_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, decay_rate = 0.5 : f32}}>":
        lambda i: 0.2 / (1 + 0.5 * i / 2),
    f"inverse_time_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, decay_rate = 0.5 : f32, staircase}}>":
        lambda i: 0.2 / (1 + 0.5 * (i // 2)),
    "piecewise_constant_decay %i <{boundaries = array<i64: 0, 2>, values = array<f32: 0.3, 0.2, 0.1>}>":
        lambda i: [0.3, 0.2, 0.2, 0.1][i],
    f"polynomial_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, end_learning_rate = 0.05 : f32, power = 2.0 : f32}}>":
        lambda i: 0.15 * (1 - min(i, 2) / 2) ** 2 + 0.05,
    f"polynomial_decay %i <{{{INITIAL}, decay_steps = 2.0 : f32, end_learning_rate = 0.05 : f32, cycle}}>":
        lambda i: 0.15 * (1 - i / (2 * max(1, math.ceil(i / 2)))) + 0.05,
    f"cosine_decay %i <{{{INITIAL}, decay_steps = 3.0 : f32, alpha = 0.1 : f32}}>":
        lambda i: 0.2 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(i, 3) / 3)) + 0.1),
    f"cosine_decay %i <{{initial_learning_rate = 0.02 : f32, decay_steps = 3.0 : f32, warmup_target = 0.2 : f32, "
    f"warmup_steps = 2.0 : f32}}>":
        lambda i: 0.02 + 0.18 * i / 2 if i < 2 else 0.2 * 0.5 * (1 + math.cos(math.pi * (i - 2) / 3)),
}
for schedule, rate in SCHEDULES.items():
    text = model("mt.sgd rate(%r)", f"%i = mt.iteration\n  %r = mt.{schedule}")
    found, _ = run(text, ["train_step"] * STEPS, {("INPUT", "x"): X, ("INPUT", "t"): T, ("SET", "w"): START})
    close(found["w"], train(sgd(), rate)[0], schedule)
    if "sgd/learning_rate" in found:
        raise SystemExit("expected no variable of the learning rate with a schedule, found one")

# Penalties: of a variable; of a value with a batch axis, divided by the samples.
for penalty, value, slope in [("mt.regularizer %w l1 = 0.1 l2 = 0.3 : tensor<2xf32>",
                               lambda w: 0.1 * abs(w) + 0.3 * w * w,
                               lambda w: 0.1 * math.copysign(1, w) + 0.6 * w),
                              ("mt.regularizer %p l2 = 0.3 : tensor<?x2xf32>", None, None)]:
    found, results = run(model(f"mt.sgd <{{{LR}}}>", penalty), ["train_step"],
                         {("INPUT", "x"): X, ("INPUT", "t"): T, ("SET", "w"): START})
    if value is None:
        value, slopes = None, [0.6 * x * x * w for x, w in zip(X, START)]
        added = sum(0.3 * (x * w) ** 2 for x, w in zip(X, START))
    else:
        added, slopes = sum(map(value, START)), list(map(slope, START))
    close(found["w"], [w - 0.1 * (g + s) for w, g, s in zip(START, gradient(START), slopes)], penalty)
    close(results["loss"], [sum((x * w - t) ** 2 for x, w, t in zip(X, START, T)) / 2 + added], penalty)
print(f"{len(CASES)} optimizers, {len(SCHEDULES)} schedules")
