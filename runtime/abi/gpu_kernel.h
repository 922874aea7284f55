/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling convention between a plan's GPU kernels (made by `compiler/`) and the runtime that launches them, and the
 * one of the same kernels lowered to the host, which tests run on a simulated driver.
 */
#ifndef MT_ABI_GPU_KERNEL_H
#define MT_ABI_GPU_KERNEL_H

#include "kernel.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One segment of a launch, in device memory. */
typedef struct mt_gpu_segment {
  void *const *buffers; /* device memory: one pointer an argument, operands first, then results */
  int64_t count;        /* elements of the segment (Map kernels; 0 elsewhere) */
} mt_gpu_segment;

/* A kernel of a target "cuda:sm_NN" or "cuda:ptx" is
 *
 *   extern "C" kernel NAME(const mt_kernel_params *params, const mt_gpu_segment *segments)
 *
 * grid:  x = tiles of the largest segment for the device's maximal rows (leaves * leaf_rows), y = segments
 * block: gpu.threads x 1 x 1; dynamic shared memory: 0 (static only)
 *
 * Block (x, y) computes tile x of segments[y]; it returns at once where x >= that segment's tiles for params->rows (Map:
 * for its count), and a kernel with uses_rows where params->rows == 0. params and segments are in device memory: params
 * is rewritten before each step by a copy that is part of the captured graph, so that the graph is replayed unchanged
 * for any n and seed. params->count is 0: a segment has its own. */

/* Kernels whose blocks add to one result have partial sums in device memory that no other work of the device uses
 * meanwhile: params->partials points to gpu.partial_bytes for each segment. Below it, MT_GPU_COUNTERS integers for each
 * segment count blocks that are done: 0 before and after every launch. */
#define MT_GPU_COUNTERS 8192

/* Kernels that library calls need beside them (docs/libraries.md), in the code of every GPU target of a plan that has
 * calls: 256 threads, buffers { operand, result, sizes }, sizes i64 numbers in device memory.
 *
 *   MT_GPU_CLEAR_ROWS  sets elements of the operand's rows from params->rows on to +0; sizes: elements of a row; count:
 *                      elements of all rows, 1024 a tile. No result
 *   MT_GPU_SUM_LEAVES  adds results of leaves, which follow one another in the operand, along the replica tree, those
 *                      without valid rows left out; count: elements of one, 256 a tile. No sizes
 *   MT_GPU_TURN        the operand [rows, columns] as [columns, rows]; sizes: rows, columns; count: tiles, 32 x 32
 *                      elements each
 *
 * Elements are F32; an absent buffer's pointer is not read. */
#define MT_GPU_CLEAR_ROWS "mt_clear_rows"
#define MT_GPU_SUM_LEAVES "mt_sum_leaves"
#define MT_GPU_TURN "mt_turn"
#define MT_GPU_CALL_THREADS 256

/* One thread of a block of simulated code (target "cuda:simulated": an ELF shared object for the host). */
typedef struct mt_sim_thread {
  uint32_t thread, block_x, block_y, threads; /* block_x: the tile; threads: of the block */
  void *shared;                               /* gpu.shared_bytes bytes, one a block */
  /* Returns when all threads of the block came. */
  void (*barrier)(const struct mt_sim_thread *);
  /* What thread `thread ^ mask` of the same warp of 32 gave. */
  uint32_t (*shuffle_xor)(const struct mt_sim_thread *, uint32_t value, uint32_t mask);
  /* What a warp of 32 makes of its tensor cores' operands, as PTX's mma.m16n8k8 of TF32 has them: words 0 to 3 of the
   * left side, 4 and 5 of the right one, 6 to 9 sums, to which the product is added. All threads of the block come. */
  void (*multiply)(const struct mt_sim_thread *, uint32_t *words);
  /* Told before an access of 8 or 16 bytes at an address that is no multiple of them, at which a GPU would trap, and of
   * a buffer that does not begin at a multiple of 16 bytes, as code for GPUs takes for granted. */
  void (*misaligned)(const struct mt_sim_thread *, uint64_t address, uint32_t bytes);
} mt_sim_thread;

/* The function NAME of simulated code, called once for each thread of each block. */
typedef void (*mt_sim_kernel_fn)(const mt_kernel_params *params, const mt_gpu_segment *segments,
                                 const mt_sim_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
