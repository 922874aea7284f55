# SPDX-License-Identifier: Apache-2.0
"""A columns file of a Keras FeatureSpace: CSV files are then read as the FeatureSpace encodes them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from mtc._errors import ModelError


def save_columns(feature_space: Any, path: Union[str, os.PathLike[str]], targets: Sequence[str] = ()) -> None:
    """Writes the columns file of an adapted `keras.utils.FeatureSpace`, for `columns` of `mtc.compile`.

    Args:
        feature_space: it has been adapted. Its encoding has the order of the sorted names, as Keras' own.
        path: the file.
        targets: the columns of the target.

    Raises:
        ModelError: an encoding that a columns file has not: crosses, salted hashes, several indices of unknown words.
    """
    if feature_space.crosses:
        raise ModelError("expected a FeatureSpace without crosses for a columns file, found " +
                         ", ".join(cross.name for cross in feature_space.crosses))
    feature_space.get_encoded_features()  # says where adapt() is missing
    inputs = [_rule(name, feature_space.preprocessors[name], feature_space.features[name].output_mode)
              for name in sorted(feature_space.features)]
    text = json.dumps({"format": "mtc columns 1", "inputs": inputs, "targets": list(targets)}, indent=1,
                      ensure_ascii=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def _rule(name: str, layer: Any, mode: str) -> dict[str, Any]:
    kind = type(layer).__name__

    def refused(what: str) -> ModelError:
        return ModelError(f"{name}: expected an encoding of a columns file, found {what}")

    if kind == "Normalization":
        mean, variance = (np.asarray(each, np.float64).ravel() for each in (layer.mean, layer.variance))
        if mean.size != 1 or layer.invert:
            raise refused("a Normalization of several numbers or an inverse one")
        return _number(name, float(mean[0]), max(float(np.sqrt(variance[0])), 1e-7))
    if kind == "Rescaling":
        if not layer.scale > 0:
            raise refused(f"a Rescaling by {layer.scale}")
        return _number(name, -float(layer.offset) / float(layer.scale), 1 / float(layer.scale))
    if kind in ("TFDIdentity", "Identity"):
        return _number(name, 0.0, 1.0)
    index = {"index": True} if mode == "int" else {}
    if kind in ("StringLookup", "IntegerLookup"):
        if layer.num_oov_indices != 1 or layer.mask_token is not None:
            raise refused(f"{kind} with {layer.num_oov_indices} indices of unknown values or a mask")
        words = [str(word) for word in layer.get_vocabulary()[1:]]
        return {"name": name, "kind": "category", **index, "values": words}
    if kind == "Hashing":
        if layer.salt is not None or layer.mask_value is not None:
            raise refused("Hashing with a salt or a mask")
        return {"name": name, "kind": "hash", **index, "bins": int(layer.num_bins)}
    if kind == "Discretization":
        return {"name": name, "kind": "buckets", **index, "bounds": [float(bound) for bound in layer.bin_boundaries]}
    raise refused(kind)


def _number(name: str, mean: float, deviation: float) -> dict[str, Any]:
    return {"name": name, "kind": "number", "mean": mean, "deviation": deviation}
