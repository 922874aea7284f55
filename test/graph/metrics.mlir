// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --graph-layout --verify-diagnostics | FileCheck %s --implicit-check-not=graph.

// A metric of Keras' classes is what a file has for it; targets are cast and shaped as the predictions.
module attributes {graph.version = 1 : i32} {
  mt.model @counted {
    %p = mt.input "p" : tensor<?x2xf32>
    mt.loss "loss", %p : tensor<?x2xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
    %y = mt.target "y" : tensor<?x2xi32>
    %w = mt.sample_weight "w" : tensor<?xf32>
    // CHECK: mt.cast
    // CHECK: mt.compare gt
    // CHECK: mt.metric "m", %{{.*}} finalizer sum better higher : tensor<?xf32>
    graph.metric "m" of "{\"class_name\": \"TruePositives\", \"config\": {}}" %p, %y, %w : tensor<?x2xf32>, tensor<?x2xi32>, tensor<?xf32>
    // CHECK: mt.metric "f", %{{.*}} finalizer f1_macro parameters [2.000000e+00] better higher : tensor<?x3x2xf32>
    graph.metric "f" of "{\"class_name\": \"FBetaScore\", \"config\": {\"average\": \"macro\", \"beta\": 2.0}}" %p, %y : tensor<?x2xf32>, tensor<?x2xi32>
    // CHECK: mt.metric "e/0"
    // CHECK: mt.metric "e/1"
    graph.metric "e" of "{\"class_name\": \"R2Score\", \"config\": {\"class_aggregation\": null}}" %p, %y : tensor<?x2xf32>, tensor<?x2xi32>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @refused {
    %p = mt.input "p" : tensor<?x2xf32>
    mt.loss "loss", %p : tensor<?x2xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
    %y = mt.target "y" : tensor<?x3xf32>
    // expected-error@+1 {{metric m: expected a class of Keras, and predictions, targets and weights of samples}}
    graph.metric "m" of "{\"class_name\": \"Sum\", \"config\": {}}" %p, %y : tensor<?x2xf32>, tensor<?x3xf32>
    // expected-error@+1 {{metric m: expected 2 targets of a sample, found 3}}
    graph.metric "m" of "{\"class_name\": \"AUC\", \"config\": {}}" %p, %y : tensor<?x2xf32>, tensor<?x3xf32>
    // expected-error@+1 {{metric m: expected thresholds that are not evenly spaced from 0 to 1}}
    graph.metric "m" of "{\"class_name\": \"Recall\", \"config\": {\"thresholds\": [0.0, 0.5, 1.0]}}" %p, %p : tensor<?x2xf32>, tensor<?x2xf32>
    // expected-error@+1 {{metric m: expected a class of Keras}}
    graph.metric "m" of "{\"class_name\": \"AUC\", \"module\": \"mine\", \"config\": {}}" %p, %p : tensor<?x2xf32>, tensor<?x2xf32>
  }
}
