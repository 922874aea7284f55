# SPDX-License-Identifier: Apache-2.0
"""Runs a script whose training steps, sharded over the batch, become plans: `python -m mtc.jax train.py`."""

from mtc.jax._script import main

main()
