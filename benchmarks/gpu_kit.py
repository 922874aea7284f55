# SPDX-License-Identifier: Apache-2.0
"""Makes the folder that `benchmarks/gpu` works in: mtrun, plans, tests and peers, and no compiler.

    FOLDER/bin, lib      mtrun and its libraries            FOLDER/plans     MODEL-PRECISION-rSHARDS.mtp
    FOLDER/tests         the conformance suite, its kernels  FOLDER/golden    a folder a run, with its plan
    FOLDER/benchmarks    these programs                      FOLDER/keras     Keras, for JAX's models, if pip has it
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VENV = ROOT / "benchmarks" / ".venv" / "bin" / "python"
# Of the table: model, batch, precisions; shards 1 and 8.
TABLE = {"mlp": (512, ("f32", "tf32")), "cnn": (128, ("f32", "tf32")), "resnet20": (128, ("f32", "tf32")), "resnet50": (256, ("bf16", "tf32"))}
REHEARSAL = {"mlp": (16, ("f32",)), "cnn": (8, ("f32",))}
# Trained for their bits: model text, batch, features of a sample, classes.
EXACT = {"mlp": ("examples/mnist_mlp.mlir", 40, 784, 10), "convnet": ("test/devices/cuda-convnet.mlir", 20, 784, 10),
         "cnn": ("test/devices/cuda-cnn.mlir", 20, 784, 10)}


def say(message):
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def architecture_of_keras(model, folder):
    """config.json of the model, whose variables begin with what its initializers give: a small plan."""
    archive = folder / f"{model}.keras"
    run(VENV, ROOT / "benchmarks" / "images.py", model, archive)
    text = folder / f"{model}.json"
    text.write_bytes(zipfile.ZipFile(archive).read("config.json"))
    archive.unlink()
    return text


def prepare_keras():
    needed = {"jax", "keras"}
    found = VENV.exists() and subprocess.run([VENV, "-c", "import jax, keras"], capture_output=True).returncode == 0
    if not found:
        say(f"install {', '.join(sorted(needed))} into benchmarks/.venv")
        run(sys.executable, "-m", "venv", VENV.parents[1])
        run(VENV, "-m", "pip", "install", "--quiet", *needed)


def copy_programs(kit, build, simulated):
    for folder in ("bin", "lib", "plans", "tests", "golden", "benchmarks", "data"):
        (kit / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy2(build / "bin" / "mtrun", kit / "bin")
    for name in ["libmtrun.so.0", "libmtrun_cuda.so"] + ["libcuda-simulated.so"] * simulated:
        shutil.copy2((build / "lib" / name).resolve(), kit / "lib" / name)
    shutil.copy2(build / "test" / "unit" / "conformanceTests", kit / "tests")
    for name in ("kernels.so", "gpu_kernels.so", "gpu_kernels.ptx"):
        shutil.copy2(build / "test" / "unit" / "runtime" / name, kit / "tests")
    for name in ("gpu", "gpu_kit.py", "gpu_peers.py", "peers.py", "images.py"):
        shutil.copy2(ROOT / "benchmarks" / name, kit / "benchmarks")
    shutil.copy2(ROOT / "test" / "golden" / "keras-runs", kit / "benchmarks")


def compile_plan(mtc, kit, source, name, *options):
    begin = time.perf_counter()
    run(mtc, "compile", source, "-o", kit / "plans" / f"{name}.mtp", *options)
    return time.perf_counter() - begin


def make(kit, arguments):
    """The folder, and facts of its plans in plans/facts.json."""
    target = "cpu,cuda:simulated" if arguments.simulated else f"cpu,{arguments.target}"
    build = arguments.build or ROOT / "build" / "release"
    mtc = build / "bin" / "mtc"
    if not arguments.build:
        say("build")
        run("cmake", "--preset", "release", cwd=ROOT)
        run("ninja", "-C", build, "mtc", "mtrun", "libmtrun-cuda", "cuda-simulated", "conformance")
    copy_programs(kit, build, arguments.simulated)
    table = REHEARSAL if arguments.simulated else TABLE
    facts = {}
    if not arguments.simulated:
        prepare_keras()
    for model, (batch, precisions) in table.items():
        if model == "mlp":
            source = ROOT / "examples" / "mnist_mlp.mlir"
        else:
            source = ROOT / EXACT["cnn"][0] if arguments.simulated else architecture_of_keras(model, kit / "plans")
        for precision in precisions:
            for shards in (1, 8):
                name = f"{model}-{precision}-r{shards}"
                say(f"compile {name}, batch {batch}")
                options = ["--batch", batch, "--shards", shards, "--target", target]
                if precision != "f32":
                    options += ["--precision", precision]
                seconds = compile_plan(mtc, kit, source, name, *options)
                report = json.loads(run(mtc, "inspect", kit / "plans" / f"{name}.mtp", "--json"))
                step = next(p for p in report["programs"] if p["name"] == "train_step")
                facts[name] = {"compile_s": seconds, "batch": batch, "kernels": len(report["kernels"]),
                               "flops": sum(s.get("flops", 0) for s in step["steps"]), "bytes": sum(s.get("bytes", 0) for s in step["steps"])}
    for model, (source, batch, _, _) in EXACT.items():
        compile_plan(mtc, kit, ROOT / source, f"exact-{model}", "--batch", batch, "--shards", 8, "--target", target)
    (kit / "plans" / "facts.json").write_text(json.dumps(facts, indent=1))
    golden = os.environ.get("MTC_GOLDEN_RUNS")
    if golden:
        say("golden runs")
        environment = os.environ | {"PATH": f"{build / 'bin'}:{os.environ['PATH']}"}
        run(ROOT / "test" / "golden" / "keras-runs", "--plans", kit / "golden", "--target", target, "--compile-only", *sorted(pathlib.Path(golden).glob("*/")),
            env=environment)
        for folder in sorted(pathlib.Path(golden).glob("*/")):
            shutil.copytree(folder, kit / "golden" / folder.name, dirs_exist_ok=True)
    if not arguments.simulated and arguments.peers:
        say("Keras, for JAX's models")
        run(VENV, "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", "--no-compile", "--target", kit / "keras", "keras")
