# SPDX-License-Identifier: Apache-2.0
"""prepare.py FOLDER [MODEL...]: what the pages' readers have: examples/, data sets in DIR, and Keras models.

DIR has the files of MNIST, whose training part here is the test file of examples/mnist, and of CIFAR-10, 40 made up
pictures in each file. MODEL is NAME or NAME=FILE, a model of test/docs/models; FILE.keras is written as model.save()
would, through mtc.
"""
import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    folder = pathlib.Path(sys.argv[1])
    data = folder / "DIR"
    data.mkdir(parents=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    for part in ("train", "t10k"):
        for name in ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"):
            (data / f"{part}-{name}").symlink_to(ROOT / "examples/mnist" / f"t10k-{name}")
    draw = random.Random(1)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        records = b"".join(bytes([i % 10]) + bytes(draw.choices(range(256), k=3072)) for i in range(40))
        (data / f"{name}.bin").write_bytes(records)
    for model in sys.argv[2:]:
        name, _, file = model.partition("=")
        source, target = ROOT / "test/docs/models" / f"{name}.json", folder / f"{file or name}.keras"
        plan = folder / "prepared.mtp"
        # A model that was not compiled gets what its page compiles it with.
        extra = [] if json.loads(source.read_text()).get("compile_config") else ["--loss", "mse", "--optimizer", "sgd"]
        subprocess.run(["mtc", "compile", source, "-o", plan, "--batch", "8", *extra], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["mtrun", "export", plan, "-o", target], check=True, stdout=subprocess.DEVNULL)
        plan.unlink()


main()
