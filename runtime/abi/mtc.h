/* SPDX-License-Identifier: Apache-2.0
 *
 * mtc.h: compile a model into a plan. C99; see mt.h for conventions. Any call may be made from any thread.
 */
#ifndef MTC_H
#define MTC_H

#include "mt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, then set what differs: all-zero is the default. */
typedef struct mtc_options {
  int64_t batch;           /* B; 0: 32 */
  int32_t shards;        /* R, a power of two; 0: 8, or the largest power of two <= B */
  int fast;                /* 1: --mode fast */
  const char *target;      /* "cpu" (NULL), "cpu,cuda", "cpu,cuda:sm_80,sm_90": docs/gpu.md */
  const char *cpu;         /* "native", "x86-64-v3", "x86-64-v4"; NULL: v3 and v4 both */
  int64_t seed;            /* of the initial values; 0: 1 */
  int64_t device_memory;   /* bytes a device may use; 0: no limit. MT_NO_MEMORY where no number of devices fits */
  const char *stop_after;  /* a stage's name: the result is MLIR text, not a plan */
  const char *dump_stages; /* directory that receives one .mlir a stage, or NULL */
  int timing;              /* report the time of each stage through `log` */
  void (*log)(void *user, int level, const char *message); /* 0 info, 1 warning, 2 error location text; NULL: silent */
  void *log_user;
  /* Keras models: replace what the file says, or give what it lacks. NULL: as the file says. */
  const char *loss;        /* "NAME[,key=value...]": "sparse_categorical_crossentropy,from_logits=true" */
  const char *optimizer;   /* "adam", "sgd,learning_rate=0.1,momentum=0.9" */
  const char *metrics;     /* "accuracy,mae"; "none" */
  int drop_unsupported_metrics;
  int sample_weights;      /* 1: losses and weighted metrics take weights of samples, "sample_weight" ("OUTPUT_sample_weight"), ones where absent */
  const char *weights;     /* a .safetensors file of values that variables start with: one that mtc_import_file made */
  const char *recompute;   /* "auto": with device_memory, compute cheap results of the forward pass again where they would not fit, to the
                              same bits; "none" (NULL) */
  int max_batch;           /* 1: with device_memory, the largest batch that fits on one device, in place of `batch` */
  const char *freeze;      /* "PATTERN[,PATTERN...]" of names of layers or variables, with *, ? and [abc]: they stay as they are, without gradients and
                              slots; batch normalisation computes as in prediction. NULL: none. Of any model */
  const char *trainable;   /* the same: all but these are frozen */
  const char *batch_norm;  /* "global" (NULL): batch normalisation takes the statistics of the whole batch; "local": of each shard, its own */
  const char *precision;   /* "f32", "tf32", "bf16", "f16", or Keras' names ("mixed_float16"): what products of matrices and convolutions take and big values are stored as
                              (docs/precision.md). NULL: as the model's dtype policies say, else f32 */
  const char *class_names; /* names of the labels 0, 1, ..., which the plan keeps: "cat,dog", or the path of a file with one a line. NULL: those that the
                              model's file has, if it has some */
  const char *vocabulary;  /* path of a text in UTF-8 whose distinct characters, in order, are the tokens 0, 1, ...: the plan keeps them. NULL: none */
  const char *input_shape; /* Keras models whose inputs have axes of any size: "224,224,3", or "NAME=224,224,3[;NAME=...]", without the batch axis */
} mtc_options;

/* A compiled plan, or text, in memory. */
typedef struct mtc_result mtc_result;

/* Compiles MLIR text or a Keras config.json; `name` appears in messages. Errors: MT_INVALID with "file:line:column: error: ..." lines.
 * A file may be a .keras archive as well, whose plan starts with the archive's weights. */
MT_API mt_status *mtc_compile_text(const char *text, size_t size, const char *name, const mtc_options *options, mtc_result **result);
MT_API mt_status *mtc_compile_file(const char *path, const mtc_options *options, mtc_result **result);
/* A model as MLIR text, with its layers' names as locations, and its weights as the bytes of a .safetensors file; *weights is NULL if the
 * file has none. mtc_options.weights takes them back. */
MT_API mt_status *mtc_import_file(const char *path, const mtc_options *options, mtc_result **text, mtc_result **weights);
/* The model's layers as a table, as Keras' summary has them: output shape, parameters; FLOPs and bytes of a sample's forward pass; totals. */
MT_API mt_status *mtc_summary_text(const char *text, size_t size, const char *name, const mtc_options *options, mtc_result **result);
MT_API mt_status *mtc_summary_file(const char *path, const mtc_options *options, mtc_result **result);
MT_API const void *mtc_result_data(const mtc_result *result);
MT_API size_t mtc_result_size(const mtc_result *result);
/* Temporary file, fsync, rename. MT_IO. */
MT_API mt_status *mtc_result_save(const mtc_result *result, const char *path);
MT_API void mtc_result_free(mtc_result *result);

/* The names of the stages, in order; NULL after the last. One line of help for each. */
MT_API const char *mtc_stage_name(int32_t index);
MT_API const char *mtc_stage_help(int32_t index);

/* What a plan holds, as text for people or as JSON: programs, variables, kernels with FLOPs and bytes, collectives in order,
 * memory map. The plan is verified first. */
MT_API mt_status *mtc_inspect(const void *plan, size_t size, int json, mtc_result **result);
/* The same as one page of HTML that needs nothing beside it: graph, memory map, schedule, kernels. */
MT_API mt_status *mtc_inspect_html(const void *plan, size_t size, mtc_result **result);
/* A modelled training step on 1, 2, 4 ... R GPUs: its time, that of its all-reduces, and what of that no kernel hides. `GPU`: "h100", say; MT_INVALID
 * lists those that are known. */
MT_API mt_status *mtc_inspect_gpus(const void *plan, size_t size, const char *gpu, mtc_result **result);
/* Which of `devices` devices works on which rows of a batch and holds which variables, drawn as text, or with `html` as a
 * page. MT_INVALID: the plan does not run on so many. */
MT_API mt_status *mtc_inspect_devices(const void *plan, size_t size, int32_t devices, int html, mtc_result **result);

#ifdef __cplusplus
}
#endif
#endif
