// SPDX-License-Identifier: Apache-2.0
// A kernel that does not keep the contract of its kind is an error at the kernel, before a code generator sees it.
// RUN: mt-opt %s --split-input-file --verify-diagnostics
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected rows that are independent in a kernel of kind rows, found 'mt.reduce' of several}}
  %0 = mt.kernel "k" rows (%a = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.reduce sum, %a over [0] : tensor<?x4xf32>
    %2 = mt.sub %a, %1 : tensor<?x4xf32>, tensor<4xf32>
    mt.yield %2 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.read "x" : tensor<4xf32>
  // expected-error @below {{expected results with a batch axis in a kernel of kind rows, found 'tensor<4xf32>'}}
  %0 = mt.kernel "k" rows (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %1 = mt.relu %a : tensor<4xf32>
    mt.yield %1 : tensor<4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected no batch axis in a kernel of kind single, found 'tensor<?x4xf32>'}}
  %0 = mt.kernel "k" single (%a = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.relu %a : tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.read "x" : tensor<4x4xf32>
  // expected-error @below {{expected element-wise operations only in a kernel of kind elementwise, found 'mt.transpose'}}
  %0 = mt.kernel "k" elementwise (%a = %x : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %1 = mt.transpose %a by [1, 0] : tensor<4x4xf32>
    mt.yield %1 : tensor<4x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.read "x" : tensor<4x4xf32>
  %y = mt.read "y" : tensor<4xf32>
  // expected-error @below {{expected operands of rank 0 or of the results' shape in a kernel of kind elementwise, found 'tensor<4xf32>'}}
  %0 = mt.kernel "k" elementwise (%a = %x : tensor<4x4xf32>, %b = %y : tensor<4xf32>) -> (tensor<4x4xf32>) {
    %1 = mt.add %a, %b : tensor<4x4xf32>, tensor<4xf32>
    mt.yield %1 : tensor<4x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4x4xf32>
  // expected-error @below {{expected one mt.matmul of two operands, without transpose_a, in a kernel of kind matmul}}
  %0 = mt.kernel "k" matmul (%a = %x : tensor<?x4xf32>, %b = %w : tensor<4x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.matmul %a, %b : tensor<?x4xf32>, tensor<4x4xf32>
    %2 = mt.matmul %1, %b : tensor<?x4xf32>, tensor<4x4xf32>
    mt.yield %2 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4x4xf32>
  // expected-error @below {{expected element-wise operations only after a kernel's product, found 'mt.reduce'}}
  %0 = mt.kernel "k" matmul (%a = %x : tensor<?x4xf32>, %b = %w : tensor<4x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.matmul %a, %b : tensor<?x4xf32>, tensor<4x4xf32>
    %2 = mt.reduce sum, %1 over [1] : tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4x4xf32>
  // expected-error @below {{expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_wgrad}}
  %0 = mt.kernel "k" matmul_wgrad (%a = %x : tensor<?x4xf32>, %b = %w : tensor<4x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.matmul %a, %b : tensor<?x4xf32>, tensor<4x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected sums over the rows of operands, or of elements computed from them, only in a kernel of kind reduce}}
  %0 = mt.kernel "k" reduce (%a = %x : tensor<?x4xf32>) -> (tensor<?xf32>) {
    %1 = mt.reduce sum, %a over [1] : tensor<?x4xf32>
    mt.yield %1 : tensor<?xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.read "x" : tensor<4x4x4xf32>
  // expected-error @below {{expected one mt.transpose by [1, 0] of a replicated matrix in a kernel of kind transpose}}
  %0 = mt.kernel "k" transpose (%a = %x : tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>) {
    %1 = mt.transpose %a by [0, 2, 1] : tensor<4x4x4xf32>
    mt.yield %1 : tensor<4x4x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected one convolution of two operands in a kernel of kind conv}}
  %0 = mt.kernel "k" conv (%a = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.relu %a : tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected one mt.conv2d_kernel_gradient of two operands in a kernel of kind conv_wgrad}}
  %0 = mt.kernel "k" conv_wgrad (%a = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.relu %a : tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @below {{expected one mt.scatter_add of two split operands in a kernel of kind scatter_add}}
  %0 = mt.kernel "k" scatter_add (%a = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %1 = mt.relu %a : tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4x8xf32>
  // expected-error @below {{expected one mt.attention, one mt.attention_log_sums or both in a kernel of kind attention, of the same split operands}}
  %0 = mt.kernel "k" attention (%a = %x : tensor<?x4x8xf32>) -> (tensor<?x4x8xf32>) {
    %1 = mt.attention %a, %a, %a : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>
    %2 = mt.relu %1 : tensor<?x4x8xf32>
    mt.yield %2 : tensor<?x4x8xf32>
  }
}
// -----
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4x8xf32>
  %l = mt.input "l" : tensor<?x1x4xf32>
  // expected-error @below {{expected gradients of one mt.attention in a kernel of kind attention_gradient, of the same split operands}}
  %0:2 = mt.kernel "k" attention_gradient (%a = %x : tensor<?x4x8xf32>, %b = %l : tensor<?x1x4xf32>) -> (tensor<?x4x8xf32>, tensor<?x4x8xf32>) {
    %1 = mt.attention_gradient key, %a, %a, %a, %a, %a, %b : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x1x4xf32>
    %2 = mt.attention_gradient key, %a, %a, %a, %a, %a, %b causal : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x1x4xf32>
    mt.yield %1, %2 : tensor<?x4x8xf32>, tensor<?x4x8xf32>
  }
}

// -----

mt.program @p {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @+1 {{expected two numbers in mt.turn, found 3 : i64}}
  %0 = mt.relu %x {mt.turn = 3 : i64} : tensor<?x4xf32>
}

// -----

mt.program @p {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error @+1 {{expected two numbers in mt.blocks, found array<i64: 1>}}
  %0 = mt.relu %x {mt.blocks = array<i64: 1>} : tensor<?x4xf32>
}

// -----

// A weight gradient in the place of a part of another value than its operand.
mt.program @p {
  %x = mt.input "x" : tensor<?x2xf32>
  %y = mt.input "y" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<8x4xf32>
  // expected-error @+1 {{expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_wgrad}}
  %0 = mt.kernel "part" matmul_wgrad (%a = %x : tensor<?x2xf32>, %b = %y : tensor<?x4xf32>, %c = %w : tensor<8x4xf32>) -> (tensor<8x4xf32>) {
    %1 = mt.matmul %a, %b transpose_a : tensor<?x2xf32>, tensor<?x4xf32>
    %2 = mt.slice %c starts = [1, 0] sizes = [6, 4] : tensor<8x4xf32>
    %3 = mt.concat %1, %2 dim = 0 {mt.blocks = array<i64: 0, 2>} : tensor<2x4xf32>, tensor<6x4xf32>
    mt.yield %3 : tensor<8x4xf32>
  }
}
