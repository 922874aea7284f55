# SPDX-License-Identifier: Apache-2.0
"""Prints a model's config.json in the grammar of Keras 2: legacy.py NAME.keras, or JSON in a file."""
import json
import sys
import zipfile


def tensors(value):
    """The tensors among a call's arguments, in order."""
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        return [value["config"]["keras_history"] + [{}]]
    if isinstance(value, list):
        return [t for item in value for t in tensors(item)]
    return []


def plain(value):
    """Objects without modules; dtypes and inputs' shapes as they were."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "DTypePolicy":
        return value["config"]["name"]
    value = {key: plain(item) for key, item in value.items()
             if key not in ("module", "registered_name", "build_config", "compile_config")}
    if value.get("class_name") == "InputLayer":
        config = value["config"]
        value["config"] = {"batch_input_shape": config["batch_shape"], "dtype": config["dtype"], "sparse": False,
                           "ragged": False, "name": config["name"]}
    return value


def model(value):
    config = value["config"]
    calls = {layer["name"]: [tensors(node["args"]) for node in layer["inbound_nodes"]]
             for layer in config["layers"] if "inbound_nodes" in layer}
    value = plain(value)
    for layer, original in zip(value["config"]["layers"], config["layers"]):
        if "layers" in original["config"]:
            layer["config"] = model(original)["config"]
        if "inbound_nodes" in layer:
            layer["inbound_nodes"] = calls[layer["name"]]
    return value


def ends(value):
    """One input or output as a list of one."""
    for key in ("input_layers", "output_layers"):
        if key in value["config"] and not isinstance(value["config"][key][0], list):
            value["config"][key] = [value["config"][key]]
    return value


if sys.argv[1].endswith(".keras"):
    with zipfile.ZipFile(sys.argv[1]) as archive:
        config = json.loads(archive.read("config.json"))
else:
    with open(sys.argv[1]) as file:
        config = json.load(file)
print(json.dumps(ends(model(config)) | {"keras_version": "2.11.0", "backend": "tensorflow"}))
