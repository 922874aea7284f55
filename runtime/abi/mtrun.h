/* SPDX-License-Identifier: Apache-2.0
 *
 * mtrun.h: load a plan, run its programs. C99; see mt.h for conventions, examples/embed/ for a complete host.
 *
 * Threads: a plan is immutable and may be shared by any number of sessions and threads. A session, a dataset and a fit
 * belong to one thread at a time. Two sessions in one process are independent.
 */
#ifndef MTRUN_H
#define MTRUN_H

#include "mt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- plans ------------------------------------------------------------------------------------------------- */

typedef struct mtrun_plan mtrun_plan;

/* Maps and verifies `path` (every hash, every index, every size). MT_CORRUPT, MT_IO. */
MT_API mt_status *mtrun_plan_load(const char *path, mtrun_plan **plan);
/* The same from memory; the bytes are copied. */
MT_API mt_status *mtrun_plan_load_memory(const void *data, size_t size, mtrun_plan **plan);
MT_API void mtrun_plan_free(mtrun_plan *plan); /* after its sessions */

MT_API const char *mtrun_plan_model(const mtrun_plan *plan);
MT_API int64_t mtrun_plan_batch(const mtrun_plan *plan);    /* B, samples a step at most */
MT_API int32_t mtrun_plan_shards(const mtrun_plan *plan); /* R, devices at most */
MT_API int mtrun_plan_has_program(const mtrun_plan *plan, const char *program);
MT_API int mtrun_plan_has_code(const mtrun_plan *plan, const char *kind); /* for devices of a kind: "cpu", "cuda" */
/* 1: variables start with values of a file (a Keras model's, or mtc_options.weights); 0: with random ones. */
MT_API int mtrun_plan_has_weights(const mtrun_plan *plan);

typedef enum mtrun_role { MTRUN_INPUT = 0, MTRUN_TARGET = 1, MTRUN_SAMPLE_WEIGHT = 2, MTRUN_OUTPUT = 3 } mtrun_role;

/* A tensor of a program's signature, or a variable. */
typedef struct mtrun_tensor_info {
  const char *name;
  mt_dtype dtype;
  int32_t rank;
  const int64_t *shape; /* -1: the batch axis, always the first */
  mtrun_role role;      /* signature only */
  int optional;         /* signature only: a sample weight that may be NULL (ones) */
  int kind;             /* variables only: 0 trainable, 1 non-trainable, 2 optimizer slot */
  int64_t limit;        /* signature only: the integers of an input or target are 0 .. limit - 1, since they pick a row
                           or a class; -1: the model does not say */
} mtrun_tensor_info;

/* Entries of a program's signature, in the order in which the step calls take them. Count is 0 for an unknown program.
 */
MT_API int32_t mtrun_plan_signature_count(const mtrun_plan *plan, const char *program);
MT_API mt_status *mtrun_plan_signature(const mtrun_plan *plan, const char *program, int32_t index,
                                       mtrun_tensor_info *info);
/* Losses first, then metrics: the names behind mtrun_results.values. */
MT_API int32_t mtrun_plan_metric_count(const mtrun_plan *plan, const char *program);
MT_API const char *mtrun_plan_metric_name(const mtrun_plan *plan, const char *program, int32_t index);
/* 1: of two values the higher one is better (accuracies, precision, areas under curves); 0: the lower one (losses,
 * errors). */
MT_API int mtrun_plan_metric_higher_is_better(const mtrun_plan *plan, const char *program, int32_t index);
/* The numbers behind mtrun_results.sums: one a metric that is a mean, more where it is a formula of counts (an area
 * under a curve). */
MT_API int64_t mtrun_plan_sum_count(const mtrun_plan *plan, const char *program);
/* What a loss or metric is over several steps: `sums` and `weights` hold mtrun_results' arrays, added over these. 0
 * without weight, or without such a metric. */
MT_API double mtrun_plan_metric_value(const mtrun_plan *plan, const char *program, int32_t index, const double *sums,
                                      const double *weights);
MT_API int32_t mtrun_plan_variable_count(const mtrun_plan *plan);
MT_API mt_status *mtrun_plan_variable(const mtrun_plan *plan, int32_t index, mtrun_tensor_info *info);

/* A node of a program's data flow. The strings live for the call. */
typedef struct mtrun_node {
  const char *name; /* no two are equal: a variable's or a tensor's name, or LAYER/KERNEL */
  const char *kind; /* "input", "target", "sample_weight", "variable", "output", "all_reduce", or the kernel's kind */
  int32_t inputs;
  const char *const *input_names; /* of nodes that came before */
} mtrun_node;

/* Calls back for each node, inputs first. MT_INVALID: no such program. */
MT_API mt_status *mtrun_plan_graph(const mtrun_plan *plan, const char *program,
                                   void (*node)(void *user, const mtrun_node *node), void *user);

/* ---- sessions ---------------------------------------------------------------------------------------------- */

typedef struct mtrun_session mtrun_session;

/* Zero-initialise, then set what differs: all-zero is the default. */
typedef struct mtrun_options {
  const char *devices;   /* "cpu", "cpu:N", "cpu:NxT", "null:N"; NULL: "cpu:1". N devices of T threads each; N > R is an
                            error.   GPUs by number, each of which owns its variables: "cuda:0", "cuda:0-3", "cuda:0,2";
                            "cuda:0*4": four   devices on one GPU */
  int private_variables; /* each device owns its variables, hosts a subtree of the shards and exchanges partial sums through
                            the collectives; 0: the devices share one copy and work as one team of N * T threads on all
                            shards */
  int no_pin;            /* do not pin worker threads (never pinned when threads outnumber allowed CPUs) */
  int no_spin;           /* block in the kernel instead of spinning first (never spins when threads outnumber CPUs) */
  const char *cpu;       /* use this target of the plan instead of the best for the device: "x86-64-v3", "cuda:ptx" */
  int64_t seed;          /* 0: the plan's seed */
  void (*log)(void *user, int level, const char *message); /* 0 info, 1 warning; NULL: silent */
  void *log_user;
  int32_t processes;     /* above 1: so many processes make a session each of the same plan, with a GPU each, and run the
                            same programs on the same tensors in the same order; each reads its own rows of them. Results
                            are in all of them, rows of `predict` in the device's own process. 0 and 1: all devices are
                            in this process */
  int32_t process;       /* the number of this one, from 0 */
  int32_t local_process; /* its number on this host, from 0: which of the GPUs in `devices`, which lists those of the
                            host, is its own */
  const char *rendezvous;   /* where process 0 waits for the others: "unix:NAME" (on one host), "tcp:HOST:PORT", or in
                            process 0 "fd:N", a socket that listens already */
  const char *secret;    /* what the processes of a session know and nobody else, 16 bytes or more: process 0 listens to
                            nobody who does not prove that he knows it. Needed for "tcp:"; NULL: none, which is enough
                            for "unix:", where processes of other users are sent away. docs/security.md */
  double timeout;        /* seconds that a process waits for others before they are lost (MT_LOST); 0: 600 */
  int64_t steps_per_launch; /* GPUs: steps that mtrun_fit and mtrun_evaluate give them at once, where there are so many;
                               0: 1. The bits do not depend on it */
  const char *libraries; /* GPUs: "auto" (NULL too): kernels run as calls of cuBLASLt and cuDNN where these are there and
                            likely faster, or the tuning file says so; "off": never; "require": wherever there is a
                            call, and without the libraries MT_DEVICE; "tune": as "require" where a
                            library is there, for mtrun_tune. docs/libraries.md */
  const char *tuning;    /* GPUs: path of a file that mtrun_tune wrote for this plan and GPU; NULL: none */
  int unchecked_ids;     /* 1: the step calls do not look whether integers are below their entry's limit: a wrong one
                            then counts as the nearest that is right. 0: MT_INVALID names the row and the value, and
                            nothing is computed. What datasets give is looked at by mtrun_dataset_open */
} mtrun_options;

/* Binds the plan to devices and allocates everything that steps will need. N > R: MT_INVALID with the command that
 * recompiles; MT_DEVICE when the plan has no code for this device; MT_NO_DEVICE; MT_NO_MEMORY. The session keeps a
 * pointer to the plan. Its threads do not outlive a fork(): after one only the parent may use it, or free it.
 */
MT_API mt_status *mtrun_session_create(const mtrun_plan *plan, const mtrun_options *options, mtrun_session **session);
MT_API void mtrun_session_free(mtrun_session *session); /* joins its threads */

/* Runs `init`: every variable from (seed, variable name), the step counter to 0. Called by create already; call again
 * to start over. */
MT_API mt_status *mtrun_session_init(mtrun_session *session, int64_t seed);

/* What one step computed: value and weight of each loss and metric, in mtrun_plan_metric_name's order. Filled by the
 * step calls; arrays of mtrun_plan_metric_count entries (sums: mtrun_plan_sum_count) owned by the caller, each may be
 * NULL. */
typedef struct mtrun_results {
  double *values;  /* this step alone: its mean, or what the metric's formula makes of its sums */
  double *weights; /* its weight, for means over steps */
  double *sums;    /* metric after metric: what adds up over steps, for mtrun_plan_metric_value */
  double *learning_rate; /* one number: the rate that a training step used where a schedule computes it, else NaN */
} mtrun_results;

/* One training step on rows 0 .. n-1, 1 <= n <= B, of each tensor; `tensors` in signature order. Only n rows are ever
 * read. */
MT_API mt_status *mtrun_train_step(mtrun_session *session, const void *const *tensors, int64_t n,
                                   mtrun_results *results);
/* The same without gradient and update. */
MT_API mt_status *mtrun_eval_step(mtrun_session *session, const void *const *tensors, int64_t n,
                                  mtrun_results *results);
/* `tensors`: inputs are read, outputs are written, n rows of each. */
MT_API mt_status *mtrun_predict(mtrun_session *session, void *const *tensors, int64_t n);

/* The name of a class: of the plan, else of the file that mtrun_load read last or a fit resumed, else of the data that
 * the session was first trained on. NULL: it has none, or there is no such label. mtrun_fit and mtrun_evaluate number the
 * labels of data whose classes have names by these, mtrun_predict_file writes them, mtrun_save and checkpoints keep
 * them. */
MT_API const char *mtrun_session_class_name(const mtrun_session *session, int64_t label);

/* Copies a variable's elements, row major; `size` in bytes must match exactly. Errors name the variables there are. */
MT_API mt_status *mtrun_get_variable(mtrun_session *session, const char *name, void *data, size_t size);
MT_API mt_status *mtrun_set_variable(mtrun_session *session, const char *name, const void *data, size_t size);

/* Tells which devices there are besides CPUs, a line each: GPUs with their numbers. MT_NO_DEVICE says why there are
 * none. */
MT_API mt_status *mtrun_list_devices(void (*line)(void *user, const char *text), void *user);

/* Facts about a session, for reports. */
typedef struct mtrun_session_info {
  int32_t devices;            /* N */
  int32_t threads_per_device; /* T */
  int64_t variables_bytes;    /* one copy */
  int64_t peak_bytes;         /* arenas, shared buffers, variables and threads' scratch of the whole process */
  int64_t collective_bytes;   /* moved between devices by the last step */
  const char *target;         /* "x86-64-v4" */
  int64_t seed;               /* of the variables and of random numbers, as the last init set it */
  int32_t process, processes; /* of mtrun_options; 0 of 1 in one process */
  double peak_flops;          /* operations a second in the plan's precision, and */
  double peak_bandwidth; /* bytes of memory a second: what the GPUs can do at best, as their driver tells; 0: unknown */
  int64_t taken_bytes;   /* GPUs: memory of theirs that became used since the session began, by whomever; 0: unknown */
} mtrun_session_info;
MT_API void mtrun_session_get_info(const mtrun_session *session, mtrun_session_info *info);
MT_API const mtrun_plan *mtrun_session_plan(const mtrun_session *session); /* the one it was created with */
MT_API int32_t mtrun_session_shards(const mtrun_session *session,
                                    int32_t device); /* shards it works on: its own, or all that the team shares */

/* Writes the session's variables, in the format that the extension of `path` says: .safetensors, every variable as it is;
 * .keras, the model as the file that it came from, which Keras loads and goes on training, its optimizer's state included;
 * .weights.h5, what Keras' load_weights reads. In Keras' formats variables with moving averages have these. Whole or not at
 * all: temporary file, fsync, rename. MT_INVALID: any other extension, or one of Keras' for a plan that was not made from a
 * Keras model. MT_IO. */
MT_API mt_status *mtrun_save(mtrun_session *session, const char *path);
/* Whether mtrun_save takes a file of this name for sessions of this plan; nothing is written. MT_INVALID. */
MT_API mt_status *mtrun_check_save(const mtrun_plan *plan, const char *path);
/* mtrun_save of Keras' formats alone. */
MT_API mt_status *mtrun_export(mtrun_session *session, const char *path);

/* What of a file and of a plan must be the same in a load by names. */
typedef enum mtrun_match {
  MTRUN_MATCH_ALL = 0,   /* every variable of either */
  MTRUN_MATCH_MODEL = 1, /* every trainable and non-trainable variable of the plan; the optimizer's are taken where they fit */
  MTRUN_MATCH_ANY = 2    /* at least one variable: those of the same name, type and shape are taken, others stay */
} mtrun_match;
/* Reads variables by name; missing, extra or misshapen ones are errors that list them, and nothing is set. `path`: a
 * .safetensors file; a checkpoint; a folder of checkpoints, whose newest is read and verified; a .keras or .weights.h5 file
 * that mtrun_save wrote for a plan of the same model (MTRUN_MATCH_MODEL then). MT_INVALID, MT_CORRUPT, MT_IO. */
MT_API mt_status *mtrun_load(mtrun_session *session, const char *path);
/* The same by another rule. `line`, which may be NULL, is told what was loaded and what was not, a line at a time. */
MT_API mt_status *mtrun_load_matching(mtrun_session *session, const char *path, mtrun_match match,
                                      void (*line)(void *user, const char *text), void *user);

/* Measures on the session's first GPU what runs each kernel fastest: its own code, or a call of cuBLASLt or cuDNN by one
 * of the algorithms that give the same bits every time, each `repeats` times (0: 20). Writes the choices to a tuning file,
 * for mtrun_options.tuning. The session is one with libraries "tune"; what it holds afterwards is void. `line`, which may
 * be NULL, is told of each kernel. MT_INVALID, MT_IO. */
MT_API mt_status *mtrun_tune(mtrun_session *session, const char *path, int32_t repeats,
                             void (*line)(void *user, const char *text), void *user);

/* ---- traces ------------------------------------------------------------------------------------------------- */

typedef struct mtrun_trace_options {
  int64_t first,
      last;    /* training steps, from 1, counted from mtrun_trace_start on: every span of them is kept; 0, 0: none */
  int profile; /* 1: sums of all steps; 0: of steps first to last alone */
} mtrun_trace_options;

/* From now on takes down what every thread of every device does in training steps; the record so far goes. Everything
 * is allocated here, so that steps neither allocate nor lock, and steps that are not taken down run the same code as
 * without a trace. The variables' bits do not depend on it. MT_INVALID (a range that is none, or of more than a
 * gigabyte of spans), MT_NO_MEMORY. */
MT_API mt_status *mtrun_trace_start(mtrun_session *session, const mtrun_trace_options *options);
/* Writes the steps that were kept as a trace in Chrome's JSON format, for ui.perfetto.dev or chrome://tracing: every
 * kernel, wait, all-reduce, transfer and sum, a process a device, a track a thread; docs/tracing.md. Whole or not at
 * all. MT_INVALID (no step was kept), MT_IO. */
MT_API mt_status *mtrun_trace_write(mtrun_session *session, const char *path);

/* Means over the training steps that were taken down. */
typedef struct mtrun_profile {
  int64_t steps, samples; /* how many */
  int32_t threads;        /* of all devices together */
  int32_t entries;        /* steps of the plan's train_step: launches and all-reduces */
  double step_us;         /* a step, by the clock */
  double between_us;      /* from a step's end to the next one's beginning: data, logs, saves, validation */
  double idle_us;         /* that threads waited for a step's beginning or its end, all threads together */
} mtrun_profile;
/* One launch or all-reduce; times are a step's, all threads together. */
typedef struct mtrun_profile_entry {
  const char *name;  /* the kernel's, or "all-reduce" */
  const char *kind;  /* the kernel's: "matmul", "elementwise"; or "all_reduce" */
  const char *layer; /* the layer whose work it does mostly, "" where the model names none; lives as long as the plan */
  double compute_us, transfer_us, wait_us;
  double flops, bytes; /* what it computes and moves at least in a step */
} mtrun_profile_entry;
/* MT_INVALID: no step was taken down, or there is no such entry. */
MT_API mt_status *mtrun_profile_get(mtrun_session *session, mtrun_profile *profile);
MT_API mt_status *mtrun_profile_get_entry(mtrun_session *session, int32_t index, mtrun_profile_entry *entry);

/* ---- data -------------------------------------------------------------------------------------------------- */

typedef struct mtrun_dataset mtrun_dataset;

/* Opens a data source for a plan's inputs and targets. `spec`: "KIND:PATH[,key=value]...", docs/data.md: mnist:DIR,
 * cifar10:DIR, cifar100:DIR, npy:X.npy,Y.npy, npz:FILE, tokens:FILE,length=T, text:FILE,length=T, csv:FILE, plain or
 * .gz, images:DIR, tfrecord:GLOB. Fields go to the entries of their names, or to the only input and the only target.
 * Integer labels must be below classes=C, or below the last axis of the model's only output. Class weights go to the
 * model's only input of weights; labels without one have 1. MT_INVALID, MT_CORRUPT, MT_IO, MT_NO_MEMORY. The dataset
 * keeps a pointer to the plan. */
MT_API mt_status *mtrun_dataset_open(const mtrun_plan *plan, const char *spec, mtrun_dataset **dataset);
/* One value of every sample: what of the caller's own data goes to the input, target or sample weight of its name. */
typedef struct mtrun_field {
  const char *name; /* of an entry of the plan's signature */
  mt_dtype dtype;   /* of the caller's elements; integers become floats, f64 is rounded to f32, labels may be one-hot */
  int32_t rank;     /* of a sample, without the batch axis */
  const int64_t *shape;
  const void *data; /* arrays: sample i lies at data + i * stride, row major */
  int64_t stride;   /* arrays: bytes from a sample to the next; 0: they are dense */
} mtrun_field;

/* What a callback is asked for. */
typedef struct mtrun_request {
  int64_t pass;           /* over the data, from 0; always 0 in validation, evaluate and predict */
  int64_t first;          /* unknown length: how many samples of this pass came before */
  const int64_t *samples; /* known length: the numbers of the samples; NULL with unknown length */
  int64_t rows;           /* how many */
  void *const *fields;    /* room for `rows` samples of each field, one after the other; NULL: not needed */
  char *message;          /* of a failure: at most message_size bytes with the 0 */
  size_t message_size;
} mtrun_request;

/* The caller's own samples, made when they are needed.
 *
 * samples >= 1: known length. Any sample is asked for, in any order and as often as a run needs it: `read` writes the
 * ones that the request names and returns their number. What it writes depends on the number of the sample (and the
 * pass) alone; then shuffling, slices, resuming and every other promise hold as for any other source.
 * samples -1: unknown length. `read` writes the next samples of the pass and returns how many; fewer than asked for
 * end the pass, 0 too. The next pass begins with `first` 0. An epoch is a pass, or steps_per_epoch steps; nothing is
 * shuffled; a resumed run asks once more for what it had of its pass (with steps_per_epoch: of all passes), and drops
 * it.
 *
 * A negative number is a failure: it ends the run with MT_IO and the message. Threads: `read` is called by threads of
 * the library, never by the caller's, ahead of the steps: by one, or with known length by up to `threads` at the same
 * time. They receive no signals. The last call has returned when mtrun_fit, mtrun_evaluate or mtrun_predict_file does;
 * `read` must not use the session that trains. */
typedef struct mtrun_source {
  int64_t samples;
  const mtrun_field *fields; /* copied; data and stride are not read */
  int32_t field_count;
  int64_t (*read)(void *user, mtrun_request *request);
  void *user;
  int32_t threads; /* 0: 1 */
} mtrun_source;

/* Arrays in memory as a dataset. Their memory stays the caller's and must outlive the dataset and its slices. `keys`:
 * "scale=1/255,classes=10" and such, docs/data.md, or NULL. MT_INVALID: names, types or shapes do not fit the plan. */
MT_API mt_status *mtrun_dataset_open_arrays(const mtrun_plan *plan, const mtrun_field *fields, int32_t count,
                                            int64_t samples, const char *keys, mtrun_dataset **dataset);
/* A callback as a dataset. Labels are looked at as they come: one that is not below the number of classes ends the run.
 * No class-weight= among the keys, no range= with unknown length. MT_INVALID. */
MT_API mt_status *mtrun_dataset_open_source(const mtrun_plan *plan, const mtrun_source *source, const char *keys,
                                            mtrun_dataset **dataset);
MT_API int64_t mtrun_dataset_size(const mtrun_dataset *dataset); /* samples; -1: unknown */
MT_API void mtrun_dataset_free(mtrun_dataset *dataset);
/* What the user should know of the data, a line at a time: damaged pictures that are left out, values that the model
 * scales once more. */
MT_API void mtrun_dataset_notes(const mtrun_dataset *dataset, void (*line)(void *user, const char *text), void *user);
/* Holds out a share of the samples, drawn by the seed: two datasets, to be freed too, of the samples to train on and of
 * those to validate on, each in the order of the data. Of `size` samples floor(size * (1 - share)) are kept. Where a
 * target has labels (whole numbers, one-hot rows, or zeros and ones for one number), every class gives the same share,
 * as nearly as whole samples allow; a part that lacks a class says so in its notes. A function of the data, the share and
 * the seed alone. The memory of the samples is shared. mtrun_fit does it itself with mtrun_loop_options.validation_split.
 * MT_INVALID: a part would be empty, or the length of the data is unknown. */
MT_API mt_status *mtrun_dataset_split(const mtrun_dataset *dataset, double share, int64_t seed,
                                      mtrun_dataset **training, mtrun_dataset **validation);
/* Samples [begin, end) as a dataset of their own, to be freed too; the memory of the samples is shared. MT_INVALID:
 * they are not within the data, or its length is unknown. */
MT_API mt_status *mtrun_dataset_slice(const mtrun_dataset *dataset, int64_t begin, int64_t end, mtrun_dataset **slice);
/* Tells people what a source holds, a line at a time: fields, types, shapes, range of values, labels and their counts,
 * the first `samples` samples. Needs no plan. */
MT_API mt_status *mtrun_data_describe(const char *spec, int64_t samples, void (*line)(void *user, const char *text),
                                      void *user);
/* Tells how many samples a second come from a source, in shuffled batches of `batch`, measured for about `seconds`; of
 * pictures (with size=HxW) also how many the decoding library does alone. Needs no plan. MT_INVALID. */
MT_API mt_status *mtrun_data_benchmark(const char *spec, int64_t batch, double seconds,
                                       void (*line)(void *user, const char *text), void *user);
/* The order of an epoch: a permutation of 0 .. size-1, a function of (seed, epoch) alone; nothing if the size is
 * unknown. */
MT_API void mtrun_dataset_order(const mtrun_dataset *dataset, int64_t seed, int64_t epoch, int64_t *order);

/* ---- loops ------------------------------------------------------------------------------------------------- */

/* Sent while a loop runs; return non-zero to stop after this step. */
typedef struct mtrun_progress {
  int64_t epoch, epochs; /* from 0; epochs is 1 for evaluate */
  int64_t step, steps;   /* steps done in this epoch, of how many; 0: the length of the data is unknown */
  double seconds;        /* since the epoch began */
  int32_t metrics;       /* entries below */
  const char *const *names;
  const double *values; /* running means */
  int validation;       /* 1: the epoch's validation values are in, names start with val_ after the training ones */
  int epoch_end;        /* the last call of an epoch; there is none in an epoch that the callback stops */
  const double *step_values; /* what this step alone computed, in the order of the training names; NULL with
                                `validation`: the step had a call before */
  double learning_rate;      /* that this step used; NaN: the plan does not tell */
  int64_t total_step;        /* steps since the run began, whatever was resumed */
  double input_wait;         /* seconds of `seconds` that the devices waited for data */
} mtrun_progress;

/* Checkpoints: folders step-000000000100 and so on, each there as a whole or not at all whatever happens.
 * docs/checkpoints.md. */
typedef struct mtrun_checkpoint_options {
  const char *folder;  /* made if it is not there; one run at a time; NULL: only resume */
  int64_t every_steps; /* 0: not by steps. All three 0: every epoch */
  int64_t every_epochs;
  double every_seconds;
  int64_t keep;       /* the newest that stay, beside the best; 0: 3 */
  const char *resume; /* NULL: begin, in a folder without checkpoints. "auto": the newest in `folder` that verifies, or
                         begin if there is none. Else the path of a checkpoint */
  int force; /* resume another plan whose variables fit, or with other data, or before newer checkpoints, which go */
} mtrun_checkpoint_options;

/* How a fit ended. */
typedef struct mtrun_fit_result {
  int stopped;        /* 1: by `stop` or `progress`, before the last epoch's end */
  int saved;          /* 1: the last step is in a checkpoint */
  int64_t epochs;     /* complete, the resumed ones included */
  int64_t total_step; /* steps since the run began */
  double input_wait;  /* share of the training time that the devices waited for data */
  double seconds;     /* of training, in this call */
  int stopped_early;  /* 1: early stopping ended the run, now or before it was resumed */
  int not_finite;     /* 1: a loss of validation was not finite in an epoch of this call */
} mtrun_fit_result;

typedef struct mtrun_loop_options { /* all-zero is the default */
  int64_t epochs;                   /* in total, the resumed ones included; 0: 1 */
  int no_shuffle;
  int drop_remainder;
  mtrun_dataset *validation; /* or NULL */
  int (*progress)(void *user, const mtrun_progress *progress);
  void *progress_user;
  int64_t more_epochs; /* instead of `epochs`: after the complete ones of the checkpoint */
  int64_t
      steps_per_epoch; /* 0: a pass over the data; else an epoch is so many steps, of passes that follow one another */
  int64_t shuffle_window; /* 0: a permutation of all samples; else each is drawn among the next so many */
  const mtrun_checkpoint_options *checkpoint; /* or NULL */
  const char *history_json, *history_csv;     /* files that are written anew after each epoch, or NULL */
  const char *monitor; /* a metric as progress names it: "NAME", "NAME:max" (higher is better) or "NAME:min"; without
                          these two words the plan says which is better. NULL: val_loss, or loss */
  int64_t early_patience;   /* stop after so many epochs without a better monitored value; 0: never */
  double early_min_delta;   /* for early stopping what is better by less does not count */
  int64_t plateau_patience; /* multiply the learning rate after so many epochs without a better one; 0: never */
  double plateau_factor;    /* 0: 0.1 */
  double plateau_min_rate;  /* the learning rate stays above */
  int allow_nan;            /* go on after a loss that is not finite, or with values of the data that are not, which
                               otherwise are MT_INVALID at their step */
  int (*stop)(void *user);  /* asked after every step, of validation too: non-zero saves and ends the fit */
  void *stop_user;
  void (*note)(void *user, const char *message); /* what was resumed, changed or stopped, a line each */
  void *note_user;
  mtrun_fit_result *result; /* or NULL */
  int restore_best;         /* with early_patience: end with the model's variables of the best epoch, as Keras'
                               restore_best_weights; the optimizer's stay. Checkpoints hold those of the last epoch, and
                               of the best */
  double rate_scale; /* the learning rate of a run that begins is multiplied by this; 0: 1. MT_INVALID where a schedule
                        computes it */
  const char *epoch_file; /* written after each epoch, as by mtrun_save, with fields {epoch}, {epoch:02d},
                             {val_loss:.2f}; or NULL */
  int in_flight; /* 1: but for the end of an epoch `progress` and `stop` neither read nor set variables. Then on GPUs up
                    to two launches are under way when they are called; a training that they stop finishes and tells
                    these steps first. 0: no step begins before the calls for the one before have returned, unless both
                    are NULL */
  /* Monitors of their own, as `monitor`; NULL: that one. Checkpoints' is of epoch_best_only too. */
  const char *early_monitor, *plateau_monitor, *checkpoint_monitor;
  const double *early_baseline;    /* the patience begins anew only after epochs better than this, too; NULL: none */
  int64_t early_start_epoch;       /* early stopping does not look at the first epochs, so many */
  const double *plateau_min_delta; /* for the plateau what is better by less does not count; NULL: 1e-4 */
  int64_t plateau_cooldown;        /* the plateau does not count so many epochs after it reduced the rate */
  int epoch_best_only;             /* epoch_file: only after epochs that are better than all before */
  int epoch_weights_only;          /* epoch_file, .safetensors: the model's variables without the optimizer's */
  double learning_rate;     /* of a run that begins, or resumes one that was given another; 0: the model's. MT_INVALID
                               where a schedule computes it */
  int64_t validation_freq;  /* validate after each so many epochs; 0: 1. Other epochs have NaN for its values */
  int64_t validation_steps; /* of a validation, the first batches of its data; 0: all. MT_INVALID with data of unknown
                               length */
  int64_t initial_epoch;    /* epochs that count as done where no checkpoint says it: of `epochs`, names of files and the
                               order of samples */
  double validation_split; /* without `validation`: the share of the data to validate on, above 0 and below 1, held out
                              as mtrun_dataset_split does by the run's seed, which a resumed run has from its
                              checkpoint; 0: none */
  int validation_last;     /* 1: hold out the last samples of the data instead */
} mtrun_loop_options;

/* Trains on whole epochs; the last batch of an epoch may be short. Data is prefetched by a thread of its own. Errors of
 * saves and epoch files are warnings in the log until the last one, whose error is the fit's; those of histories are
 * warnings and no more. A run that is resumed after its end does nothing more, and a note says so. After the last epoch
 * variables with moving averages (an optimizer's ema_momentum) become these, unless the caller stopped the training;
 * checkpoints hold them as they were before. */
MT_API mt_status *mtrun_fit(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options);
/* Means over the dataset, `values` in mtrun_plan_metric_name(plan, "eval_step", i)'s order. */
MT_API mt_status *mtrun_evaluate(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options,
                                 double *values);
/* Predicts every sample, in the order of the data, and writes a file whose format its name's end says:
 *   .npy  output `index`, counting outputs only; -1: the first
 *   .npz  all outputs by their names, or with an index above -1 that one; "names": the samples' files, or their numbers
 *         where they have none; "classes": the names of the classes, where the session has them
 *   .csv  a line a sample: its file or number; then of every output (or that one) the values, of classes the best one too
 * Pictures that cannot be read have rows of NaN where the data was opened with damaged=keep; the session's log says how
 * many. Whole or not at all. MT_INVALID: another name, or data of unknown length, among others. */
MT_API mt_status *mtrun_predict_file(mtrun_session *session, mtrun_dataset *data, int32_t index, const char *path);

typedef struct mtrun_timing {
  double median_us, min_us, mean_us;
  int64_t steps;
  double first_step_us;
  /* Of GPUs, 0 elsewhere. Medians from a step's end to the next one's with launches queued, so that the host's work is
   * beside the devices'; and with inputs that stay on the devices, waiting for each step or queued too. */
  double queued_us, resident_us, resident_queued_us;
  double floor_us; /* what the FLOPs or the bytes of each launch take at the devices' peak, summed; 0: not known */
} mtrun_timing;
/* Times `steps` training steps of n rows on random inputs in memory after `warmup` untimed ones. The variables move:
 * use a session of its own. */
MT_API mt_status *mtrun_benchmark(mtrun_session *session, int64_t n, int64_t warmup, int64_t steps,
                                  mtrun_timing *timing);

#ifdef __cplusplus
}
#endif
#endif
