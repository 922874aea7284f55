// SPDX-License-Identifier: Apache-2.0
// A target network: a moving average of the weights, from which the loss takes its targets. eval_step has a metric.
mt.model @target {
  %x = mt.input "x" : tensor<?x4xf32>
  %next = mt.input "next" : tensor<?x4xf32>
  %reward = mt.target "reward" : tensor<?x3xf32>
  %w = mt.variable "w" init(zeros) : tensor<4x3xf32>
  %old = mt.variable "target/w" init(zeros) frozen : tensor<4x3xf32>
  %seen = mt.variable "seen" init(zeros) slot : tensor<i32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %q = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
  mt.output "q", %q : tensor<?x3xf32>
  %e = mt.mean_squared_error %q, %reward : tensor<?x3xf32>, tensor<?x3xf32>
  mt.metric "error", %e : tensor<?xf32>
  mt.update {
    %a = mt.argument %w : tensor<4x3xf32>
    %n = mt.batch_size
    %rate = mt.constant dense<0.1> : tensor<f32>
    %keep = mt.constant dense<0.9> : tensor<f32>
    %one = mt.constant dense<1> : tensor<i32>
    %0 = mt.matmul %x, %a : tensor<?x4xf32>, tensor<4x3xf32>
    %1 = mt.matmul %next, %old : tensor<?x4xf32>, tensor<4x3xf32>
    %2 = mt.mul %1, %keep : tensor<?x3xf32>, tensor<f32>
    %3 = mt.add %2, %reward : tensor<?x3xf32>, tensor<?x3xf32>
    %4 = mt.sub %0, %3 : tensor<?x3xf32>, tensor<?x3xf32>
    %5 = mt.square %4 : tensor<?x3xf32>
    %each_6 = mt.reduce sum, %5 over [1] : tensor<?x3xf32>
    %6 = mt.reduce sum, %each_6 over [0] : tensor<?xf32>
    %loss = mt.div %6, %n : tensor<f32>, tensor<f32>
    mt.result "loss", %loss, %n
    %g = mt.derivative %loss by %a : tensor<4x3xf32>
    %s = mt.mul %g, %rate : tensor<4x3xf32>, tensor<f32>
    %new = mt.sub %w, %s : tensor<4x3xf32>, tensor<4x3xf32>
    %m0 = mt.sub %old, %new : tensor<4x3xf32>, tensor<4x3xf32>
    %m1 = mt.mul %m0, %keep : tensor<4x3xf32>, tensor<f32>
    %m2 = mt.add %new, %m1 : tensor<4x3xf32>, tensor<4x3xf32>
    %c = mt.add %seen, %one : tensor<i32>, tensor<i32>
    mt.assign "w", %new : tensor<4x3xf32>
    mt.assign "target/w", %m2 : tensor<4x3xf32>
    mt.assign "seen", %c : tensor<i32>
  }
}
