/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete host program: writes text with a language model that was trained before.
 *
 *   generate PLAN WEIGHTS [PROMPT] [COUNT]
 *
 * The plan's predict takes "text" [n, T] and gives logits [n, T, V]. T is the context: the tokens before the next one.
 * Tokens are the characters of the plan's vocabulary, or bytes where it has none.
 */
#include "mtrun.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double temperature = 0.8; /* below 1: likely tokens are more likely */

/* Ends the program where a call failed; a host that lives longer would handle the status. */
static void check(mt_status *status) {
  if (status) {
    fprintf(stderr, "generate: %s\n", mt_status_message(status));
    exit(mt_status_code(status));
  }
}

static void *allocate(int64_t count, size_t size) {
  void *memory = calloc((size_t)count, size);
  if (!memory) {
    fprintf(stderr, "generate: expected memory for %lld elements, found none\n", (long long)count);
    exit(1);
  }
  return memory;
}

/* The token that `text` begins with, and how many bytes it has. */
static int32_t read_token(const mtrun_plan *plan, const char *text, size_t *length) {
  int32_t token, count = mtrun_plan_token_count(plan);
  for (token = 0; token < count; ++token) {
    *length = strlen(mtrun_plan_token(plan, token));
    if (strncmp(mtrun_plan_token(plan, token), text, *length) == 0)
      return token;
  }
  *length = 1;
  if (count == 0)
    return (unsigned char)*text;
  fprintf(stderr, "generate: expected characters of the plan's vocabulary, found '%c'\n", *text);
  exit(2);
}

static void print_token(const mtrun_plan *plan, int32_t token) {
  if (mtrun_plan_token_count(plan))
    fputs(mtrun_plan_token(plan, token), stdout);
  else if (token < 256)
    putchar(token);
  else
    printf("<%d>", (int)token);
}

/* Uniform in [0, 1): the same numbers on every machine. */
static double draw(void) {
  static unsigned long long state = 1;
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (double)(state >> 11) / 9007199254740992.0;
}

/* A token drawn with the probabilities softmax(logits / temperature). */
static int32_t sample(const float *logits, int64_t count) {
  double most = logits[0], sum = 0, left;
  int64_t i;
  for (i = 1; i < count; ++i)
    most = logits[i] > most ? logits[i] : most;
  for (i = 0; i < count; ++i)
    sum += exp((logits[i] - most) / temperature);
  left = draw() * sum;
  for (i = 0; i + 1 < count; ++i) {
    left -= exp((logits[i] - most) / temperature);
    if (left < 0)
      break;
  }
  return (int32_t)i;
}

int main(int argc, char **argv) {
  mtrun_options options = mtrun_options_init();
  mtrun_tensor_info input, output;
  mtrun_plan *plan;
  mtrun_session *session;
  const char *prompt = argc > 3 ? argv[3] : "\n";
  int64_t context, vocabulary, filled = 0;
  long written, wanted = argc > 4 ? atol(argv[4]) : 300;
  int32_t *text;
  float *logits;

  if (argc < 3 || argc > 5) {
    fprintf(stderr, "usage: generate PLAN WEIGHTS [PROMPT] [COUNT]\n");
    return 2;
  }
  check(mtrun_plan_load(argv[1], &plan));
  check(mtrun_plan_signature(plan, "predict", 0, &input));
  check(mtrun_plan_signature(plan, "predict", 1, &output));
  if (input.dtype != MT_I32 || input.rank != 2 || output.dtype != MT_F32 || output.rank != 3 ||
      input.shape[1] != output.shape[1]) {
    fprintf(stderr, "generate: expected a model of tokens [n, T] to logits [n, T, V]\n");
    return 2;
  }
  context = output.shape[1];
  vocabulary = output.shape[2];
  text = allocate(context, sizeof *text);
  logits = allocate(context * vocabulary, sizeof *logits);

  options.devices = "cpu:1";
  check(mtrun_session_create(plan, &options, &session));
  check(mtrun_load(session, argv[2]));

  if (argc > 3)
    fputs(prompt, stdout);
  while (*prompt && filled < context) {
    size_t length;
    text[filled++] = read_token(plan, prompt, &length);
    prompt += length;
  }
  for (written = 0; written < wanted; ++written) {
    void *tensors[2];
    int32_t next;
    tensors[0] = text; /* what stands behind the last token does not matter: attention is causal */
    tensors[1] = logits;
    check(mtrun_predict(session, tensors, 1));
    next = sample(logits + (filled - 1) * vocabulary, vocabulary);
    print_token(plan, next);
    fflush(stdout);
    if (filled == context) { /* the first half is forgotten: positions begin anew */
      memmove(text, text + context / 2, (size_t)(context - context / 2) * sizeof *text);
      filled = context - context / 2;
    }
    text[filled++] = next;
  }
  putchar('\n');
  free(text);
  free(logits);
  mtrun_session_free(session);
  mtrun_plan_free(plan);
  return 0;
}
