/* SPDX-License-Identifier: Apache-2.0
 *
 * A host program that trains a plan: train PLAN DATA OUTPUT, as train digits.mtp mnist:DIR w.safetensors. It needs
 * libmtrun alone; the plan was compiled when the program was built.
 */
#include "mtrun.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program where a call failed; a host that lives longer would handle the status. */
static void check(mt_status *status) {
  if (status) {
    fprintf(stderr, "train: %s\n", mt_status_message(status));
    exit(mt_status_code(status));
  }
}

int main(int argc, char **argv) {
  mtrun_loop_options loop = mtrun_loop_options_init();
  mtrun_fit_result result = {0};
  mtrun_plan *plan;
  mtrun_session *session;
  mtrun_dataset *data;

  if (argc != 4) {
    fprintf(stderr, "train: expected PLAN DATA OUTPUT, found %d arguments\n", argc - 1);
    return MT_USAGE;
  }
  check(mtrun_plan_load(argv[1], &plan));
  check(mtrun_session_create(plan, NULL, &session));
  check(mtrun_dataset_open(plan, argv[2], &data));
  loop.result = &result;
  check(mtrun_fit(session, data, &loop));
  check(mtrun_save(session, argv[3]));
  printf("%s: %d epoch, %d steps\n", mtrun_plan_model(plan), (int)result.epochs, (int)result.total_step);
  mtrun_dataset_free(data);
  mtrun_session_free(session);
  mtrun_plan_free(plan);
  return 0;
}
