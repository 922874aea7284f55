# SPDX-License-Identifier: Apache-2.0
"""The ctypes structs have the layout of the headers."""

import ctypes
import subprocess

from conftest import ROOT
from mtc import _structs

NAMES = {"TensorInfo": "mtrun_tensor_info", "CompileOptions": "mtc_options", "Options": "mtrun_options",
         "Results": "mtrun_results", "SessionInfo": "mtrun_session_info",
         "Activity": "mtrun_activity", "Field": "mtrun_field",
         "Request": "mtrun_request", "Source": "mtrun_source", "Progress": "mtrun_progress",
         "CheckpointOptions": "mtrun_checkpoint_options", "FitResult": "mtrun_fit_result",
         "LoopOptions": "mtrun_loop_options", "Node": "mtrun_node", "TraceOptions": "mtrun_trace_options",
         "Profile": "mtrun_profile", "ProfileEntry": "mtrun_profile_entry", "Timing": "mtrun_timing",
         "InspectOptions": "mtc_inspect_options"}


def test_layout(tmp_path):
    structs = {name: kind for name, kind in vars(_structs).items()
               if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
    assert set(structs) == set(NAMES)
    lines, expected = [], []
    for name, kind in structs.items():
        c_name = NAMES[name]
        lines.append(f'printf("{c_name} %zu\\n", sizeof({c_name}));')
        expected.append(f"{c_name} {ctypes.sizeof(kind)}")
        for field, *_ in kind._fields_:
            c_field = field.rstrip("_")
            size = f"(size_t)sizeof((({c_name} *)0)->{c_field})"
            lines.append(f'printf("{c_name}.{c_field} %zu %zu\\n", offsetof({c_name}, {c_field}), {size});')
            descriptor = getattr(kind, field)
            expected.append(f"{c_name}.{c_field} {descriptor.offset} {descriptor.size}")
    source = tmp_path / "layout.c"
    source.write_text('#include <stdio.h>\n#include "mtc.h"\n#include "mtrun.h"\nint main(void) {\n' +
                      "\n".join(lines) + "\n}\n")
    program = tmp_path / "layout"
    subprocess.run(["clang-22", "-I", str(ROOT / "runtime" / "abi"), str(source), "-o", str(program)], check=True)
    found = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    assert found == expected
