# SPDX-License-Identifier: Apache-2.0
"""What JAX' modes of lookups and updates say about indices out of range."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mtc._trace import indices

CLIP = jax.lax.GatherScatterMode.CLIP
FILL = jax.lax.GatherScatterMode.FILL_OR_DROP
PROMISED = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
_OURS = {CLIP: indices.CLIP, FILL: indices.FILL, PROMISED: indices.PROMISED}


def ours(mode: Any) -> str:
    """The mode of `mtc._trace.indices`."""
    return _OURS.get(mode, indices.PROMISED)


def fill_of(given: Any, dtype: Any) -> Any:
    """What stands for elements out of range."""
    if given is not None:
        return given
    if jax.numpy.issubdtype(dtype, np.inexact):
        return np.nan
    if np.dtype(dtype) == bool:
        return True
    return np.iinfo(dtype).max if np.issubdtype(dtype, np.unsignedinteger) else np.iinfo(dtype).min
