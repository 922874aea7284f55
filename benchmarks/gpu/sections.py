# SPDX-License-Identifier: Apache-2.0
"""What is looked at: a unit is a name and a function that gives what it found as a dictionary, or says why not."""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import struct
import sys
import tempfile

from machine import Failure, Skip

SECTIONS = ("machine", "conformance", "golden", "bits", "speed", "tune", "scaling", "peers", "account", "sanitizer")
PEERS = {"torch-compile": ("torch", "torch.cuda.is_available()"), "torch-graph": ("torch", "torch.cuda.is_available()"),
         "jax": ("jax", "jax.default_backend() == 'gpu'")}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
DRIVER = 64 << 20  # bytes that a driver may take on top of what was promised: graphs, and pages of 2 MiB
SECONDS = 4  # of one timed series of steps


def units(m):
    """Names of units, in the order in which they run."""
    made = {"machine": machine, "conformance": conformance}
    plans = m.facts["plans"]
    folders = sorted(p.name for p in (m.kit / "golden").glob("*") if (p / "batches.npz").exists())
    made.update({f"golden/{name}": functools.partial(golden, name=name) for name in folders})
    made.update({f"bits/{name}": functools.partial(bits, name=name) for name in m.facts["exact"]})
    made.update({f"speed/{name}": functools.partial(speed, name=name) for name in plans})
    made.update({f"tune/{name}": functools.partial(tune, name=name) for name in plans})
    several = [name for name, facts in plans.items() if facts["shards"] > 1]
    made.update({f"scaling/{name}": functools.partial(scaling, name=name) for name in several})
    single = {(f["model"], f["precision"]): f for f in plans.values()}
    made.update({f"peers/{system}/{model}-{precision}": functools.partial(peer, system=system, facts=facts)
                 for (model, precision), facts in single.items() for system in PEERS})
    made.update({f"account/{name}": functools.partial(account, name=name) for name in several})
    made.update({f"sanitizer/{check}/{name}": functools.partial(sanitizer, name=name, check=check)
                 for name in m.facts["exact"] for check in TOOLS})
    return made


def machine(m):
    lines = m.run("mtrun", "devices").splitlines()
    if shutil.which("nvidia-smi") and not m.given.simulated:
        asked = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current"
        lines += m.run("nvidia-smi", "--query-gpu=" + asked, "--format=csv,noheader").splitlines()
        lines += m.run("nvidia-smi", "topo", "-m").splitlines()
    program = ("import importlib.metadata as m; print(*sorted(f'{d.name} {d.version}' for d in m.distributions() "
               "if d.name.startswith(('nvidia', 'torch', 'jax'))), sep='\\n')")
    try:
        lines += m.run(m.given.python, "-c", program, environment=dict(os.environ)).splitlines()
    except Failure:
        lines.append("no list of Python packages")
    return {"text": [" ".join(os.uname()), *filter(str.strip, lines)]}


def conformance(m):
    text = m.run(m.kit / "tests" / "conformanceTests", "--gtest_brief=1")
    return {"text": [line for line in text.splitlines() if "ran" in line or "PASSED" in line or "SKIPPED" in line]}


def golden(m, name):
    text = m.run(sys.executable, m.kit / "benchmarks" / "gpu" / "keras-runs", "--plans", m.kit / "golden",
                 "--devices", m.device, m.kit / "golden" / name)
    return {"text": text.splitlines()}


def write_array(path, kind, shape, data):
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def samples(folder, count, features, classes):
    """Pseudo-random features in [0, 1) and labels, from a hash: the same on every machine."""
    x = bytearray()
    while len(x) < count * features * 2:
        x += hashlib.sha256(len(x).to_bytes(8, "little")).digest()
    values = struct.unpack(f"<{count * features}H", x[:count * features * 2])
    write_array(folder / "x.npy", "<f4", (count, features),
                struct.pack(f"<{len(values)}f", *(v / 65536 for v in values)))
    write_array(folder / "y.npy", "<i4", (count,), struct.pack(f"<{count}i", *(v % classes for v in values[:count])))
    return f"npy:{folder / 'x.npy'},{folder / 'y.npy'}"


def bits(m, name):
    facts = m.facts["exact"][name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data = samples(folder, 2 * facts["batch"] + 3, facts["features"], facts["classes"])  # the last batch is short

        def train(devices, epochs=2, *options):
            m.run("mtrun", "train", m.plan(name), "--data", data, "--epochs", epochs, "--devices", devices,
                  "--save", folder / "w.safetensors", *options)
            return hashlib.sha256((folder / "w.safetensors").read_bytes()).hexdigest()[:16]

        one = m.device
        found = {devices: train(devices) for devices in (one, f"{one}*2", f"{one}*4", f"{one}*8")}
        found["again"] = train(one)
        train(one, 1, "--checkpoint", folder / "c")
        found["resumed on 2"] = train(f"{one}*2", 2, "--checkpoint", folder / "c", "--resume", "auto")
        for count in (n for n in (2, 4, 8) if n <= m.gpus):
            found[f"cuda:0-{count - 1}"] = train(f"cuda:0-{count - 1}")
            found[f"cuda:0-{count - 1}, one process"] = train(f"cuda:0-{count - 1}", 2, "--processes", 1)
    if len(set(found.values())) > 1:
        raise Failure(f"expected the same bits of all, found {found}", hashes=found)
    return {"hashes": found}


def timed(m, name, *options, devices=None):
    """Medians of --repeat series of steps, as many as take some seconds; the first series, of three, times the
    start."""
    def series(steps, warmup):
        return m.json("mtrun", "benchmark", m.plan(name), "--devices", devices or m.device, "--json", "--steps", steps,
                      "--warmup", warmup, *options)

    first = series(3, 1)
    steps = 3 if m.given.simulated else max(5, min(300, int(SECONDS * 1e6 / first["median_us"])))
    runs = [first] if m.given.simulated else [series(steps, max(2, steps // 10)) for _ in range(m.given.repeat)]
    found = {key: statistics.median(run[key] for run in runs)
             for key in ("median_us", "queued_us", "resident_us", "resident_queued_us")}
    found.update(steps=steps, spread=max(r["median_us"] for r in runs) / min(r["median_us"] for r in runs),
                 floor_us=first["floor_us"],
                 start_s=first["load_to_first_step_us"] / 1e6, promised=first["peak_bytes"],
                 measured=max(r["measured_bytes"] for r in [first, *runs]),
                 target=first["target"])
    return found


def speed(m, name):
    found = timed(m, name)
    if found["measured"] > found["promised"] + (0 if m.given.simulated else DRIVER):
        raise Failure(f"expected at most {found['promised']} bytes and {DRIVER} of the driver's, found "
                      f"{found['measured']}", **found)
    return found


def tune(m, name):
    """Without libraries, and with what was measured to be the fastest; `auto` is section speed's."""
    (m.kit / "tuning").mkdir(exist_ok=True)
    path = m.kit / "tuning" / f"{name}.tuning"
    if not path.exists() or m.given.again:
        m.run("mtrun", "tune", m.plan(name), "--devices", m.device, "-o", path,
              *(["--repeats", 1] if m.given.simulated else []))
    facts = json.loads(path.read_text())
    return {"off": timed(m, name, "--libraries", "off"), "tuned": timed(m, name, "--tuning", path),
            "libraries": facts["libraries"],
            "kernels": facts["kernels"]}


def scaling(m, name):
    counts = [n for n in (2, 4, 8) if n <= m.gpus]
    if not counts:
        raise Skip("one GPU")
    found = {}
    for count in counts:
        devices = f"cuda:0-{count - 1}"
        found[f"{count} processes"] = timed(m, name, devices=devices)
        found[f"{count} in one process"] = timed(m, name, "--processes", 1, devices=devices)
    return {"runs": found}


def peer(m, system, facts):
    if m.given.simulated:
        raise Skip("peers need a GPU")
    module, test = PEERS[system]
    if not m.has(module, test):
        raise Skip(f"{m.given.python} has no {module} that finds a GPU")
    if system == "jax" and facts["model"] == "gpt2":
        raise Skip("GPT-2 is not written for JAX")
    steps = 20 if facts["model"] in ("resnet50", "transformer", "gpt2") else 200
    folder = m.kit / "benchmarks"
    # Without the libraries that were found for mtrun.
    return m.json(m.given.python, folder / "gpu" / "gpu_peers.py", system, facts["model"], facts["batch"],
                  facts["precision"], steps, environment=dict(os.environ))


def account(m, name):
    return {"text": m.run("mtrun", "benchmark", m.plan(name), "--devices", m.device,
                          "--steps", 3 if m.given.simulated else 15, "--profile").splitlines()}


def sanitizer(m, name, check):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if m.given.simulated:
        raise Skip("simulated GPUs check their own memory")
    if not pathlib.Path(tool).exists():
        raise Skip("no compute-sanitizer on the path")
    text = m.run(tool, "--tool", check, "--error-exitcode", 1, "mtrun", "benchmark", m.plan(name),
                 "--devices", m.device + "*2",
                 "--steps", 2, "--warmup", 1, "--json")
    return {"text": [line.strip("= ") for line in text.splitlines() if "SUMMARY" in line]}
