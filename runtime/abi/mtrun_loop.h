/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_loop.h
 * A part of mtrun.h. Training, evaluation and prediction over whole datasets, and measured steps.
 */
#ifndef MTRUN_LOOP_H
#define MTRUN_LOOP_H

#include "mtrun_data.h"
#include "mtrun_session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Loops
 * @{
 */

/** The progress of a loop. The pointers are valid during the callback. */
typedef struct mtrun_progress {
  int64_t epoch,            /**< The epoch, from 0. */
      epochs;               /**< Number of epochs; 1 for evaluation. */
  int64_t step,             /**< Steps done in this epoch. */
      steps;                /**< Number of steps in it; 0: the length is unknown. */
  double seconds;           /**< Since the epoch began. */
  int32_t metrics;          /**< Length of `names` and `values`. */
  const char *const *names; /**< Names of the losses and metrics. */
  const double *values;     /**< Their means over the epoch so far. */
  int validation;           /**< 1: validation has ended; its names begin with val_ and follow the names of training. */
  int epoch_end;            /**< 1: the last call of an epoch. There is none in an epoch that a callback stops. */
  const double *step_values; /**< Values of this step alone, for the names of training; NULL with `validation`. */
  double learning_rate;      /**< Learning rate of this step; NaN: unknown. */
  int64_t total_step;        /**< Steps since the run began, including steps before a resume. */
  double input_wait;         /**< Seconds of `seconds` in which the devices waited for data. */
} mtrun_progress;

/** When checkpoints are written, and from which a run resumes. A checkpoint is a folder, step-000000000100 for
 * instance, which is there as a whole or not at all. See docs/checkpoints.md. */
typedef struct mtrun_checkpoint_options {
  size_t struct_size;   /**< mtrun_checkpoint_options_init() sets it. */
  const char *folder;   /**< Made if it is not there; for one run at a time. NULL: only resume. */
  int64_t every_steps;  /**< After each so many steps; 0: not. If all three are 0: after each epoch. */
  int64_t every_epochs; /**< After each so many epochs; 0: not. */
  double every_seconds; /**< After each so many seconds; 0: not. */
  int64_t keep;         /**< How many of the newest stay, besides the best; 0: 3. */
  /** NULL: begin, in a folder without checkpoints. "auto": the newest in `folder` that verifies, or begin if there is
   * none. Else the path of a checkpoint. */
  const char *resume;
  /** 1: resumes another plan whose variables fit, or with other data, or before newer checkpoints, which go. */
  int force;
} mtrun_checkpoint_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_checkpoint_options)

/** How a fit ended. */
typedef struct mtrun_fit_result {
  int stopped;        /**< 1: by `stop` or `progress`, before the end of the last epoch. */
  int saved;          /**< 1: the last step is in a checkpoint. */
  int64_t epochs;     /**< Complete epochs, including epochs before a resume. */
  int64_t total_step; /**< Steps since the run began. */
  double input_wait;  /**< Part of the training time in which the devices waited for data, 0 to 1. */
  double seconds;     /**< Seconds of training in this call. */
  int stopped_early;  /**< 1: early stopping ended the run, now or before it was resumed. */
  int not_finite;     /**< 1: a loss of validation was not finite in an epoch of this call. */
} mtrun_fit_result;

/** How a loop runs. Begin with mtrun_loop_options_init(), then set what differs. Strings and structs that it points to
 * must live during the call. mtrun_evaluate() uses the fields that concern it. */
typedef struct mtrun_loop_options {
  size_t struct_size;        /**< mtrun_loop_options_init() sets it. */
  int64_t epochs;            /**< In total, those before a resume included; 0: 1. */
  int no_shuffle;            /**< 1: samples in the order of the data. */
  int drop_remainder;        /**< 1: leaves out the short last batch of an epoch. */
  mtrun_dataset *validation; /**< What to validate on after each epoch, or NULL. */
  /** Called after each step; a result other than 0 stops the loop after this step. Or NULL. */
  int (*progress)(void *user, const mtrun_progress *progress);
  void *progress_user;     /**< Passed to `progress`. */
  int64_t more_epochs;     /**< In place of `epochs`: so many after the complete ones of the checkpoint. */
  int64_t steps_per_epoch; /**< An epoch is so many steps, of passes that follow one another; 0: one pass. */
  int64_t shuffle_window;  /**< Draws each sample among the next so many; 0: permutes all samples. */
  const mtrun_checkpoint_options *checkpoint; /**< Or NULL. */
  const char *history_json,                   /**< A file of all epochs as JSON, written anew after each; or NULL. */
      *history_csv;                           /**< The same as CSV. */
  /** The metric to watch: "NAME", "NAME:max" or "NAME:min". Without max or min, the plan says which is better. NULL:
   * val_loss, or loss where there is no validation. */
  const char *monitor;
  int64_t early_patience;   /**< Stops after so many epochs without a better value; 0: never. */
  double early_min_delta;   /**< For early stopping, better by less does not count. */
  int64_t plateau_patience; /**< Reduces the learning rate after so many epochs without a better value; 0: never. */
  double plateau_factor;    /**< What the learning rate is multiplied by then; 0: 0.1. */
  double plateau_min_rate;  /**< The learning rate stays at or above this. */
  /** 1: goes on after a loss, or with data, that is not finite. 0: that is MT_INVALID, at its step. */
  int allow_nan;
  /** Called after each step, of validation too; a result other than 0 saves and ends the fit. Or NULL. */
  int (*stop)(void *user);
  void *stop_user;                               /**< Passed to `stop`. */
  void (*note)(void *user, const char *message); /**< Receives what was resumed, changed or stopped. Or NULL. */
  void *note_user;                               /**< Passed to `note`. */
  mtrun_fit_result *result;                      /**< Receives how the fit ended; or NULL. */
  /** 1: with `early_patience`, ends with the model's variables of the best epoch. The optimizer's stay. Checkpoints
   * hold the variables of the last epoch, and of the best. */
  int restore_best;
  /** Multiplies the learning rate of a run that begins; 0: 1. MT_INVALID where a schedule computes the rate. */
  double rate_scale;
  /** A file that mtrun_save() writes after each epoch, with fields such as {epoch:02d} and {val_loss:.2f}; or NULL. */
  const char *epoch_file;
  /** 1: `progress` and `stop` neither read nor set variables, except at the end of an epoch. On GPUs, up to two
   * launches may then be in flight when they are called; a training that they stop finishes and reports these steps
   * first. 0: no step begins before the calls for the step before have returned, unless both are NULL. */
  int in_flight;
  const char *early_monitor,       /**< The metric for early stopping; NULL: `monitor`. */
      *plateau_monitor,            /**< The metric for the plateau; NULL: `monitor`. */
      *checkpoint_monitor;         /**< The metric for checkpoints and `epoch_best_only`; NULL: `monitor`. */
  const double *early_baseline;    /**< The patience starts anew only after an epoch better than this; NULL: none. */
  int64_t early_start_epoch;       /**< Early stopping ignores so many epochs at the beginning. */
  const double *plateau_min_delta; /**< For the plateau, better by less does not count; NULL: 1e-4. */
  int64_t plateau_cooldown;        /**< The plateau ignores so many epochs after it reduced the rate. */
  int epoch_best_only;             /**< 1: writes `epoch_file` only after an epoch better than all before. */
  int epoch_weights_only;          /**< 1: `epoch_file` (.safetensors) has no variables of the optimizer. */
  /** Sets the learning rate of a run that begins, or that resumes a run with another; 0: the model's. MT_INVALID where
   * a schedule computes the rate. */
  double learning_rate;
  int64_t validation_freq;  /**< Validates after each so many epochs; 0: 1. Other epochs have NaN. */
  int64_t validation_steps; /**< Batches of a validation; 0: all. MT_INVALID where the length is unknown. */
  /** Epochs that count as done where no checkpoint says so: in `epochs`, names of files and the order of samples. */
  int64_t initial_epoch;
  /** Without `validation`: the part of the data to hold out, as mtrun_dataset_split() does by the seed; 0: none. */
  double validation_split;
  int validation_last; /**< 1: holds out the last samples of the data in place of drawn ones. */
  /** Called before the first step of each epoch that this call trains, with `progress_user` and the epoch's number from
   * 0; also in the middle of an epoch that is resumed there. It may read and set variables. A result other than 0 ends
   * the fit before this step. Or NULL. */
  int (*epoch_begin)(void *user, int64_t epoch);
} mtrun_loop_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_loop_options)

/**
 * Trains for whole epochs. The last batch of an epoch may be short. Data is read ahead by other threads.
 *
 * A save or epoch file that fails is a warning in the log; only the error of the last one is the fit's. Histories that
 * fail are warnings. A run that is resumed after its end does nothing. After the last epoch, variables with moving
 * averages get the values of these, unless the caller stopped the training; checkpoints hold the values before.
 *
 * @param session  the session
 * @param data     what to train on
 * @param options  or NULL
 * @return NULL, or an error: MT_INVALID, MT_IO, MT_CORRUPT, MT_NO_MEMORY or MT_LOST
 */
MT_API mt_status *mtrun_fit(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options);

/** Computes means over a dataset: `values` gets mtrun_plan_metric_count() numbers, in the order of "eval_step". Options
 * may be NULL. Errors as of mtrun_fit(). */
MT_API mt_status *mtrun_evaluate(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options,
                                 double *values);

/**
 * Predicts every sample, in the order of the data, and writes a file, which appears only when it is complete.
 *
 * - `.npy`: one output.
 * - `.npz`: all outputs by their names, or one; "names" has the samples' files, or their numbers; "classes" has the
 *   names of the classes where the session has them.
 * - `.csv`: a line for each sample: its file or number, then the values of all outputs or one; of classes the best one
 *   too.
 *
 * Pictures that cannot be read have rows of NaN where the data was opened with `damaged=keep`.
 *
 * @param session  the session
 * @param data     the samples
 * @param index    number of the output, counting outputs only; -1: all, or in .npy the first
 * @param path     the file
 * @return NULL, MT_IO, MT_LOST, or MT_INVALID: another extension, or data of unknown length, for instance
 */
MT_API mt_status *mtrun_predict_file(mtrun_session *session, mtrun_dataset *data, int32_t index, const char *path);
/** Times of training steps, in microseconds. */
typedef struct mtrun_timing {
  double median_us,       /**< Median of the timed steps, each waited for. */
      min_us,             /**< The shortest. */
      mean_us;            /**< Their mean. */
  int64_t steps;          /**< How many were timed. */
  double first_step_us;   /**< Of the first step, before any warm-up. */
  double queued_us,       /**< GPUs, else 0: median from step to step with launches queued. */
      resident_us,        /**< GPUs, else 0: median with inputs that stay on the devices. */
      resident_queued_us; /**< GPUs, else 0: median with both. */
  /** Lower bound of a step: each launch's time for its FLOPs or bytes at the devices' peak, added up; 0: unknown. */
  double floor_us;
} mtrun_timing;

/** Times `steps` training steps of n rows on random inputs, after `warmup` untimed ones. An entry with a limit gets
 * whole numbers below it; else floats are in [0, 1), integers 0 or 1. The variables change: use another session. */
MT_API mt_status *mtrun_benchmark(mtrun_session *session, int64_t n, int64_t warmup, int64_t steps,
                                  mtrun_timing *timing);
/** The same with samples of `length`, one of the plan's; mtrun_benchmark() takes the largest. MT_INVALID: no such. */
MT_API mt_status *mtrun_benchmark_length(mtrun_session *session, int64_t length, int64_t n, int64_t warmup,
                                         int64_t steps, mtrun_timing *timing);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
