# SPDX-License-Identifier: Apache-2.0
"""Every entry of PyTorch's OpInfo with float32 gradients: NAME/SCHEME/RANK, of samples spread over an entry's own."""

import itertools
import random

import numpy as np
import torch
from torch_cases import OpModule, chosen, judge  # isort: skip - what comes next needs it
from torch.testing._internal import common_methods_invocations as invocations
from torch.utils import _pytree as pytree

# OpInfo fixes the seed of random operations in each call: they would look as if they drew no numbers.
invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
PLAN = (("P", 0), ("DV", 0), ("P", 3), ("P", 1), ("P", 5), ("DV", 3), ("P", 2), ("P", 4), ("DV", 1))
DB = {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in invocations.op_db
      if op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu")}


def cases():
    return [f"{name}/{scheme}/{rank}" for schemes, rank in PLAN for name in DB for scheme in schemes
            if scheme != "D" or name.startswith("nn.functional.")]


def run(case):
    name, scheme, rank = case.rsplit("/", 2)
    op = DB[name]
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    try:
        found = [s for s in itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=True), 120)
                 if any(isinstance(t, torch.Tensor) and t.is_floating_point() and t.numel() and t.requires_grad
                        for t in pytree.tree_leaves((s.input, s.args, s.kwargs)))]
        sample = chosen(found, int(rank))
        module = None if sample is None else OpModule(op.get_op(), sample, scheme, sample.output_process_fn_grad)
        fits = module is not None and hasattr(module, "w0") and (scheme != "D" or module.works_by_rows())
    except Exception as error:  # PyTorch cannot make it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}
    return judge(module) if fits else {"status": "na", "message": "no such sample"}
