/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kernel.h
 * The calling convention of a plan's CPU kernels.
 *
 * The compiler makes one C function for each kernel, and the runtime calls it by its symbol in the plan's code section.
 * docs/plan-format.md, section 5, describes how programs use kernels.
 */
#ifndef MT_ABI_KERNEL_H
#define MT_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The arguments of a launch other than buffers. Rows are samples.
 *
 * Generated code relies on the order of the fields. New fields are added at the end only.
 */
typedef struct mt_kernel_params {
  /** Valid rows of this device in this step: clamp(n - first_row, 0, shards * shard_rows). */
  int64_t rows;
  /** Index of the device's first row in the global batch. Random numbers of row i are indexed by first_row + i. */
  int64_t first_row;
  /** Valid rows of the whole batch, n. */
  int64_t global_rows;
  /** Elements of the current segment, for elementwise kernels; 0 for all others. */
  int64_t count;
  /** The run's seed. */
  uint64_t seed;
  /** GPUs: device memory for partial sums inside a launch (gpu_kernel.h). CPUs: null. */
  void *partials;
  /** CPUs: memory that the kernel may use while it computes a tile: the plan's `scratch_bytes` of the kernel, aligned
   * to 64 bytes, for the calling thread alone, with any content. GPUs: null. */
  void *scratch;
  /** CPUs, programs with `parts`: 1 if the rows continue a shard, whose sums up to these rows are in the results of
   * kernels that sum over the batch; else 0. */
  int64_t continues;
} mt_kernel_params;

/** The maximum number of stack bytes that a kernel uses. */
#define MT_KERNEL_STACK_BYTES 16384

/**
 * A kernel: computes tiles [tile_begin, tile_end) of its grid.
 *
 * Tiles are independent: any thread may compute any of them, in any order. A kernel reads and writes valid rows only,
 * and never past the end of a buffer. It calls nothing and keeps no state.
 *
 * @param params      the launch; not changed
 * @param buffers     one pointer for each argument: operands first, then results. A buffer of rows begins with the
 *                    device's first row. Tensors are dense and row major; a boolean is one byte
 * @param tile_begin  the first tile
 * @param tile_end    one past the last tile
 */
typedef void (*mt_kernel_fn)(const mt_kernel_params *params, void *const *buffers, int64_t tile_begin,
                             int64_t tile_end);

#ifdef __cplusplus
}
#endif
#endif
