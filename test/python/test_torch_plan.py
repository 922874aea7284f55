# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: the plan of a step has code for this CPU in memory, and for every CPU in its file."""

import pickle

import torch

import mtc
import mtc.torch


def step_of(**options):
    torch.manual_seed(0)
    module = torch.nn.Linear(8, 3)
    return mtc.torch.compile(module, (torch.rand(4, 8), torch.tensor([0, 1, 2, 0])), check=False,
                             loss=torch.nn.functional.cross_entropy,
                             optimizer=torch.optim.SGD(module.parameters(), 0.1), **options)


def cpus(plan):
    return [target["name"] for target in plan.inspect()["targets"]]


def test_the_file_has_code_for_every_cpu(tmp_path, this_cpu, monkeypatch):
    monkeypatch.setattr("mtc._options.fields", this_cpu)
    every = cpus(mtc.compile_text(
        'mt.model @m { %x = mt.input "x" : tensor<?xf32>\n mt.loss "loss", %x : tensor<?xf32>\n'
        " mt.sgd <{learning_rate = 0.1 : f32}> }", batch_size=1))
    step = step_of()
    step.plan.save(tmp_path / "m.mtp")
    assert len(cpus(step.plan)) == 1 < len(every)
    assert cpus(mtc.load(tmp_path / "m.mtp")) == cpus(pickle.loads(pickle.dumps(step.plan))) == every


def test_cpus_that_are_named():
    assert cpus(step_of(cpu="x86-64-v3").plan) == ["x86-64-v3"]
