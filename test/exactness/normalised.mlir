// SPDX-License-Identifier: Apache-2.0
// Statistics of the batch, random layers, clipping by the norm of all gradients, averages, a schedule and a penalty:
// the same bits on any number of devices. The last batch has 3 rows, so that most shards are empty.
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:203 --configurations cpu:1 cpu:2 cpu:3 cpu:8 cpu:2x2
// RUN: mtc compile %s -o %t.mtp --batch 100 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:1003 --configurations cpu:1 cpu:2 cpu:3 cpu:8
// Statistics of each shard's own depend on R, and on nothing else.
// RUN: mtc compile %s -o %t.local.mtp --batch 10 --shards 8 --batch-norm local
// RUN: %python %S/same_bits.py %t.local.mtp --data mnist:%examples/mnist,split=test,range=0:203 --configurations cpu:1 cpu:3 "cpu:2 --private-variables" "cpu:8 --private-variables" "cpu:1 --micro-batches 4" "cpu:2 --micro-batches 8 --private-variables"
// The rows of a device are normalised without waiting for the others, whom only moving averages need.
// RUN: mtc compile %s --batch 10 --shards 8 --batch-norm local --stop-after shard -o - | FileCheck %s --check-prefix=LOCAL
// LOCAL: mt.program @train_step
// LOCAL: %[[TABLE:[0-9]+]] = mt.scatter_add
// LOCAL-NEXT: shard.all_reduce %[[TABLE]] {{.*}}mt.bucket = 0
// LOCAL: %[[MEAN:[0-9]+]] = mt.div %[[TABLE]],
// LOCAL: mt.gather %[[MEAN]],
// LOCAL-NOT: mt.bucket = 1
// RUN: mtc compile %s --batch 10 --shards 8 -o %t.global.mtp
// RUN: not mtrun train %t.global.mtp --data mnist:%examples/mnist --micro-batches 2 2>&1 | FileCheck %s --check-prefix=GLOBAL
// GLOBAL: train_step: expected layers that do not wait for the whole batch, for micro-batches, found norm; if it normalises the batch, compile the model with --batch-norm local
// RUN: not mtc compile %s -o %t.local.mtp --batch 4194304 --batch-norm local 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: expected --batch of at most 1048576 for statistics of shards, found 4194304
mt.model @normalised {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<784x64xf32>
  %g = mt.variable "norm/gamma" init(ones) : tensor<16xf32>
  %b = mt.variable "norm/beta" init(zeros) : tensor<16xf32>
  %m = mt.variable "norm/moving_mean" init(zeros) frozen : tensor<16xf32>
  %v = mt.variable "norm/moving_variance" init(ones) frozen : tensor<16xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<64x10xf32>
  %noisy = mt.gaussian_noise %image "noise" stddev = 0.1 : tensor<?x784xf32>
  %0 = mt.matmul %noisy, %w1 : tensor<?x784xf32>, tensor<784x64xf32>
  %1 = mt.reshape %0 : tensor<?x64xf32> to tensor<?x4x16xf32>
  %2 = mt.batch_normalization %1, %g, %b, %m, %v momentum = 0.9
       : tensor<?x4x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %3 = mt.gelu %2 : tensor<?x4x16xf32>
  %4 = mt.dropout %3 "drop" rate = 0.25 : tensor<?x4x16xf32>
  %5 = mt.normalize %4 over [1, 2] : tensor<?x4x16xf32>
  %6 = mt.reshape %5 : tensor<?x4x16xf32> to tensor<?x64xf32>
  %logits = mt.matmul %6, %w2 : tensor<?x64xf32>, tensor<64x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.regularizer %w1 l2 = 0.001 : tensor<784x64xf32>
  mt.regularizer %3 l1 = 0.001 : tensor<?x4x16xf32>
  %hit = mt.sparse_top_k_categorical_accuracy %logits, %label k = 2 : tensor<?x10xf32>, tensor<?xi32>
  mt.metric "top_2", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  %i = mt.iteration
  %rate = mt.cosine_decay %i <{initial_learning_rate = 1.0e-3 : f32, decay_steps = 30.0 : f32, warmup_target = 0.01 : f32, warmup_steps = 5.0 : f32}>
  mt.adam rate(%rate) <{global_clipnorm = 1.0 : f32, ema_momentum = 0.9 : f32, ema_overwrite_frequency = 4 : i64, weight_decay = 0.01 : f32}>
}
