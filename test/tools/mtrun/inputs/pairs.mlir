// SPDX-License-Identifier: Apache-2.0
// Two users and nine films, a number each: their sum.
mt.model @pairs {
  %ids = mt.input "ids" : tensor<?x2xi32>
  %rating = mt.target "rating" : tensor<?x1xf32>
  %users = mt.variable "users" init(glorot_uniform) : tensor<2x1xf32>
  %films = mt.variable "films" init(glorot_uniform) : tensor<9x1xf32>
  %u = mt.slice %ids starts = [0] sizes = [1] : tensor<?x2xi32>
  %f = mt.slice %ids starts = [1] sizes = [1] : tensor<?x2xi32>
  %user = mt.gather %users, %u : tensor<2x1xf32>, tensor<?x1xi32>
  %film = mt.gather %films, %f : tensor<9x1xf32>, tensor<?x1xi32>
  %both = mt.add %user, %film : tensor<?x1x1xf32>, tensor<?x1x1xf32>
  %sum = mt.reshape %both : tensor<?x1x1xf32> to tensor<?x1xf32>
  %l = mt.mean_squared_error %sum, %rating : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
