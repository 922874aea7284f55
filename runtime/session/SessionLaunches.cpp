// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Check.h"
#include "runtime/session/SessionState.h"
#include "runtime/session/StartTracer.h"

namespace mtrun {

Status Session::startTrace(const TracerOptions &options) {
  Executable *executable = state_->find("train_step");
  if (!executable)
    return {MT_INVALID, "the plan has no program train_step to trace"};
  if (state_->inFlight > 0)
    return {MT_INVALID, "expected no step in flight, found " + std::to_string(state_->inFlight)};
  return startTracer(options, *state_->group, *executable, state_->tracer);
}

Status Session::State::watch() {
  Executable *executable = find("train_step");
  if (!executable || lengths)
    return {MT_INVALID, "expected a plan of one length with a training step, to see its launches, found another"};
  const auto *kernels = plan->tables().kernels();
  auto seeLaunch = [=, this, number = int64_t{0}](const BoundStep &step, const mt_kernel_params &params) mutable {
    const fb::Kernel &kernel =
        *kernels->Get(static_cast<uint32_t>(executable->program->steps()->Get(step.index)->kernel()));
    Session::Launch launch = {step.index, kernel.name()->str(), {}};
    for (uint32_t s = 0; s < step.segmentCount; ++s)
      for (uint32_t a = 0; a < count(kernel.arguments()); ++a) {
        const fb::KernelArgument &argument = *kernel.arguments()->Get(a);
        const BoundSegment &segment = step.segments[s];
        if (argument.written())
          launch.results.emplace_back(static_cast<std::byte *>(segment.buffers[a]),
                                      argument.fixed_bytes() +
                                          argument.row_bytes() * static_cast<uint64_t>(params.rows) +
                                          argument.element_bytes() * static_cast<uint64_t>(segment.count));
      }
    constexpr size_t middle = 2; // of a float32: a bit that counts
    if (number++ == corrupted && !launch.results.empty() && launch.results[0].size() > middle)
      launch.results[0][middle] ^= std::byte{0x40};
    if (see)
      see(launch);
  };
  return group->watchNextRun(executable->bound, seeLaunch);
}

Status Session::watchLaunches(std::function<void(const Launch &)> see) {
  state_->see = std::move(see);
  return state_->watch();
}

Status Session::tune(const std::string &path, int repeats, const std::function<void(const std::string &)> &line) {
  Executable *executable = state_->find("train_step");
  if (!executable)
    return {MT_INVALID, "the plan has no program train_step to tune"};
  return state_->group->tune(executable->bound, path, repeats, line);
}

const std::string &Session::conditions() const { return state_->conditions; }

std::string Session::tuning() const { return state_->group->tuning(); }

const Tracer *Session::tracer() const { return state_->tracer.get(); }

int Session::tracksOfDevice() const {
  return state_->group->hostMemory() ? state_->spec.threads
                                     : static_cast<int>(state_->tracer->tracks().size()) / state_->group->devices();
}

bool Session::namesTracks() const { return !state_->group->hostMemory(); }

Status Session::corruptLaunch(uint64_t launch) {
  state_->corrupted = static_cast<int64_t>(launch);
  return state_->watch();
}

void Session::corruptPartial(int collective, int device) { state_->group->corruptPartial(collective, device); }

} // namespace mtrun
