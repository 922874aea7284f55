# SPDX-License-Identifier: Apache-2.0
"""One training step in mt-interpret, which computes in float64."""

import dataclasses
import itertools
import subprocess

import numpy as np
from conftest import BUILD

TOLERANCE = 1e-5  # of the largest element of a tensor
FLOOR = 1e-6  # of the largest gradient: some gradients are 0 but for roundings, such as those of biases of keys
MOMENTUM = 0.5  # a momentum is half the one before minus the gradient


@dataclasses.dataclass
class Step:
    """What another framework computes in float64, with the names and axes that the plan has."""

    loss: float
    gradients: dict
    state: dict  # after the step


def slot(variable):
    """The name of a variable's momentum."""
    return f"sgd/{variable.replace('/', '_')}_momentum"


def run(path, text, inputs, variables):
    """The loss and the variables after a step of a model in `mt`: pairs of a name and its elements in six digits.

    Args:
        path: of a file to write and remove.
        text: the model.
        inputs: pairs of a name and an array, of the model's inputs, targets and sample weights.
        variables: the same, of the variables that do not start with their first values.
    """
    with path.open("w") as file:
        for kind, pairs in (("INPUT", inputs), ("SET", variables)):
            for name, array in pairs:
                elements = np.asarray(array, "f8").ravel().tolist()
                file.write(f"// {kind} {name} = " + "%.12g " * len(elements) % tuple(elements) + "\n")
        file.write(text)
    with subprocess.Popen([BUILD / "bin" / "mt-interpret", path], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            name, _, numbers = line.partition(" [")
            if line.startswith("loss = "):
                yield "loss", np.array([float(line.split()[2])])
            elif numbers:
                yield name, np.fromstring(numbers.partition("] =")[2], sep=" ")
    path.unlink()
    assert process.returncode == 0


def errors(path, text, inputs, variables, expected):
    """How far the loss, the gradients and the state after a step are from a `Step`, by their names.

    The momentum of each parameter starts with twice the gradient of the other framework, so that the step leaves the
    difference of the two gradients there.

    Args:
        path, text, inputs, variables: as for `run`. The optimizer of the text is SGD with a learning rate and MOMENTUM.
        expected: the `Step`.
    """
    names = {slot(name): name for name in expected.gradients}
    starts = ((slot(name), 2 * gradient) for name, gradient in expected.gradients.items())
    largest = max(np.abs(g).max() for g in expected.gradients.values())
    assert np.mean([np.abs(g).max() > 1e-6 * largest for g in expected.gradients.values()]) > 0.5, "most are not 0"
    found = {}
    for name, values in run(path, text, inputs, itertools.chain(variables, starts)):
        if name == "loss":
            found[name] = abs(values[0] - expected.loss) / abs(expected.loss)
        elif name in names:
            found[names[name]] = largest_of(values, expected.gradients[names[name]], FLOOR * largest)
        elif name in expected.state:
            wanted = expected.state[name]
            found[name] = largest_of(values - wanted.ravel(), wanted, FLOOR)
    assert set(found) == {"loss", *expected.gradients, *expected.state}
    return found


def largest_of(difference, wanted, floor):
    """The largest of a difference, as a share of the largest element."""
    assert difference.size == wanted.size
    return np.abs(difference).max() / (np.abs(wanted).max() + floor)
