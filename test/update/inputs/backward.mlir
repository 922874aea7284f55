// SPDX-License-Identifier: Apache-2.0
// A backward pass that the model's author wrote: products and sums that contract the batch axis.
module attributes {graph.version = 1 : i32} {
  mt.model @backward {
    %x = mt.input "x" : tensor<?x4xf32>
    %t = mt.target "t" : tensor<?x3xf32>
    %s = mt.input "s" : tensor<?x5x4xf32>
    %w1 = mt.variable "w1" init(zeros) : tensor<4x8xf32>
    %b1 = mt.variable "b1" init(zeros) : tensor<8xf32>
    %w2 = mt.variable "w2" init(zeros) : tensor<8x3xf32>
    %k = mt.variable "k" init(zeros) : tensor<4x4xf32>
    %r = mt.variable "rate" init(constant = 0.1) frozen role(learning_rate) : tensor<f32>
    %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
    mt.update {
      %n = mt.batch_size
      %vx = graph.logical %x : tensor<?x4xf32> -> !graph.value<[b, 4], f32>
      %vt = graph.logical %t : tensor<?x3xf32> -> !graph.value<[b, 3], f32>
      %vs = graph.logical %s : tensor<?x5x4xf32> -> !graph.value<[b, 5, 4], f32>
      %v1 = graph.logical %w1 : tensor<4x8xf32> -> !graph.value<[4, 8], f32>
      %vb = graph.logical %b1 : tensor<8xf32> -> !graph.value<[8], f32>
      %v2 = graph.logical %w2 : tensor<8x3xf32> -> !graph.value<[8, 3], f32>
      %vk = graph.logical %k : tensor<4x4xf32> -> !graph.value<[4, 4], f32>
      %vr = graph.logical %r : tensor<f32> -> !graph.value<[], f32>
      %vn = graph.logical %n : tensor<f32> -> !graph.value<[], f32>
      %z = graph.dot_general %vx, %v1 contract [1] x [0] : (!graph.value<[b, 4], f32>, !graph.value<[4, 8], f32>) -> !graph.value<[b, 8], f32>
      %a = graph.elementwise "add"(%z, %vb) : (!graph.value<[b, 8], f32>, !graph.value<[8], f32>) -> !graph.value<[b, 8], f32>
      %h = graph.elementwise "tanh"(%a) : (!graph.value<[b, 8], f32>) -> !graph.value<[b, 8], f32>
      %p = graph.dot_general %h, %v2 contract [1] x [0] : (!graph.value<[b, 8], f32>, !graph.value<[8, 3], f32>) -> !graph.value<[b, 3], f32>
      %d = graph.elementwise "sub"(%p, %vt) : (!graph.value<[b, 3], f32>, !graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %q = graph.elementwise "square"(%d) : (!graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %l = graph.reduce sum, %q over [0, 1] : (!graph.value<[b, 3], f32>) -> !graph.value<[], f32>
      %loss = graph.elementwise "div"(%l, %vn) : (!graph.value<[], f32>, !graph.value<[], f32>) -> !graph.value<[], f32>
      %lt = graph.tensor %loss : !graph.value<[], f32> -> tensor<f32>
      mt.result "loss", %lt, %n
      %two = mt.constant dense<2.0> : tensor<f32>
      %v = graph.logical %two : tensor<f32> -> !graph.value<[], f32>
      %f = graph.elementwise "div"(%v, %vn) : (!graph.value<[], f32>, !graph.value<[], f32>) -> !graph.value<[], f32>
      %dp = graph.elementwise "mul"(%d, %f) : (!graph.value<[b, 3], f32>, !graph.value<[], f32>) -> !graph.value<[b, 3], f32>
      %g2 = graph.dot_general %h, %dp contract [0] x [0] : (!graph.value<[b, 8], f32>, !graph.value<[b, 3], f32>) -> !graph.value<[8, 3], f32>
      %dh = graph.dot_general %dp, %v2 contract [1] x [1] : (!graph.value<[b, 3], f32>, !graph.value<[8, 3], f32>) -> !graph.value<[b, 8], f32>
      %hh = graph.elementwise "square"(%h) : (!graph.value<[b, 8], f32>) -> !graph.value<[b, 8], f32>
      %dt = graph.elementwise "mul"(%dh, %hh) : (!graph.value<[b, 8], f32>, !graph.value<[b, 8], f32>) -> !graph.value<[b, 8], f32>
      %da = graph.elementwise "sub"(%dh, %dt) : (!graph.value<[b, 8], f32>, !graph.value<[b, 8], f32>) -> !graph.value<[b, 8], f32>
      %g1 = graph.dot_general %da, %vx contract [0] x [0] : (!graph.value<[b, 8], f32>, !graph.value<[b, 4], f32>) -> !graph.value<[8, 4], f32>
      %gb = graph.reduce sum, %da over [0] : (!graph.value<[b, 8], f32>) -> !graph.value<[8], f32>
      %gt = graph.transpose %g1 by [1, 0] : (!graph.value<[8, 4], f32>) -> !graph.value<[4, 8], f32>
      %gk = graph.dot_general %vs, %vs contract [0, 1] x [0, 1] : (!graph.value<[b, 5, 4], f32>, !graph.value<[b, 5, 4], f32>) -> !graph.value<[4, 4], f32>
      %m = graph.elementwise "div"(%gk, %vn) : (!graph.value<[4, 4], f32>, !graph.value<[], f32>) -> !graph.value<[4, 4], f32>
      %s1 = graph.elementwise "mul"(%gt, %vr) : (!graph.value<[4, 8], f32>, !graph.value<[], f32>) -> !graph.value<[4, 8], f32>
      %sb = graph.elementwise "mul"(%gb, %vr) : (!graph.value<[8], f32>, !graph.value<[], f32>) -> !graph.value<[8], f32>
      %s2 = graph.elementwise "mul"(%g2, %vr) : (!graph.value<[8, 3], f32>, !graph.value<[], f32>) -> !graph.value<[8, 3], f32>
      %sk = graph.elementwise "mul"(%m, %vr) : (!graph.value<[4, 4], f32>, !graph.value<[], f32>) -> !graph.value<[4, 4], f32>
      %n1 = graph.elementwise "sub"(%v1, %s1) : (!graph.value<[4, 8], f32>, !graph.value<[4, 8], f32>) -> !graph.value<[4, 8], f32>
      %nb = graph.elementwise "sub"(%vb, %sb) : (!graph.value<[8], f32>, !graph.value<[8], f32>) -> !graph.value<[8], f32>
      %n2 = graph.elementwise "sub"(%v2, %s2) : (!graph.value<[8, 3], f32>, !graph.value<[8, 3], f32>) -> !graph.value<[8, 3], f32>
      %nk = graph.elementwise "add"(%vk, %sk) : (!graph.value<[4, 4], f32>, !graph.value<[4, 4], f32>) -> !graph.value<[4, 4], f32>
      %o1 = graph.tensor %n1 : !graph.value<[4, 8], f32> -> tensor<4x8xf32>
      %ob = graph.tensor %nb : !graph.value<[8], f32> -> tensor<8xf32>
      %o2 = graph.tensor %n2 : !graph.value<[8, 3], f32> -> tensor<8x3xf32>
      %ok = graph.tensor %nk : !graph.value<[4, 4], f32> -> tensor<4x4xf32>
      mt.assign "w1", %o1 : tensor<4x8xf32>
      mt.assign "b1", %ob : tensor<8xf32>
      mt.assign "w2", %o2 : tensor<8x3xf32>
      mt.assign "k", %ok : tensor<4x4xf32>
    }
  }
}
