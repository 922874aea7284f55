/* SPDX-License-Identifier: Apache-2.0
 *
 * A host program whose samples come from a callback: a generator of points of y = 2 a - 3 b + 1 that nobody counts.
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
    "  mt.sgd <{learning_rate = 1.0e-1 : f32}>\n"
    "}\n";

/* The next points of a pass, at most as many as are asked for. A thread of the library calls it, ahead of the steps. */
static int64_t points(void *user, mtrun_request *request) {
  const int64_t *length = user; /* the library is not told */
  float(*x)[2] = request->fields[0], *y = request->fields[1];
  int64_t i;
  for (i = 0; i < request->rows && request->first + i < *length; ++i) {
    x[i][0] = (float)((request->first + i) % 10) / 10;
    x[i][1] = (float)((request->first + i) / 10) / 10;
    y[i] = 2 * x[i][0] - 3 * x[i][1] + 1;
  }
  return i; /* fewer than request->rows: the pass ends here */
}

/* Ends the program where a call failed; a host that lives longer would handle the status. */
static void check(mt_status *status) {
  if (status) {
    fprintf(stderr, "callback: %s\n", mt_status_message(status));
    exit(mt_status_code(status));
  }
}

int main(void) {
  static const int64_t pair[] = {2}, one[] = {1};
  mtrun_field fields[2] = {{0}};
  mtrun_source source = {0};
  mtc_options compile = mtc_options_init();
  mtrun_loop_options loop = mtrun_loop_options_init();
  mtrun_fit_result result = {0};
  mtc_result *compiled;
  mtrun_plan *plan;
  mtrun_session *session;
  mtrun_dataset *data;
  float kernel[2], bias[1];
  double loss;
  int64_t length = 100;

  compile.batch = 32;
  check(mtc_compile_text(model, strlen(model), "line.mlir", &compile, &compiled));
  check(mtrun_plan_load_memory(mtc_result_data(compiled), mtc_result_size(compiled), &plan));
  mtc_result_free(compiled);
  check(mtrun_session_create(plan, NULL, &session));

  fields[0].name = "x"; /* mt_dtype 0 is MT_F32 */
  fields[0].rank = 1;
  fields[0].shape = pair;
  fields[1].name = "y";
  fields[1].rank = 1;
  fields[1].shape = one;
  source.samples = -1;
  source.fields = fields;
  source.field_count = 2;
  source.read = points;
  source.user = &length;
  check(mtrun_dataset_open_source(plan, &source, NULL, &data));

  loop.epochs = 200;
  loop.result = &result;
  check(mtrun_fit(session, data, &loop));
  check(mtrun_evaluate(session, data, NULL, &loss));
  check(mtrun_get_variable(session, "kernel", kernel, sizeof kernel));
  check(mtrun_get_variable(session, "bias", bias, sizeof bias));
  printf("%d steps, loss %.6f\n", (int)result.total_step, loss);
  printf("y = %.2f a %+.2f b %+.2f\n", kernel[0], kernel[1], bias[0]);
  mtrun_dataset_free(data);
  mtrun_session_free(session);
  mtrun_plan_free(plan);
  return 0;
}
