# SPDX-License-Identifier: Apache-2.0
"""Prints a model with AdamW as optax writes it, in place of the model's optimizer."""
import re
import sys

text = open(sys.argv[1]).read()
variables = re.findall(r'(%\w+) = mt\.variable "([^"]+)" .*: (tensor<\S+>)', text)
state = ['%count = mt.variable "optimizer/count" init(zeros) slot : tensor<i32>',
         '%rate = mt.variable "optimizer/rate" init(constant = 1.0e-3) frozen role(learning_rate) : tensor<f32>',
         '%step = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>']
numbers = {"b1": 0.9, "r1": 0.1, "b2": 0.999, "r2": 0.001, "one": 1.0, "epsilon": 1e-8, "decay": 0.004}
body = [f"%{name} = mt.constant dense<{number:.6e}> : tensor<f32>" for name, number in numbers.items()]
body += ["%ione = mt.constant dense<1> : tensor<i32>", "%next = mt.add %count, %ione : tensor<i32>, tensor<i32>",
         "%t = mt.cast %next : tensor<i32> to tensor<f32>", 'mt.assign "optimizer/count", %next : tensor<i32>']
for k in "12":
    body += [f"%p{k} = mt.pow %b{k}, %t : tensor<f32>, tensor<f32>",
             f"%c{k} = mt.sub %one, %p{k} : tensor<f32>, tensor<f32>"]
for i, (value, name, kind) in enumerate(variables):
    state += [f'%{m}{i} = mt.variable "optimizer/{m}/{name}" init(zeros) slot : {kind}' for m in "mv"]
    both, scaled = f"{kind}, {kind}", f"{kind}, tensor<f32>"
    body += [f'%g{i} = mt.gradient "{name}" : {kind}', f"%gg{i} = mt.square %g{i} : {kind}"]
    for m, g, k in (("m", "g", 1), ("v", "gg", 2)):
        body += [f"%{m}a{i} = mt.mul %{m}{i}, %b{k} : {scaled}", f"%{m}b{i} = mt.mul %{g}{i}, %r{k} : {scaled}",
                 f"%{m}n{i} = mt.add %{m}a{i}, %{m}b{i} : {both}", f"%{m}h{i} = mt.div %{m}n{i}, %c{k} : {scaled}",
                 f'mt.assign "optimizer/{m}/{name}", %{m}n{i} : {kind}']
    body += [f"%s{i} = mt.sqrt %vh{i} : {kind}", f"%e{i} = mt.add %s{i}, %epsilon : {scaled}",
             f"%q{i} = mt.div %mh{i}, %e{i} : {both}", f"%d{i} = mt.mul {value.replace('%', '@')}, %decay : {scaled}",
             f"%u{i} = mt.add %q{i}, %d{i} : {both}", f"%x{i} = mt.mul %u{i}, %rate : {scaled}",
             f"%w{i} = mt.sub {value.replace('%', '@')}, %x{i} : {both}", f'mt.assign "{name}", %w{i} : {kind}']
update = "\n".join([*state, "mt.update {", *body, "}"])
update = update.replace("%", "%u_").replace("@", "%")  # other names than the model's
print(re.sub(r"mt\.adam <.*", lambda _: update, text))
