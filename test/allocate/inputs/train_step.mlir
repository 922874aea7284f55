// SPDX-License-Identifier: Apache-2.0
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4, seed = 1>} {
shard.grid @shards(shape = 8)
mt.declare "w" trainable tensor<8x4xf32>
mt.declare "b" trainable tensor<4xf32>
mt.declare "w2" trainable tensor<4x3xf32>
mt.declare "it" non_trainable tensor<i32>
mt.declare "lr" non_trainable tensor<f32>
mt.declare "m" slot tensor<8x4xf32>
mt.program @train_step {
  %x = mt.input "x" : tensor<?x8xf32>
  %t = mt.target "t" : tensor<?x3xf32>
  %w = mt.read "w" : tensor<8x4xf32>
  %b = mt.read "b" : tensor<4xf32>
  %w2 = mt.read "w2" : tensor<4x3xf32>
  %it = mt.read "it" : tensor<i32>
  %lr = mt.read "lr" : tensor<f32>
  %m = mt.read "m" : tensor<8x4xf32>
  %z = mt.matmul %x, %w : tensor<?x8xf32>, tensor<8x4xf32>
  %a = mt.add %z, %b : tensor<?x4xf32>, tensor<4xf32>
  %h = mt.relu %a : tensor<?x4xf32>
  %y = mt.matmul %h, %w2 : tensor<?x4xf32>, tensor<4x3xf32>
  %d = mt.sub %y, %t : tensor<?x3xf32>, tensor<?x3xf32>
  %sq = mt.square %d : tensor<?x3xf32>
  %l = mt.reduce sum, %sq over [1] : tensor<?x3xf32>
  %ls = mt.reduce sum, %l over [0] : tensor<?xf32>
  %lr0 = shard.all_reduce %ls on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<f32> -> tensor<f32>
  %n = mt.batch_size
  %mean = mt.div %lr0, %n : tensor<f32>, tensor<f32>
  %one = mt.constant dense<1.0> : tensor<f32>
  %seed = mt.div %one, %n : tensor<f32>, tensor<f32>
  %two = mt.constant dense<2.0> : tensor<f32>
  %g0 = mt.mul %d, %two : tensor<?x3xf32>, tensor<f32>
  %g = mt.mul %g0, %seed : tensor<?x3xf32>, tensor<f32>
  %dw2 = mt.matmul %h, %g transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
  %dw2r = shard.all_reduce %dw2 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<4x3xf32> -> tensor<4x3xf32>
  %dh = mt.matmul %g, %w2 transpose_b : tensor<?x3xf32>, tensor<4x3xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %mask = mt.compare gt, %h, %zero : tensor<?x4xf32>, tensor<f32>
  %da = mt.select %mask, %dh, %zero : tensor<?x4xi1>, tensor<?x4xf32>, tensor<f32>
  %db = mt.reduce sum, %da over [0] : tensor<?x4xf32>
  %dbr = shard.all_reduce %db on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<4xf32> -> tensor<4xf32>
  %dw = mt.matmul %x, %da transpose_a : tensor<?x8xf32>, tensor<?x4xf32>
  %dwr = shard.all_reduce %dw on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<8x4xf32> -> tensor<8x4xf32>
  %itf = mt.cast %it : tensor<i32> to tensor<f32>
  %alpha = mt.div %lr, %itf : tensor<f32>, tensor<f32>
  %mu = mt.constant dense<0.9> : tensor<f32>
  %mm = mt.mul %m, %mu : tensor<8x4xf32>, tensor<f32>
  %mn = mt.add %mm, %dwr : tensor<8x4xf32>, tensor<8x4xf32>
  %sw = mt.mul %mn, %alpha : tensor<8x4xf32>, tensor<f32>
  %nw = mt.sub %w, %sw : tensor<8x4xf32>, tensor<8x4xf32>
  mt.assign "w", %nw : tensor<8x4xf32>
  mt.assign "m", %mn : tensor<8x4xf32>
  %sb = mt.mul %dbr, %alpha : tensor<4xf32>, tensor<f32>
  %nb = mt.sub %b, %sb : tensor<4xf32>, tensor<4xf32>
  mt.assign "b", %nb : tensor<4xf32>
  %sw2 = mt.mul %dw2r, %alpha : tensor<4x3xf32>, tensor<f32>
  %nw2 = mt.sub %w2, %sw2 : tensor<4x3xf32>, tensor<4x3xf32>
  mt.assign "w2", %nw2 : tensor<4x3xf32>
  %onei = mt.constant dense<1> : tensor<i32>
  %nit = mt.add %it, %onei : tensor<i32>, tensor<i32>
  mt.assign "it", %nit : tensor<i32>
  mt.result "loss", %mean, %n loss
}
}
