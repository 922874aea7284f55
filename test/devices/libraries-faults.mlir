// SPDX-License-Identifier: Apache-2.0
// Every call of the simulated driver and of the simulated libraries fails once: a message, a known exit code, nothing
// left behind.
// Under a sanitizer each driver call fails in turn in CudaFaults.EveryCallInTurn; this takes minutes there.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 2 --shards 2 --target cpu,cuda:simulated
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTRUN_CUDA_CUBLASLT=%build/lib/libcublasLt-simulated.so MTRUN_CUDA_CUDNN=%build/lib/libcudnn-simulated.so
// RUN: %build/test/simulated_cuda/every-fault %t.mtp cuda:0 | FileCheck %s
// CHECK: calls, {{[0-9]+}} failures, {{[1-9][0-9][0-9]+}} of them in libraries
mt.model @faults {
  %x = mt.input "image" : tensor<?x3x3x2xf32>
  %y = mt.target "y" : tensor<?x2xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<2x2x2x3xf32>
  %b1 = mt.variable "a/bias" init(zeros) : tensor<3xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<12x2xf32>
  %z = mt.conv2d %x, %w1 : tensor<?x3x3x2xf32>, tensor<2x2x2x3xf32>
  %a = mt.add %z, %b1 : tensor<?x2x2x3xf32>, tensor<3xf32>
  %flat = mt.reshape %a : tensor<?x2x2x3xf32> to tensor<?x12xf32>
  %out = mt.matmul %flat, %w2 : tensor<?x12xf32>, tensor<12x2xf32>
  %l = mt.mean_squared_error %out, %y : tensor<?x2xf32>, tensor<?x2xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
