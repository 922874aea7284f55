/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_session.h
 * A part of mtrun.h. Sessions: plans on devices, their steps and their variables.
 */
#ifndef MTRUN_SESSION_H
#define MTRUN_SESSION_H

#include "mtrun_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Sessions
 *
 * A session is a plan bound to devices, with memory and variables.
 *
 * **Several processes.** With mtrun_options.processes above 1, that many processes form one session, each with one GPU
 * of its own. All processes load the same plan, create a session with their number in mtrun_options.process, and make
 * the same calls in the same order with the same tensors. Each reads only its own rows of them. Losses, metrics and
 * variables are the same in all processes. The output rows of mtrun_predict() are in the process whose device computed
 * them. A process that is lost ends the others' calls with MT_LOST.
 *
 * Processes of CPU devices that a launcher of MPI started form one session too, with a device each;
 * mtrun_options_launched() sets their numbers. mtrun_predict() then fills all output rows in all processes.
 * @{
 */

/** A plan bound to devices. */
typedef struct mtrun_session mtrun_session;

/** How a session is created. Begin with mtrun_options_init(), then set what differs. Strings need to live only during
 * the call. The flags of `mtrun` are made from the comments, as those of `mtc` from mtc_options. */
typedef struct mtrun_options {
  size_t struct_size; /**< mtrun_options_init() sets it. */
  /** The devices. NULL: those of mtrun_default_devices().
   *
   * - "cpu", "cpu:N", "cpu:NxT": N devices of T threads each;
   * - "cuda:0", "cuda:0-3", "cuda:0,2": GPUs by their numbers; "cuda:0*4": four devices on one GPU;
   * - "null:N": devices that run no kernels, for tests. */
  const char *devices;
  /** 1: each CPU device has variables of its own. 0: the CPU devices share one copy. Flag: `--private-variables`, in
   * Devices. With variables of its own a device computes a subtree of the shards, and exchanges partial sums. With
   * one copy the N * T threads of the devices compute all shards together. GPUs always have variables of their own.
   * The bits do not depend on it. */
  int private_variables;
  /** 1: does not pin worker threads to CPUs. 0: pins them where there are no more threads than CPUs. Flag: `--no-pin`,
   * in Devices. */
  int no_pin;
  /** 1: waiting threads sleep at once. 0: they spin for a moment first, unless there are more threads than CPUs. Flag:
   * `--no-spin`, in Devices. */
  int no_spin;
  /** Code of the plan to use, such as "x86-64-v3" or "cuda:ptx". NULL: the best for the device. Flag: `--cpu NAME`, in
   * Devices. */
  const char *cpu;
  /** Seed of the initial values, random numbers and the order of samples. 0: the plan's. Flag: `--seed N`, in Devices.
   */
  int64_t seed;
  /** Receives messages. Level 0 is information, 1 a warning. NULL: silent. */
  void (*log)(void *user, int level, const char *message);
  void *log_user; /**< Passed to `log`. */
  /** Number of processes that form the session; see above. 1: all devices are in this process. 0: likewise, and
   * MT_INVALID where a launcher (mpirun, srun, torchrun) has started several, unless MTRUN_PROCESSES is 1. */
  int32_t processes;
  int32_t process; /**< Number of this process, from 0. */
  /** Number of this process on its host, from 0. It chooses the GPU among those of `devices`, which lists the GPUs of
   * the host. */
  int32_t local_process;
  /** Where process 0 waits for the others: "unix:NAME" (one host), "tcp:HOST:PORT", or in process 0 "fd:N", a socket
   * that listens already. NULL or "mpi:" for CPU devices: process 0 selects an address, and sends it through MPI. */
  const char *rendezvous;
  /** A secret of the processes of a session, 16 bytes or more. Process 0 refuses whoever cannot prove that he knows it.
   * "tcp:" needs it. NULL: none, which is enough for "unix:", where processes of other users are refused. See
   * docs/security.md. */
  const char *secret;
  /** Seconds that a process waits for the others before they are lost. 0: 600. Flag: `--timeout S=600`, 0.001 or more,
   * in Processes. The call then fails with MT_LOST. */
  double timeout;
  /** Steps that GPUs are given at once in training and evaluation, where that many are left. 0: 1. Flag:
   * `--steps-per-launch N=1`, 1 or more, in Processes. For steps of a few microseconds. The bits do not depend on it.
   */
  int64_t steps_per_launch;
  /** Kernels of GPUs as calls of cuBLASLt and cuDNN: where these are likely faster or the tuning file says so
   * ("auto"), never ("off"), or wherever there is a call ("require"). NULL: "auto".
   * Flag: `--libraries auto|off|require=auto`, in Devices. "require" is MT_DEVICE without the libraries. "tune", for
   * mtrun_tune(), is as "require" where a library is there. See docs/libraries.md. */
  const char *libraries;
  /** Tuning file of GPUs, which `mtrun tune` wrote for this plan and this GPU model. NULL: none.
   * Flag: `--tuning FILE`, in Devices. */
  const char *tuning;
  /** 1: does not check whether integers are below the limit of their entry; one that is not counts as the nearest that
   * is. Flag: `--unchecked-ids`, in Checks. 0: such an integer is MT_INVALID with its row and value, and nothing is
   * computed. The data of a dataset is checked by mtrun_dataset_open(). */
  int unchecked_ids;
  /** Micro-batches of a step on CPUs: a power of two up to the shards, which a device computes one after another in
   * less memory, to the same bits. 0: as compiled, or one for each shard where that is faster. Flag:
   * `--micro-batches K`, in Devices. */
  int64_t micro_batches;
  /** 1: processes go on, with a warning, where one would compute other bits than the first (another GPU, target or
   * library); 0: that is MT_INVALID in all of them. */
  int force;
  /** The share of the work of each process of CPU devices, as "3,1,1". NULL: the number of its threads.
   * Flag: `--weights LIST`, in Processes. A process holds one subtree of the shards, whose size follows the weights as
   * far as powers of two allow. The bits do not depend on it. */
  const char *weights;
  /** 1: several processes compare the tensors and the variables before each call of mtrun_train_step(),
   * mtrun_eval_step() and mtrun_predict(); where a process has others, the call is MT_INVALID in all of them. 0: they
   * compare nothing, and a process needs only its own rows of the tensors. */
  int compare_tensors;
  /** 1: each device keeps only its part of the optimizer's variables, and updates only that part of the model's.
   * Flag: `--shard-optimizer`, in Devices. This is for CPU devices in several processes or with private variables. 0:
   * each device has all variables. The bits do not depend on it. An optimizer with a kernel that needs the whole of one
   * of its own variables is MT_INVALID. See docs/guides/cluster.md. */
  int shard_optimizer;
} mtrun_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_options)

/**
 * Sets `processes`, `process` and `local_process` to what a launcher of MPI (mpirun, mpiexec, srun) says of this
 * process, for a session of CPU devices. Without a launcher, or where MTRUN_PROCESSES is 1, there is one process.
 * @return NULL, or MT_INVALID: another launcher (torchrun) has started several processes, or a variable of the
 *         launcher is no number
 */
MT_API mt_status *mtrun_options_launched(mtrun_options *options);

/**
 * Tells the other processes of CPU devices that this one fails before it has a session, for instance because a file is
 * missing on its host: their mtrun_session_create() then fails with this code and message. Without the call they would
 * wait, because not every launcher ends a run if one of its processes fails. Waits for them; exit afterwards. There is
 * nothing to do if `options` has one process, or once this process has called mtrun_session_create().
 * @return NULL, or MT_NO_DEVICE: there is no library of MPI, so the others know nothing
 */
MT_API mt_status *mtrun_options_abandon(const mtrun_options *options, mt_code code, const char *message);

/**
 * Binds a plan to devices, allocates all memory that steps will need, starts the threads and runs `init`.
 *
 * The session keeps a pointer to the plan. Its threads do not survive a fork(): afterwards only the parent may use or
 * free the session.
 * @param plan     the plan, which must outlive the session
 * @param options  or NULL for the defaults
 * @param session  receives the session, to be freed with mtrun_session_free()
 * @return NULL, MT_NO_DEVICE, MT_NO_MEMORY, MT_LOST, MT_INVALID: a wrong option, or more devices than shards, with the
 *         command that recompiles; or MT_DEVICE: the plan has no code for the device, or the device does not start
 */
MT_API mt_status *mtrun_session_create(const mtrun_plan *plan, const mtrun_options *options, mtrun_session **session);

/** Ends the session's threads and frees its memory. `session` may be NULL. */
MT_API void mtrun_session_free(mtrun_session *session);

/** Starts over: sets every variable to its initial value and the step counter to 0, as mtrun_session_create() has done
 * already. A seed of 0 is that of the session. MT_LOST. */
MT_API mt_status *mtrun_session_init(mtrun_session *session, int64_t seed);

/**
 * The results of a step. The caller owns the arrays, and the step calls fill them. Each may be NULL.
 *
 * `values` and `weights` have mtrun_plan_metric_count() numbers, in the order of mtrun_plan_metric_name(). `sums` has
 * mtrun_plan_sum_count() numbers.
 */
typedef struct mtrun_results {
  double *values;  /**< Value of each loss and metric in this step alone. */
  double *weights; /**< Weight of each value in a mean over steps: the number of samples, for instance. */
  double *sums;    /**< Sums of this step, metric after metric, to be added over steps for mtrun_plan_metric_value(). */
  /** One number: the learning rate of a training step where a schedule computes it; else NaN. */
  double *learning_rate;
} mtrun_results;

/**
 * Runs one training step: forward, backward, update.
 * @param session  the session
 * @param tensors  one pointer for each entry of the signature of "train_step", in its order: n rows, dense and row
 *                 major. Only n rows are read. A sample weight may be NULL. The memory may be reused after the call
 * @param n        number of samples, 1 <= n <= B
 * @param results  what to fill, or NULL
 * @return NULL, or an error. MT_INVALID: n, or an integer out of its limit. MT_LOST: a device or another process
 *         failed; every later call fails too
 */
MT_API mt_status *mtrun_train_step(mtrun_session *session, const void *const *tensors, int64_t n,
                                   mtrun_results *results);

/** Computes losses and metrics, without gradient and update. The arguments are the same as for mtrun_train_step(), with
 * the signature of "eval_step". */
MT_API mt_status *mtrun_eval_step(mtrun_session *session, const void *const *tensors, int64_t n,
                                  mtrun_results *results);

/**
 * Computes the model's outputs.
 * @param session  the session
 * @param tensors  one pointer for each entry of the signature of "predict": n rows of inputs are read, of outputs
 *                 written
 * @param n        number of samples, 1 <= n <= B
 * @return NULL, or an error as of mtrun_train_step()
 */
MT_API mt_status *mtrun_predict(mtrun_session *session, void *const *tensors, int64_t n);

/**
 * The name of a class: of the plan, else of the file that mtrun_load() read last or that a fit resumed, else of the
 * data that the session was first trained on.
 *
 * mtrun_fit() and mtrun_evaluate() number labels by these names, mtrun_predict_file() writes them, and mtrun_save() and
 * checkpoints keep them.
 *
 * @return the name, or NULL: it has none, or there is no such label. It lives until the names change
 */
MT_API const char *mtrun_session_class_name(const mtrun_session *session, int64_t label);

/**
 * Copies a variable's elements out of the session, dense and row major.
 * @param session  the session
 * @param name     the variable
 * @param data     receives the elements
 * @param size     bytes of `data`, which must be exactly the variable's
 * @return NULL, MT_INVALID (with the names of the variables) or MT_LOST
 */
MT_API mt_status *mtrun_get_variable(mtrun_session *session, const char *name, void *data, size_t size);
/**
 * Collects the parts of the optimizer's variables that several processes have (shard_optimizer), so that
 * mtrun_get_variable() and mtrun_save() find whole ones until the next training step. All processes must call it.
 * mtrun_fit() ends with it, for process 0. Nothing to do in other sessions.
 * @param session     the session
 * @param everywhere  1: all processes get whole variables; 0: process 0
 * @return NULL or MT_LOST, MT_NO_MEMORY
 */
MT_API mt_status *mtrun_collect_variables(mtrun_session *session, int everywhere);
/** Copies elements into a variable, on all devices. The arguments are the same as for mtrun_get_variable(). */
MT_API mt_status *mtrun_set_variable(mtrun_session *session, const char *name, const void *data, size_t size);

/** Calls `line` for each GPU, with its number. MT_NO_DEVICE says why there are none. */
MT_API mt_status *mtrun_list_devices(void (*line)(void *user, const char *text), void *user);
/** Writes the default devices of the plan, such as "cuda:0-3" or "cpu:1x8", into the `size` bytes at
 * `text`; 32 are enough. They are the GPUs that the plan has code for, at most one per shard; without any a CPU device
 * of as many threads as the process may use CPUs, or fewer where the plan has no work for more. MT_INVALID: too small.
 */
MT_API mt_status *mtrun_default_devices(const mtrun_plan *plan, char *text, size_t size);
/** Calls `line` for each library that runs on GPUs may use: the file that they would open, or why there is none. */
MT_API mt_status *mtrun_list_libraries(void (*line)(void *user, const char *text), void *user);

/** Facts about a session, for reports. */
typedef struct mtrun_session_info {
  int32_t devices;            /**< Number of devices, N. */
  int32_t threads_per_device; /**< Threads per device, T. */
  int64_t variables_bytes;    /**< Bytes of one copy of all variables. */
  int64_t peak_bytes;         /**< Bytes of arenas, shared blocks, variables and scratch in the whole process. */
  int64_t collective_bytes;   /**< Bytes that the last step moved between devices. */
  const char *target;         /**< The target whose code runs, such as "x86-64-v4". Lives as long as the session. */
  int64_t seed;               /**< Seed of the variables and of random numbers, as the last initialisation set it. */
  int32_t process,            /**< Number of this process, from 0. */
      processes;              /**< Number of processes. */
  /** GPUs: operations per second in the plan's precision that they can do at most, as the driver tells; 0: unknown. */
  double peak_flops;
  /** GPUs: bytes of memory per second that they can move at most, as the driver tells; 0: unknown. */
  double peak_bandwidth;
  /** GPUs: bytes of their memory that became used since the session began, by any process; 0: unknown. */
  int64_t taken_bytes;
} mtrun_session_info;

/** What a process of a session has done since it was created. */
typedef struct mtrun_activity {
  int32_t shards;         /**< Shards of each step that it computes. */
  int64_t rows;           /**< Rows that it computed, of all programs; on GPUs 0: unknown. */
  int64_t received_bytes; /**< Bytes of all-reduces that it received; on GPUs 0: unknown. */
  int64_t read_bytes;     /**< Bytes of samples that its loops read, as the data stores them. */
  int64_t pictures;       /**< Pictures that its loops decoded. */
} mtrun_activity;

/** Collects the activity of all processes. Each process of the session must call it, after the same steps.
 * @param session     the session
 * @param activities  one entry per process, which are filled in process 0
 * @return NULL or MT_LOST */
MT_API mt_status *mtrun_session_activities(mtrun_session *session, mtrun_activity *activities);

/** Fills `info`. */
MT_API void mtrun_session_get_info(const mtrun_session *session, mtrun_session_info *info);
/** The plan that the session was created with. */
MT_API const mtrun_plan *mtrun_session_plan(const mtrun_session *session);
/** Number of shards that a device computes; all of them where the devices share variables. 0: there is no such
 * device. */
MT_API int32_t mtrun_session_shards(const mtrun_session *session, int32_t device);
/** The rows of a whole batch that this process computes: `rows` of them, from row `first`, counted from 0. In a step of
 * the process these are the rows of its tensors that are read, unless mtrun_options.compare_tensors is set; a short
 * batch ends earlier. */
MT_API void mtrun_session_own_rows(const mtrun_session *session, int64_t *first, int64_t *rows);
/** Number of steps of all programs that ran at length `index` of the plan; -1: no such index. */
MT_API int64_t mtrun_session_length_steps(const mtrun_session *session, int32_t index);

/** @} */

/**
 * @name Files of variables
 * @{
 */

/**
 * Writes the session's variables to a file. The file appears under its name only when it is complete.
 *
 * | extension of `path` | content                                                                        |
 * |---------------------|--------------------------------------------------------------------------------|
 * | `.safetensors`      | every variable as it is                                                        |
 * | `.keras`            | the model's own file with the optimizer's state: Keras can go on training      |
 * | `.weights.h5`       | what Keras' `load_weights` reads                                               |
 *
 * In Keras' formats, a variable that has a moving average has the value of its average.
 *
 * @return NULL, MT_IO, or MT_INVALID: another extension, or one of Keras' for a plan that is not of a Keras model
 */
MT_API mt_status *mtrun_save(mtrun_session *session, const char *path);

/** Checks whether mtrun_save() takes a file of this name for sessions of this plan. Nothing is written. MT_INVALID. */
MT_API mt_status *mtrun_check_save(const mtrun_plan *plan, const char *path);
/** mtrun_save() for Keras' formats alone. */
MT_API mt_status *mtrun_export(mtrun_session *session, const char *path);

/** Which variables of a file and of a plan must match when variables are read by name. */
typedef enum mtrun_match {
  MTRUN_MATCH_ALL = 0,   /**< Every variable of either. */
  MTRUN_MATCH_MODEL = 1, /**< Every trainable and non-trainable variable of the plan; the optimizer's where they fit. */
  MTRUN_MATCH_ANY = 2    /**< At least one variable. Variables of equal name, type and shape are read, others stay. */
} mtrun_match;

/**
 * Reads variables by their names. If any is missing, extra or of another shape, the error lists them and nothing is
 * set.
 * @param session  the session
 * @param path     a .safetensors file; a checkpoint; a folder of checkpoints, whose newest is read and verified; or a
 *                 .keras or .weights.h5 file that mtrun_save() wrote for a plan of the same model (by the rule
 *                 MTRUN_MATCH_MODEL then)
 * @return NULL, MT_INVALID, MT_CORRUPT or MT_IO
 */
MT_API mt_status *mtrun_load(mtrun_session *session, const char *path);

/** The same by the rule `match`. `line`, which may be NULL, is told what was loaded and what was not, a line at a
 * time. */
MT_API mt_status *mtrun_load_matching(mtrun_session *session, const char *path, mtrun_match match,
                                      void (*line)(void *user, const char *text), void *user);

/**
 * Measures the fastest implementation of each kernel on the session's first GPU, and writes a tuning file for
 * mtrun_options.tuning. The candidates are the generated kernel, and the algorithms of cuBLASLt and cuDNN that give the
 * same bits every time.
 * @param session  a session that was created with libraries "tune"; its variables are meaningless afterwards
 * @param path     the tuning file
 * @param repeats  how often each candidate is measured; 0: 20
 * @param line     is called for each kernel; or NULL
 * @param user     passed to `line`
 * @return NULL, MT_INVALID or MT_IO
 */
MT_API mt_status *mtrun_tune(mtrun_session *session, const char *path, int32_t repeats,
                             void (*line)(void *user, const char *text), void *user);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
