/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_data.h
 * A part of mtrun.h. Datasets.
 */
#ifndef MTRUN_DATA_H
#define MTRUN_DATA_H

#include "mtrun_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Data
 * @{
 */

/** Samples for a plan's inputs, targets and sample weights. It keeps a pointer to the plan. */
typedef struct mtrun_dataset mtrun_dataset;

/** Returns the syntax of data source `index`, such as "mnist:DIR"; NULL after the last one. The string is static. */
MT_API const char *mtrun_data_form(int32_t index);
/** Returns a line that describes data source `index`; NULL after the last one. The string is static. */
MT_API const char *mtrun_data_help(int32_t index);

/**
 * Opens a data source. docs/data.md describes all sources and keys.
 *
 * Fields of the data go to the entries of their names, or to the only input and the only target. Integer labels must be
 * below `classes=`, else below the last axis of the model's only output. Class weights go to the only sample weight;
 * labels that have none weigh 1.
 *
 * @param plan     the plan
 * @param spec     "KIND:PATH[,key=value]...", of a kind that mtrun_data_form() names
 * @param dataset  receives the dataset, to be freed with mtrun_dataset_free()
 * @return NULL, MT_INVALID, MT_CORRUPT, MT_IO or MT_NO_MEMORY
 */
MT_API mt_status *mtrun_dataset_open(const mtrun_plan *plan, const char *spec, mtrun_dataset **dataset);

#define MTRUN_DENSE (-1) /**< The stride of samples that are contiguous in memory. */
/** One value of every sample: the caller's own data for the input, target or sample weight of its name. */
typedef struct mtrun_field {
  const char *name; /**< Name of an entry of the plan's signature. */
  /** Type of the caller's elements. Integers become floats, f64 is rounded to f32, labels may be one-hot. */
  mt_dtype dtype;
  int32_t rank;         /**< Number of axes of one sample, without the batch axis. */
  const int64_t *shape; /**< Sizes of the axes. */
  const void *data;     /**< Arrays: sample i is at data + i * stride, row major. */
  int64_t stride;       /**< Arrays: bytes from one sample to the next, or MTRUN_DENSE; 0 for a single sample. */
} mtrun_field;

/** The samples that the library requests from a callback. */
typedef struct mtrun_request {
  int64_t pass;           /**< Number of the pass over the data, from 0; 0 in validation, evaluation and prediction. */
  int64_t first;          /**< Unknown length: number of samples of this pass so far. */
  const int64_t *samples; /**< Known length: indices of the samples. Unknown length: NULL. */
  int64_t rows;           /**< Number of samples. */
  void *const *fields;    /**< Buffers for `rows` dense samples of each field; NULL: the field is not needed. */
  char *message;          /**< Buffer for the message of a failure. */
  size_t message_size;    /**< Bytes of `message`, the zero byte included. */
  /** Several processes: the first row of the request that this process computes. `read` may write all rows; then the
   * processes compare them from time to time, since all must have the same. */
  int64_t own_first;
  int64_t own_rows; /**< Number of these rows, which follow each other; 0: none of the request. */
  int32_t own_only; /**< 0; `read` sets 1 if it wrote no other rows. It returns `rows` all the same. */
} mtrun_request;

/**
 * The caller's own samples, made when they are needed.
 *
 * **Known length** (`samples` at least 1). `read` writes the samples whose numbers the request has, and returns how
 * many. Any sample may be asked for, in any order and any number of times. The values depend only on the number of
 * the sample and of the pass. Then shuffling, slices and resuming work as for any other source.
 *
 * **Unknown length** (`samples` -1). `read` writes the next samples of the pass and returns how many. Fewer than asked
 * for, or 0, end the pass; the next one begins with `first` 0. An epoch is a pass, or steps_per_epoch steps. Nothing is
 * shuffled. A resumed run asks again for the samples that it had of its pass (with steps_per_epoch: of all passes), and
 * drops them.
 *
 * A negative result is a failure: the run ends with MT_IO and the message.
 * **Threads.** `read` is called by threads of the library, ahead of the steps: by one, or with known length by up to
 * `threads` at once. They receive no signals. The last call has returned when mtrun_fit(), mtrun_evaluate() or
 * mtrun_predict_file() returns. `read` must not use the session that trains.
 */
typedef struct mtrun_source {
  int64_t samples;                                     /**< Number of samples; -1: unknown. */
  const mtrun_field *fields;                           /**< Copied; their `data` and `stride` are not used. */
  int32_t field_count;                                 /**< Number of fields. */
  int64_t (*read)(void *user, mtrun_request *request); /**< Writes samples and returns how many. */
  void *user;                                          /**< Passed to `read`. */
  int32_t threads;                                     /**< Threads that may call `read` at once; 0: 1. */
} mtrun_source;

/**
 * Arrays in memory as a dataset.
 *
 * @param plan     the plan
 * @param fields   the arrays. Their elements stay the caller's, and must outlive the dataset and its slices
 * @param count    number of fields
 * @param samples  number of samples
 * @param keys     keys of docs/data.md, such as "scale=1/255,classes=10"; or NULL
 * @param dataset  receives the dataset
 * @return NULL, or MT_INVALID: names, types or shapes do not fit the plan
 */
MT_API mt_status *mtrun_dataset_open_arrays(const mtrun_plan *plan, const mtrun_field *fields, int32_t count,
                                            int64_t samples, const char *keys, mtrun_dataset **dataset);

/** A callback as a dataset. Labels are checked when they are read. The key `class-weight=` is refused, and `range=`
 * with unknown length. MT_INVALID. */
MT_API mt_status *mtrun_dataset_open_source(const mtrun_plan *plan, const mtrun_source *source, const char *keys,
                                            mtrun_dataset **dataset);

/** Number of samples; -1: unknown. */
MT_API int64_t mtrun_dataset_size(const mtrun_dataset *dataset);
/** Frees a dataset, which may be NULL. */
MT_API void mtrun_dataset_free(mtrun_dataset *dataset);
/** Calls `line` for each message about the data: for example, damaged pictures that are left out. */
MT_API void mtrun_dataset_notes(const mtrun_dataset *dataset, void (*line)(void *user, const char *text), void *user);

/**
 * Divides a dataset into one to train on and one to validate on. mtrun_loop_options.validation_split does the same.
 *
 * The samples are drawn by the seed. Where a target has labels, every class gives the same share, as nearly as whole
 * samples allow; a part that lacks a class says so in its notes. Both parts keep the order of the data and share its
 * memory. The result is a function of the data, the share and the seed alone.
 *
 * @param dataset     the data, which may be freed afterwards
 * @param share       part of the samples to hold out: floor(size * (1 - share)) are kept for training
 * @param seed        chooses the samples
 * @param training    receives the samples to train on
 * @param validation  receives the others
 * @return NULL, or MT_INVALID: a part would be empty, or the length is unknown
 */
MT_API mt_status *mtrun_dataset_split(const mtrun_dataset *dataset, double share, int64_t seed,
                                      mtrun_dataset **training, mtrun_dataset **validation);

/** Makes a dataset of the samples [begin, end), which shares the memory. MT_INVALID: they are not within the data,
 * or its length is unknown. */
MT_API mt_status *mtrun_dataset_slice(const mtrun_dataset *dataset, int64_t begin, int64_t end, mtrun_dataset **slice);

/** Describes a source for people, a line at a time: fields, types, shapes, ranges of values, labels and their counts,
 * and the first `samples` samples. Needs no plan. */
MT_API mt_status *mtrun_data_describe(const char *spec, int64_t samples, void (*line)(void *user, const char *text),
                                      void *user);

/** Writes a columns file of a source csv:, from the samples of its key range=: the categories, means and deviations of
 * its columns, for mtc_options.columns. `line` is told what each column becomes, a line at a time. Needs no plan.
 * @return NULL, MT_INVALID, MT_IO or MT_NO_MEMORY */
MT_API mt_status *mtrun_data_columns(const char *spec, const char *path, void (*line)(void *user, const char *text),
                                     void *user);

/** Measures for about `seconds` how many samples per second a source gives, in shuffled batches of `batch`; of pictures
 * (with `size=HxW`) also how many the decoding library does alone. Needs no plan. MT_INVALID. */
MT_API mt_status *mtrun_data_benchmark(const char *spec, int64_t batch, double seconds,
                                       void (*line)(void *user, const char *text), void *user);

/** Writes the order of an epoch: a permutation of 0 .. size - 1, which depends on the seed and the epoch alone. Nothing
 * is written where the size is unknown. */
MT_API void mtrun_dataset_order(const mtrun_dataset *dataset, int64_t seed, int64_t epoch, int64_t *order);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
