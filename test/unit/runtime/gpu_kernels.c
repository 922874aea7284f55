/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of kernels.c in the calling conventions of GPUs and of simulated ones (runtime/abi/gpu_kernel.h): a block
 * is a tile, all of its threads meet at a barrier, the last one computes.
 */
#include "runtime/abi/gpu_kernel.h"

#define init_variables cpu_init_variables
#define predict_rows cpu_predict_rows
#define difference_rows cpu_difference_rows
#define gradient_partial cpu_gradient_partial
#define loss_partial cpu_loss_partial
#define loss_beyond cpu_loss_beyond
#define finish cpu_finish
#define update cpu_update
#define sum_partials cpu_sum_partials
#define probe cpu_probe
#define rotate cpu_rotate
#define double_rows cpu_double_rows
#include "kernels.c"
#undef init_variables
#undef predict_rows
#undef difference_rows
#undef gradient_partial
#undef loss_partial
#undef loss_beyond
#undef finish
#undef update
#undef sum_partials
#undef probe
#undef rotate
#undef double_rows

#ifdef __NVPTX__
#define GPU_ARGUMENTS const mt_kernel_params *params, const mt_gpu_word *segments
#define GPU_KERNEL_TYPE __attribute__((nvptx_kernel)) void
#define BLOCK_X __nvvm_read_ptx_sreg_ctaid_x()
#define BLOCK_Y __nvvm_read_ptx_sreg_ctaid_y()
#define MEET __syncthreads()
#define IS_LAST_THREAD (__nvvm_read_ptx_sreg_tid_x() == __nvvm_read_ptx_sreg_ntid_x() - 1)
#else
#define GPU_ARGUMENTS const mt_kernel_params *params, const mt_gpu_word *segments, const mt_sim_thread *thread
#define GPU_KERNEL_TYPE KERNEL
#define BLOCK_X thread->block_x
#define BLOCK_Y thread->block_y
#define MEET (*(uint32_t *)thread->shared = 0, thread->barrier(thread))
#define IS_LAST_THREAD (thread->thread == thread->threads - 1)
#endif

#define ROWS(n) ((params->rows + (n) - 1) / (n))
#define ELEMENTS(n) ((segment->count + (n) - 1) / (n))

#define GPU_KERNEL(name, buffers, tiles)                                                                               \
  GPU_KERNEL_TYPE name(GPU_ARGUMENTS) {                                                                                \
    const mt_gpu_word *segment = segments + BLOCK_Y * (1 + (buffers));                                                 \
    if (BLOCK_X >= (tiles))                                                                                            \
      return;                                                                                                          \
    MEET;                                                                                                              \
    if (!IS_LAST_THREAD)                                                                                               \
      return;                                                                                                          \
    mt_kernel_params own = *params;                                                                                    \
    own.count = segment->count;                                                                                        \
    cpu_##name(&own, &segment[1].buffer, BLOCK_X, BLOCK_X + 1);                                                        \
  }

GPU_KERNEL(init_variables, 5, 1)
GPU_KERNEL(predict_rows, 5, ROWS(3))
GPU_KERNEL(difference_rows, 7, ROWS(3))
GPU_KERNEL(gradient_partial, 4, params->rows ? ((const shape *)segment[1].buffer)->features + 1 : 0)
GPU_KERNEL(loss_partial, 4, params->rows ? 2 : 0)
GPU_KERNEL(loss_beyond, 4, params->rows ? 2 : 0)
GPU_KERNEL(finish, 4, 1)
GPU_KERNEL(update, 3, ELEMENTS(5))
GPU_KERNEL(sum_partials, 3, ELEMENTS(4))
/* As the conformance suite launches it: by elements where segments have any, by rows elsewhere. */
GPU_KERNEL(probe, 2, segments[0].count ? ELEMENTS(4) : ROWS(3) * 2)
GPU_KERNEL(rotate, 2, 64)
GPU_KERNEL(double_rows, 2, ROWS(1))
