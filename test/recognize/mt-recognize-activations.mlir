// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-recognize-activations --split-input-file | FileCheck %s

// Two ways to write GELU, two of SiLU, Mish, and the tanh form of GELU.

// CHECK-LABEL: mt.model @all
// CHECK:       %[[X:.*]] = mt.input "x"
// CHECK:       %[[GELU:.*]] = mt.gelu %[[X]]
// CHECK-NEXT:  mt.output "gelu", %[[GELU]]
// CHECK:       %[[ERFC:.*]] = mt.gelu %[[X]]
// CHECK-NEXT:  mt.output "erfc", %[[ERFC]]
// CHECK:       %[[SILU:.*]] = mt.silu %[[X]]
// CHECK-NEXT:  mt.output "silu", %[[SILU]]
// CHECK:       %[[SWISH:.*]] = mt.silu %[[X]]
// CHECK-NEXT:  mt.output "swish", %[[SWISH]]
// CHECK:       %[[MISH:.*]] = mt.mish %[[X]]
// CHECK-NEXT:  mt.output "mish", %[[MISH]]
// CHECK:       %[[TANH:.*]] = mt.gelu_tanh %[[X]]
// CHECK-NEXT:  mt.output "tanh", %[[TANH]]
mt.model @all {
  %x = mt.input "x" : tensor<?x8xf32>
  %half = mt.constant dense<0.5> : tensor<f32>
  %one = mt.constant dense<1.0> : tensor<f32>
  %root = mt.constant dense<0.707106769> : tensor<f32>
  %0 = mt.mul %x, %root : tensor<?x8xf32>, tensor<f32>
  %1 = mt.erf %0 : tensor<?x8xf32>
  %2 = mt.add %1, %one : tensor<?x8xf32>, tensor<f32>
  %3 = mt.mul %x, %2 : tensor<?x8xf32>, tensor<?x8xf32>
  %4 = mt.mul %3, %half : tensor<?x8xf32>, tensor<f32>
  mt.output "gelu", %4 : tensor<?x8xf32>

  %5 = mt.neg %x : tensor<?x8xf32>
  %6 = mt.mul %root, %5 : tensor<f32>, tensor<?x8xf32>
  %7 = mt.erf %6 : tensor<?x8xf32>
  %8 = mt.sub %one, %7 : tensor<f32>, tensor<?x8xf32>
  %9 = mt.mul %half, %x : tensor<f32>, tensor<?x8xf32>
  %10 = mt.mul %9, %8 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "erfc", %10 : tensor<?x8xf32>

  %11 = mt.sigmoid %x : tensor<?x8xf32>
  %12 = mt.mul %11, %x : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "silu", %12 : tensor<?x8xf32>

  %13 = mt.exp %5 : tensor<?x8xf32>
  %14 = mt.add %one, %13 : tensor<f32>, tensor<?x8xf32>
  %15 = mt.div %x, %14 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "swish", %15 : tensor<?x8xf32>

  %16 = mt.softplus %x : tensor<?x8xf32>
  %17 = mt.tanh %16 : tensor<?x8xf32>
  %18 = mt.mul %x, %17 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "mish", %18 : tensor<?x8xf32>

  %cube = mt.constant dense<0.044715> : tensor<f32>
  %rate = mt.constant dense<0.797884583> : tensor<f32>
  %19 = mt.square %x : tensor<?x8xf32>
  %20 = mt.mul %19, %x : tensor<?x8xf32>, tensor<?x8xf32>
  %21 = mt.mul %20, %cube : tensor<?x8xf32>, tensor<f32>
  %22 = mt.add %x, %21 : tensor<?x8xf32>, tensor<?x8xf32>
  %23 = mt.mul %22, %rate : tensor<?x8xf32>, tensor<f32>
  %24 = mt.tanh %23 : tensor<?x8xf32>
  %25 = mt.add %one, %24 : tensor<f32>, tensor<?x8xf32>
  %26 = mt.mul %half, %25 : tensor<f32>, tensor<?x8xf32>
  %27 = mt.mul %x, %26 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "tanh", %27 : tensor<?x8xf32>
  %l = mt.reduce sum, %x over [1] : tensor<?x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// x sigmoid(1.702 x), which is near GELU; a product with the sigmoid of another value, or of a part of x.

// CHECK-LABEL: mt.model @others
// CHECK-NOT:   mt.gelu
// CHECK-NOT:   mt.silu
mt.model @others {
  %x = mt.input "x" : tensor<?x8xf32>
  %z = mt.input "z" : tensor<?x8xf32>
  %rate = mt.constant dense<1.702> : tensor<f32>
  %0 = mt.mul %x, %rate : tensor<?x8xf32>, tensor<f32>
  %1 = mt.sigmoid %0 : tensor<?x8xf32>
  %2 = mt.mul %x, %1 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "quick", %2 : tensor<?x8xf32>
  %3 = mt.sigmoid %z : tensor<?x8xf32>
  %4 = mt.mul %x, %3 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "gate", %4 : tensor<?x8xf32>
  %5 = mt.stop_gradient %x : tensor<?x8xf32>
  %6 = mt.sigmoid %5 : tensor<?x8xf32>
  %7 = mt.mul %x, %6 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "stopped", %7 : tensor<?x8xf32>
  %l = mt.reduce sum, %x over [1] : tensor<?x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----

// The larger one of x and 0 is a relu in a step whose gradients are written out, and a mask reads what it is.

// CHECK-LABEL: mt.model @step
// CHECK:       mt.update
// CHECK:       %[[X:.*]] = mt.mul
// CHECK-NEXT:  %[[RELU:.*]] = mt.relu %[[X]]
// CHECK-NEXT:  %[[MASK:.*]] = mt.compare gt, %[[RELU]], %{{.*}}
// CHECK-NEXT:  mt.select %[[MASK]], %[[RELU]]
// A comparison with another number stays, and so does a maximum with one.
// CHECK:       mt.compare gt, %[[X]],
// CHECK:       mt.maximum %[[X]],
mt.model @step {
  %x = mt.input "x" : tensor<?x8xf32>
  %w = mt.variable "w" init(zeros) : tensor<8xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %one = mt.constant dense<1.0> : tensor<f32>
  %i = mt.variable "i" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %0 = mt.mul %x, %w : tensor<?x8xf32>, tensor<8xf32>
    %1 = mt.compare gt, %0, %zero : tensor<?x8xf32>, tensor<f32>
    %2 = mt.maximum %0, %zero : tensor<?x8xf32>, tensor<f32>
    %3 = mt.select %1, %2, %zero : tensor<?x8xi1>, tensor<?x8xf32>, tensor<f32>
    %4 = mt.compare gt, %0, %one : tensor<?x8xf32>, tensor<f32>
    %5 = mt.maximum %0, %one : tensor<?x8xf32>, tensor<f32>
    %6 = mt.select %4, %5, %3 : tensor<?x8xi1>, tensor<?x8xf32>, tensor<?x8xf32>
    %7 = mt.reduce sum, %6 over [0] : tensor<?x8xf32>
    %n = mt.batch_size
    %8 = mt.reduce sum, %7 over [0] : tensor<8xf32>
    mt.result "loss", %8, %n
    mt.assign "w", %7 : tensor<8xf32>
  }
}

// -----

// Where a derivative is taken, a maximum has its own; the mask is the same.

// CHECK-LABEL: mt.model @derived
// CHECK:       mt.update
// CHECK:       %[[X:.*]] = mt.mul
// CHECK-NEXT:  %[[MAX:.*]] = mt.maximum %[[X]]
// CHECK-NEXT:  mt.compare gt, %[[MAX]], %{{.*}}
// CHECK-NOT:   mt.maximum
mt.model @derived {
  %x = mt.input "x" : tensor<?x8xf32>
  %w = mt.variable "w" init(zeros) : tensor<8xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %i = mt.variable "i" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %a = mt.argument %w : tensor<8xf32>
    %0 = mt.mul %x, %a : tensor<?x8xf32>, tensor<8xf32>
    %1 = mt.compare gt, %0, %zero : tensor<?x8xf32>, tensor<f32>
    %2 = mt.maximum %0, %zero : tensor<?x8xf32>, tensor<f32>
    %3 = mt.select %1, %2, %zero : tensor<?x8xi1>, tensor<?x8xf32>, tensor<f32>
    %s = mt.reduce sum, %3 over [0] : tensor<?x8xf32>
    %4 = mt.reduce sum, %s over [0] : tensor<8xf32>
    %n = mt.batch_size
    mt.result "loss", %4, %n
    %g = mt.derivative %4 by %a : tensor<8xf32>
    mt.assign "w", %g : tensor<8xf32>
  }
}
