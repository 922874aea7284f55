// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics

func.func @images_rank(%x: tensor<?x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected images tensor<?xHxWxCxf32>, found 'tensor<?x8x4xf32>'}}
  %0 = mt.conv2d %x, %w : tensor<?x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @images_static(%x: tensor<2x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected images tensor<?xHxWxCxf32>, found 'tensor<2x8x8x4xf32>'}}
  %0 = mt.conv2d %x, %w : tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @kernel_rank(%x: tensor<?x8x8x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error@+1 {{expected a kernel tensor<KHxKWxCxFxf32>, found 'tensor<3x4x6xf32>'}}
  %0 = mt.conv2d %x, %w : tensor<?x8x8x4xf32>, tensor<3x4x6xf32>
  return
}

// -----

func.func @kernel_channels(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x3x6xf32>) {
  // expected-error@+1 {{expected a kernel for 4 channels, found one for 3}}
  %0 = mt.conv2d %x, %w : tensor<?x8x8x4xf32>, tensor<3x3x3x6xf32>
  return
}

// -----

func.func @groups(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x1x6xf32>) {
  // expected-error@+1 {{expected groups that divide 4 channels and 6 filters, found 4}}
  %0 = mt.conv2d %x, %w groups = 4 : tensor<?x8x8x4xf32>, tensor<3x3x1x6xf32>
  return
}

// -----

func.func @no_groups(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x1x6xf32>) {
  // expected-error@+1 {{expected groups that divide 4 channels and 6 filters, found 0}}
  %0 = mt.conv2d %x, %w groups = 0 : tensor<?x8x8x4xf32>, tensor<3x3x1x6xf32>
  return
}

// -----

func.func @strides(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected strides from 1 to 2147483647, found 0}}
  %0 = mt.conv2d %x, %w strides = [0, 1] : tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @strides_count(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected 2 numbers as strides, found 1}}
  %0 = mt.conv2d %x, %w strides = [2] : tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @padding(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected padding of less than the window's 3 columns, found 1 and 3}}
  %0 = mt.conv2d %x, %w padding = [0, 0, 1, 3] : tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @padding_negative(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected padding from 0 to 2147483647, found -1}}
  %0 = mt.conv2d %x, %w padding = [0, -1, 0, 0] : tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @dilation_huge(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected dilation from 1 to 2147483647, found 9223372036854775807}}
  %0 = mt.conv2d %x, %w dilation = [1, 9223372036854775807] : tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @too_small(%x: tensor<?x4x8x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected 7 rows or more with the padding, found 6}}
  %0 = mt.conv2d %x, %w padding = [1, 1, 0, 0] dilation = [3, 1] : tensor<?x4x8x4xf32>, tensor<3x3x4x6xf32>
  return
}

// -----

func.func @input_gradient(%dy: tensor<?x6x5x6xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{expected a gradient 'tensor<?x6x6x6xf32>' of the convolution of 'tensor<?x8x8x4xf32>' and 'tensor<3x3x4x6xf32>', found 'tensor<?x6x5x6xf32>'}}
  %0 = mt.conv2d_input_gradient %dy, %w : tensor<?x6x5x6xf32>, tensor<3x3x4x6xf32> to tensor<?x8x8x4xf32>
  return
}

// -----

func.func @kernel_gradient(%x: tensor<?x8x8x4xf32>, %dy: tensor<?x6x6x6xf32>) {
  // expected-error@+1 {{expected a gradient 'tensor<?x6x6x5xf32>' of the convolution of 'tensor<?x8x8x4xf32>' and 'tensor<3x3x4x5xf32>', found 'tensor<?x6x6x6xf32>'}}
  %0 = mt.conv2d_kernel_gradient %x, %dy : tensor<?x8x8x4xf32>, tensor<?x6x6x6xf32> to tensor<3x3x4x5xf32>
  return
}

// -----

func.func @pool_kind(%x: tensor<?x8x8x4xf32>) {
  // expected-error@+1 {{expected max or sum, found min}}
  %0 = mt.pool min, %x window = [2, 2] : tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_window(%x: tensor<?x8x8x4xf32>) {
  // expected-error@+1 {{expected window from 1 to 2147483647, found 0}}
  %0 = mt.pool max, %x window = [2, 0] : tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_padding(%x: tensor<?x8x8x4xf32>) {
  // expected-error@+1 {{expected padding of less than the window's 2 rows, found 2 and 0}}
  %0 = mt.pool max, %x window = [2, 2] padding = [2, 0, 0, 0] : tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_gradient_shape(%dy: tensor<?x3x4x4xf32>) {
  // expected-error@+1 {{expected a gradient 'tensor<?x4x4x4xf32>' of the pool of 'tensor<?x8x8x4xf32>', found 'tensor<?x3x4x4xf32>'}}
  %0 = mt.pool_gradient sum, %dy window = [2, 2] strides = [2, 2] : tensor<?x3x4x4xf32> to tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_gradient_sum(%dy: tensor<?x4x4x4xf32>, %x: tensor<?x8x8x4xf32>) {
  // expected-error@+1 {{expected images for max only, found some for sum}}
  %0 = mt.pool_gradient sum, %dy at %x window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32>, tensor<?x8x8x4xf32> to tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_gradient_max(%dy: tensor<?x4x4x4xf32>) {
  // expected-error@+1 {{expected images 'tensor<?x8x8x4xf32>' for max, found none}}
  %0 = mt.pool_gradient max, %dy window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32> to tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pool_gradient_images(%dy: tensor<?x4x4x4xf32>, %x: tensor<?x8x9x4xf32>) {
  // expected-error@+1 {{expected images 'tensor<?x8x8x4xf32>' for max, found 'tensor<?x8x9x4xf32>'}}
  %0 = mt.pool_gradient max, %dy at %x window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32>, tensor<?x8x9x4xf32> to tensor<?x8x8x4xf32>
  return
}

// -----

func.func @pad_count(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected 2 numbers as low of 'tensor<?x8x4xf32>', found 3}}
  %0 = mt.pad %x low = [0, 1, 1] high = [0, 0] : tensor<?x8x4xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected high from 0 to 2147483647, found -1}}
  %0 = mt.pad %x low = [1, 1] high = [0, -1] : tensor<?x8x4xf32>
  return
}

// -----

func.func @slice_end(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected a last element from 0 to 7 on axis 1, found 9}}
  %0 = mt.slice %x starts = [1, 0] sizes = [5, 4] strides = [2, 1] : tensor<?x8x4xf32>
  return
}

// -----

func.func @slice_empty(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected sizes from 1 to 2147483647, found 0}}
  %0 = mt.slice %x starts = [1, 0] sizes = [0, 4] : tensor<?x8x4xf32>
  return
}

// -----

func.func @slice_stride(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected strides from 1 to 2147483647, found -1}}
  %0 = mt.slice %x starts = [7, 0] sizes = [8, 4] strides = [-1, 1] : tensor<?x8x4xf32>
  return
}

// -----
mt.model @m {
  // expected-error@+1 {{expected tensors as operands, found 'f32'}}
  %0 = mt.concat %later, %later dim = 0 : f32, f32
}

// -----
mt.model @m {
  // expected-error@+1 {{on axis 1, found more}}
  %0 = mt.concat %later, %later dim = 1 : tensor<4x?xf32>, tensor<4x?xf32>
}

// -----

func.func @concat_batch(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expected an axis from 1 to 1 of 'tensor<?x8xf32>', found 0}}
  %0 = mt.concat %x, %x dim = 0 : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @concat_shapes(%x: tensor<?x8x4xf32>, %y: tensor<?x8x5xf32>) {
  // expected-error@+1 {{expected operands that agree but on axis 1, found 'tensor<?x8x4xf32>' and 'tensor<?x8x5xf32>'}}
  %0 = mt.concat %x, %y dim = 1 : tensor<?x8x4xf32>, tensor<?x8x5xf32>
  return
}

// -----

func.func @concat_split(%x: tensor<8xf32>, %y: tensor<?xf32>) {
  // expected-error@+1 {{expected operands that agree but on axis 0, found 'tensor<8xf32>' and 'tensor<?xf32>'}}
  %0 = mt.concat %x, %y dim = 0 : tensor<8xf32>, tensor<?xf32>
  return
}

// -----

func.func @concat_elements(%x: tensor<?x8xf32>, %y: tensor<?x8xi32>) {
  // expected-error@+1 {{expected operands that agree but on axis 1, found 'tensor<?x8xf32>' and 'tensor<?x8xi32>'}}
  %0 = mt.concat %x, %y dim = 1 : tensor<?x8xf32>, tensor<?x8xi32>
  return
}

// -----

func.func @reverse_batch(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expected an axis from 1 to 1 of 'tensor<?x8xf32>', found 0}}
  %0 = mt.reverse %x over [0] : tensor<?x8xf32>
  return
}

// -----

func.func @reverse_order(%x: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected axes in increasing order, found 1 after 2}}
  %0 = mt.reverse %x over [2, 1] : tensor<?x8x4xf32>
  return
}

// -----

func.func @gather_split(%t: tensor<?x4xf32>, %ids: tensor<?xi32>) {
  // expected-error@+1 {{expected a table of static shape with a row or more, found 'tensor<?x4xf32>'}}
  %0 = mt.gather %t, %ids : tensor<?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @scatter(%ids: tensor<?x3xi32>, %dy: tensor<?x3x5xf32>) {
  // expected-error@+1 {{expected updates 'tensor<?x3x4xf32>' of 'tensor<?x3xi32>' and 'tensor<10x4xf32>', found 'tensor<?x3x5xf32>'}}
  %0 = mt.scatter_add %ids, %dy : tensor<?x3xi32>, tensor<?x3x5xf32> to tensor<10x4xf32>
  return
}

// -----

func.func @take_batch(%x: tensor<?x4xf32>, %ids: tensor<?x3xi32>) {
  // expected-error@+1 {{expected samples with one element or more along axis 0, found 'tensor<?x4xf32>'}}
  %0 = mt.take %x, %ids dim = 0 : tensor<?x4xf32>, tensor<?x3xi32>
  return
}

// -----

func.func @take_ids(%x: tensor<?x4xf32>, %ids: tensor<2x3xi32>) {
  // expected-error@+1 {{expected ids of one axis, or of the batch axis and one, found 'tensor<2x3xi32>'}}
  %0 = mt.take %x, %ids dim = 1 : tensor<?x4xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @put(%ids: tensor<?x3xi32>, %dy: tensor<?x4xf32>) {
  // expected-error@+1 {{expected updates 'tensor<?x3xf32>' of 'tensor<?x3xi32>' and 'tensor<?x6xf32>', found 'tensor<?x4xf32>'}}
  %0 = mt.index_add %ids, %dy dim = 1 : tensor<?x3xi32>, tensor<?x4xf32> to tensor<?x6xf32>
  return
}
