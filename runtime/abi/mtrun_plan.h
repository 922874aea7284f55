/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun_plan.h
 * A part of mtrun.h. Plans and their contents.
 */
#ifndef MTRUN_PLAN_H
#define MTRUN_PLAN_H

#include "mt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name Plans
 * @{ */

/** A verified plan in memory. */
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
/** Frees a plan, which may be NULL. Its sessions and datasets must have been freed before. */
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

/** The role of a signature's entry for the caller. */
typedef enum mtrun_role {
  MTRUN_INPUT = 0,         /**< Read: an input of the model. */
  MTRUN_TARGET = 1,        /**< Read: values that a loss or metric compares with the outputs. */
  MTRUN_SAMPLE_WEIGHT = 2, /**< Read: one weight per sample. */
  MTRUN_OUTPUT = 3         /**< Written by mtrun_predict(). */
} mtrun_role;

/** A tensor of a program's signature, or a variable. The pointers live as long as the plan. */
typedef struct mtrun_tensor_info {
  const char *name;     /**< Its name. */
  mt_dtype dtype;       /**< Type of its elements. */
  int32_t rank;         /**< Number of axes. */
  const int64_t *shape; /**< Size of each axis. -1 is the batch axis, which is always the first. */
  mtrun_role role;      /**< Signature only: role for the caller. */
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
 * @return the value; 0 where the weights add up to 0, or without a metric of this index
 */
MT_API double mtrun_plan_metric_value(const mtrun_plan *plan, const char *program, int32_t index, const double *sums,
                                      const double *weights);

/** Number of sequence lengths that the plan has programs for (mtc_options.lengths); 0: all steps have one size. */
MT_API int32_t mtrun_plan_length_count(const mtrun_plan *plan);
/** Length `index`, rising; -1: no such index. Signatures have the last length. A step takes the first that holds its
 * longest sample. Samples, and outputs, end in zeros. */
MT_API int64_t mtrun_plan_length(const mtrun_plan *plan, int32_t index);
/** Number of tokens in the plan's vocabulary: the characters of the text that --vocabulary of mtc compile named. 0: the
 * plan has none. */
MT_API int32_t mtrun_plan_token_count(const mtrun_plan *plan);
/** Token `index` of the vocabulary: one character, in UTF-8. It lives as long as the plan. NULL: no such index. */
MT_API const char *mtrun_plan_token(const mtrun_plan *plan, int32_t index);
/** Number of variables, including the optimizer's. */
MT_API int32_t mtrun_plan_variable_count(const mtrun_plan *plan);
/** Describes variable `index`. MT_INVALID: there is no such variable. */
MT_API mt_status *mtrun_plan_variable(const mtrun_plan *plan, int32_t index, mtrun_tensor_info *info);

/** A node of a program's data flow. The strings live during the callback. */
typedef struct mtrun_node {
  const char *name; /**< Unique name: of a variable or tensor, or LAYER/KERNEL. */
  /** "input", "target", "sample_weight", "variable", "output", "all_reduce", or the kind of the kernel. */
  const char *kind;
  int32_t inputs;                 /**< Number of inputs. */
  const char *const *input_names; /**< Names of the inputs: nodes that came before. */
} mtrun_node;

/** Walks through a program's data flow: `node` is called for each node, after its inputs. MT_INVALID: there is no such
 * program. */
MT_API mt_status *mtrun_plan_graph(const mtrun_plan *plan, const char *program,
                                   void (*node)(void *user, const mtrun_node *node), void *user);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
