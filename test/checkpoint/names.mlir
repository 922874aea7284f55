// SPDX-License-Identifier: Apache-2.0
// Names of metrics made histories that are no JSON, CSV with shifted columns, keys that are there twice, and formulas
// of spreadsheets.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/ones.py x.npy y.npy
// RUN: mtc compile %s -o m.mtp --batch 4 --shards 2 --cpu x86-64-v3
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --validation npy:x.npy,y.npy --epochs 2 --history h --save w.safetensors --json-logs > logs
// RUN: %python %S/names.py h.json h.csv logs | FileCheck %s
// CHECK: h.json: epoch | loss | a,"b" | =1+1 | metric_epoch | metric_learning_rate | metric_val_loss | val_loss | val_a,"b" | val_=1+1 | val_metric_epoch | val_metric_learning_rate | val_metric_val_loss | learning_rate
// CHECK: h.csv: epoch | loss | a,"b" | '=1+1 | metric_epoch | metric_learning_rate | metric_val_loss | val_loss | val_a,"b" | val_=1+1 | val_metric_epoch | val_metric_learning_rate | val_metric_val_loss | learning_rate
// CHECK: logs: 6 objects

mt.model @names {
  %x = mt.input "x" : tensor<?x1xf32>
  %y = mt.target "y" : tensor<?x1xf32>
  %w = mt.variable "w" init(zeros) : tensor<1x1xf32>
  %p = mt.matmul %x, %w : tensor<?x1xf32>, tensor<1x1xf32>
  %e = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %e : tensor<?xf32>
  mt.metric "a,\22b\22", %e : tensor<?xf32>
  mt.metric "=1+1", %e : tensor<?xf32>
  mt.metric "epoch", %e : tensor<?xf32>
  mt.metric "learning_rate", %e : tensor<?xf32>
  mt.metric "val_loss", %e : tensor<?xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
