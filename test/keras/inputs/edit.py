# SPDX-License-Identifier: Apache-2.0
"""Prints a Keras model's config.json, changed: edit.py [NAME.keras] PYTHON, a statement in which `c` is the config,
`layers` its layers.

Without a file it is a small Sequential model: Dense 4 -> 3 relu, Dense 3 -> 2.
"""
import json
import pathlib
import sys
import zipfile


def dense(name, units, activation):
    return {"module": "keras.layers", "class_name": "Dense", "registered_name": None,
            "config": {"name": name, "trainable": True, "dtype": "float32", "units": units, "activation": activation,
                       "use_bias": True,
                       "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": None}},
                       "bias_initializer": {"class_name": "Zeros", "config": {}}, "kernel_regularizer": None}}


def small():
    first = {"module": "keras.layers", "class_name": "InputLayer", "registered_name": None,
             "config": {"batch_shape": [None, 4], "dtype": "float32", "sparse": False, "ragged": False, "name": "x",
                        "optional": False}}
    return {"module": "keras", "class_name": "Sequential", "registered_name": None,
            "config": {"name": "small", "trainable": True,
                       "layers": [first, dense("hidden", 3, "relu"), dense("top", 2, "linear")]},
            "compile_config": {"optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.5}},
                               "loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": True}},
                               "metrics": ["accuracy"]}}


if len(sys.argv) > 2:
    with zipfile.ZipFile(sys.argv[1]) as archive:
        c = json.loads(archive.read("config.json"))
else:
    c = small()
layers = c["config"]["layers"]
exec(sys.argv[-1])
print(json.dumps(c))
