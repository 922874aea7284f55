/* SPDX-License-Identifier: Apache-2.0
 *
 * mt.h: what libmtc and libmtrun share: status, data types, version. C99.
 *
 * Conventions of all mt*.h headers. Handles are opaque. A fallible call returns `mt_status *`: NULL is success,
 * anything else is owned by the caller and freed with mt_status_free. `const char *` results belong to the handle they
 * came from. Libraries never print, exit, install signal handlers or change the caller's threads.
 */
#ifndef MT_H
#define MT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MT_API __attribute__((visibility("default")))
#else
#define MT_API
#endif

#define MT_VERSION_MAJOR 0
#define MT_VERSION_MINOR 1
#define MT_VERSION_PATCH 0

/* The error classes; the tools exit with these numbers. */
typedef enum mt_code {
  MT_OK = 0,
  MT_INVALID = 1,   /* the model, the data or an argument is wrong */
  MT_USAGE = 2,     /* the command line is wrong (tools only) */
  MT_CORRUPT = 3,   /* a plan or a data file is damaged or of another version */
  MT_NO_MEMORY = 4, /* more memory than there is */
  MT_DEVICE = 5,    /* a device does not start, or the plan has no code for it */
  MT_PEER = 6,      /* another process of the run was lost */
  MT_IO = 7,        /* a file could not be read or written; the message has the path and the system's reason */
  MT_NO_DEVICE = 8, /* there is no such device: no driver, one too old, or no device of that number */
  MT_LOST = 9       /* a device failed while it ran: what was not saved is lost, the same run elsewhere may succeed */
} mt_code;

typedef struct mt_status mt_status;
MT_API mt_code mt_status_code(const mt_status *status); /* MT_OK for NULL */
MT_API const char *
mt_status_message(const mt_status *status);    /* "" for NULL; one line a problem, no newline at the end */
MT_API void mt_status_free(mt_status *status); /* NULL is fine */

/* Element types; the numbers are those of plan.fbs. Bool is one byte, 0 or 1. */
typedef enum mt_dtype { MT_F32 = 0, MT_I32 = 1, MT_BOOL = 2, MT_I64 = 3, MT_F64 = 4, MT_U8 = 5, MT_BF16 = 6, MT_F16 = 7 } mt_dtype;
MT_API size_t mt_dtype_size(mt_dtype dtype);
MT_API const char *mt_dtype_name(mt_dtype dtype); /* "f32", ... */

#ifdef __cplusplus
}
#endif
#endif
