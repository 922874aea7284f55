# SPDX-License-Identifier: Apache-2.0
"""first-runs.py FOLDER: CIFAR-10 in pickles, as NumPy writes them, a table as a spreadsheet writes it, and a text."""
import pathlib
import pickle
import random
import sys
import types

folder = pathlib.Path(sys.argv[1])
draw = random.Random(1)
numpy, multiarray = types.ModuleType("numpy"), types.ModuleType("numpy.core.multiarray")
sys.modules.update({"numpy": numpy, "numpy.core": types.ModuleType("numpy.core"), "numpy.core.multiarray": multiarray})


class ndarray:
    def __init__(self, rows):
        self.rows = rows

    def __reduce__(self):
        state = (1, (len(self.rows), 3072), dtype(), False, b"".join(self.rows))
        return _reconstruct, (ndarray, (0,), b"b"), state


class dtype:
    def __reduce__(self):
        return dtype, ("u1", 0, 1), (3, "|", None, None, None, -1, -1, 0)


def _reconstruct():
    pass


ndarray.__module__ = dtype.__module__ = "numpy"
_reconstruct.__module__ = "numpy.core.multiarray"
numpy.ndarray, numpy.dtype, multiarray._reconstruct = ndarray, dtype, _reconstruct

pickles = folder / "cifar-10-batches-py"
pickles.mkdir()
for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
    rows = [bytes(draw.choices(range(256), k=3072)) for _ in range(20)]
    batch = {b"batch_label": name.encode(), b"labels": [i % 10 for i in range(20)], b"data": ndarray(rows),
             b"filenames": [b"%d.png" % i for i in range(20)]}
    (pickles / name).write_bytes(pickle.dumps(batch, 2))
names = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]
(pickles / "batches.meta").write_bytes(pickle.dumps({b"num_cases_per_batch": 20, b"label_names": names,
                                                     b"num_vis": 3072}, 2))

lines = ["\ufeffid;length;width;\"height,\ncm\";weight;kind"]
for i in range(40):
    kind = i % 2
    cells = [f"{kind + draw.random():.3f}".replace(".", ",") for _ in range(4)]
    lines.append(f"{i};{';'.join(cells)};" + ("Gänseblümchen", '"Rose, ""rot"""')[kind])
(folder / "flowers.csv").write_text("\r\n".join(lines + [";;;;;", ""]), encoding="utf-8", newline="")
(folder / "text.txt").write_text("to be or not to be, that is the question: whether " * 20)
