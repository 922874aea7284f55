# SPDX-License-Identifier: Apache-2.0
"""layers.py FEW MANY: compiling a model of MANY layers takes little more than in proportion to one of FEW, in user CPU
time up to machine code: at most three times as long for each. Time in the square would be MANY / FEW times as long."""
import os
import subprocess
import sys

ROW, MATRIX = "tensor<?x16xf32>", "tensor<16x16xf32>"
MAP = f"{ROW}, {ROW}"
# One layer each, from %x to %y: of a chain of products; with a skip connection and a penalty on the weights; with a
# normalised input, whose gradient reads the input again.
LAYERS = {
    "chain": """
        %p@ = mt.matmul %x@, %w@ : ROW, MATRIX
        %y@ = mt.relu %p@ : ROW""",
    "residual": """
        mt.regularizer %w@ l2 = 0.01 : MATRIX
        %p@ = mt.matmul %x@, %w@ : ROW, MATRIX
        %r@ = mt.relu %p@ : ROW
        %y@ = mt.add %x@, %r@ : MAP""",
    "normalised": """
        %n@ = mt.normalize %x@ over [1] epsilon = 1.0e-5 : ROW
        %p@ = mt.matmul %n@, %w@ : ROW, MATRIX
        %r@ = mt.gelu %p@ : ROW
        %y@ = mt.add %x@, %r@ : MAP""",
}


def model(layer, count):
    lines = ["mt.model @layers {", f'%x0 = mt.input "x" : {ROW}', f'%t = mt.target "t" : {ROW}']
    for number in range(count):
        text = f'%w@ = mt.variable "w@" init(glorot_uniform) : {MATRIX}' + layer
        text = text.replace("%y@", f"%x{number + 1}").replace("@", str(number))
        lines.append(text.replace("ROW", ROW).replace("MATRIX", MATRIX).replace("MAP", MAP))
    lines += [f"%l = mt.mean_squared_error %x{count}, %t : {MAP}", 'mt.loss "l", %l : tensor<?xf32>',
              "mt.sgd <{learning_rate = 1.0e-2 : f32}>", "}"]
    return "\n".join(lines)


def seconds(text):
    before = os.times().children_user
    subprocess.run(["mtc", "compile", "-", "--stop-after", "allocate", "-o", "-"], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return os.times().children_user - before


few, many = map(int, sys.argv[1:])
for name, layer in LAYERS.items():
    short, long = seconds(model(layer, few)), seconds(model(layer, many))
    print(f"{name}: {few} layers {short:.2f} s, {many} layers {long:.2f} s")
    assert long < 3 * max(short, 0.1) * many / few, f"{name}: not in proportion"
