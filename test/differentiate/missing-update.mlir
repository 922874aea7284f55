// SPDX-License-Identifier: Apache-2.0
// RUN: not mt-opt %s --mt-differentiate 2>&1 | FileCheck %s
// CHECK: error: 'mt.model' op expected a model with mt.update, found none: run mt-expand-optimizer first
mt.model @short {
  %x = mt.input "x" : tensor<?x4xf32>
  mt.loss "loss", %x : tensor<?x4xf32>
  mt.sgd
}
