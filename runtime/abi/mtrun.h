/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun.h
 * Loads plans and trains them. C99; mt.h has the conventions, and `examples/embed` has complete programs. This header
 * includes the headers of all parts.
 *
 * **Threads.** A plan is immutable: any number of sessions and threads may use it at once. A session, a dataset and a
 * fit are used by one thread at a time. Sessions of one process are independent of each other.
 *
 * **Order of calls.** mtrun_plan_load(), mtrun_session_create(), then either a loop of the library
 * (mtrun_dataset_open(), mtrun_fit()) or the program's own calls of mtrun_train_step(). Free in reverse order.
 *
 * In these files B is the plan's global batch, R its number of shards, N the number of devices of a session, and n the
 * number of samples in a step.
 */
#ifndef MTRUN_H
#define MTRUN_H

#include "mt.h"
#include "mtrun_data.h"
#include "mtrun_loop.h"
#include "mtrun_plan.h"
#include "mtrun_receipt.h"
#include "mtrun_session.h"
#include "mtrun_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that was loaded; MT_VERSION is that of the headers. The string is static. */
MT_API const char *mtrun_version(void);

#ifdef __cplusplus
}
#endif
#endif
