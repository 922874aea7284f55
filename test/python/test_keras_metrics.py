# SPDX-License-Identifier: Apache-2.0
"""Metrics and losses of Keras by class, by text and by function: their values, names and effects are Keras' own."""

import keras
import mtc
import numpy as np
import pytest

L, M, C = keras.layers, keras.metrics, keras.callbacks
QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}
X = np.random.default_rng(0).random((32, 4), dtype="f4")


def model(metrics, outputs=3, activation="sigmoid", loss="mean_squared_error", **options):
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((4,)), L.Dense(outputs, activation=activation)], name="m")
    made.compile("sgd", loss, metrics=metrics, **options)
    return made


def targets(outputs=3):
    return (np.random.default_rng(2).random((32, outputs)) > 0.5).astype("f4")


@pytest.mark.parametrize("metrics, outputs, activation", [
    # Text, class and function of one name: "accuracy" goes by the shapes, Accuracy() compares elements.
    (["accuracy"], 3, "sigmoid"), ([M.Accuracy], 3, "relu"), ([M.Accuracy], 1, "relu"), (["Accuracy"], 3, "sigmoid"),
    (["cosine_similarity"], 3, "sigmoid"), ([M.CosineSimilarity], 3, "sigmoid"),
    ([keras.losses.cosine_similarity], 3, "sigmoid"), ([keras.losses.mean_squared_error], 3, "sigmoid"),
    (["bce", "mse", "MAE", "hinge", "kl_divergence", "poisson", "log_cosh_error"], 3, "sigmoid"),
    ([M.BinaryAccuracy, M.CategoricalAccuracy, M.KLDivergence, M.LogCoshError, M.RootMeanSquaredError], 3, "sigmoid"),
    ([keras.losses.CosineSimilarity()], 3, "sigmoid"),
    # One number for each class or threshold: an array in the logs.
    ([lambda: M.F1Score(threshold=0.5)], 1, "sigmoid"), ([lambda: M.F1Score(threshold=0.5)], 3, "sigmoid"),
    ([M.F1Score], 3, "softmax"), ([lambda: M.F1Score("macro", 0.5)], 3, "sigmoid"),
    ([lambda: M.FBetaScore(None, 2.0, 0.5)], 3, "sigmoid"), ([lambda: M.FBetaScore("micro", 0.5, 0.5)], 3, "sigmoid"),
    ([lambda: M.Precision(thresholds=[0.4, 0.55])], 3, "sigmoid"), ([lambda: M.Recall(thresholds=[0.5])], 1, "sigmoid"),
    ([lambda: M.AUC(multi_label=True), M.Precision], 3, "sigmoid"),
    ([lambda: M.AUC(curve="PR", summation_method="majoring", num_thresholds=7), lambda: M.FBetaScore("weighted", 2.0),
      lambda: M.AUC(curve="PRGAIN", summation_method="minoring", name="gain"), lambda: M.BinaryAccuracy(threshold=0.6),
      lambda: M.AUC(multi_label=True, label_weights=[1.0, 2.0, 0.5], name="labels"), lambda: M.R2Score(),
      lambda: M.TruePositives(), lambda: M.FalseNegatives([0.45, 0.55]), lambda: M.TrueNegatives(),
      lambda: M.Precision(top_k=2), lambda: M.Recall(class_id=1, name="of_one"), lambda: M.PearsonCorrelation(),
      lambda: M.R2Score(None, name="each"), lambda: M.R2Score("variance_weighted_average", name="by_variance"),
      lambda: M.SensitivityAtSpecificity(0.4), lambda: M.PrecisionAtRecall(0.5, num_thresholds=9),
      lambda: M.SpecificityAtSensitivity(0.3, class_id=2), lambda: M.RecallAtPrecision(0.5, num_thresholds=1),
      lambda: M.BinaryIoU([1], 0.5), lambda: M.OneHotIoU(3, [0, 2]), lambda: M.OneHotMeanIoU(3),
      lambda: M.ConcordanceCorrelation()], 3, "sigmoid"),
])
def test_values_and_names(metrics, outputs, activation):
    """In the history and in an evaluation."""
    y = targets(outputs)
    made = []
    for fit, evaluate in ((mtc.fit, mtc.evaluate), (keras.Model.fit, keras.Model.evaluate)):
        new = [m() if isinstance(m, type) or getattr(m, "__name__", "") == "<lambda>" else m for m in metrics]
        trained = model(new, outputs, activation)
        more = QUIET if fit is mtc.fit else {"verbose": 0}
        history = fit(trained, X, y, epochs=2, shuffle=False, validation_data=(X, y), **more).history
        made.append((history, evaluate(trained, X, y, return_dict=True, **more), evaluate(trained, X, y, **more)))
    (ours, our_dict, our_list), (theirs, their_dict, their_list) = made
    assert set(ours) == set(theirs) and set(our_dict) == set(their_dict)
    for name in theirs:
        assert [np.shape(v) for v in ours[name]] == [np.shape(v) for v in theirs[name]], name
        np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-5, atol=2e-6, err_msg=name)
    for a, b in zip(our_list, their_list):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_a_callback_sees_them():
    """EarlyStopping by F1Score(), whose value is an array of one, ends where Keras' does."""
    y, epochs = targets(1), []
    for fit, more in ((mtc.fit, QUIET), (keras.Model.fit, {"verbose": 0})):
        stop = C.EarlyStopping("val_f1_score", mode="max", patience=1)
        history = fit(model([M.F1Score(threshold=0.5)], 1), X, y, epochs=8, shuffle=False, validation_data=(X, y),
                      callbacks=[stop], **more)
        epochs.append(history.epoch)
    assert epochs[0] == epochs[1] and len(epochs[1]) < 8


def mean_squared_error(y, p):
    return keras.ops.mean(keras.ops.abs(y - p), -1)


class Huber(keras.losses.Loss):
    def call(self, y, p):
        return keras.ops.mean(keras.ops.abs(y - p), -1)


class SGD(keras.optimizers.Adam):
    """Another one under the name of one of Keras'."""


@pytest.mark.parametrize("what", [{"loss": mean_squared_error}, {"loss": Huber()},
                                  {"metrics": [mean_squared_error]}])
def test_names_of_keras_that_are_the_callers(what):
    y = targets()
    ours, theirs = (model(what.get("metrics", []), loss=what.get("loss", "mse")) for _ in range(2))
    mine = mtc.fit(ours, X, y, shuffle=False, **QUIET).history
    wanted = theirs.fit(X, y, shuffle=False, verbose=0).history
    assert set(mine) == set(wanted)
    for name in wanted:
        np.testing.assert_allclose(mine[name], wanted[name], rtol=1e-5)


def test_an_optimizer_of_ones_own():
    made = model([])
    made.compile(SGD(0.1), "mse")
    with pytest.raises(mtc.ModelError, match="an optimizer of Keras, found a class SGD that is not Keras'"):
        mtc.compile(made, by="file", verbose=0)


def test_intersections_of_labels():
    y = np.arange(32) % 3
    made = model([M.MeanIoU(3, sparse_y_pred=False), M.IoU(3, [0, 2], sparse_y_pred=False, ignore_class=1)],
                 activation="softmax", loss="sparse_categorical_crossentropy")
    wanted = made.evaluate(X, y, verbose=0, return_dict=True)
    found = mtc.evaluate(made, X, y, return_dict=True, by="file", **QUIET)
    assert all(np.isclose(found[name], wanted[name], rtol=1e-5) for name in wanted)


class Geometric(M.Mean):
    """A mean of logarithms, and no mean."""

    def update_state(self, y, p, sample_weight=None):
        return super().update_state(keras.ops.log(p + 1))

    def result(self):
        return keras.ops.exp(super().result())


def test_metrics_that_are_not_there_are_left_out():
    """With one line, where the rest can be trained; mtc.compile says how."""
    y = np.arange(32) % 3
    made = model([Geometric(name="geometric"), "accuracy"], activation="softmax",
                 loss="sparse_categorical_crossentropy")
    with pytest.warns(mtc.ModelWarning, match="(?i)geometric") as told:
        history = mtc.fit(made, X, y, **QUIET).history
    assert set(history) == {"loss", "accuracy"} and all(len(str(w.message)) < 300 for w in told)
    with pytest.raises(mtc.ModelError, match="a metric of Keras, found a class Geometric"):
        mtc.compile(made, by="file", verbose=0)


@pytest.mark.parametrize("metrics, classes", [
    (lambda: [M.AUC(name="auc"), "mae"], 1),
    (lambda: [M.AUC(name="auc", curve="PR"), M.PrecisionAtRecall(0.5, name="p"), "accuracy"], 1),
    (lambda: [M.F1Score(name="f1", threshold=0.4), M.R2Score(name="r2"), "accuracy"], 3),
], ids=["auc", "several", "classes"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:.*(dropped|left out):mtc.ModelWarning")
def test_metrics_that_keras_computes_on_the_predictions(metrics, classes, weighted):
    """In evaluation and validation of arrays, over batches of which the last is short."""
    numbers = np.random.default_rng(3)
    y = np.eye(classes, dtype="f4")[numbers.integers(0, classes, 32)] if classes > 1 else numbers.integers(
        0, 2, (32, 1)).astype("f4")
    weights = numbers.uniform(0.5, 2, 32).astype("f4") if weighted else None
    made = keras.Sequential([keras.Input((X.shape[1],)), keras.layers.Dense(classes, activation="sigmoid")])
    made.compile("sgd", "mse", **{"weighted_metrics" if weighted else "metrics": metrics()})
    expected = made.evaluate(X, y, sample_weight=weights, batch_size=12, verbose=0, return_dict=True)
    found = mtc.evaluate(made, X, y, sample_weight=weights, batch_size=12, verbose=0, return_dict=True)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    history = mtc.fit(made, X, y, sample_weight=weights, validation_data=(X, y, weights), batch_size=12, epochs=2,
                      verbose=0).history
    last = mtc.evaluate(made, X, y, sample_weight=weights, batch_size=12, verbose=0, return_dict=True)
    for name, value in last.items():
        np.testing.assert_allclose(history[f"val_{name}"][-1], value, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("ignored", [255, -1])
def test_a_class_that_is_ignored(ignored):
    """The label of no class is none of the model's: traced, and trained as in Keras."""
    y = np.arange(32) % 3
    y[::5] = ignored
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=ignored)
    ours, theirs = (model([], activation="softmax", loss=loss) for _ in range(2))
    mine = mtc.fit(ours, X, y, shuffle=False, epochs=2, **QUIET).history["loss"]
    np.testing.assert_allclose(mine, theirs.fit(X, y, shuffle=False, epochs=2, verbose=0).history["loss"], rtol=1e-5)
    with pytest.raises(mtc.ModelError, match="ignore_class.*trace it"):
        mtc.compile(ours, by="file", verbose=0)
    ours.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(mtc.DataError, match=f"has label {ignored}, expected 0 to 2"):
        mtc.fit(ours, X, y, **QUIET)


def test_a_refusal_holds_for_its_options_alone():
    from mtc.keras import _live

    y = np.arange(32) % 3
    made = model([], activation="softmax", loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=7))
    with pytest.raises(mtc.ModelError, match="ignore_class"):
        _live.train_on_batch(made, X, y, by="file", devices="cpu:1", cpu="native")
    assert np.isfinite(_live.train_on_batch(made, X, y, by="trace", devices="cpu:1", cpu="native"))


def test_integer_targets_that_are_no_classes():
    """Counts beside an output of three numbers."""
    y = np.arange(32) % 7

    def counts(y, p):
        return keras.ops.square(keras.ops.cast(y, "float32") - keras.ops.sum(p, -1))

    ours, theirs = (model([], loss=counts) for _ in range(2))
    mine = mtc.fit(ours, X, y, shuffle=False, **QUIET).history["loss"]
    np.testing.assert_allclose(mine, theirs.fit(X, y, shuffle=False, verbose=0).history["loss"], rtol=1e-5)


@pytest.mark.parametrize("by", ["file", "trace"])
def test_a_batch_in_which_all_is_masked(by):
    """Its loss is 0, and nothing becomes NaN."""
    ids = np.random.default_rng(3).integers(1, 5, (12, 6))
    ids[:, 4:] = 0
    ids[4:8] = 0  # the second batch
    y = np.random.default_rng(4).integers(0, 3, (12, 6))
    losses = []
    for fit, more in ((mtc.fit, {**QUIET, "by": by}), (keras.Model.fit, {"verbose": 0})):
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        made = keras.Sequential([keras.Input((6,), dtype="int32"), L.Embedding(5, 4, mask_zero=True),
                                 L.Dense(3, activation="softmax")])
        made.compile("sgd", "sparse_categorical_crossentropy")
        losses.append(fit(made, ids, y, batch_size=4, epochs=2, shuffle=False, **more).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_weights_of_one_column():
    y, weights = targets(), np.random.default_rng(5).random((32, 1), dtype="f4")
    ours, theirs = (model([], loss=lambda y, p: keras.ops.mean(keras.ops.square(y - p), -1)) for _ in range(2))
    mine = mtc.fit(ours, X, y, sample_weight=weights, shuffle=False, **QUIET).history["loss"]
    wanted = theirs.fit(X, y, sample_weight=weights, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(mine, wanted, rtol=1e-5)
    with pytest.raises(mtc.ModelError, match=r"expected a weight for each sample, \[n\], found \[4, 3\]"):
        mtc.fit(ours, X, y, sample_weight=np.ones((32, 3)), **QUIET)
