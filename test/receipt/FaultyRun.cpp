// SPDX-License-Identifier: Apache-2.0
//
// faulty-run PLAN DATA STEP LAUNCH RECEIPT DIGESTS: trains one epoch with a receipt of every step. One bit of the
// result of launch LAUNCH in step STEP is flipped. DIGESTS receives the digests of the launches of this step.
#include "runtime/data/OpenDataset.h"
#include "runtime/loop/Fit.h"

#include <cstdio>
#include <cstdlib>

using namespace mtrun;

static void must(const Status &status) {
  if (status.ok())
    return;
  fprintf(stderr, "faulty-run: %s\n", status.message().c_str());
  exit(1);
}

struct Fault {
  Session *session;
  int64_t step;
  uint64_t launch;
};

static int plant(void *user, const mtrun_progress *progress) {
  const auto &fault = *static_cast<Fault *>(user);
  if (progress->total_step + 1 == fault.step)
    must(fault.session->corruptLaunch(fault.launch));
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 7)
    return 2;
  std::unique_ptr<Plan> plan;
  must(Plan::load(argv[1], plan));
  mtrun_options devices = mtrun_options_init();
  devices.devices = "cpu:2";
  std::unique_ptr<Session> session;
  must(Session::create(*plan, &devices, session));
  std::unique_ptr<mtrun_dataset> data;
  must(openDataset(*plan, argv[2], data));
  Fault fault = {session.get(), atoll(argv[3]), static_cast<uint64_t>(atoll(argv[4]))};
  mtrun_loop_options options = mtrun_loop_options_init();
  options.epochs = 1;
  options.progress = plant;
  options.progress_user = &fault;
  options.receipt = argv[5];
  options.receipt_every = 1;
  options.hash_launches = fault.step;
  options.launch_file = argv[6];
  if (fault.step == 1)
    must(session->corruptLaunch(fault.launch));
  Fit fit;
  must(fit.open(*session, data.get(), options));
  must(fit.run());
  return 0;
}
