# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Every source file carries the SPDX line at its top."""
from tree import code, name, text, verdict

LINE = "SPDX-License-Identifier: Apache-2.0"
verdict([f"{name(p)}: expected '{LINE}' in the first two lines, found none" for p in code()
         if LINE not in "\n".join(text(p).splitlines()[:2])], "SPDX lines")
