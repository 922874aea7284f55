/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete host program: compiles a model, trains it on its own arrays with its own loop, reads a variable.
 * The model learns y = 2 a - 3 b + 1 from (a, b).
 */
#include "mtc.h"
#include "mtrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model[] =
    "mt.model @line {\n"
    "  %x = mt.input \"x\" : tensor<?x2xf32>\n"
    "  %y = mt.target \"y\" : tensor<?x1xf32>\n"
    "  %w = mt.variable \"kernel\" init(zeros) : tensor<2x1xf32>\n"
    "  %b = mt.variable \"bias\" init(zeros) : tensor<1xf32>\n"
    "  %z = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>\n"
    "  %p = mt.add %z, %b : tensor<?x1xf32>, tensor<1xf32>\n"
    "  %l = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>\n"
    "  mt.loss \"loss\", %l : tensor<?xf32>\n"
    "  mt.output \"prediction\", %p : tensor<?x1xf32>\n"
    "  mt.sgd <{learning_rate = 1.0e-1 : f32}>\n"
    "}\n";

enum { SAMPLES = 100, BATCH = 32, EPOCHS = 200 };

/* Ends the program where a call failed; a host that lives longer would handle the status. */
static void check(mt_status *status) {
  if (status) {
    fprintf(stderr, "embed: %s\n", mt_status_message(status));
    exit(mt_status_code(status));
  }
}

int main(void) {
  static float x[SAMPLES][2], y[SAMPLES][1];
  float kernel[2], bias[1], prediction[1];
  double loss = 0;
  mtc_options compile = mtc_options_init();
  mtrun_options run = mtrun_options_init();
  mtrun_results results = {0};
  mtc_result *compiled;
  mtrun_plan *plan;
  mtrun_session *session;
  int i, epoch;

  for (i = 0; i < SAMPLES; ++i) {
    x[i][0] = (float)(i % 10) / 10;
    x[i][1] = (float)(i / 10) / 10;
    y[i][0] = 2 * x[i][0] - 3 * x[i][1] + 1;
  }

  compile.batch = BATCH;
  check(mtc_compile_text(model, strlen(model), "line.mlir", &compile, &compiled));
  check(mtrun_plan_load_memory(mtc_result_data(compiled), mtc_result_size(compiled), &plan));
  mtc_result_free(compiled);
  run.devices = "cpu:2";
  check(mtrun_session_create(plan, &run, &session));

  results.values = &loss; /* the model has one loss and no metric */
  for (epoch = 0; epoch < EPOCHS; ++epoch) {
    for (i = 0; i < SAMPLES; i += BATCH) { /* the last batch is short: 4 samples */
      const void *tensors[2];
      tensors[0] = x[i]; /* in the order of the signature */
      tensors[1] = y[i];
      check(mtrun_train_step(session, tensors, i + BATCH <= SAMPLES ? BATCH : SAMPLES - i, &results));
    }
  }

  check(mtrun_get_variable(session, "kernel", kernel, sizeof kernel));
  check(mtrun_get_variable(session, "bias", bias, sizeof bias));
  {
    void *tensors[2];
    tensors[0] = x[57];
    tensors[1] = prediction;
    check(mtrun_predict(session, tensors, 1));
  }
  printf("loss %.6f\n", loss);
  printf("y = %.2f a %+.2f b %+.2f\n", kernel[0], kernel[1], bias[0]);
  printf("at (%.1f, %.1f): %.2f, expected %.2f\n", x[57][0], x[57][1], prediction[0], y[57][0]);
  mtrun_session_free(session);
  mtrun_plan_free(plan);
  return 0;
}
