# SPDX-License-Identifier: Apache-2.0
"""`python -m mtc.jax`: steps on meshes of several axes, and steps of `shard_map`."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import functools, hashlib
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

rng = np.random.default_rng(0)
weights = {"w": rng.standard_normal((4, 3)).astype("f4")}
data = [(rng.standard_normal((16, 4)).astype("f4"), rng.standard_normal((16, 3)).astype("f4")) for _ in range(5)]
several = Mesh(np.array(jax.devices()).reshape(2, 2), ("replica", "data"))
single = Mesh(np.array(jax.devices()[:1]), ("data",))
both = P(("replica", "data"))

def loss(p, x, y):
    return jnp.mean((jnp.tanh(x @ p["w"]) - y) ** 2)

@jax.jit
def plain(p, x, y):
    value, gradient = jax.value_and_grad(loss)(p, x, y)
    return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), value

def mapped(mesh, split, axes, **options):
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), split, split), out_specs=(P(), P()), **options)
    def step(p, x, y):
        value, gradient = jax.value_and_grad(loss)(p, x, y)
        gradient = jax.tree.map(lambda g: jax.lax.pmean(g, axes), gradient)
        count = jax.lax.psum(1, axes)
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), jax.lax.psum(value, axes) / count
    return jax.jit(step)

for name, function, mesh, split in (
        ("plain", plain, several, both), ("of one", mapped(single, P("data"), "data"), single, P("data")),
        ("unchecked", mapped(single, P("data"), "data", check_vma=False), single, P("data")),
        ("of several", mapped(several, both, ("replica", "data")), several, both)):
    p = jax.device_put(weights, NamedSharding(mesh, P()))
    for batch in data:
        p, value = function(p, *jax.device_put(batch, NamedSharding(mesh, split)))
    print(f"{name}: {float(value):.5f} {hashlib.sha256(np.asarray(p['w']).tobytes()).hexdigest()}")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("meshes") / "script.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    commands = ([], ["-m", "mtc.jax", "--devices", "cpu:1"], ["-m", "mtc.jax", "--devices", "cpu:3"])
    return [subprocess.run([sys.executable, *words, str(path)], capture_output=True, text=True, check=True,
                           env=environment) for words in commands]


def test_the_losses_are_those_of_jax_and_the_bits_those_of_any_number_of_devices(runs):
    by_jax, one, three = ([line.split() for line in run.stdout.splitlines()] for run in runs)
    assert [line[:-1] for line in by_jax] == [line[:-1] for line in one]
    assert one == three


def test_what_ran_where(runs):
    for run in runs[1:]:
        lines = run.stderr.splitlines()[-4:]
        assert all("4 calls through MTC" in line for line in lines[:3]), lines
        assert "step: 5 calls by JAX: " in lines[3]
        assert lines[3].endswith("leave shard_map, psum and pmean out, or give it a mesh of one device"), lines[3]
