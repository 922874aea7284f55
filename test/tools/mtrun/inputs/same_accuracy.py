# SPDX-License-Identifier: Apache-2.0
"""same_accuracy.py HISTORY.json LOG...: the last validation of a run, and what mtrun evaluate --json-logs said after
it."""
import json
import sys

expected = json.load(open(sys.argv[1]))["val_accuracy"][-1]
for path in sys.argv[2:]:
    found = json.loads(open(path).read().splitlines()[-1])["accuracy"]
    assert abs(found - expected) < 1e-12, (path, expected, found)
