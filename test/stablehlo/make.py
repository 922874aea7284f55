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

files = {
    "unsupported": module(op("stablehlo.sort") + f'\n    %z = "stablehlo.fft"(%x) : ({T}) -> {T}'),
    "custom": module(op("stablehlo.custom_call", '<{call_target_name = "my_kernel"}>')),
    "recursive": module(ABS + f"    %y = {CALL}", AGAIN),
    "private": module(op("stablehlo.abs"), visibility="private"),
    "missing": module(ABS + f"    %y = {CALL}"),
    "dot": module(op("stablehlo.dot_general")),
    "pretty": "module {\n  func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n    %y = stablehlo.abs %x : "
              "tensor<?x4xf32>\n    return %y : tensor<?x4xf32>\n  }\n}\n",
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
}
for name, text in files.items():
    (pathlib.Path(sys.argv[1]) / f"{name}.mlir").write_text(text)
