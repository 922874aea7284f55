// A line through points of (a, b), for programs that embed the runtime.
mt.model @line {
  %x = mt.input "x" : tensor<?x2xf32>
  %y = mt.target "y" : tensor<?x1xf32>
  %w = mt.variable "kernel" init(zeros) : tensor<2x1xf32>
  %b = mt.variable "bias" init(zeros) : tensor<1xf32>
  %z = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %p = mt.add %z, %b : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "prediction", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 1.0e-1 : f32}>
}
