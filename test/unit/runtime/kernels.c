/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the hand-made plan of TestPlan.h, in the calling convention of runtime/abi/kernel.h: a linear model with
 * mean squared error. Sums over the batch follow docs/exactness.md.
 */
#include "runtime/abi/kernel.h"

#define KERNEL __attribute__((visibility("default"))) void
#define ARGUMENTS const mt_kernel_params *params, void *const *buffers, int64_t begin, int64_t end

typedef struct shape { /* the constants section */
  int64_t shard_rows, features;
} shape;

static float value_of(uint64_t seed, int64_t index) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (uint64_t)index * 0xbf58476d1ce4e5b9u;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  return (float)(int64_t)(x >> 40) / 16777216.0f - 0.5f;
}

/* (shape, w, b, rate, iteration): Whole, share. */
KERNEL init_variables(ARGUMENTS) {
  const shape *s = buffers[0];
  float *w = buffers[1];
  for (int64_t i = 0; i < s->features; ++i)
    w[i] = value_of(params->seed, i);
  ((float *)buffers[2])[0] = 0.25f;
  ((float *)buffers[3])[0] = 0.125f;
  ((int32_t *)buffers[4])[0] = 0;
}

/* (shape, x, w, b, out): out[row] = x[row] . w + b. Rows, 3 rows a tile. */
KERNEL predict_rows(ARGUMENTS) {
  const shape *s = buffers[0];
  const float *x = buffers[1], *w = buffers[2], *b = buffers[3];
  float *out = buffers[4];
  for (int64_t row = begin * 3; row < end * 3 && row < params->rows; ++row) {
    float sum = *b;
    for (int64_t i = 0; i < s->features; ++i)
      sum += x[row * s->features + i] * w[i];
    out[row] = sum;
  }
}

/* (shape, x, y, weight, w, b, difference). Rows, 3 rows a tile. */
KERNEL difference_rows(ARGUMENTS) {
  const shape *s = buffers[0];
  const float *x = buffers[1], *y = buffers[2], *weight = buffers[3], *w = buffers[4], *b = buffers[5];
  float *difference = buffers[6];
  for (int64_t row = begin * 3; row < end * 3 && row < params->rows; ++row) {
    float sum = *b;
    for (int64_t i = 0; i < s->features; ++i)
      sum += x[row * s->features + i] * w[i];
    difference[row] = (sum - y[row]) * weight[row];
  }
}

/* Sum over rows [first, rows) of a tree of `shards` shards; `column` < 0: the plain difference, no feature. `beyond`:
   rows behind the end of each shard that are added to it as well; 0 in what is right. */
static float tree(const shape *s, const float *x, const float *difference, int64_t column, int64_t first,
                  int64_t shards, int64_t rows, int64_t beyond) {
  if (shards > 1) {
    float left = tree(s, x, difference, column, first, shards / 2, rows, beyond);
    int64_t middle = first + shards / 2 * s->shard_rows;
    return middle < rows ? left + tree(s, x, difference, column, middle, shards / 2, rows, beyond) : left;
  }
  float sum = 0;
  for (int64_t row = first; row < first + s->shard_rows + beyond && row < rows; ++row)
    sum += (column < 0 ? 1.0f : x[row * s->features + column]) * difference[row];
  return sum;
}

/* The smallest power of two that has room for all rows. */
static int64_t shards_of(const shape *s, int64_t rows) {
  int64_t shards = 1;
  while (shards * s->shard_rows < rows)
    shards *= 2;
  return shards;
}

/* (shape, x, difference, partial): partial = [gradient of w, gradient of b]. Reduce: one column per tile, the last one
   is b. */
KERNEL gradient_partial(ARGUMENTS) {
  const shape *s = buffers[0];
  for (int64_t tile = begin; tile < end; ++tile)
    ((float *)buffers[3])[tile] =
        tree(s, buffers[1], buffers[2], tile < s->features ? tile : -1, 0, shards_of(s, params->rows), params->rows, 0);
}

/* (shape, difference, weight, partial): partial = [sum of difference, sum of weights]. Reduce, 2 tiles. */
KERNEL loss_partial(ARGUMENTS) {
  const shape *s = buffers[0];
  for (int64_t tile = begin; tile < end; ++tile)
    ((float *)buffers[3])[tile] = tree(s, 0, buffers[1 + tile], -1, 0, shards_of(s, params->rows), params->rows, 0);
}

/* As loss_partial, but each shard also adds the row behind its end: a fault that a test plants. */
KERNEL loss_beyond(ARGUMENTS) {
  const shape *s = buffers[0];
  for (int64_t tile = begin; tile < end; ++tile)
    ((float *)buffers[3])[tile] = tree(s, 0, buffers[1 + tile], -1, 0, shards_of(s, params->rows), params->rows, 1);
}

/* (sums, loss, weight, iteration): Whole, share. */
KERNEL finish(ARGUMENTS) {
  const float *sums = buffers[0];
  *(float *)buffers[1] = sums[0] / sums[1];
  *(float *)buffers[2] = sums[1];
  ++*(int32_t *)buffers[3];
}

/* (gradient, variable, rate): Map, 5 elements a tile, share. */
KERNEL update(ARGUMENTS) {
  const float *gradient = buffers[0], *rate = buffers[2];
  float *variable = buffers[1];
  for (int64_t i = begin * 5; i < end * 5 && i < params->count; ++i)
    variable[i] -= *rate * gradient[i] / (float)params->global_rows;
}

/* (a, b, out): Map, 4 elements a tile. */
KERNEL sum_partials(ARGUMENTS) {
  const float *a = buffers[0], *b = buffers[1];
  float *out = buffers[2];
  for (int64_t i = begin * 4; i < end * 4 && i < params->count; ++i)
    out[i] = a[i] + b[i];
}

/* What the conformance suite launches. (counters, params): counters[tile] += 1; the first tile stores its params. */
KERNEL probe(ARGUMENTS) {
  for (int64_t tile = begin; tile < end; ++tile) {
    ++((int32_t *)buffers[0])[tile];
    if (tile == 0)
      *(mt_kernel_params *)buffers[1] = *params;
  }
}

/* (in, out): out[tile] = in[tile + 1] + tile, the one after the last being the first of 64. 64 tiles. */
KERNEL rotate(ARGUMENTS) {
  for (int64_t tile = begin; tile < end; ++tile)
    ((float *)buffers[1])[tile] = ((const float *)buffers[0])[(tile + 1) % 64] + (float)tile;
}

/* (rows, out): out[row] = rows[row] * 2. Rows, 1 row a tile. */
KERNEL double_rows(ARGUMENTS) {
  for (int64_t row = begin; row < end; ++row)
    ((float *)buffers[1])[row] = ((const float *)buffers[0])[row] * 2;
}
