# SPDX-License-Identifier: Apache-2.0
"""Keras models with masks, and plans for several lengths of their sequences: the results are Keras', whose batches are
all padded to the largest."""

import keras
import numpy as np
import pytest
from keras import layers as L

import mtc

TOKENS, TAGS, MOST, BATCH = 50, 5, 24, 8


def attention(x):
    return L.Dense(TAGS, activation="softmax")(L.MultiHeadAttention(2, 4)(x, x))


def transformer(x):
    x = L.LayerNormalization()(L.Add()([x, L.GroupQueryAttention(4, 2, 2)(x, x)]))
    x = L.Add()([x, L.Dense(8)(L.Dense(16, activation="gelu")(x))])
    return L.Dense(TAGS, activation="softmax")(L.Add()([x, L.GroupQueryAttention(4, 2, 1)(x, x, use_causal_mask=True)]))


def recurrent(x):
    return L.Dense(TAGS, activation="softmax")(L.Bidirectional(L.LSTM(4, return_sequences=True))(x))


def make(tagger):
    keras.utils.set_random_seed(1)
    ids = keras.Input((None,), dtype="int32", name="ids")
    model = keras.Model(ids, tagger(L.Embedding(TOKENS, 8, mask_zero=True)(ids)))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    return model


def data(samples=35):
    """Batches of different lengths, and a short last one."""
    random = np.random.default_rng(3)
    longest = np.repeat([6, 24, 12, 3, 8], BATCH)[:samples]
    lengths = np.where(np.arange(samples) % BATCH, random.integers(1, longest + 1), longest)
    real = np.arange(MOST) < lengths[:, None]
    return (np.where(real, random.integers(1, TOKENS, real.shape), 0).astype("int32"),
            np.where(real, random.integers(0, TAGS, real.shape), 0).astype("int32"))


@pytest.mark.parametrize("tagger", [attention, transformer, recurrent])
def test_results_are_those_of_keras(tagger, tmp_path):
    model, (x, y) = make(tagger), data()
    model.save(tmp_path / "model.keras")
    plan = mtc.compile(tmp_path / "model.keras", batch_size=BATCH, lengths=[6, 12, 24])
    assert plan.lengths == (6, 12, 24)
    with plan.session("cpu:2") as session:
        predicted, wanted, real = [], model.predict(x, batch_size=BATCH, verbose=0), x != 0
        for begin in range(0, len(x), BATCH):
            predicted.append(session.predict([x[begin:begin + BATCH]]))
        np.testing.assert_allclose(np.concatenate(predicted)[real], wanted[real], atol=2e-6)
        assert session.length_steps() == {6: 2, 12: 2, 24: 1}
        for begin in range(0, len(x), BATCH):
            logs = session.train_step([x[begin:begin + BATCH], y[begin:begin + BATCH]])
            loss = model.train_on_batch(x[begin:begin + BATCH], y[begin:begin + BATCH], return_dict=True)["loss"]
            model.reset_metrics()
            assert abs(logs["loss"] - loss) < 2e-5
        assert session.length_steps() == {6: 4, 12: 4, 24: 2}


def test_fit_pads_short_arrays(tmp_path):
    model, (x, y) = make(transformer), data()
    model.save(tmp_path / "model.keras")
    found = []
    for width in (12, 24):
        keras.utils.set_random_seed(1)
        fresh = keras.saving.load_model(tmp_path / "model.keras")
        part = slice(0, 7)  # none longer than 6
        history = mtc.fit(fresh, x[part, :width], y[part, :width], batch_size=BATCH, epochs=2, verbose=0,
                          lengths="6,12,24", devices="cpu:1")
        found.append(history.history["loss"])
    assert found[0] == found[1]


def test_too_long_samples_are_named(tmp_path):
    model, (x, y) = make(transformer), data()
    with pytest.raises(mtc.Error, match=r'sample 8: expected at most 12 positions for "ids", .* found 24'):
        mtc.fit(model, x, y, batch_size=BATCH, epochs=1, verbose=0, lengths="6,12", devices="cpu:1")


def test_a_mask_stays_behind_attention(tmp_path):
    """Where Keras takes it away, and counts the padding."""
    model, (x, y) = make(lambda x: transformer(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x)]))), data()
    model.save(tmp_path / "model.keras")
    with pytest.warns(mtc.ModelWarning, match="the input of MultiHeadAttention is still used after"):
        plan = mtc.compile(tmp_path / "model.keras", batch_size=BATCH, lengths="6,12,24", cache=False)
    with plan.session("cpu:1") as session:
        predicted = session.predict([x[:BATCH]])
        loss = session.eval_step([x[:BATCH], y[:BATCH]])["loss"]
    real = x[:BATCH] != 0
    assert abs(loss + np.log(predicted[real, y[:BATCH][real]]).mean()) < 2e-5


def test_an_operator_passes_no_mask_on(tmp_path):
    model = make(lambda x: L.Dense(TAGS)(x + x))
    model.save(tmp_path / "model.keras")
    with pytest.warns(mtc.ModelWarning, match="operator drops the mask.*keras.layers.Add keeps the mask") as warnings:
        mtc.compile(tmp_path / "model.keras", batch_size=BATCH, lengths="6,12", cache=False)
    assert len(warnings) == 1  # once, not for each length
