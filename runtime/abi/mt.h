/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mt.h
 * The common part of libmtc and libmtrun: statuses, element types, version. C99.
 *
 * These conventions hold for mt.h, mtc.h and mtrun.h:
 *
 * - **Handles** (`mtrun_plan`, `mtrun_session`, `mtc_result` ...) are opaque. Each has one function that frees it,
 *   which takes NULL too.
 * - **Errors.** A call that can fail returns `mt_status *`. NULL is success. Anything else is owned by the caller, who
 *   frees it with mt_status_free(). After a failure, output arguments are NULL or unchanged.
 * - **Strings** are UTF-8 and end with a zero byte. A `const char *` that a call returns belongs to the handle that it
 *   was asked of, and lives as long as that. Strings that a caller passes are copied, unless the text says otherwise.
 * - **Option structs** begin with `struct_size`, their size in the header that the caller was compiled with. So a
 *   library of another version knows which fields there are. TYPE_init() returns a struct that has this size and is
 *   zero otherwise, as in `mtrun_options options = mtrun_options_init()`; then the fields that should differ are set.
 *   Zero is the default. Fields that only the library knows are zero; fields that only the caller knows have to be
 *   zero. Else, and without a size, a call returns MT_INVALID. New fields go to the end of a struct.
 * - **Callbacks** get the `user` pointer that was passed with them.
 * - The libraries never print, never end the process, install no signal handlers and leave the caller's threads alone.
 */
#ifndef MT_H
#define MT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the functions that the libraries export. */
#if defined(__GNUC__)
#define MT_API __attribute__((visibility("default")))
#else
#define MT_API
#endif

/** @cond internal */
#ifdef __cplusplus
#define MT_ZERO                                                                                                        \
  {                                                                                                                    \
  }
#else
#define MT_ZERO {0}
#endif
#define MT_DEFINE_INIT(type)                                                                                           \
  static inline type type##_init(void) {                                                                               \
    type options = MT_ZERO;                                                                                            \
    options.struct_size = sizeof options;                                                                              \
    return options;                                                                                                    \
  }
/** @endcond */

/** Version of the headers, MAJOR.MINOR.PATCH. */
#define MT_VERSION_MAJOR 0
#define MT_VERSION_MINOR 1 /**< See MT_VERSION_MAJOR. */
#define MT_VERSION_PATCH 0 /**< See MT_VERSION_MAJOR. */

/** @cond internal */
#define MT_TEXT(number) #number
#define MT_VERSION_TEXT(major, minor, patch) MT_TEXT(major) "." MT_TEXT(minor) "." MT_TEXT(patch)
/** @endcond */

/** The version of the headers as a text, such as "0.1.0". mtrun_version() and mtc_version() return the libraries'. */
#define MT_VERSION MT_VERSION_TEXT(MT_VERSION_MAJOR, MT_VERSION_MINOR, MT_VERSION_PATCH)

/** The class of an error. The tools exit with the same numbers. */
typedef enum mt_code {
  MT_OK = 0,        /**< Success. */
  MT_INVALID = 1,   /**< The model, the data or an argument is wrong. */
  MT_USAGE = 2,     /**< The command line is wrong (tools only). */
  MT_CORRUPT = 3,   /**< A plan or a data file is damaged, or of another version. */
  MT_NO_MEMORY = 4, /**< More memory is needed than there is. */
  MT_DEVICE = 5,    /**< A device does not start, or the plan has no code for it. */
  MT_PEER = 6,      /**< Not used: a lost process is MT_LOST. */
  MT_IO = 7,        /**< A file could not be read or written. The message has the path and the system's reason. */
  MT_NO_DEVICE = 8, /**< The device does not exist, or its driver is missing or too old. */
  MT_LOST = 9       /**< A device failed while it ran, or another process of the run was lost. Unsaved state is
                         lost; the same run may succeed elsewhere. */
} mt_code;

/** An error: a code and a message. Immutable, so that any thread may read it. */
typedef struct mt_status mt_status;

/** The class of the error; MT_OK for NULL. */
MT_API mt_code mt_status_code(const mt_status *status);

/** The message: one line for each problem, without a newline at the end; "" for NULL. Lives as long as the status. */
MT_API const char *mt_status_message(const mt_status *status);

/** Frees a status, which may be NULL. */
MT_API void mt_status_free(mt_status *status);

/** Types of the elements of a tensor. `plan.fbs` has the same numbers. */
typedef enum mt_dtype {
  MT_F32 = 0,  /**< 32-bit float, IEEE 754. */
  MT_I32 = 1,  /**< 32-bit signed integer. */
  MT_BOOL = 2, /**< One byte, 0 or 1. */
  MT_I64 = 3,  /**< 64-bit signed integer. */
  MT_F64 = 4,  /**< 64-bit float, IEEE 754. */
  MT_U8 = 5,   /**< 8-bit unsigned integer. */
  MT_BF16 = 6, /**< bfloat16; inside plans only. */
  MT_F16 = 7   /**< 16-bit float, IEEE 754. */
} mt_dtype;

/** Bytes of an element. */
MT_API size_t mt_dtype_size(mt_dtype dtype);

/** The type's name: "f32", "i64" and so on. The string is static. */
MT_API const char *mt_dtype_name(mt_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
