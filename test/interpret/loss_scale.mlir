// SPDX-License-Identifier: Apache-2.0
// The step of sgd_mse.mlir in f16: gradients are those without a scale, which doubles after 2,000 finite steps. Where
// they are not finite nothing changes but the scale, which is halved, and the count.
// RUN: mt-interpret %s | FileCheck %s
// RUN: sed 's/finite_steps = .*/finite_steps = 7/' %s | mt-interpret - | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/INPUT x = .*/INPUT x = 1e300 2 3 4/' %s | mt-interpret - | FileCheck %s --check-prefix=SKIP
// INPUT x = 1 2 3 4
// INPUT t = 3 9
// SET w = 1 1
// SET b = 0.5
// SET sgd/finite_steps = 1999
module attributes {mt.compilation = #mt.compilation<precision = f16>} {
mt.model @line {
  %x = mt.input "x" : tensor<?x2xf32>
  %t = mt.target "t" : tensor<?x1xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<2x1xf32>
  %b = mt.variable "b" init(zeros) : tensor<1xf32>
  %0 = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %p = mt.add %0, %b : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
}
// CHECK: loss = 1.25 weight 2
// CHECK: b [1] = 0.6
// CHECK-NEXT: sgd/finite_steps [] = 0
// CHECK-NEXT: sgd/iteration [] = 1
// CHECK-NEXT: sgd/learning_rate [] = 0.1
// CHECK-NEXT: sgd/loss_scale [] = 65536
// CHECK-NEXT: w [2, 1] = 1.4 1.5

// COUNT: b [1] = 0.6
// COUNT-NEXT: sgd/finite_steps [] = 8
// COUNT: sgd/loss_scale [] = 32768

// SKIP: b [1] = 0.5
// SKIP-NEXT: sgd/finite_steps [] = 0
// SKIP-NEXT: sgd/iteration [] = 0
// SKIP: sgd/loss_scale [] = 16384
// SKIP-NEXT: w [2, 1] = 1 1
