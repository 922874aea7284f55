# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ModuleInfo, each module on its own sample inputs: NAME/SCHEME/RANK."""

import types

import torch
from torch_cases import OpModule, chosen, judge  # isort: skip - what comes next needs it
from torch.testing._internal.common_modules import module_db

DB = {m.name: m for m in module_db if torch.float32 in m.dtypes}


def cases():
    return [f"{name}/{scheme}/{rank}" for rank in (0, 2, 1, 4, 3, 5) for name in DB for scheme in "DP"]


def run(case):
    name, scheme, rank = case.rsplit("/", 2)
    info = DB[name]
    torch.manual_seed(7)
    try:
        given = chosen(list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True,
                                                    training=True)), int(rank))
        if given is None:
            return {"status": "na", "message": "no such sample"}
        torch.manual_seed(1)
        made = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).float().train()
        first, *args = given.forward_input.args
        sample = types.SimpleNamespace(input=first, args=args, kwargs=given.forward_input.kwargs)
        module = OpModule(made, sample, scheme)
        made.eval()
        fits = scheme != "D" or module.works_by_rows()
        made.train()
    except Exception as error:  # PyTorch cannot make it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}
    return judge(module) if fits else {"status": "na", "message": "does not work by rows"}
