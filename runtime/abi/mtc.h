/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtc.h
 * Compiles a model into a plan, and describes plans. C99; mt.h has the conventions.
 *
 * Threads: every call may be made from any thread, several at a time. A result is immutable.
 */
#ifndef MTC_H
#define MTC_H

#include "mt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that was loaded; MT_VERSION is that of the headers. The string is static. */
MT_API const char *mtc_version(void);

/**
 * How a model is compiled. Begin with mtc_options_init(), then set what differs. Strings need to live only during the
 * call.
 *
 * The comments are the list of options: the flags of `mtc` and `mtrun`, their help, the manual pages and the arguments
 * of `mtc.compile` in Python are made from them. docs/contributing.md has the form of a line "Flag:".
 */
typedef struct mtc_options {
  size_t struct_size; /**< mtc_options_init() sets it. */
  /** Samples of a training step on all devices together, B. 0: 32. Flag: `--batch,--batch-size B=32`, 1 to 1073741824,
   * also of mtrun. */
  int64_t batch;
  /** Slices of the batch, R: a power of two, and the largest number of devices that can run the plan. 0: 8, or the
   * largest power of two that is at most B. Flag: `--shards R`, 1 to 65536, in Devices and precision. */
  int32_t shards;
  /** Mode of the plan: exact (0), with the same bits on any number of devices, or fast (1), without that promise.
   * Flag: `--mode exact|fast`, in Devices and precision. */
  int fast;
  /** Devices that the plan is for: "cpu", or a list such as "cpu,cuda" or "cpu,cuda:sm_80,sm_90". NULL: "cpu". Flag:
   * `--target TARGET=cpu`, in Devices and precision. See docs/gpu.md. */
  const char *target;
  /** CPUs that the plan has code for, best first: "native" alone, or a list of "x86-64-v4-bf16", "x86-64-v4",
   * "x86-64-v3" and "armv8-a", of which the best is chosen when the plan is loaded. NULL: all of this machine's
   * architecture, "x86-64-v4-bf16" only if the precision is bf16. Flag: `--cpu CPU,...`, in Devices and precision. */
  const char *cpu;
  /** Seed of the initial values. 0: 1. Flag: `--seed S=1`. */
  int64_t seed;
  /** Bytes of memory that a device may use. 0: no limit. Flag: `--device-memory BYTES`, 0 or more, in Memory. If the
   * plan fits on no number of devices, the call fails with MT_NO_MEMORY. */
  int64_t device_memory;
  /** Stage after which to stop, with its MLIR text as the result in place of a plan. NULL: none.
   * Flag: `--stop-after STAGE`, in Stages. mtc_stage_name() has the names. */
  const char *stop_after;
  /** Folder for the MLIR text after each stage, in files such as 03-shard.mlir, with the passes that come next, which
   * `mt-opt --run-reproducer` runs. NULL: none. Flag: `--dump-stages DIR`, in Stages. */
  const char *dump_stages;
  /** 1: reports the time of each stage. Flag: `--timing`, in Stages. The report goes to `log`. */
  int timing;
  /** Receives messages, from the thread that compiles. Level 0 is information, 1 a warning. NULL: silent. */
  void (*log)(void *user, int level, const char *message);
  /** Passed to `log`. */
  void *log_user;

  /** Loss of a Keras or ONNX model, such as "mse" or "sparse_categorical_crossentropy,from_logits=true". NULL: as the
   * file says. Flag: `--loss LOSS`, in Training, also of mtrun. */
  const char *loss;
  /** Optimizer of a Keras or ONNX model, such as "adam" or "sgd,learning_rate=0.1,momentum=0.9". NULL: as the file
   * says. Flag: `--optimizer OPTIMIZER`, in Training, also of mtrun. */
  const char *optimizer;
  /** Metrics of a Keras or ONNX model, such as "accuracy,mae", or "none". NULL: as the file says.
   * Flag: `--metrics METRICS`, in Training, also of mtrun. */
  const char *metrics;
  /** 1: leaves out metrics of a Keras model that are not known. 0: they are errors. Flag:
   * `--drop-unsupported-metrics`, in Training. */
  int drop_unsupported_metrics;
  /** 1: losses and weighted metrics of a Keras or ONNX model take weights of samples. Flag: `--sample-weights`, in
   * Training, also of mtrun. The input is called "sample_weight", or "OUTPUT_sample_weight" for each of several
   * outputs. A weight that is not passed to a step is 1. */
  int sample_weights;
  /** File (.safetensors) of values that variables start with; a variable that it does not name starts as the model's
   * file says. NULL: none. Flag: `--weights FILE`. mtc_import_file() makes such a file. */
  const char *weights;
  /** Recomputation of cheap results of the forward pass: "auto", where they would not fit in `device_memory`, to the
   * same bits; or "none". NULL: "none". Flag: `--recompute auto|none=none`, in Memory. */
  const char *recompute;
  /** 1: takes the largest batch that fits in `device_memory` on one device. Flag: `--max-batch`, in Memory, not with
   * --batch. `batch` is ignored. */
  int max_batch;
  /** Layers or variables that stay as they are, by patterns with `*`, `?` and `[abc]`: "conv1,block2_*,head/bias".
   * NULL: none. Flag: `--freeze NAMES`, in Training. They have no gradients and no slots, and batch normalisation
   * computes as in prediction. For models of any format. */
  const char *freeze;
  /** Layers or variables that are trained, written as `freeze`; all others are frozen. NULL: all.
   * Flag: `--trainable NAMES`, in Training. */
  const char *trainable;
  /** Statistics of batch normalisation in training: of the whole batch ("global"), or each shard's own ("local").
   * NULL: "global". Flag: `--batch-norm global|local=global`, in Devices and precision. */
  const char *batch_norm;
  /** Number format of matrix products and convolutions: "f32", "tf32", "bf16" or "f16", or one of Keras' names, such
   * as "mixed_float16"; or "f64", the number format of everything, on CPUs. NULL: as the model's dtype policies say,
   * else f32. Flag: `--precision TYPE`, in Devices and precision, also of mtrun. Large stored values have it too. See
   * docs/precision.md. */
  const char *precision;
  /** Names of the labels 0, 1, ..., which the plan keeps: a list such as "cat,dog", or a file with one name a line.
   * NULL: the names in the model's file, if there are any. Flag: `--class-names NAMES`, in Model. */
  const char *class_names;
  /** Text file in UTF-8 whose distinct characters, in order, are the tokens 0, 1, ..., which the plan keeps. NULL:
   * none. Flag: `--vocabulary FILE`, in Model, also of mtrun. */
  const char *vocabulary;
  /** Sizes of an input that has axes of any size, without the batch axis, such as "224,224,3"; of several inputs
   * "A=224,224,3;B=28,28,1". NULL: none. Flag: `--input-shape [NAME=]SIZES`, repeatable, in Model, also of mtrun. */
  const char *input_shape;
  /** Layers or variables that the optimizer's weight decay leaves out, written as `freeze`, such as
   * "norm*,dense/bias". NULL: none. Flag: `--no-weight-decay NAMES`, in Training. */
  const char *no_weight_decay;
  /** Micro-batches of a step on CPUs: a power of two up to the shards, which a device computes one after another in
   * less memory, to the same bits. 0: as few as fit one device of `device_memory`, if any do, else 1. Flag:
   * `--micro-batches K`, in Memory. Runs use them where they do not say otherwise. */
  int32_t micro_batches;
  /** Lengths of sequences, rising: "64,128,256". The plan has programs for each, and a step takes the smallest that
   * holds its longest sample. NULL: none. Flag: `--lengths L,...`, in Model, also of mtrun, not with --input-shape.
   * The model leaves the length open: keras.Input((None,)), an axis of any size in ONNX, {length} in MLIR text. */
  const char *lengths;
  /** Input whose last element that is not zero says how long a sample is, with `lengths`: a mask, for instance. NULL:
   * the longest of all inputs that have the length. Flag: `--length-input NAME`, in Model, also of mtrun. */
  const char *length_input;
  /** 1: batch normalisation computes as in prediction in training too, with the statistics of the model's file. Flag:
   * `--freeze-batch-norm`, in Training. As when a model is fine-tuned. Scales and centres are trained. For models of
   * any format. */
  int freeze_batch_norm;
  /** Framework whose gradient is taken where a formula has a kink, such as |x| at 0: the back end of Keras that the
   * model comes from. NULL: "tensorflow". Flag: `--kinks tensorflow|jax|torch=tensorflow`, in Devices and precision.
   * See docs/ir.md. */
  const char *kinks;
  /** Passes before which the MLIR text goes to the standard error output: "mt-fuse,mt-schedule", or "all". NULL: none.
   * Flag: `--print-ir-before PASS,...`, in Stages. */
  const char *print_ir_before;
  /** Passes after which the MLIR text goes to the standard error output: "mt-fuse,mt-schedule", or "all". NULL: none.
   * Flag: `--print-ir-after PASS,...`, in Stages. */
  const char *print_ir_after;
  /** 1: the function of a StableHLO file is a whole training step, with gradients and updates. 0: it is a model or a
   * loss. Flag: `--step`, in Model. `state` and `split` say what its arguments are. See docs/import.md. */
  int step;
  /** Arguments of a step that are state, each with the number of the result that replaces it, and a name:
   * "0-7:1-8,9:10=step,11". Numbers begin with 0; an argument without a result stays as it is. NULL: none. Flag:
   * `--state ARGUMENTS`, in Model. */
  const char *state;
  /** Arguments of a step that have a sample for each index of their first axis, with names: "8=images,9=labels". NULL:
   * none. Flag: `--split ARGUMENTS`, in Model. */
  const char *split;
  /** Bytes of gradients that devices exchange at once, while the backward pass goes on. 0: 26214400 (25 MiB). A larger
   * gradient is an exchange of its own. The bits do not depend on it. Flag: `--bucket-bytes BYTES`, 0 or more, in
   * Memory. */
  int64_t bucket_bytes;
  /** Layer or variable, written as `freeze`: what stands before it in the model stays as it is. NULL: none. Flag:
   * `--freeze-until NAME`, in Training. The order is that of `mtc summary`. */
  const char *freeze_until;
  /** Factors of the learning rate of layers or variables, by patterns as `freeze` has them: "*=0.1x,head*=1x". The last
   * pattern that matches a variable counts. NULL: none. Flag: `--rate FACTORS`, in Training. Schedules and
   * rates that are set between steps are multiplied too. */
  const char *rate;
  /** Weight decays of layers or variables in the place of the optimizer's, written as `rate`:
   * "*=0.01,bias*=0". NULL: none. Flag: `--weight-decay DECAYS`, in Training. */
  const char *weight_decay;
  /** Columns file of CSV data, which `mtrun data --save-columns` wrote: the categories, means and deviations by which
   * cells become numbers, which the plan keeps. NULL: none. Flag: `--columns FILE`, in Model, also of mtrun. */
  const char *columns;
} mtc_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtc_options)

/**
 * Checks options without a model.
 *
 * @return NULL if a model may be compiled with these options, else MT_INVALID with the message that the call would give
 */
MT_API mt_status *mtc_options_check(const mtc_options *options);

/** A plan or a text in memory. */
typedef struct mtc_result mtc_result;

/**
 * Compiles MLIR text, or the JSON of a Keras model (config.json).
 *
 * @param text     the text; it need not end with a zero byte
 * @param size     bytes of the text
 * @param name     what messages call the text, such as a file's name
 * @param options  or NULL for the defaults
 * @param result   receives the plan, to be freed with mtc_result_free()
 * @return NULL, or an error. The message of MT_INVALID has lines of the form "file:line:column: error: ...".
 */
MT_API mt_status *mtc_compile_text(const char *text, size_t size, const char *name, const mtc_options *options,
                                   mtc_result **result);

/**
 * Compiles a file: what mtc_compile_text() takes, or a .keras archive. A plan of an archive starts with its weights.
 *
 * @param path     the file
 * @param options  or NULL
 * @param result   receives the plan
 * @return NULL, or an error as of mtc_compile_text(). MT_IO: the file cannot be read.
 */
MT_API mt_status *mtc_compile_file(const char *path, const mtc_options *options, mtc_result **result);

/**
 * Converts a model to MLIR text, with its layers' names as its only locations, and its weights to a .safetensors file.
 *
 * @param path     the model
 * @param options  or NULL
 * @param text     receives the text
 * @param weights  receives the bytes of a .safetensors file, which mtc_options.weights takes; NULL if the model has
 * none
 * @return NULL, or an error as of mtc_compile_file()
 */
MT_API mt_status *mtc_import_file(const char *path, const mtc_options *options, mtc_result **text,
                                  mtc_result **weights);

/** The same of a text, as mtc_compile_text() takes it. The arguments are as there. */
MT_API mt_status *mtc_import_text(const char *text, size_t size, const char *name, const mtc_options *options,
                                  mtc_result **imported, mtc_result **weights);

/**
 * Describes a model as a table of its layers, as Keras' summary does: output shapes and parameters, with FLOPs and
 * bytes of the forward pass of one sample, and totals. The arguments are the same as for mtc_compile_text().
 */
MT_API mt_status *mtc_summary_text(const char *text, size_t size, const char *name, const mtc_options *options,
                                   mtc_result **result);

/** The same for a file. The arguments are the same as for mtc_compile_file(). */
MT_API mt_status *mtc_summary_file(const char *path, const mtc_options *options, mtc_result **result);

/** The bytes of a result; they live as long as the result. */
MT_API const void *mtc_result_data(const mtc_result *result);

/** How many bytes a result has. */
MT_API size_t mtc_result_size(const mtc_result *result);

/**
 * Writes a result to a file, which appears under its name only when it is complete (temporary file, fsync, rename).
 *
 * @return NULL, or MT_IO
 */
MT_API mt_status *mtc_result_save(const mtc_result *result, const char *path);

/** Frees a result; NULL is fine. */
MT_API void mtc_result_free(mtc_result *result);

/** Name of stage `index` of the pipeline, counted from 0; NULL after the last. The string is static. */
MT_API const char *mtc_stage_name(int32_t index);

/** One line of help about stage `index`; NULL after the last. The string is static. */
MT_API const char *mtc_stage_help(int32_t index);

/**
 * Describes a plan: programs, variables, kernels with FLOPs and bytes, collectives in order, the memory map.
 *
 * @param plan    the bytes of a plan file, which are verified first
 * @param size    how many
 * @param json    1: JSON; 0: text for people
 * @param result  receives the text
 * @return NULL, or MT_CORRUPT
 */
MT_API mt_status *mtc_inspect(const void *plan, size_t size, int json, mtc_result **result);

/** The same as one page of HTML, which needs no other file: the layers with their kernels, who works on which rows, the
 * memory over the steps, graphs and schedules. */
MT_API mt_status *mtc_inspect_html(const void *plan, size_t size, mtc_result **result);

/** Inputs of mtc_inspect_with() in addition to the plan. Begin with mtc_inspect_options_init(), then set what differs.
 */
typedef struct mtc_inspect_options {
  size_t struct_size; /**< mtc_inspect_options_init() sets it. */
  int html;           /**< 1: a page of HTML; 0: text. */
  /** A trace of the plan, as mtrun_trace_write() makes it: its times and shares of the floor come to the layers and
   * kernels. NULL: none. */
  const char *trace;
  size_t trace_size; /**< Bytes of `trace`. */
  /** The bytes of another plan: the two are compared. NULL: none. */
  const void *against;
  size_t against_size; /**< Bytes of `against`. */
  const char *name,    /**< What the plan is called in a comparison; NULL: "the plan". */
      *against_name;   /**< What the other one is called; NULL: "the other plan". */
  /** A GPU model, such as "h100", whose rates the floors of a comparison are of. NULL: those of the trace, else 100
   * GFLOP/s and 10 GB/s. */
  const char *gpu;
  /** Hosts to model a training step on, without `trace` and `against`: "8x8" are 8 hosts of 8 GPUs, "8" are 8 hosts of
   * CPUs. NULL: none. The text has a row for 1, 2, 4 ... hosts, with an exchange that adds inside each host first, and
   * with a ring. */
  const char *hosts;
  /** CPUs of each of `hosts`, without `gpu`: "32x40GF" are 32 cores of 40 GFLOP/s. */
  const char *cpu;
  /** The network of each device of `hosts`: "400Gb" is 400 * 10^9 bits per second in each direction. NULL: that of the
   * GPU's usual machine. */
  const char *network;
} mtc_inspect_options;
/** Options that are zero but for their size. */
MT_DEFINE_INIT(mtc_inspect_options)

/**
 * Shows a plan together with what was measured of it, or with another plan.
 *
 * @param plan     the bytes of a plan file
 * @param size     how many
 * @param options  or NULL
 * @param result   receives the text or page
 * @return NULL, MT_CORRUPT, or MT_INVALID: the trace is none of this plan, or the GPU is not known
 */
MT_API mt_status *mtc_inspect_with(const void *plan, size_t size, const mtc_inspect_options *options,
                                   mtc_result **result);

/**
 * Models a training step on 1, 2, 4 ... R GPUs: its time, the time of its all-reduces, and how much of that no kernel
 * hides.
 *
 * @param plan    the bytes of a plan file
 * @param size    how many
 * @param gpu     a GPU model, such as "h100"
 * @param result  receives the text
 * @return NULL, MT_CORRUPT, or MT_INVALID, which lists the GPUs that are known
 */
MT_API mt_status *mtc_inspect_gpus(const void *plan, size_t size, const char *gpu, mtc_result **result);

/**
 * Draws which device works on which rows of a batch and holds which variables.
 *
 * @param plan     the bytes of a plan file
 * @param size     how many
 * @param devices  number of devices, at most R
 * @param html     1: a page of HTML; 0: text
 * @param result   receives the drawing
 * @return NULL, MT_CORRUPT, or MT_INVALID where the plan does not run on so many devices
 */
MT_API mt_status *mtc_inspect_devices(const void *plan, size_t size, int32_t devices, int html, mtc_result **result);

#ifdef __cplusplus
}
#endif
#endif
