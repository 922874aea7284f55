// SPDX-License-Identifier: Apache-2.0
//
// every-fault PLAN DEVICES: a training step with every library call there is, once for each call of the driver and
// of the libraries, which fails. Each run must end well or with a message that names the error. Prints how many failed,
// and how many of these in libraries.
#include "runtime/abi/mtrun.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

mt_status *train(const char *plan, const char *devices) {
  mtrun_plan *loaded = nullptr;
  if (mt_status *status = mtrun_plan_load(plan, &loaded))
    return status;
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  options.libraries = "require";
  mtrun_session *session = nullptr;
  mt_status *status = mtrun_session_create(loaded, &options, &session);
  mtrun_timing timing;
  if (!status)
    status = mtrun_benchmark(session, mtrun_plan_batch(loaded), 0, 1, &timing);
  mtrun_session_free(session);
  mtrun_plan_free(loaded);
  return status;
}

struct Outcome {
  int status = 0; // of waitpid
  std::string text;
};

Outcome inChild(const char *plan, const char *devices, int call) {
  FILE *errors = std::tmpfile();
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    setenv("MTC_SIM_FAIL", std::to_string(call).c_str(), 1);
    dup2(fileno(errors), STDERR_FILENO);
    alarm(60);
    mt_status *status = train(plan, devices);
    if (status)
      std::fprintf(stderr, "%s\n", mt_status_message(status));
    int code = status ? static_cast<int>(mt_status_code(status)) : 0;
    mt_status_free(status);
    std::exit(code);
  }
  Outcome outcome;
  waitpid(child, &outcome.status, 0);
  std::rewind(errors);
  for (int c; (c = std::fgetc(errors)) != EOF;)
    outcome.text += static_cast<char>(c);
  std::fclose(errors);
  return outcome;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: every-fault PLAN DEVICES\n");
    return 2;
  }
  int failures = 0, inLibraries = 0, call = 0;
  while (++call < 20000) {
    Outcome outcome = inChild(arguments[1], arguments[2], call);
    if (outcome.text.find("was not reached") != std::string::npos)
      break;
    int code = WIFEXITED(outcome.status) ? WEXITSTATUS(outcome.status) : -1;
    auto says = [&](const char *part) { return outcome.text.find(part) != std::string::npos; };
    bool library = says(", cublas") || says(", cudnn");
    bool told = says("CUDA_ERROR") || says("CUBLAS_STATUS") || says("CUDNN_STATUS") || says("expected an algorithm");
    bool known = code == MT_DEVICE || code == MT_NO_MEMORY || code == MT_NO_DEVICE || code == MT_LOST;
    if (code != 0 && !(known && told)) { // 0: a call that frees, or one without which things are slower
      std::printf("call %d: exit code %d, signal %d\n%s", call, code,
                  WIFSIGNALED(outcome.status) ? WTERMSIG(outcome.status) : 0, outcome.text.c_str());
      return 1;
    }
    failures += code != 0;
    inLibraries += code != 0 && library;
  }
  std::printf("%d calls, %d failures, %d of them in libraries\n", call - 1, failures, inLibraries);
  return 0;
}
