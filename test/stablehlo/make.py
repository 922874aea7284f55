# SPDX-License-Identifier: Apache-2.0
"""Writes functions of StableHLO that are refused: make.py FOLDER."""
import pathlib
import sys

T = "tensor<?x4xf32>"


def module(body, more="", visibility="public"):
    return f"""\"builtin.module\"() ({{
  "func.func"() <{{function_type = ({T}, tensor<4x4xf32>) -> {T}, sym_name = "main",
                  sym_visibility = "{visibility}"}}> ({{
  ^bb0(%x: {T}, %w: tensor<4x4xf32>):
{body}
    "func.return"(%y) : ({T}) -> ()
  }}) : () -> ()
{more}
}}) : () -> ()
"""


def op(name, attributes=""):
    return f'    %y = "{name}"(%x) {attributes} : ({T}) -> {T}'


ABS = f'    %a = "stablehlo.abs"(%x) : ({T}) -> {T}\n'
CALL = f'"func.call"(%x) <{{callee = @again}}> : ({T}) -> {T}'
AGAIN = f"""  "func.func"() <{{function_type = ({T}) -> {T}, sym_name = "again", sym_visibility = "private"}}> ({{
  ^bb0(%x: {T}):
    %y = {CALL}
    "func.return"(%y) : ({T}) -> ()
  }}) : () -> ()"""

REDUCE = """    %y = "stablehlo.reduce"({}) <{{dimensions = array<i64: 0>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }}) : {}"""


def doubled(times):
    """A mean that is added to itself so many times."""
    lines = (pathlib.Path(__file__).parent / "loss.mlir").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "%mean =" in line)
    sums = [f'    %m{i + 1} = "stablehlo.add"(%m{i}, %m{i}) : (tensor<f32>, tensor<f32>) -> tensor<f32>'
            for i in range(times)]
    text = "\n".join(lines[:at + 1] + sums + lines[at + 1:])
    return text.replace("%mean", "%m0").replace('return"(%m0)', f'return"(%m{times})')


files = {
    "doubled": doubled(60),
    "unsupported": module(op("stablehlo.rng") + f'\n    %z = "stablehlo.fft"(%x) : ({T}) -> {T}'),
    "custom": module(op("stablehlo.custom_call", '<{call_target_name = "my_kernel"}>')),
    "recursive": module(ABS + f"    %y = {CALL}", AGAIN),
    "private": module(op("stablehlo.abs"), visibility="private"),
    "missing": module(ABS + f"    %y = {CALL}"),
    "dot": module(op("stablehlo.dot_general")),
    "pretty": "module {\n  func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n"
              "    %y = stablehlo.slice %x [0:2, 1] : (tensor<?x4xf32>) -> tensor<?x4xf32>\n"
              "    return %y : tensor<?x4xf32>\n  }\n}\n",
    "fixed": module(op("stablehlo.abs")).replace("?x4", "8x4"),
    "count": module(f'    %n = "stablehlo.get_dimension_size"(%x) <{{dimension = 0 : i64}}> : ({T}) -> tensor<i32>\n'
                    '    %c = "stablehlo.compare"(%n, %n) '
                    '<{comparison_direction = #stablehlo<comparison_direction GT>}> : '
                    '(tensor<i32>, tensor<i32>) -> tensor<i1>\n'
                    f'    %y = "stablehlo.select"(%c, %x, %x) : (tensor<i1>, {T}, {T}) -> {T}'),
    "mixes": module('    %z = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>\n'
                    f'    %m = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 0>}}> ({{\n'
                    '    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
                    '      %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
                    '      "stablehlo.return"(%c) : (tensor<f32>) -> ()\n'
                    f'    }}) : ({T}, tensor<f32>) -> tensor<4xf32>\n' + op("stablehlo.abs")),
    "returns": module(ABS + f'    "func.return"(%x) : ({T}) -> ()\n    %y = "stablehlo.abs"(%x) : ({T}) -> {T}'),
    "endless": module('    %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>\n'
                      f'    %y = "stablehlo.while"(%x) ({{\n    ^bb0(%s: {T}):\n'
                      '      "stablehlo.return"(%c) : (tensor<i1>) -> ()\n    }, {\n'
                      f'    ^bb0(%s: {T}):\n      "stablehlo.return"(%s) : ({T}) -> ()\n    }}) : ({T}) -> {T}'),
    "nothing": module(REDUCE.format("", f"() -> {T}")),
    "number": module('    %z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> i32\n' +
                     REDUCE.format("%z, %z", f"(i32, i32) -> {T}")),
    "one": module(f'    %c = "stablehlo.constant"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>\n'
                  f'    %y = "stablehlo.select"(%c) : (tensor<i1>) -> {T}'),
    "shape": module(f'    %z = "stablehlo.abs"(%x) : ({T}) -> tensor<?x5xf32>\n' + op("stablehlo.abs")),
    "kind": module(f'    %z = "stablehlo.abs"(%x) : ({T}) -> tensor<?x4xi32>\n' + op("stablehlo.abs")),
    "fp8": module(f'    %z = "stablehlo.convert"(%x) : ({T}) -> tensor<?x4xf8E4M3FN>\n' + op("stablehlo.abs")),
    "unsigned": module(f'    %u = "stablehlo.convert"(%x) : ({T}) -> tensor<?x4xui32>\n'
                       '    %v = "stablehlo.subtract"(%u, %u) : (tensor<?x4xui32>, tensor<?x4xui32>) -> '
                       f'tensor<?x4xui32>\n    %y = "stablehlo.convert"(%v) : (tensor<?x4xui32>) -> {T}'),
    "decomposed": module('    %y = "stablehlo.composite"(%x) <{name = "my.f", decomposition = @again}> : '
                         f'({T}) -> {T}', AGAIN.replace('"func.call"(%x) <{callee = @again}>', '"stablehlo.rng"(%x)')),
}
files["places"] = "\n".join([
    module(f'    %y = "stablehlo.abs"(%x) : ({T}) -> {T} loc(#loc39)'), '#loc0 = loc("a.py":1:1)',
    *(f"#loc{i} = loc(callsite(#loc{i - 1} at #loc{i - 1}))" for i in range(1, 40))])
for name, text in files.items():
    (pathlib.Path(sys.argv[1]) / f"{name}.mlir").write_text(text)
