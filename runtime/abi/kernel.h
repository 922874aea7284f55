/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling convention between a plan's CPU kernels (made by `compiler/`) and the runtime that launches them.
 * One C function a kernel, found by its symbol in the plan's code section. docs/plan-format.md section 5 is the prose.
 */
#ifndef MT_ABI_KERNEL_H
#define MT_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one launch tells a kernel beyond its buffers. Row counts are in samples.
 * Fields are only ever appended; the field order is the ABI that generated code relies on. */
typedef struct mt_kernel_params {
  int64_t rows;        /* valid rows of this device: clamp(n - first_row, 0, shards * shard_rows) */
  int64_t first_row;   /* global index of the device's first row; random numbers are indexed by first_row + row */
  int64_t global_rows; /* n, the valid rows of the whole batch */
  int64_t count;       /* elements of the current segment (elementwise kernels; 0 elsewhere) */
  uint64_t seed;       /* the run's seed */
  void *partials;      /* GPUs: device memory for partial sums (gpu_kernel.h); CPUs: null */
  void *scratch;       /* CPUs: the plan's scratch_bytes of the kernel, 64-byte aligned, of the calling thread alone, of any
                          content; GPUs: null */
} mt_kernel_params;

#define MT_KERNEL_STACK_BYTES 16384

/* Computes tiles [tile_begin, tile_end) of the kernel's grid. Tiles are independent: any thread may run any of them, in any
 * order. `buffers` holds one pointer an argument, operands first, then results. Split buffers point at the
 * device's first row. A kernel reads and writes valid rows only, never past a buffer's end, calls nothing, keeps no state, and
 * takes at most MT_KERNEL_STACK_BYTES of the calling thread's stack. */
typedef void (*mt_kernel_fn)(const mt_kernel_params *params, void *const *buffers, int64_t tile_begin,
                             int64_t tile_end);

#ifdef __cplusplus
}
#endif
#endif
