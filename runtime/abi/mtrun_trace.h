/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_trace.h
 * A part of mtrun.h. Traces and profiles of sessions.
 */
#ifndef MTRUN_TRACE_H
#define MTRUN_TRACE_H

#include "mtrun_session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Traces and profiles
 *
 * docs/tracing.md explains what they show.
 * @{
 */

/** The steps that a trace records. */
typedef struct mtrun_trace_options {
  size_t struct_size; /**< mtrun_trace_options_init() sets it. */
  int64_t first,      /**< The first training step whose spans are kept, counted from mtrun_trace_start() on, from 1. */
      last;           /**< The last one. 0 and 0: no spans are kept. */
  int profile;        /**< 1: the profile is of all steps; 0: of steps `first` to `last` alone. */
  double peak_flops,  /**< Peak FLOPs per second of all devices, for the trace. 0: the driver's. */
      peak_bandwidth; /**< Likewise bytes of memory per second. */
} mtrun_trace_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_trace_options)

/**
 * Records from now on what every thread of every device does in training steps. An earlier record is dropped.
 *
 * All memory is allocated here, so that steps neither allocate nor lock. Steps that are not recorded run the same code
 * as without a trace. The bits do not depend on it.
 *
 * @return NULL, MT_NO_MEMORY, or MT_INVALID: an invalid range, or one with more than a gigabyte of spans
 */
MT_API mt_status *mtrun_trace_start(mtrun_session *session, const mtrun_trace_options *options);

/** Writes the recorded steps in Chrome's JSON format, for ui.perfetto.dev: every kernel, wait, all-reduce, transfer and
 * sum, with a process for each device and a track for each thread. The file appears only when it is complete. MT_IO, or
 * MT_INVALID: no step was kept. */
MT_API mt_status *mtrun_trace_write(mtrun_session *session, const char *path);

/** Means over the recorded training steps. Times are in microseconds. */
typedef struct mtrun_profile {
  int64_t steps,   /**< Number of recorded steps. */
      samples;     /**< Number of their samples. */
  int32_t threads; /**< Threads of all devices together. */
  /** Number of mtrun_profile_get_entry()'s entries: launches and all-reduces of train_step. */
  int32_t entries;
  double step_us; /**< Duration of a step. */
  /** From the end of a step to the beginning of the next one: data, logs, saves, validation. */
  double between_us;
  double idle_us; /**< Time that threads waited for a step to begin or to end, all threads together. */
} mtrun_profile;

/** One launch or all-reduce. Times are microseconds per step, all threads together. The strings live as long as the
 * plan. */
typedef struct mtrun_profile_entry {
  const char *name;  /**< The kernel's name, or "all-reduce". */
  const char *kind;  /**< The kernel's kind, such as "matmul", or "all_reduce". */
  const char *layer; /**< The layer that most of its work belongs to; "" where the model names none. */
  double compute_us, /**< Time in the kernel, or in sums. */
      transfer_us,   /**< Time in copies between devices. */
      wait_us;       /**< Time that threads waited for others. */
  double flops,      /**< Floating-point operations per step. */
      bytes;         /**< Minimum bytes that must be moved per step. */
} mtrun_profile_entry;

/** Fills `profile`. MT_INVALID: no step was recorded. */
MT_API mt_status *mtrun_profile_get(mtrun_session *session, mtrun_profile *profile);
/** Fills `entry` with entry `index`. MT_INVALID: no step was recorded, or there is no such entry. */
MT_API mt_status *mtrun_profile_get_entry(mtrun_session *session, int32_t index, mtrun_profile_entry *entry);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
