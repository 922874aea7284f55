// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/Profile.h"

#include "runtime/plan/Check.h"
#include "runtime/support/enum_name.h"

namespace mtrun {

namespace fb = ::mt::plan;

static const char *kindName(fb::KernelKind kind) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (fb::KernelKind each : fb::EnumValuesKernelKind())
      all.push_back(enumName(fb::EnumNameKernelKind(each)));
    return all;
  }();
  return names[static_cast<size_t>(kind)].c_str();
}

StepFacts factsOf(const Plan &plan, const fb::Step &step) {
  if (step.kernel() < 0)
    return {"all-reduce", "all_reduce", ""};
  const fb::Kernel &kernel = *plan.tables().kernels()->Get(static_cast<uint32_t>(step.kernel()));
  const char *layer = step.layer() < 0 ? "" : plan.tables().layers()->Get(static_cast<uint32_t>(step.layer()))->c_str();
  StepFacts facts = {kernel.name()->c_str(), kindName(kernel.kind()), layer};
  for (uint32_t s = 0; s < count(step.segments()); ++s) {
    // An elementwise kernel counts elements of a segment; any other kernel counts rows.
    bool elementwise = kernel.kind() == fb::KernelKind::Elementwise;
    uint64_t elements = elementwise ? step.segments()->Get(s)->count() : 0;
    facts.flopsFixed += kernel.flops_fixed() + kernel.flops_per_row() * elements;
    facts.bytesFixed += kernel.bytes_fixed() + kernel.bytes_per_row() * elements;
    facts.flopsPerSample += elementwise ? 0 : kernel.flops_per_row();
    facts.bytesPerSample += elementwise ? 0 : kernel.bytes_per_row();
  }
  return facts;
}

Status profileOf(const Session &session, mtrun_profile &profile) {
  profile = {};
  const Tracer *tracer = session.tracer();
  if (!tracer || tracer->recorded() == 0)
    return {MT_INVALID, "expected traced training steps to report, found " +
                            std::string(tracer ? "none of the " + std::to_string(tracer->seen()) : "no trace")};
  auto steps = static_cast<double>(tracer->recorded());
  profile.steps = tracer->recorded();
  profile.samples = tracer->samples();
  // The streams of all-reduces run concurrently with the compute streams: their work counts, their threads do not.
  size_t tracksPerThread = session.namesTracks() ? static_cast<size_t>(session.tracksOfDevice()) : 1;
  profile.threads = static_cast<int32_t>(tracer->tracks().size() / tracksPerThread);
  profile.step_us = static_cast<double>(tracer->runTime()) / steps / 1e3;
  profile.between_us = tracer->recorded() > 1 ? static_cast<double>(tracer->betweenTime()) / (steps - 1) / 1e3 : 0;
  profile.idle_us = static_cast<double>(tracer->idleTime()) / steps / 1e3;
  profile.entries = static_cast<int32_t>(tracer->steps());
  return {};
}

Status profileEntry(const Session &session, int32_t index, mtrun_profile_entry &entry) {
  mtrun_profile profile;
  if (Status status = profileOf(session, profile); !status.ok())
    return status;
  if (index < 0 || index >= profile.entries)
    return {MT_INVALID,
            "expected a profile entry below " + std::to_string(profile.entries) + ", found " + std::to_string(index)};
  const Tracer &tracer = *session.tracer();
  auto step = static_cast<uint32_t>(index);
  const auto *list = session.plan().program("train_step")->steps();
  StepFacts facts = step < count(list) ? factsOf(session.plan(), *list->Get(step)) : StepFacts{"copies", "copy", ""};
  auto steps = static_cast<double>(profile.steps), samples = static_cast<double>(profile.samples);
  entry = {};
  entry.name = facts.name;
  entry.kind = facts.kind;
  entry.layer = facts.layer;
  size_t tracks = session.namesTracks() ? static_cast<size_t>(session.tracksOfDevice()) : 1;
  for (size_t t = 0; t < tracer.tracks().size(); ++t) {
    const Track &track = tracer.tracks()[t];
    auto us = [&](SpanKind kind) { return static_cast<double>(track.sum(step, kind)) / steps / 1e3; };
    entry.compute_us += us(SpanKind::Kernel) + us(SpanKind::Sum);
    entry.transfer_us += us(SpanKind::Transfer);
    entry.wait_us += t % tracks == 0 ? us(SpanKind::Wait) : 0;
  }
  auto cost = [&](uint64_t perSample, uint64_t fixed) {
    return static_cast<double>(perSample) * samples / steps + static_cast<double>(fixed) * session.groupDevices();
  };
  entry.flops = cost(facts.flopsPerSample, facts.flopsFixed);
  entry.bytes = cost(facts.bytesPerSample, facts.bytesFixed);
  return {};
}

} // namespace mtrun
