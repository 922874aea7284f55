# SPDX-License-Identifier: Apache-2.0
"""Columns files: raw CSV files become what Keras' FeatureSpace makes of the same columns."""
import csv
import datetime

import keras
import numpy as np
import pytest

import mtc
import mtc.keras

SPACE = keras.utils.FeatureSpace
CITIES = ["Oslo", "Bergen", "Ålesund", "a, b", "Molde"]


def table(name, rows, seed=0):
    """Columns of five tables as people publish them: texts, whole numbers, missing cells, dates, rare categories."""
    draw = np.random.default_rng(seed)
    day = datetime.date(2015, 1, 1)
    columns = {
        "houses": {"area": np.round(draw.uniform(20, 300, rows), 1), "rooms": draw.integers(1, 9, rows),
                   "city": draw.choice(CITIES, rows, p=[.4, .3, .1, .1, .1]), "year": draw.integers(1900, 2024, rows)},
        "people": {"age": draw.integers(17, 90, rows), "work": draw.choice(["private", "state", "none"], rows),
                   "hours": draw.integers(1, 99, rows), "code": draw.integers(0, 12, rows)},
        "sensors": {f"s{i}": draw.normal(10 ** i, 10 ** i / 3, rows) for i in range(5)},
        "clicks": {"site": np.array([f"site-{i}" for i in draw.zipf(1.6, rows) % 500]),
                   "advert": draw.integers(0, 5000, rows), "hour": draw.integers(0, 24, rows)},
        "sales": {"sold": np.array([str(day + datetime.timedelta(int(d))) for d in draw.integers(0, 3000, rows)]),
                  "amount": np.round(draw.lognormal(3, 1, rows), 2), "shop": draw.choice(["north", "south"], rows)},
    }[name]
    return {key: values.tolist() for key, values in columns.items()}


# How each column is encoded by Keras and by keys of csv:.
ENCODINGS = {
    "houses": ({"area": SPACE.float_normalized(), "rooms": SPACE.integer_categorical(), "city": "string_categorical",
                "year": SPACE.float_discretized(3, bin_boundaries=None, output_mode="one_hot")},
               "standardize=area,categories=rooms,buckets=year:{bounds}"),
    "people": ({"age": SPACE.float_normalized(), "work": "string_categorical", "hours": SPACE.float_normalized(),
                "code": SPACE.integer_categorical()}, "standardize=age+hours,categories=code"),
    "sensors": ({f"s{i}": SPACE.float_normalized() for i in range(5)}, "standardize=yes"),
    "clicks": ({"site": SPACE.string_hashed(64), "advert": SPACE.integer_hashed(32),
                "hour": SPACE.integer_categorical()},
               "hash=site:64+advert:32,categories=hour"),
    "sales": ({"sold": SPACE.float_normalized(), "amount": SPACE.float_rescaled(0.01), "shop": "string_categorical"},
              None),
}


def write(path, columns, target=None):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [*columns] if target is None else [*reversed(columns), "target"]  # the order does not matter
        writer.writerow(names)
        writer.writerows(zip(*[target if name == "target" else columns[name] for name in names]))


def arrays(columns):
    """For Keras, which knows no dates: days since 1970."""
    epoch = datetime.date(1970, 1, 1)
    return {key: np.array([(datetime.date.fromisoformat(v) - epoch).days for v in values], np.float32)
            if key == "sold" else np.array(values, np.float32 if isinstance(values[0], float) else None)
            for key, values in columns.items()}


@pytest.mark.parametrize("name", [*ENCODINGS])
def test_predicts_as_keras_does_from_raw_files(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns, new = table(name, 400), table(name, 90, seed=1)
    features, keys = ENCODINGS[name]
    space = SPACE(features={key: features[key] for key in columns})
    space.adapt(arrays(columns))
    mtc.keras.save_columns(space, "space.json", targets=["target"])

    encoded = np.asarray(space(arrays(columns)))
    model = keras.Sequential([keras.Input((encoded.shape[1],)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    write("train.csv", columns, target=[float(v) for v in encoded[:, 0]])
    write("new.csv", new)
    wanted = model.predict(np.asarray(space(arrays(new))), verbose=0)

    def predicted(file):
        plan = mtc.compile(model, columns=file)
        with mtc.Session(plan, "cpu:1") as session, plan.open("csv:new.csv") as data:
            session.predict_file(data, "new.npy")
        return np.load("new.npy")

    if name == "sales":  # a column of dates is no number for Keras
        text = (tmp_path / "space.json").read_text().replace('"name": "sold",\n   "kind": "number"',
                                                             '"name": "sold",\n   "kind": "date"')
        (tmp_path / "space.json").write_text(text)
    np.testing.assert_allclose(predicted("space.json"), wanted, atol=1e-5)
    if keys is None:
        return
    bounds = space.preprocessors["year"].bin_boundaries if name == "houses" else []
    order = "+".join(sorted(columns))
    mtc.save_columns(f"csv:train.csv,y=target,x={order},{keys.format(bounds=':'.join(map(str, bounds)))}", "keys.json")
    np.testing.assert_allclose(predicted("keys.json"), wanted, atol=1e-5)


def test_trains_from_raw_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = table("people", 200)
    write("train.csv", columns, target=[float(age) / 10 for age in columns["age"]])
    said = mtc.save_columns("csv:train.csv,y=target,standardize=yes,range=0:150", "columns.json")
    assert "work: category, 4 numbers: any other, " in said and "target: target" in said
    width = 3 + 4
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    plan = mtc.compile(model, columns="columns.json", batch_size=50)
    with mtc.Session(plan, "cpu:2") as session, plan.open("csv:train.csv") as data:
        session.fit(data, epochs=40)
        assert session.evaluate(data)["loss"] < 1e-2
        with pytest.raises(mtc.DataError, match="expected no x=, y="):
            plan.open("csv:train.csv,standardize=yes")
    with pytest.raises(mtc.ModelError, match=f"expected {width} elements of a sample for .* found 5"):
        mtc.compile(keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)]), columns="columns.json", loss="mse",
                    optimizer="sgd")
    with pytest.raises(mtc.DataError, match="expected a plan with a columns file"):
        mtc.compile(model).open("csv:train.csv,standardize=yes")


def test_what_a_columns_file_has_not(tmp_path):
    space = SPACE(features={"a": "integer_categorical", "b": "integer_categorical"}, crosses=[("a", "b")],
                  crossing_dim=8)
    with pytest.raises(mtc.ModelError, match="without crosses"):
        mtc.keras.save_columns(space, tmp_path / "c.json")
    words = SPACE(features={"a": SPACE.string_categorical(num_oov_indices=2)})
    words.adapt({"a": np.array(["x", "y"])})
    with pytest.raises(mtc.ModelError, match="2 indices of unknown values"):
        mtc.keras.save_columns(words, tmp_path / "c.json")
