# SPDX-License-Identifier: Apache-2.0
"""What tests ask of plans."""

import collections


def kernels(plan):
    """How many steps of a training step have a kernel of each kind."""
    found = plan.inspect()
    kinds = {kernel["name"]: kernel["kind"] for kernel in found["kernels"]}
    program = next(p for p in found["programs"] if p["name"] == "train_step")
    return collections.Counter(kinds[step["kernel"]] for step in program["steps"] if "kernel" in step)
