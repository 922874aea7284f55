// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Measured.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;
using mtrun::Status;

double Measured::floorUs(const LaunchCost &cost) const {
  return hasFloor()
             ? 1e6 * std::max(static_cast<double>(cost.flops) / peakFlops, static_cast<double>(cost.bytes) / peakBytes)
             : 0;
}

std::string Measured::threadsText() const {
  return std::to_string(threads) + (gpus ? " GPU" : " thread") + (threads == 1 ? "" : "s");
}

bool Measured::isBoundByMemory(const LaunchCost &cost) const {
  return static_cast<double>(cost.bytes) * peakFlops > static_cast<double>(cost.flops) * peakBytes;
}

LaunchCost measuredCost(const fb::Plan &plan, const fb::Step &step, const Measured &measured) {
  auto samples = static_cast<uint64_t>(measured.samples + 0.5);
  LaunchCost cost = costOf(plan, step, samples), fixed = costOf(plan, step, 0);
  cost.flops += fixed.flops * (measured.groups - 1);
  cost.bytes += fixed.bytes * (measured.groups - 1);
  return cost;
}

double layerUs(const LayerFacts &layer, const Measured &measured) {
  double us = 0;
  for (uint32_t step : layer.steps)
    us += measured.us[step];
  return us;
}

double layerFloorUs(const fb::Plan &plan, const fb::Program &program, const LayerFacts &layer,
                    const Measured &measured) {
  double us = 0;
  for (uint32_t step : layer.steps)
    if (measured.us[step] > 0)
      us += measured.floorUs(measuredCost(plan, *program.steps()->Get(step), measured));
  return us;
}

namespace {

struct Event {
  double begin, duration;
  std::string name, category;
  double samples;
};
using Track = std::pair<int64_t, int64_t>; // device, thread

class TraceReader {
public:
  TraceReader(const fb::Plan &plan, const fb::Program &program, Measured &measured)
      : plan(plan), program(program), measured(measured) {}

  Status read(llvm::StringRef text) {
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
    if (!parsed)
      return {MT_INVALID, "expected a trace that mtrun wrote, found a text that is not JSON: " +
                              llvm::toString(parsed.takeError())};
    const llvm::json::Object *trace = parsed->getAsObject();
    const llvm::json::Array *events = trace ? trace->getArray("traceEvents") : nullptr;
    if (!events)
      return {MT_INVALID, "expected a trace that mtrun wrote, found JSON without \"traceEvents\""};
    if (const llvm::json::Object *other = trace->getObject("otherData")) {
      measured.peakFlops = other->getNumber("peak_flops").value_or(0);
      measured.peakBytes = other->getNumber("peak_bandwidth").value_or(0);
      measured.groups = static_cast<uint64_t>(std::clamp<int64_t>(other->getInteger("groups").value_or(1), 1, 1 << 20));
    }
    for (const llvm::json::Value &event : *events)
      take(event.getAsObject());
    measured.us.assign(each(program.steps()).size(), 0);
    for (auto &[track, list] : tracks)
      if (Status status = sum(list, linkTracks.count(track) != 0); !status.ok())
        return status;
    return finish();
  }

private:
  void take(const llvm::json::Object *event) {
    if (!event)
      return;
    Track track = {event->getInteger("pid").value_or(0), event->getInteger("tid").value_or(0)};
    const llvm::json::Object *arguments = event->getObject("args");
    if (event->getString("ph") == "M" && arguments && arguments->getString("name") == "links")
      linkTracks.insert(track);
    measured.gpus |= event->getString("ph") == "M" && arguments && arguments->getString("name") == "compute";
    if (event->getString("ph") != "X")
      return;
    tracks[track].push_back({event->getNumber("ts").value_or(0), event->getNumber("dur").value_or(0),
                             event->getString("name").value_or("").str(), event->getString("cat").value_or("").str(),
                             arguments ? arguments->getNumber("samples").value_or(0) : 0});
  }

  // Adds the events of one track. The track `links` runs concurrently with a device's launches: only the time of its
  // own kernels counts.
  Status sum(std::vector<Event> &events, bool onLinks) {
    llvm::stable_sort(events, [](const Event &a, const Event &b) {
      return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
    });
    uint32_t next = 0; // index of the step to search from
    measured.threads += !onLinks;
    for (const Event &event : events) {
      if (event.category == "step") {
        next = 0;
        if (!onLinks) {
          ++stepEvents;
          measured.stepUs += event.duration;
          measured.samples += event.samples;
        }
      } else if (event.category == "kernel") {
        std::optional<uint32_t> step = find(event.name, next);
        if (!step)
          return {MT_INVALID, "expected a trace of this plan, found the kernel \"" + event.name + "\" in it"};
        measured.us[*step] += event.duration;
        next = *step + 1;
      } else if (event.category == "transfer" || event.category == "sum") {
        measured.transferUs += onLinks ? 0 : event.duration;
      } else if (event.category == "wait" && !onLinks) {
        (event.name == "wait" ? measured.waitUs : measured.idleUs) += event.duration;
      } else if (event.category == "host") {
        measured.betweenUs += event.duration;
      }
    }
    return {};
  }

  // Returns the first launch of the kernel at or after `next`, from the beginning again after the last step, as
  // micro-batches repeat them.
  std::optional<uint32_t> find(llvm::StringRef name, uint32_t next) const {
    uint32_t count = program.steps() ? program.steps()->size() : 0;
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t step = (next + i) % count;
      if (program.steps()->Get(step)->kernel() >= 0 && kernelName(plan, *program.steps()->Get(step)) == name)
        return step;
    }
    return std::nullopt;
  }

  Status finish() {
    if (stepEvents == 0)
      return {MT_INVALID, "expected a trace with training steps, found none"};
    auto count = static_cast<double>(stepEvents);
    measured.steps = stepEvents / measured.threads;
    for (double *value :
         {&measured.stepUs, &measured.samples, &measured.waitUs, &measured.transferUs, &measured.idleUs})
      *value /= count;
    measured.betweenUs /= static_cast<double>(std::max<uint64_t>(measured.steps, 2) - 1);
    for (double &us : measured.us)
      us /= count;
    return {};
  }

  const fb::Plan &plan;
  const fb::Program &program;
  Measured &measured;
  std::map<Track, std::vector<Event>> tracks;
  std::set<Track> linkTracks;
  uint64_t stepEvents = 0;
};

} // namespace

Status readTrace(const fb::Plan &plan, const fb::Program &program, llvm::StringRef text, Measured &measured) {
  return TraceReader(plan, program, measured).read(text);
}

std::string verdict(const fb::Plan &plan, const fb::Program &program, const std::vector<LayerFacts> &layers,
                    const Measured &measured) {
  double memory = 0, arithmetic = 0, floor = 0;
  for (auto [i, us] : llvm::enumerate(measured.us)) {
    const fb::Step &step = *program.steps()->Get(static_cast<uint32_t>(i));
    if (step.kernel() < 0 || us == 0)
      continue;
    LaunchCost cost = measuredCost(plan, step, measured);
    (measured.isBoundByMemory(cost) ? memory : arithmetic) += us;
    floor += measured.floorUs(cost);
  }
  const LayerFacts *most = nullptr;
  for (const LayerFacts &layer : layers)
    if (!layer.name.empty() && (!most || layerUs(layer, measured) > layerUs(*most, measured)))
      most = &layer;
  auto share = [&](double us) {
    return formatv("{0:f0} %", measured.stepUs > 0 ? 100 * us / measured.stepUs : 0).str();
  };
  std::string text;
  if (measured.hasFloor())
    text = share(memory) + " of the step is bound by memory, " + share(arithmetic) + " by arithmetic, " +
           share(measured.waitUs + measured.idleUs) + " waiting";
  else
    text = share(measured.waitUs + measured.idleUs) + " of the step is waiting";
  if (measured.transferUs > 0)
    text += ", " + share(measured.transferUs) + " all-reduces";
  if (most)
    text += "; the layer " + most->name + " is " + share(layerUs(*most, measured));
  if (measured.hasFloor())
    text += "; the step is at " + share(floor) + " of its floor";
  return text;
}

} // namespace mtc
