// SPDX-License-Identifier: Apache-2.0
// With f16 the loss is scaled: the gradient of mt.gradient is divided by the scale, and a step whose gradients are not
// finite assigns nothing. Products of an update stay f32.
// RUN: mt-opt %s --mt-differentiate | FileCheck %s
// RUN: mt-opt %s --mt-differentiate --mt-decompose --mt-precision | FileCheck %s --check-prefix=F32
module attributes {mt.compilation = #mt.compilation<precision = f16>} {
  mt.model @updated {
    %x = mt.input "x" : tensor<?x4xf32>
    %t = mt.target "t" : tensor<?x4xf32>
    %w = mt.variable "w" init(ones) : tensor<4x4xf32>
    %i = mt.variable "opt/iteration" init(zeros) frozen role(iteration) : tensor<i32>
    %m = mt.variable "opt/m" init(zeros) slot : tensor<4x4xf32>
    %p = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x4xf32>
    %l = mt.mean_squared_error %p, %t : tensor<?x4xf32>, tensor<?x4xf32>
    mt.loss "loss", %l : tensor<?xf32>
    mt.update {
      %g = mt.gradient "w" : tensor<4x4xf32>
      %0 = mt.matmul %g, %w transpose_b : tensor<4x4xf32>, tensor<4x4xf32>
      mt.assign "opt/m", %0 : tensor<4x4xf32>
    }
  }
}
// CHECK:      mt.declare "opt/iteration" non_trainable role iteration tensor<i32>
// CHECK-NEXT: mt.declare "opt/loss_scale" non_trainable tensor<f32>
// CHECK-NEXT: mt.declare "opt/finite_steps" non_trainable tensor<i32>
// CHECK-NEXT: mt.declare "opt/m" slot tensor<4x4xf32>
// CHECK-LABEL: mt.program @train_step
// CHECK:      %[[FINITE:.*]] = mt.compare eq, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>
// CHECK:      mt.assign "opt/loss_scale", %{{.*}} : tensor<f32>
// CHECK:      %[[G:.*]] = mt.mul %{{.*}}, %{{.*}} : tensor<4x4xf32>, tensor<f32>
// CHECK:      %[[M:.*]] = mt.matmul %[[G]], %{{.*}} transpose_b {mt.precision = "f32"} : tensor<4x4xf32>, tensor<4x4xf32>
// CHECK:      mt.assign "opt/m", %[[M]] if %[[FINITE]] : tensor<4x4xf32>
// CHECK:      mt.assign "opt/iteration", %{{.*}} if %[[FINITE]] : tensor<i32>
// F32-LABEL:  mt.program @train_step
// F32:        mt.matmul %{{.*}} : tensor<?x4xf16>, tensor<4x4xf16>
// F32:        mt.matmul %{{.*}} transpose_b {mt.precision = "f32"} : tensor<4x4xf32>, tensor<4x4xf32>
