/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gpu_kernel.h
 * The calling convention of a plan's GPU kernels, and of the same kernels lowered to the host for tests.
 *
 * A kernel of a target "cuda:sm_NN" or "cuda:ptx" is
 *
 *     extern "C" kernel NAME(const mt_kernel_params *params, const mt_gpu_word *segments)
 *
 * | launch                | value                                                                                |
 * |-----------------------|--------------------------------------------------------------------------------------|
 * | grid, x               | tiles of the largest segment, for the maximum rows of a device: shards * shard_rows  |
 * | grid, y               | number of segments                                                                   |
 * | block                 | `gpu.threads` x 1 x 1                                                                |
 * | dynamic shared memory | 0; shared memory is static                                                           |
 *
 * Block (x, y) computes tile x of segment y. It returns at once where x is not below the number of tiles that the
 * segment has for `params->rows` (elementwise kernels: for its `count`). A kernel with `uses_rows` returns at once
 * where `params->rows` is 0.
 *
 * `params` and `segments` are in device memory. A copy rewrites `params` before each step. The copy is part of the
 * captured graph, so one graph serves any number of samples and any seed. `params->count` is 0, since each segment has
 * its own count.
 *
 * A block needs both before it can read an element, and reads them at once, since neither leads to the other: a segment
 * is its pointers themselves, not where they are.
 */
#ifndef MT_ABI_GPU_KERNEL_H
#define MT_ABI_GPU_KERNEL_H

#include "kernel.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A word of a segment. Each segment of a launch has one word more than buffers, and they lie one after another.
 *
 * The first word is `count`. Then there is a pointer in device memory for each argument of the kernel, operands first,
 * then results, and then for each argument of the kernels that are its tails (docs/gpu-code.md).
 */
typedef union mt_gpu_word {
  /** Elements of the segment, for elementwise kernels; 0 for all others. */
  int64_t count;
  /** An operand or a result of the kernel, or of one of its tails. */
  void *buffer;
} mt_gpu_word;

/**
 * Counters for each segment of a kernel whose blocks add to one result.
 *
 * The kernel has memory for partial sums that no other work of the device uses at the same time: `params->partials`
 * points to `gpu.partial_bytes` for each segment. Below that address lie this many 32-bit integers for each segment,
 * which count the blocks that are done. They are 0 before and after every launch.
 */
#define MT_GPU_COUNTERS 8192

/**
 * A kernel that sets the operand's rows from `params->rows` on to +0.
 *
 * This one, MT_GPU_SUM_SHARDS and MT_GPU_TRANSPOSE are kernels that library calls need (docs/libraries.md). They are in
 * the code of every GPU target of a plan with library calls. Each has MT_GPU_CALL_THREADS threads per block and the
 * buffers { operand, result, sizes }; `sizes` are 64-bit integers in device memory. Elements are 32-bit floats. The
 * pointer of a buffer that a kernel does not use is not read.
 *
 * sizes: elements of a row. count: elements of all rows, 1024 per tile. There is no result.
 */
#define MT_GPU_CLEAR_ROWS "mt_clear_rows"

/**
 * A kernel that adds the results of shards along the reduction tree. The operand has the results one after another.
 * Shards without valid rows are left out.
 *
 * count: elements of one result, 256 per tile. There are no sizes.
 */
#define MT_GPU_SUM_SHARDS "mt_sum_shards"

/**
 * A kernel that transposes a matrix: the operand [rows, columns] becomes [columns, rows].
 *
 * sizes: rows, columns. count: the number of tiles, of 32 x 32 elements each.
 */
#define MT_GPU_TRANSPOSE "mt_transpose"

/** Threads per block of the three kernels above. */
#define MT_GPU_CALL_THREADS 256

/** One thread of a block of simulated code. Its target is "cuda:simulated", an ELF shared object for the host. */
typedef struct mt_sim_thread {
  uint32_t thread, /**< The thread's number in its block. */
      block_x,     /**< The tile. */
      block_y,     /**< The segment. */
      threads;     /**< Number of threads of the block. */
  /** The block's shared memory: `gpu.shared_bytes` bytes. */
  void *shared;
  /** Returns when all threads of the block have called it. */
  void (*barrier)(const struct mt_sim_thread *);
  /** Returns what thread `thread ^ mask` of the same warp of 32 threads passed as `value`. */
  uint32_t (*shuffle_xor)(const struct mt_sim_thread *, uint32_t value, uint32_t mask);
  /** The product of a warp of 32 threads on tensor cores, PTX's mma.m16n8k8 of TF32: words 0 to 3 are the left side,
   * 4 and 5 the right side, 6 to 9 the sums to which the product is added. All threads of the block call it. */
  void (*multiply)(const struct mt_sim_thread *, uint32_t *words);
  /** Called before an access of 8 or 16 bytes at an address that is not a multiple of its size, where a GPU would trap,
   * and for a buffer that does not begin at a multiple of 16 bytes, which GPU code relies on. */
  void (*misaligned)(const struct mt_sim_thread *, uint64_t address, uint32_t bytes);
  /** As `multiply`, but PTX's mma.m16n8k16 of two 16-bit numbers per word: bfloat16 if `is_bf16` is not 0, else
   * float16. */
  void (*multiply_halves)(const struct mt_sim_thread *, uint32_t *words, uint32_t is_bf16);
  /** PTX's ldmatrix: `count` (1, 2 or 4) matrices of 8 x 8 16-bit numbers from shared memory. `row` is where a row of
   * 16 bytes lies: thread 8 i + j of a warp passes row j of matrix i. `words` gets one word per matrix. All threads of
   * the block call it. */
  void (*load_matrices)(const struct mt_sim_thread *, const void *row, uint32_t count, uint32_t transposed,
                        uint32_t *words);
  /** PTX's wgmma.mma_async, the steps of a panel: `words` are `count` sums, to which the product is added, followed by
   * the numbers of the product's form (WarpgroupForm of compiler/codegen/gpu/TensorCores.h). `left` and `right`
   * are where the sides lie in shared memory. */
  void (*multiply_by_warpgroup)(const struct mt_sim_thread *, const void *left, const void *right, uint32_t *words,
                                uint32_t count);
} mt_sim_thread;

/** The function NAME of simulated code. It is called once for each thread of each block. */
typedef void (*mt_sim_kernel_fn)(const mt_kernel_params *params, const mt_gpu_word *segments,
                                 const mt_sim_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
