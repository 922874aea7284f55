# SPDX-License-Identifier: Apache-2.0
"""Keras models that are no files: Python code is their meaning, and a trace of it becomes a plan.

The importer of files (`libmtc`) reads Keras' own layers. Whatever it refuses comes here: subclassed models, custom
layers, losses and metrics, `add_loss`, `compute_loss`. The way:

1.  `_example`: a few samples as `fit` takes them. Their shapes and types are the trace's, their values the check's.
    Inputs, outputs, targets and weights get the names that the importer of files would give them.
2.  `_program`: the loss function of `mtc.jax`. It calls `model.compute_loss_and_updates` of Keras' JAX back end, as
    Keras' own train_step does, on variables that are arguments: trainable ones are parameters, those of type float
    that are not trained are the state, seeds are keys (so MTC draws the random numbers), others are constants. Metrics
    start from their reset state in each batch; what they report must be a mean over samples, or a quotient of sums.
    Keras' paths are the names of the variables, which is how `mtc._model.match_variables` finds them again.
    `_own_step` finds the loss of a class that has its own train_step.
3.  `_optimizer`: `model.optimizer` as an optimizer of MTC's, whose forms are Keras'. Schedules are traced.
4.  `mtc.jax` makes the text and checks one batch against Keras on JAX.
5.  `_rebuild`: on another back end a process with KERAS_BACKEND=jax loads the saved model, and does 1 to 4.
6.  `_compile` makes the plan, and keeps it under a hash of the text. So a model is traced at each `fit`, which takes a
    second or less, and compiled and checked when its text is new.
"""

from mtc._traced._compile import Request as Request
from mtc._traced._compile import compile as compile
from mtc._traced._example import Example as Example

__all__ = ["Example", "Request", "compile"]
