/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun.h
 * Loads plans and trains them. C99; mt.h has the conventions, and `examples/embed` has complete programs.
 *
 * **Threads.** A plan is immutable: any number of sessions and threads may use it at once. A session, a dataset and a
 * fit are used by one thread at a time. Sessions of one process are independent of each other.
 *
 * **Order of calls.** mtrun_plan_load(), mtrun_session_create(), then either a loop of the library
 * (mtrun_dataset_open(), mtrun_fit()) or the program's own calls of mtrun_train_step(). Free in reverse order.
 *
 * In this file B is the plan's global batch, R its number of shards, N the number of devices of a session, and n the
 * number of samples in a step.
 */
#ifndef MTRUN_H
#define MTRUN_H

#include "mt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that was loaded; MT_VERSION is that of the headers. The string is static. */
MT_API const char *mtrun_version(void);

/** @name Plans
 * @{ */

/** A plan in memory, verified. */
typedef struct mtrun_plan mtrun_plan;

/**
 * Reads a plan file into memory and verifies it: every hash, every index, every size.
 * @param path  the file; it may change or disappear afterwards
 * @param plan  receives the plan, to be freed with mtrun_plan_free()
 * @return NULL, MT_CORRUPT, MT_IO or MT_NO_MEMORY
 */
MT_API mt_status *mtrun_plan_load(const char *path, mtrun_plan **plan);

/** The same from the `size` bytes of a plan file at `data`, which are copied. MT_CORRUPT, MT_NO_MEMORY. */
MT_API mt_status *mtrun_plan_load_memory(const void *data, size_t size, mtrun_plan **plan);
/** Frees a plan. Its sessions and datasets must have been freed before. NULL is fine. */
MT_API void mtrun_plan_free(mtrun_plan *plan);
/** The model's name. */
MT_API const char *mtrun_plan_model(const mtrun_plan *plan);
/** The global batch, B: the largest number of samples in a step. */
MT_API int64_t mtrun_plan_batch(const mtrun_plan *plan);
/** The number of shards, R: the largest number of devices. */
MT_API int32_t mtrun_plan_shards(const mtrun_plan *plan);
/** 1 if the plan has the program: "init", "train_step", "eval_step" or "predict"; else 0. */
MT_API int mtrun_plan_has_program(const mtrun_plan *plan, const char *program);
/** 1 if the plan has machine code for devices of this kind (cpu, cuda); else 0. */
MT_API int mtrun_plan_has_code(const mtrun_plan *plan, const char *kind);
/** 1: variables start with values of a file (a Keras model's, or mtc_options.weights); 0: with random ones. */
MT_API int mtrun_plan_has_weights(const mtrun_plan *plan);

/** What an entry of a signature is to the caller. */
typedef enum mtrun_role {
  MTRUN_INPUT = 0,         /**< Read: an input of the model. */
  MTRUN_TARGET = 1,        /**< Read: what a loss or metric compares with. */
  MTRUN_SAMPLE_WEIGHT = 2, /**< Read: one weight per sample. */
  MTRUN_OUTPUT = 3         /**< Written by mtrun_predict(). */
} mtrun_role;

/** A tensor of a program's signature, or a variable. The pointers live as long as the plan. */
typedef struct mtrun_tensor_info {
  const char *name;     /**< Its name. */
  mt_dtype dtype;       /**< Type of its elements. */
  int32_t rank;         /**< Number of axes. */
  const int64_t *shape; /**< Size of each axis. -1 is the batch axis, which is always the first. */
  mtrun_role role;      /**< Signature only: what it is to the caller. */
  int optional;         /**< Signature only. 1: a sample weight that may be NULL in a step, which stands for ones. */
  int kind;             /**< Variables only: 0 trainable, 1 non-trainable, 2 optimizer slot. */
  /** Signature only: integers of an input or target are 0 .. limit - 1, since they choose a row or a class. -1: there
   * is no such limit. */
  int64_t limit;
} mtrun_tensor_info;

/** Number of entries in a program's signature; 0 for a program that the plan does not have. */
MT_API int32_t mtrun_plan_signature_count(const mtrun_plan *plan, const char *program);
/** Describes entry `index` of a program's signature. Step calls take tensors in this order. MT_INVALID: there is no
 * such entry. */
MT_API mt_status *mtrun_plan_signature(const mtrun_plan *plan, const char *program, int32_t index,
                                       mtrun_tensor_info *info);

/** Number of losses and metrics that a program reports. */
MT_API int32_t mtrun_plan_metric_count(const mtrun_plan *plan, const char *program);
/** Name of a loss or metric; losses come first. This is the order of mtrun_results.values. NULL: no such index. */
MT_API const char *mtrun_plan_metric_name(const mtrun_plan *plan, const char *program, int32_t index);
/** 1: the higher of two values is better (accuracy, precision, area under a curve); 0: the lower (losses, errors). */
MT_API int mtrun_plan_metric_higher_is_better(const mtrun_plan *plan, const char *program, int32_t index);
/** Length of mtrun_results.sums: one number for each metric that is a mean, more for one that is computed from counts,
 * such as an area under a curve. */
MT_API int64_t mtrun_plan_sum_count(const mtrun_plan *plan, const char *program);

/**
 * Computes a loss or metric over several steps.
 * @param plan     the plan
 * @param program  the program
 * @param index    number of the loss or metric
 * @param sums     mtrun_results.sums, added up over the steps; all metrics
 * @param weights  mtrun_results.weights, added up over the steps; all metrics
 * @return the value; 0 where the weights add up to 0, or without such a metric
 */
MT_API double mtrun_plan_metric_value(const mtrun_plan *plan, const char *program, int32_t index, const double *sums,
                                      const double *weights);

/** Number of sequence lengths that the plan has programs for (mtc_options.lengths); 0: all steps have one size. */
MT_API int32_t mtrun_plan_length_count(const mtrun_plan *plan);
/** Length `index`, rising; -1: no such index. Signatures are those of the last. A step takes the first that holds its
 * longest sample. Samples, and outputs, end in zeros. */
MT_API int64_t mtrun_plan_length(const mtrun_plan *plan, int32_t index);
/** Number of tokens in the plan's vocabulary: the characters of the text that --vocabulary of mtc compile named. 0: the
 * plan has none. */
MT_API int32_t mtrun_plan_token_count(const mtrun_plan *plan);
/** Token `index` of the vocabulary: one character, in UTF-8. It lives as long as the plan. NULL: no such index. */
MT_API const char *mtrun_plan_token(const mtrun_plan *plan, int32_t index);
/** Number of variables, those of the optimizer included. */
MT_API int32_t mtrun_plan_variable_count(const mtrun_plan *plan);
/** Describes variable `index`. MT_INVALID: there is no such variable. */
MT_API mt_status *mtrun_plan_variable(const mtrun_plan *plan, int32_t index, mtrun_tensor_info *info);

/** A node of a program's data flow. The strings live during the callback. */
typedef struct mtrun_node {
  const char *name; /**< A name that no other node has: of a variable or tensor, or LAYER/KERNEL. */
  /** "input", "target", "sample_weight", "variable", "output", "all_reduce", or the kind of the kernel. */
  const char *kind;
  int32_t inputs;                 /**< Number of inputs. */
  const char *const *input_names; /**< Names of the inputs: nodes that came before. */
} mtrun_node;

/** Walks through a program's data flow: `node` is called for each node, after its inputs. MT_INVALID: there is no such
 * program. */
MT_API mt_status *mtrun_plan_graph(const mtrun_plan *plan, const char *program,
                                   void (*node)(void *user, const mtrun_node *node), void *user);

/**
 * @}
 * @name Sessions
 *
 * A session is a plan bound to devices, with memory and variables.
 *
 * **Several processes.** With mtrun_options.processes above 1, that many processes form one session, each with one GPU
 * of its own. All processes load the same plan, create a session with their number in mtrun_options.process, and make
 * the same calls in the same order with the same tensors. Each reads only its own rows of them. Losses, metrics and
 * variables are the same in all processes. The output rows of mtrun_predict() are in the process whose device computed
 * them. A process that is lost ends the others' calls with MT_LOST.
 * @{
 */

/** A plan bound to devices. */
typedef struct mtrun_session mtrun_session;

/** How a session is created. Begin with mtrun_options_init(), then set what differs. Strings need to live only during
 * the call. */
typedef struct mtrun_options {
  size_t struct_size; /**< mtrun_options_init() sets it. */
  /** The devices. NULL: those of mtrun_default_devices().
   *
   * - "cpu", "cpu:N", "cpu:NxT": N devices of T threads each;
   * - "cuda:0", "cuda:0-3", "cuda:0,2": GPUs by their numbers; "cuda:0*4": four devices on one GPU;
   * - "null:N": devices that run no kernels, for tests. */
  const char *devices;
  /** CPUs. 1: each device has variables of its own, computes a subtree of the shards, and exchanges partial sums. 0:
   * the devices share one copy of the variables, and their N * T threads compute all shards together. GPUs always have
   * variables of their own. The bits do not depend on it. */
  int private_variables;
  /** 1: does not pin worker threads to CPUs. They are never pinned where there are more threads than CPUs. */
  int no_pin;
  /** 1: waiting threads block at once. 0: they spin for a moment first, unless there are more threads than CPUs. */
  int no_spin;
  /** Uses this target of the plan, such as "x86-64-v3" or "cuda:ptx", in place of the best one for the device. */
  const char *cpu;
  int64_t seed; /**< Seed of the initial values and of random numbers. 0: the plan's. */
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
   * that listens already. */
  const char *rendezvous;
  /** A secret of the processes of a session, 16 bytes or more. Process 0 refuses whoever cannot prove that he knows it.
   * "tcp:" needs it. NULL: none, which is enough for "unix:", where processes of other users are refused. See
   * docs/security.md. */
  const char *secret;
  /** Seconds that a process waits for the others before the call fails with MT_LOST. 0: 600. */
  double timeout;
  /** GPUs: steps that mtrun_fit() and mtrun_evaluate() launch at once, where that many are left. 0: 1. The bits do not
   * depend on it. */
  int64_t steps_per_launch;
  /** GPUs: when kernels run as calls of cuBLASLt and cuDNN. See docs/libraries.md.
   *
   * - "auto" (NULL): where the libraries are there and likely faster, or the tuning file says so;
   * - "off": never;
   * - "require": wherever a kernel has a call; without the libraries, MT_DEVICE;
   * - "tune": as "require" where a library is there; for mtrun_tune(). */
  const char *libraries;
  /** GPUs: path of a tuning file that mtrun_tune() wrote for this plan and this GPU model. NULL: none. */
  const char *tuning;
  /** 1: step calls do not check whether integers are below the limit of their entry; one that is not counts as the
   * nearest that is. 0: such an integer is MT_INVALID with its row and value, and nothing is computed. The data of a
   * dataset is checked by mtrun_dataset_open(). */
  int unchecked_ids;
  /** CPUs: number of micro-batches, a power of two up to the plan's shards. A device computes the shards of one at a
   * time, so it needs memory for the activations of a micro-batch only; the bits do not depend on it. 0: the plan's. */
  int64_t micro_batches;
  /** 1: processes go on, with a warning, where one would compute other bits than the first (another GPU, target or
   * library); 0: that is MT_INVALID in all of them. */
  int force;
} mtrun_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtrun_options)

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

/** Ends the session's threads and frees its memory. NULL is fine. */
MT_API void mtrun_session_free(mtrun_session *session);

/** Starts over: sets every variable to its initial value and the step counter to 0, as mtrun_session_create() has done
 * already. A seed of 0 is that of the session. MT_LOST. */
MT_API mt_status *mtrun_session_init(mtrun_session *session, int64_t seed);

/**
 * What a step computed. The caller owns the arrays; the step calls fill them. Each may be NULL.
 *
 * `values` and `weights` have mtrun_plan_metric_count() numbers, in the order of mtrun_plan_metric_name(). `sums` has
 * mtrun_plan_sum_count() numbers.
 */
typedef struct mtrun_results {
  double *values;  /**< Value of each loss and metric in this step alone. */
  double *weights; /**< Weight of each value in a mean over steps: the number of samples, for instance. */
  double *sums;    /**< What is added up over steps for mtrun_plan_metric_value(), metric after metric. */
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

/** Computes losses and metrics, without gradient and update. The arguments are those of mtrun_train_step(), for the
 * signature of "eval_step". */
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
/** Copies elements into a variable, on all devices. The arguments are those of mtrun_get_variable(). */
MT_API mt_status *mtrun_set_variable(mtrun_session *session, const char *name, const void *data, size_t size);

/** Calls `line` for each GPU, with its number. MT_NO_DEVICE says why there are none. */
MT_API mt_status *mtrun_list_devices(void (*line)(void *user, const char *text), void *user);
/** Writes what the plan runs on where nobody says it, such as "cuda:0-3" or "cpu:1x8", into the `size` bytes at
 * `text`; 32 are enough. They are the GPUs that the plan has code for, at most one a shard; without any a CPU device of
 * as many threads as the process may use CPUs, or fewer where the plan has no work for more. MT_INVALID: too small. */
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

/** Fills `info`. */
MT_API void mtrun_session_get_info(const mtrun_session *session, mtrun_session_info *info);
/** The plan that the session was created with. */
MT_API const mtrun_plan *mtrun_session_plan(const mtrun_session *session);
/** Number of shards that a device computes; all of them where the devices share variables. 0: there is no such
 * device. */
MT_API int32_t mtrun_session_shards(const mtrun_session *session, int32_t device);
/** Number of steps of all programs that ran at length `index` of the plan; -1: no such index. */
MT_API int64_t mtrun_session_length_steps(const mtrun_session *session, int32_t index);

/**
 * @}
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
 * In Keras' formats, a variable that has a moving average has the value of that.
 *
 * @return NULL, MT_IO, or MT_INVALID: another extension, or one of Keras' for a plan that is not of a Keras model
 */
MT_API mt_status *mtrun_save(mtrun_session *session, const char *path);

/** Checks whether mtrun_save() takes a file of this name for sessions of this plan. Nothing is written. MT_INVALID. */
MT_API mt_status *mtrun_check_save(const mtrun_plan *plan, const char *path);
/** mtrun_save() for Keras' formats alone. */
MT_API mt_status *mtrun_export(mtrun_session *session, const char *path);

/** What of a file and of a plan must be the same when variables are read by their names. */
typedef enum mtrun_match {
  MTRUN_MATCH_ALL = 0,   /**< Every variable of either. */
  MTRUN_MATCH_MODEL = 1, /**< Every trainable and non-trainable variable of the plan; the optimizer's where they fit. */
  MTRUN_MATCH_ANY = 2    /**< At least one variable. Those of the same name, type and shape are taken, others stay. */
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
 * Measures on the session's first GPU what runs each kernel fastest, and writes the choices to a tuning file for
 * mtrun_options.tuning. The candidates are the generated kernel, and the algorithms of cuBLASLt and cuDNN that give the
 * same bits every time.
 * @param session  a session that was created with libraries "tune"; its variables are meaningless afterwards
 * @param path     the tuning file
 * @param repeats  how often each candidate is measured; 0: 20
 * @param line     is told of each kernel; or NULL
 * @param user     passed to `line`
 * @return NULL, MT_INVALID or MT_IO
 */
MT_API mt_status *mtrun_tune(mtrun_session *session, const char *path, int32_t repeats,
                             void (*line)(void *user, const char *text), void *user);

/**
 * @}
 * @name Traces and profiles
 *
 * docs/tracing.md explains what they show.
 * @{
 */

/** What a trace records. */
typedef struct mtrun_trace_options {
  size_t struct_size; /**< mtrun_trace_options_init() sets it. */
  int64_t first, /**< The first training step whose spans are kept, counted from mtrun_trace_start() on, from 1. */
      last;      /**< The last one. 0 and 0: no spans are kept. */
  int profile; /**< 1: the profile is of all steps; 0: of steps `first` to `last` alone. */
  double peak_flops, /**< FLOPs per second of all devices at most, which the trace says. 0: the driver's. */
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
 * @return NULL, MT_NO_MEMORY, or MT_INVALID: a range that is none, or one of more than a gigabyte of spans
 */
MT_API mt_status *mtrun_trace_start(mtrun_session *session, const mtrun_trace_options *options);

/** Writes the recorded steps in Chrome's JSON format, for ui.perfetto.dev: every kernel, wait, all-reduce, transfer and
 * sum, with a process for each device and a track for each thread. The file appears only when it is complete. MT_IO, or
 * MT_INVALID: no step was kept. */
MT_API mt_status *mtrun_trace_write(mtrun_session *session, const char *path);

/** Means over the recorded training steps. Times are in microseconds. */
typedef struct mtrun_profile {
  int64_t steps, /**< Number of recorded steps. */
      samples;   /**< Number of their samples. */
  int32_t threads;        /**< Threads of all devices together. */
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
  double flops, /**< Floating-point operations per step. */
      bytes;    /**< Bytes that must be moved per step at least. */
} mtrun_profile_entry;

/** Fills `profile`. MT_INVALID: no step was recorded. */
MT_API mt_status *mtrun_profile_get(mtrun_session *session, mtrun_profile *profile);
/** Fills `entry` with entry `index`. MT_INVALID: no step was recorded, or there is no such entry. */
MT_API mt_status *mtrun_profile_get_entry(mtrun_session *session, int32_t index, mtrun_profile_entry *entry);

/**
 * @}
 * @name Data
 * @{
 */

/** Samples for a plan's inputs, targets and sample weights. It keeps a pointer to the plan. */
typedef struct mtrun_dataset mtrun_dataset;

/** The kinds of data sources, as users write them: "mnist:DIR" and so on. NULL after the last one. */
MT_API const char *mtrun_data_form(int32_t index);
/** What a kind reads, a line; NULL after the last one. */
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

#define MTRUN_DENSE (-1) /**< The stride of samples that stand one behind the other. */
/** One value of every sample: the caller's own data for the input, target or sample weight of its name. */
typedef struct mtrun_field {
  const char *name; /**< Of an entry of the plan's signature. */
  /** Type of the caller's elements. Integers become floats, f64 is rounded to f32, labels may be one-hot. */
  mt_dtype dtype;
  int32_t rank;         /**< Number of axes of one sample, without the batch axis. */
  const int64_t *shape; /**< Their sizes. */
  const void *data;     /**< Arrays: sample i is at data + i * stride, row major. */
  int64_t stride;       /**< Arrays: bytes from one sample to the next, or MTRUN_DENSE; 0 for one sample alone. */
} mtrun_field;

/** What a callback is asked for. */
typedef struct mtrun_request {
  int64_t pass;           /**< Number of the pass over the data, from 0; 0 in validation, evaluation and prediction. */
  int64_t first;          /**< Unknown length: how many samples of this pass came before. */
  const int64_t *samples; /**< Known length: the numbers of the samples. Unknown length: NULL. */
  int64_t rows;           /**< How many samples. */
  void *const *fields;    /**< Room for `rows` dense samples of each field; NULL: the field is not needed. */
  char *message;          /**< Room for the message of a failure. */
  size_t message_size;    /**< Bytes of `message`, the zero byte included. */
} mtrun_request;

/**
 * The caller's own samples, made when they are needed.
 *
 * **Known length** (`samples` at least 1). `read` writes the samples whose numbers the request has, and returns how
 * many. Any sample may be asked for, in any order and any number of times. What `read` writes depends on the number of
 * the sample and of the pass alone. Then shuffling, slices and resuming work as for any other source.
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

/** A callback as a dataset. Labels are checked as they come. Among the keys, `class-weight=` is refused, and `range=`
 * with unknown length. MT_INVALID. */
MT_API mt_status *mtrun_dataset_open_source(const mtrun_plan *plan, const mtrun_source *source, const char *keys,
                                            mtrun_dataset **dataset);

/** Number of samples; -1: unknown. */
MT_API int64_t mtrun_dataset_size(const mtrun_dataset *dataset);
/** Frees a dataset. NULL is fine. */
MT_API void mtrun_dataset_free(mtrun_dataset *dataset);
/** Tells what the user should know of the data, a line at a time: damaged pictures that are left out, for instance. */
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

/** Samples [begin, end) as a dataset of their own, which shares the memory. MT_INVALID: they are not within the data,
 * or its length is unknown. */
MT_API mt_status *mtrun_dataset_slice(const mtrun_dataset *dataset, int64_t begin, int64_t end, mtrun_dataset **slice);

/** Describes a source for people, a line at a time: fields, types, shapes, ranges of values, labels and their counts,
 * and the first `samples` samples. Needs no plan. */
MT_API mt_status *mtrun_data_describe(const char *spec, int64_t samples, void (*line)(void *user, const char *text),
                                      void *user);

/** Measures for about `seconds` how many samples per second a source gives, in shuffled batches of `batch`; of pictures
 * (with `size=HxW`) also how many the decoding library does alone. Needs no plan. MT_INVALID. */
MT_API mt_status *mtrun_data_benchmark(const char *spec, int64_t batch, double seconds,
                                       void (*line)(void *user, const char *text), void *user);

/** Writes the order of an epoch: a permutation of 0 .. size - 1, which depends on the seed and the epoch alone. Nothing
 * is written where the size is unknown. */
MT_API void mtrun_dataset_order(const mtrun_dataset *dataset, int64_t seed, int64_t epoch, int64_t *order);

/**
 * @}
 * @name Loops
 * @{
 */

/** Where a loop is. The pointers live during the callback. */
typedef struct mtrun_progress {
  int64_t epoch,             /**< The epoch, from 0. */
      epochs;                /**< Number of epochs; 1 for evaluation. */
  int64_t step,              /**< Steps done in this epoch. */
      steps;                 /**< Number of steps in it; 0: the length is unknown. */
  double seconds;            /**< Since the epoch began. */
  int32_t metrics;           /**< Length of `names` and `values`. */
  const char *const *names;  /**< Names of the losses and metrics. */
  const double *values;      /**< Their means over the epoch so far. */
  int validation;            /**< 1: validation has ended; its names begin with val_, after those of training. */
  int epoch_end;             /**< 1: the last call of an epoch. There is none in an epoch that a callback stops. */
  const double *step_values; /**< What this step alone computed, for the names of training; NULL with `validation`. */
  double learning_rate;      /**< Of this step; NaN: the plan does not tell. */
  int64_t total_step;        /**< Steps since the run began, those before a resume included. */
  double input_wait;         /**< Seconds of `seconds` in which the devices waited for data. */
} mtrun_progress;

/** When checkpoints are written, and from which a run resumes. A checkpoint is a folder, step-000000000100 for
 * instance, which is there as a whole or not at all. See docs/checkpoints.md. */
typedef struct mtrun_checkpoint_options {
  size_t struct_size; /**< mtrun_checkpoint_options_init() sets it. */
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
  int64_t epochs;     /**< Complete epochs, those before a resume included. */
  int64_t total_step; /**< Steps since the run began. */
  double input_wait;  /**< Part of the training time in which the devices waited for data, 0 to 1. */
  double seconds;     /**< Of training, in this call. */
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
  const char *history_json, /**< A file of all epochs as JSON, written anew after each; or NULL. */
      *history_csv;         /**< The same as CSV. */
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
  const char *early_monitor, /**< The metric for early stopping; NULL: `monitor`. */
      *plateau_monitor,      /**< The metric for the plateau; NULL: `monitor`. */
      *checkpoint_monitor;   /**< The metric for checkpoints and `epoch_best_only`; NULL: `monitor`. */
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
  double median_us,     /**< Median of the timed steps, each waited for. */
      min_us,           /**< The shortest. */
      mean_us;          /**< Their mean. */
  int64_t steps;        /**< How many were timed. */
  double first_step_us; /**< Of the first step, before any warm-up. */
  double queued_us,       /**< GPUs, else 0: median from step to step with launches queued. */
      resident_us,        /**< GPUs, else 0: median with inputs that stay on the devices. */
      resident_queued_us; /**< GPUs, else 0: median with both. */
  /** What the FLOPs or the bytes of each launch take at the devices' peak, added up; 0: unknown. */
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
