# SPDX-License-Identifier: Apache-2.0
"""layers.py FEW MANY: each stage up to machine code takes little more for a model of MANY layers than in proportion to
one of FEW, in time of the CPU: at most three times as long for each layer. Time in the square would be MANY / FEW times
as long. Readers of one value are asked for each other, which takes time in the square; time in the cube is too much."""
import re
import subprocess
import sys

ROW, MATRIX, VECTOR = "tensor<?x16xf32>", "tensor<16x16xf32>", "tensor<16xf32>"
MAP = f"{ROW}, {ROW}"
# One layer each, from %x to %y: of a chain of products; with a skip connection and a penalty on the weights; with a
# normalised input, whose gradient reads the input again; with batch normalisation, which writes variables in the midst
# of the step.
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
    "batch": """
        %g@ = mt.variable "g@" init(ones) : VECTOR
        %b@ = mt.variable "b@" init(zeros) : VECTOR
        %m@ = mt.variable "m@" init(zeros) frozen : VECTOR
        %v@ = mt.variable "v@" init(ones) frozen : VECTOR
        %p@ = mt.matmul %x@, %w@ : ROW, MATRIX
        %n@ = mt.batch_normalization %p@, %g@, %b@, %m@, %v@ momentum = 0.9 : ROW, VECTOR, VECTOR, VECTOR, VECTOR
        %r@ = mt.relu %n@ : ROW
        %y@ = mt.add %x@, %r@ : MAP""",
    "readers": """
        %p@ = mt.add %x@, %w@ : ROW, VECTOR
        %y@ = mt.mul %p@, %x0 : MAP""",
}
WIDTHS = {"readers": VECTOR}  # of the weights, where they are no matrix
SLACK = {"readers": 10}


def model(name, layer, count):
    lines = ["mt.model @layers {", f'%x0 = mt.input "x" : {ROW}', f'%t = mt.target "t" : {ROW}']
    for number in range(count):
        text = f'%w@ = mt.variable "w@" init(ones) : {WIDTHS.get(name, MATRIX)}' + layer
        text = text.replace("%y@", f"%x{number + 1}").replace("@", str(number))
        text = text.replace("ROW", ROW).replace("MATRIX", MATRIX).replace("VECTOR", VECTOR)
        lines.append(text.replace("MAP", MAP))
    lines += [f"%l = mt.mean_squared_error %x{count}, %t : {MAP}", 'mt.loss "l", %l : tensor<?xf32>',
              "mt.sgd <{learning_rate = 1.0e-2 : f32}>", "}"]
    return "\n".join(lines)


def milliseconds(text):
    """Of the CPU, by the stage."""
    done = subprocess.run(["mtc", "compile", "-", "--stop-after", "allocate", "-o", "-", "--timing"], input=text,
                          text=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return {stage: float(time) for stage, time in re.findall(r"(?m)^(\w+) .* ([\d.]+) ms of CPU$", done.stderr)}


few, many = map(int, sys.argv[1:])
for name, layer in LAYERS.items():
    short, long = (milliseconds(model(name, layer, count)) for count in (few, many))
    assert {"fuse", "schedule", "allocate", "total"} <= long.keys(), long
    for stage, time in long.items():
        print(f"{name}: {stage}: {few} layers {short[stage]} ms, {many} layers {time} ms")
        # What takes no time worth mentioning is measured badly.
        assert time < SLACK.get(name, 3) * max(short[stage], 10) * many / few, f"{name}: {stage}: not in proportion"
