# SPDX-License-Identifier: Apache-2.0
"""Keras models that are traced: the same losses, metrics, weights and outputs as Keras' own fit has."""

import keras
import keras_models
import mtc
import numpy as np
import pytest

HERE = {"devices": "cpu:1", "cpu": "native"}


def trained(function, **options):
    """Three epochs in MTC and in Keras, of the same model."""
    ours = keras_models.make(function)
    settings = {"batch_size": 16, "epochs": 3, "shuffle": False, "verbose": 0}
    found = mtc.fit(ours.model, ours.x, ours.y, sample_weight=ours.sample_weight, **settings, **HERE, **options)
    theirs = keras_models.make(function)
    wanted = theirs.model.fit(theirs.x, theirs.y, sample_weight=theirs.sample_weight, **settings)
    return ours, theirs, found.history, wanted.history


@pytest.mark.parametrize("function", keras_models.ALL, ids=lambda f: f.__name__)
def test_fit_is_that_of_keras(function, capsys):
    """The loss and all gradients are compared with Keras' before the plan is made."""
    case = keras_models.make(function)
    ours, theirs, found, wanted = trained(function, by="trace" if case.file else None)
    assert set(found) == set(wanted)
    if case.random:  # other random numbers
        assert all(np.isfinite(v) for v in found["loss"])
        return
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-3, atol=1e-3)
    for mine, other in zip(ours.model.variables, theirs.model.variables, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=2e-3, atol=2e-3, err_msg=mine.path)
    assert int(ours.model.optimizer.iterations) == int(theirs.model.optimizer.iterations) > 0
    options = {"sample_weight": ours.sample_weight, "verbose": 0, "return_dict": True}
    mine = mtc.evaluate(ours.model, ours.x, ours.y, **options, **HERE)
    other = ours.model.evaluate(ours.x, ours.y, **options)
    assert mine == pytest.approx(other, rel=1e-3, abs=1e-4)
    outputs = keras.tree.flatten(mtc.predict(ours.model, ours.x, verbose=0, **HERE))
    for a, b in zip(outputs, keras.tree.flatten(ours.model.predict(ours.x, verbose=0)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
