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
  size_t struct_size; /**< mtrun_checkpoint_options_init() sets it. */
  const char *folder; /**< Made if it is not there; for one run at a time. NULL: only resume. */
  /** Steps after which a checkpoint is written, each time. 0: not by steps. Flag: `--every-steps N`, 0 or more, in
   * Checkpoints and logs. */
  int64_t every_steps;
  /** Epochs after which a checkpoint is written, each time. 0: not by epochs, or 1 if there are no other times. Flag:
   * `--every-epochs N`, 0 or more, in Checkpoints and logs. */
  int64_t every_epochs;
  /** Seconds after which a checkpoint is written, each time. 0: not by seconds. Flag: `--every-seconds S`, 0 or more,
   * in Checkpoints and logs. */
  double every_seconds;
  /** Number of checkpoints that stay, the newest; the best stays too. 0: 3. Flag: `--keep N=3`, 1 or more, in
   * Checkpoints and logs. */
  int64_t keep;
  /** Checkpoint to go on from: "auto", the newest in the folder that verifies, if there is one; or the path of one.
   * NULL: begin, in a folder without checkpoints. Flag: `--resume auto|PATH`, in Checkpoints and logs. */
  const char *resume;
  /** 1: resumes with another plan whose variables fit, or with other data, or drops newer checkpoints. Flag:
   * `--force`, in Checkpoints and logs. */
  int force;
  /** Folder in the memory of each host, in which CPU processes of several keep the variables when they lose one
   * another: the next start with `resume` "auto" goes on from there, from the same step. "none": none. NULL:
   * /dev/shm/mtrun-UID. Flag: `--rescue DIR`, in Checkpoints and logs. It needs `folder`. */
  const char *rescue;
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
  size_t struct_size; /**< mtrun_loop_options_init() sets it. */
  /** Epochs in total, those before a resume included. 0: 1. Flag: `--epochs N=1`, 1 or more, in Epochs. */
  int64_t epochs;
  /** 1: takes the samples in the order of the data. Flag: `--no-shuffle`, in Epochs. */
  int no_shuffle;
  /** 1: leaves out the short last batch of an epoch. Flag: `--drop-remainder`, in Epochs. */
  int drop_remainder;
  mtrun_dataset *validation; /**< What to validate on after each epoch, or NULL. */
  /** Called after each step; a result other than 0 stops the loop after this step. Or NULL. */
  int (*progress)(void *user, const mtrun_progress *progress);
  void *progress_user; /**< Passed to `progress`. */
  /** Epochs after those that the checkpoint has completed, in place of `epochs`. 0: `epochs` counts. Flag:
   * `--more-epochs N`, 1 or more, in Epochs. */
  int64_t more_epochs;
  /** Steps of an epoch, of passes over the data that follow one another. 0: one pass. Flag: `--steps-per-epoch N`, 0
   * or more, in Epochs. */
  int64_t steps_per_epoch;
  /** Number of next samples among which each is drawn. 0: all samples are permuted. Flag: `--shuffle-window N`, 0 or
   * more, in Epochs, not with --no-shuffle. */
  int64_t shuffle_window;
  const mtrun_checkpoint_options *checkpoint; /**< Or NULL. */
  const char *history_json;                   /**< A file of all epochs as JSON, written anew after each; or NULL. */
  const char *history_csv;                    /**< The same as CSV. */
  /** Metric to watch: "NAME", "NAME:max" or "NAME:min"; without max or min, the plan says which is better. NULL:
   * val_loss, or loss where there is no validation. Flag: `--monitor NAME[:max|min]`, in Callbacks. */
  const char *monitor;
  /** Epochs without a better value after which the training stops. 0: never. Flag: `--early-stopping N`, 0 or more, in
   * Callbacks. */
  int64_t early_patience;
  /** Difference below which a better value does not count for early stopping. 0: none. Flag: `--min-delta X`, in
   * Callbacks, with --early-stopping. */
  double early_min_delta;
  /** Epochs without a better value after which the learning rate is reduced. 0: never. Flag: `--plateau N`, 0 or more,
   * in Callbacks. */
  int64_t plateau_patience;
  /** Factor by which the learning rate is multiplied then, below 1. 0: 0.1. Flag: `--plateau-factor X=0.1`, in
   * Callbacks, with --plateau. */
  double plateau_factor;
  /** Learning rate below which it is not reduced. 0: none. Flag: `--plateau-min X`, in Callbacks, with --plateau. */
  double plateau_min_rate;
  /** 1: goes on after a loss, or with data, that is not finite. 0: that is an error, at its step. Flag: `--allow-nan`,
   * in Checks. The error is MT_INVALID. */
  int allow_nan;
  /** Called after each step, of validation too; a result other than 0 saves and ends the fit. Or NULL. */
  int (*stop)(void *user);
  void *stop_user;                               /**< Passed to `stop`. */
  void (*note)(void *user, const char *message); /**< Receives what was resumed, changed or stopped. Or NULL. */
  void *note_user;                               /**< Passed to `note`. */
  mtrun_fit_result *result;                      /**< Receives how the fit ended; or NULL. */
  /** 1: ends with the model's variables of the best epoch, with `early_patience`; the optimizer's stay. Flag:
   * `--restore-best`, in Callbacks. Checkpoints hold the variables of the last epoch, and of the best. */
  int restore_best;
  /** Multiplies the learning rate of a run that begins; 0: 1. MT_INVALID where a schedule computes the rate. */
  double rate_scale;
  /** A file that mtrun_save() writes after each epoch, with fields such as {epoch:02d} and {val_loss:.2f}; or NULL. */
  const char *epoch_file;
  /** 1: `progress` and `stop` neither read nor set variables, except at the end of an epoch. On GPUs, up to two
   * launches may then be in flight when they are called; a training that they stop finishes and reports these steps
   * first. 0: no step begins before the calls for the step before have returned, unless both are NULL. */
  int in_flight;
  /** Metric for early stopping. NULL: `monitor`. Flag: `--early-stopping-monitor NAME[:max|min]`, in Callbacks, with
   * --early-stopping. */
  const char *early_monitor;
  /** Metric for the reduction of the learning rate. NULL: `monitor`. Flag: `--plateau-monitor NAME[:max|min]`, in
   * Callbacks, with --plateau. */
  const char *plateau_monitor;
  /** Metric of the best checkpoint, which is kept, and of `epoch_best_only`. NULL: `monitor`. Flag:
   * `--checkpoint-monitor NAME[:max|min]`, in Checkpoints and logs. */
  const char *checkpoint_monitor;
  /** Value that an epoch must be better than for the count of early stopping to start anew. NULL: none. Flag:
   * `--baseline X`, in Callbacks, with --early-stopping. */
  const double *early_baseline;
  /** Epochs at the beginning that early stopping ignores. 0: none. Flag: `--start-from-epoch N`, 0 or more, in
   * Callbacks, with --early-stopping. */
  int64_t early_start_epoch;
  /** Difference below which a better value does not count for the reduction of the learning rate. NULL: 1e-4. Flag:
   * `--plateau-min-delta X`, in Callbacks, with --plateau. */
  const double *plateau_min_delta;
  /** Epochs after a reduction of the learning rate that do not count. 0: none. Flag: `--plateau-cooldown N`, 0 or
   * more, in Callbacks, with --plateau. */
  int64_t plateau_cooldown;
  /** 1: writes the file of an epoch only after one that is better than all before. Flag: `--best-only`, in Checkpoints
   * and logs. The file is `epoch_file`. */
  int epoch_best_only;
  /** 1: the file of an epoch (.safetensors) has the model's variables without the optimizer's. Flag: `--weights-only`,
   * in Checkpoints and logs. The file is `epoch_file`. */
  int epoch_weights_only;
  /** Sets the learning rate of a run that begins, or that resumes a run with another; 0: the model's. MT_INVALID where
   * a schedule computes the rate. */
  double learning_rate;
  /** Epochs after which a validation runs, each time. 0: 1. Flag: `--validation-freq N=1`, 1 or more, in Epochs. Other
   * epochs have NaN. */
  int64_t validation_freq;
  /** Batches of a validation. 0: all. Flag: `--validation-steps N`, 0 or more, in Epochs. MT_INVALID where the length
   * is unknown. */
  int64_t validation_steps;
  /** Epochs that count as done where no checkpoint is resumed: in `epochs`, names of files and the order of samples.
   * 0: none. Flag: `--initial-epoch N`, 0 or more, in Epochs. */
  int64_t initial_epoch;
  /** Without `validation`: the part of the data to hold out, as mtrun_dataset_split() does by the seed; 0: none. */
  double validation_split;
  int validation_last; /**< 1: holds out the last samples of the data in place of drawn ones. */
  /** Called before the first step of each epoch that this call trains, with `progress_user` and the epoch's number from
   * 0; also in the middle of an epoch that is resumed there. It may read and set variables. A result other than 0 ends
   * the fit before this step. Or NULL. */
  int (*epoch_begin)(void *user, int64_t epoch);
  /** File that records hashes of the data and the variables, by which others can check the run. NULL: none. Flag:
   * `--receipt FILE`, in Checkpoints and logs. A run that is resumed goes on with its file. */
  const char *receipt;
  /** Steps between two records of the receipt. 0: 100. Flag: `--receipt-every K=100`, 1 or more, in Checkpoints and
   * logs, with --receipt. */
  int64_t receipt_every;
  /** Step, counted from 1, in which a digest of the results of each kernel's launch is written to `launch_file`. 0:
   * none. Flag: `--hash-launches STEP`, 1 or more, in Checkpoints and logs. On CPUs of one process. */
  int64_t hash_launches;
  /** The file for `hash_launches`. Flag: `--launch-file FILE`, in Checkpoints and logs, with --hash-launches. */
  const char *launch_file;
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

/** Times of all-reduces between processes. */
typedef struct mtrun_all_reduce_timing {
  int64_t bytes;         /**< Size of the vector of float32, rounded down to elements; set before the call. */
  int64_t repeats;       /**< How many were timed. */
  double median_us,      /**< Median of an all-reduce in microseconds, in process 0. */
      min_us,            /**< The shortest. */
      mpi_median_us,     /**< Median of MPI_Allreduce of the same library, which alternates with ours. */
      mpi_min_us;        /**< The shortest. */
  int64_t elements,      /**< Elements of the vector. */
      differing,         /**< Of these, how many differ from the sum along the reduction tree: 0. */
      mpi_differing;     /**< Likewise of MPI_Allreduce, which may add in any order. */
  double received_bytes; /**< What process 0 receives in one of ours. */
} mtrun_all_reduce_timing;

/**
 * Times all-reduces between processes of CPU devices, of random vectors and without a plan.
 *
 * All processes call it alike.
 *
 * @param options  devices, processes, weights and timeout, as for a session
 * @param timings  the sizes to measure, 4 bytes to 1 GiB each; receives the times
 * @param count    their number
 * @return NULL, MT_INVALID, MT_NO_DEVICE, MT_NO_MEMORY or MT_LOST
 */
MT_API mt_status *mtrun_benchmark_all_reduce(const mtrun_options *options, mtrun_all_reduce_timing *timings,
                                             int32_t count);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
