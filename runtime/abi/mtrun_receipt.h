/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_receipt.h
 * Receipts of runs: what mtrun_fit() writes with `receipt`, checked by another party. See docs/reproducibility.md.
 */
#ifndef MTRUN_RECEIPT_H
#define MTRUN_RECEIPT_H

#include "mtrun_data.h"
#include "mtrun_session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Receipts
 * @{
 */

/** Which part of a run is trained again. Strings that it points to must live during the call. */
typedef struct mtrun_verify_options {
  size_t struct_size;        /**< mtrun_verify_options_init() sets it. */
  int64_t begin;             /**< Steps from `begin` to `end` are checked. */
  int64_t end;               /**< 0: all steps of the receipt, unless `windows` is set. */
  int64_t windows;           /**< In place of `begin` and `end`: number of random windows between two records. */
  int64_t seed;              /**< The seed of the random windows. */
  const char *checkpoints;   /**< Folder of the run's checkpoints, from which windows begin; or NULL: from step 0. */
  mtrun_dataset *validation; /**< The data that the run validated on, or NULL. */
  /** Receives lines about what is checked; or NULL. */
  void (*note)(void *user, const char *message);
  void *note_user; /**< Passed to `note`. */
} mtrun_verify_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_verify_options)

/** The steps that mtrun_verify() has checked. */
typedef struct mtrun_verify_result {
  int differs;     /**< 1: the run differs from the receipt; the error says where. */
  int64_t checked; /**< Steps that were trained again and agree. */
  int64_t steps;   /**< Steps of the receipt. */
} mtrun_verify_result;

/**
 * Trains parts of a run again and compares them with its receipt. The session's variables change. It must have the seed
 * of its plan; the receipt says what the run's was.
 *
 * @param session  a session of the run's plan, with the variables that the run began with
 * @param data     the data of the run
 * @param receipt  the file
 * @param options  or NULL
 * @param result   receives what was checked
 * @return NULL if all that was checked agrees; MT_INVALID with `differs` of 1, or with 0 if the receipt, the plan or
 *         the data does not allow a check; or another error of mtrun_fit()
 */
MT_API mt_status *mtrun_verify(mtrun_session *session, mtrun_dataset *data, const char *receipt,
                               const mtrun_verify_options *options, mtrun_verify_result *result);

/**
 * Compares two files of one kind: checkpoints, .safetensors files, plans, receipts, or digests of launches; or
 * variables with the end of a receipt.
 *
 * @param first    the first
 * @param second   the second
 * @param plan     the plan whose order variables have, or NULL: the order of the first file
 * @param line     receives lines about the first difference and the number of all
 * @param user     passed to `line`
 * @param differs  receives 1 if the files differ
 * @return NULL, MT_INVALID: two kinds of files, or of none of them; MT_CORRUPT, MT_IO, MT_NO_MEMORY
 */
MT_API mt_status *mtrun_diff(const char *first, const char *second, const mtrun_plan *plan,
                             void (*line)(void *user, const char *text), void *user, int *differs);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
