# SPDX-License-Identifier: Apache-2.0
"""Computes metrics of predictions the long way, each from all samples at once, and compares: areas.py P.npy MNIST FIRST
LOGS."""
import gzip
import json
import math
import pathlib
import struct
import sys

CLASSES, THRESHOLDS = 10, 200
data = pathlib.Path(sys.argv[1]).read_bytes()
(length,) = struct.unpack("<H", data[8:10])
values = struct.unpack(f"<{(len(data) - 10 - length) // 4}f", data[10 + length:])
rows = [values[i:i + CLASSES] for i in range(0, len(values), CLASSES)]
labels = gzip.decompress((pathlib.Path(sys.argv[2]) / "t10k-labels-idx1-ubyte.gz").read_bytes())[8 + int(sys.argv[3]):]
found = json.loads(pathlib.Path(sys.argv[4]).read_text().splitlines()[-1])


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def counts(pairs):
    """True and false positives above each threshold."""
    hits = [[0] * THRESHOLDS, [0] * THRESHOLDS]
    for p, y in pairs:
        for t in range(max(math.ceil(single(p * (THRESHOLDS - 1))) - 1, 0) + 1):
            hits[not y][t] += 1
    return hits


def roc(tp, fp):
    return sum((fp[i] - fp[i + 1]) / fp[0] * (tp[i] + tp[i + 1]) / tp[0] / 2 for i in range(THRESHOLDS - 1))


def precision_recall(tp, fp):
    area = 0
    for i in range(THRESHOLDS - 1):
        high, low, gain = tp[i] + fp[i], tp[i + 1] + fp[i + 1], tp[i] - tp[i + 1]
        slope = gain / (high - low) if high > low else 0
        area += slope * (gain + (tp[i + 1] - slope * low) * (math.log(high / low) if high and low else 0)) / tp[0]
    return area


def f1(c):
    chosen = [max(range(CLASSES), key=row.__getitem__) == c for row in rows]
    actual = [y == c for y in labels[:len(rows)]]
    return 2 * sum(a and b for a, b in zip(chosen, actual)) / (sum(chosen) + sum(actual))


columns = [[(row[c], y == c) for row, y in zip(rows, labels)] for c in range(CLASSES)]
scores = [f1(c) for c in range(CLASSES)]
support = [sum(y for _, y in column) for column in columns]
expected = {"auc": roc(*counts(sum(columns, []))),
            "pr": sum(precision_recall(*counts(column)) for column in columns) / CLASSES,
            "macro": sum(scores) / CLASSES, "weighted": sum(f * n for f, n in zip(scores, support)) / sum(support),
            "root_mean_squared_error": math.sqrt(sum((p - y) ** 2 for column in columns for p,
                                                     y in column) / len(values))}
expected |= {f"f1/{c}": score for c, score in enumerate(scores)}
for name, value in expected.items():
    if abs(found[name] - value) > 1e-6:
        sys.exit(f"{name}: expected {value}, found {found[name]}")
