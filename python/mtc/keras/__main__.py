# SPDX-License-Identifier: Apache-2.0
"""`python -m mtc.keras SCRIPT`."""

from mtc.keras._install import main

main()
