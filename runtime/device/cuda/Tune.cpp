// SPDX-License-Identifier: Apache-2.0
//
// Measures the algorithms of each kernel with a library call, and reads and writes tuning files.
#include "runtime/device/cuda/CudaGroup.h"
#include "runtime/device/cuda/Launches.h"
#include "runtime/plan/Check.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

// Measures a program on the first device of a group.
class Tuner {
public:
  Tuner(GroupParts &parts, BoundProgram &program, int repeats)
      : parts_(parts), group_(parts.devices), driver_(parts.devices.driver()),
        captured_(static_cast<Launches &>(*program.prepared).pointedAt(program)), program_(program.devices[0]),
        repeats_(repeats) {}
  ~Tuner() {
    for (Event event : {begin_, end_})
      if (event)
        (void)driver_.eventDestroy(event);
  }

  Status start() {
    if (!group_.makeCurrent(0))
      return group_.health();
    Result result = driver_.eventCreate(&begin_, 0);
    if (result == success)
      result = driver_.eventCreate(&end_, 0);
    return good(result, "cannot make an event");
  }

  // Finds the fastest of the generated kernel and its call's algorithms.
  Status tune(size_t index, TunedKernel &best, std::vector<std::string> &refused) {
    const BoundStep &step = program_.steps[index];
    Libraries &libraries = *parts_.libraries;
    fill(step);
    if (Status status = measure(index, true, best.ownMicroseconds); !status.ok())
      return status;
    best.microseconds = best.ownMicroseconds;
    std::vector<float> own = results(step);
    std::vector<Algorithm> algorithms;
    if (Status status = libraries.algorithms(step, algorithms); !status.ok())
      return status;
    for (const Algorithm &algorithm : algorithms) {
      libraries.setAlgorithm(step, algorithm);
      double microseconds = 0;
      std::string reason;
      if (Status status = compare(index, own, reason); !status.ok())
        return status;
      if (!reason.empty()) {
        refused.push_back(algorithm.name + ": " + reason);
        continue;
      }
      if (Status status = measure(index, false, microseconds); !status.ok())
        return status;
      if (microseconds < best.microseconds) {
        best.algorithm = algorithm.name;
        best.microseconds = microseconds;
      }
    }
    return {};
  }

private:
  Status good(Result result, const char *what) const {
    return result == success ? Status()
                             : failure(driver_, result, group_.device(0).gpu->title() + ": " + what, MT_LOST);
  }

  Status synchronize() {
    return good(driver_.streamSynchronize(group_.device(0).stream), "the GPU failed in a kernel");
  }

  Status perform(size_t index, bool own) {
    bool done = captured_.perform(program_, 0, program_.steps[index], index, group_.device(0).stream, own);
    return done ? Status() : captured_.error();
  }

  // Records all repeats in one graph, as in a step, so that the time to enqueue a call is not measured.
  Status record(size_t index, bool own, GraphExec &exec) {
    const char *what = "cannot record a kernel's repeats";
    Stream stream = group_.device(0).stream;
    Status status = good(driver_.streamBeginCapture(stream, captureThreadLocal), what);
    if (!status.ok())
      return status;
    for (int i = 0; i < repeats_ && status.ok(); ++i)
      status = perform(index, own);
    Graph graph = nullptr;
    Status ended = good(driver_.streamEndCapture(stream, &graph), what);
    if (status.ok())
      status = ended;
    if (status.ok())
      status = good(driver_.graphInstantiate(&exec, graph, 0), what);
    if (graph)
      (void)driver_.graphDestroy(graph);
    return status;
  }

  Status measure(size_t index, bool own, double &microseconds) {
    Stream stream = group_.device(0).stream;
    GraphExec exec = nullptr;
    Status status = perform(index, own); // the first call loads code
    if (status.ok())
      status = record(index, own, exec);
    if (status.ok()) // the first launch takes longer
      status = good(driver_.graphLaunch(exec, stream), "cannot launch a kernel's repeats");
    if (status.ok())
      status = good(driver_.eventRecordWithFlags(begin_, stream, 0), "cannot record an event");
    if (status.ok())
      status = good(driver_.graphLaunch(exec, stream), "cannot launch a kernel's repeats");
    if (status.ok())
      status = good(driver_.eventRecordWithFlags(end_, stream, 0), "cannot record an event");
    if (status.ok())
      status = synchronize();
    if (exec)
      (void)driver_.graphExecDestroy(exec);
    float milliseconds = 0;
    if (status.ok())
      status = good(driver_.eventElapsedTime(&milliseconds, begin_, end_), "cannot ask how long a kernel took");
    microseconds = 1e3 * static_cast<double>(milliseconds) / repeats_;
    return status;
  }

  // Fills the call's operands, so that times and bits do not depend on earlier steps.
  void fill(const BoundStep &step) {
    const fb::LibraryCall &call = *parts_.libraries->callOf(step);
    for (int64_t argument :
         {static_cast<int64_t>(call.left()), static_cast<int64_t>(call.right()), static_cast<int64_t>(call.bias())})
      if (argument >= 0) {
        void *const *buffer = step.segments[0].buffers + argument;
        uint64_t bytes = program_.sizes[static_cast<size_t>(buffer - program_.pointers.data())];
        std::vector<float> values = tryNumbers(bytes / sizeof(float), static_cast<uint64_t>(argument));
        group_.copyIn(0, *buffer, values.data(), values.size() * sizeof(float));
      }
  }

  std::vector<float> read(std::span<std::byte> place) {
    std::vector<float> values(place.size() / sizeof(float));
    group_.copyOut(0, values.data(), place.data(), place.size());
    return values;
  }
  // Returns the results of the valid rows.
  std::vector<float> results(const BoundStep &step) {
    const fb::LibraryCall &call = *parts_.libraries->callOf(step);
    void *const *buffer = step.segments[0].buffers + call.result();
    uint64_t bytes = program_.sizes[static_cast<size_t>(buffer - program_.pointers.data())];
    auto rows = static_cast<uint64_t>(program_.maxRows);
    if (!isTree(call))
      bytes = bytes / rows * std::min(rows, parts_.libraries->batch());
    return read({static_cast<std::byte *>(*buffer), bytes});
  }

  // Checks the current algorithm: two runs and a single shard must give equal bits, and results close to the generated
  // kernel's. `reason` receives the failed check.
  Status compare(size_t index, const std::vector<float> &own, std::string &reason) {
    const BoundStep &step = program_.steps[index];
    Libraries &libraries = *parts_.libraries;
    const CudaDevice &device = group_.device(0);
    int64_t last = libraries.shards(program_) - 1;
    std::vector<float> found[2], shard[3];
    for (int i = 0; i < 2; ++i) {
      if (Status status = perform(index, false); !status.ok())
        return status;
      found[i] = results(step);
      shard[i] = read(libraries.shardResults(0, program_, step, last));
    }
    if (Status status = libraries.enqueueShards(0, *device.gpu, program_, step, last, 1, device.stream); !status.ok())
      return status;
    shard[2] = read(libraries.shardResults(0, program_, step, last));
    auto same = [](const std::vector<float> &a, const std::vector<float> &b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    double most = 0, largest = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(own[i])));
      double difference = std::abs(static_cast<double>(own[i]) - static_cast<double>(found[0][i]));
      largest = difference <= largest ? largest : difference; // NaN is kept
    }
    constexpr double nearly = 1e-3;
    if (!same(found[0], found[1]) || !same(shard[0], shard[1]))
      reason = "other bits the second time";
    else if (!same(shard[0], shard[2]))
      reason = "other bits for a shard alone";
    else if (!(largest <= nearly * most))
      reason = "results that differ by " + std::to_string(largest) + " from the generated kernel's, which are up to " +
               std::to_string(most);
    return group_.health();
  }

  GroupParts &parts_;
  CudaDevices &group_;
  const Driver &driver_;
  CapturedProgram &captured_;
  const DeviceProgram &program_;
  int repeats_;
  Event begin_ = nullptr, end_ = nullptr;
};

} // namespace

Status CudaGroup::tune(BoundProgram &program, const std::string &path, int repeats,
                       const std::function<void(const std::string &)> &line) {
  if (!health_.ok())
    return health_;
  Tuner tuner(parts_, program, repeats);
  if (Status status = tuner.start(); !status.ok())
    return status;
  Tuning tuning;
  tuning.place = parts_.libraries->place();
  for (size_t i = 0; i < program.devices[0].steps.size(); ++i) {
    const BoundStep &step = program.devices[0].steps[i];
    if (!step.kernel || !parts_.libraries->has(step))
      continue;
    TunedKernel best;
    best.name = parts_.libraries->kernelName(step);
    if (std::any_of(tuning.kernels.begin(), tuning.kernels.end(),
                    [&](const TunedKernel &kernel) { return kernel.name == best.name; }))
      continue;
    std::vector<std::string> refused;
    if (Status status = tuner.tune(i, best, refused); !status.ok())
      return std::move(status).in("kernel " + best.name + ": ");
    char times[80];
    std::snprintf(times, sizeof times, ": %.1f us, generated %.1f us, ", best.microseconds, best.ownMicroseconds);
    line(best.name + times + (best.algorithm.empty() ? "kept" : best.algorithm));
    for (const std::string &reason : refused)
      line("  refused " + reason);
    tuning.kernels.push_back(best);
  }
  Status status = writeTuning(path, tuning);
  if (status.ok())
    line("wrote " + path + ": " + std::to_string(tuning.kernels.size()) + " kernels, hash " + hashText(tuning.hash));
  return status;
}

// ---- the functions of Libraries for tuning

const char *Libraries::kernelName(const BoundStep &step) const {
  return tables_->kernels()->Get(kernelOf(step))->name()->c_str();
}

const fb::LibraryCall *Libraries::callOf(const BoundStep &step) const { return choiceOf(step).call; }

Status Libraries::algorithms(const BoundStep &step, std::vector<Algorithm> &found) {
  constexpr size_t most = 16;
  const Choice &choice = choiceOf(step);
  return libraryOf(gpus_[0], *choice.call)
      ->algorithms(*choice.call, shardRows_, {most_ - cut(choice, shards_).library, most, shards_, true}, found);
}

void Libraries::setAlgorithm(const BoundStep &step, const Algorithm &algorithm) {
  choices_[kernelOf(step)].algorithm = algorithm;
}

Status Libraries::enqueueShards(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step,
                                int64_t first, int64_t shards, Stream stream) {
  const Choice &choice = choiceOf(step);
  return libraryOf(on(gpu), *choice.call)
      ->enqueue(*choice.call, shardRows_, choice.algorithm, placesOf(device, program, step, first), shards, stream);
}

std::span<std::byte> Libraries::shardResults(int device, const DeviceProgram &program, const BoundStep &step,
                                             int64_t shard) {
  const Choice &choice = choiceOf(step);
  uint64_t elements = choice.sizes.result * (isTree(*choice.call) ? 1 : static_cast<uint64_t>(shardRows_));
  return {placesOf(device, program, step, shard).result, elements * sizeof(float)};
}

void Libraries::setPlace(const Plan &plan, int driverVersion) {
  place_.gpu = gpus_[0].gpu->name;
  place_.capability = std::to_string(gpus_[0].gpu->major) + "." + std::to_string(gpus_[0].gpu->minor);
  place_.driver = driverVersion;
  place_.plan = plan.hash();
  for (const std::unique_ptr<CallLibrary> *library : {&gpus_[0].blas, &gpus_[0].dnn})
    if (*library)
      place_.libraries.push_back((*library)->version());
}

Status Libraries::readChoices(const std::string &path, const Tuning &tuned) {
  tuning_ = hashText(tuned.hash);
  for (uint32_t k = 0; k < count(tables_->kernels()); ++k) {
    const fb::Kernel &kernel = *tables_->kernels()->Get(k);
    auto found = std::find_if(tuned.kernels.begin(), tuned.kernels.end(),
                              [&](const TunedKernel &entry) { return entry.name == kernel.name()->string_view(); });
    if (!kernel.gpu() || !kernel.gpu()->call() || found == tuned.kernels.end() || found->algorithm.empty())
      continue;
    Choice choice;
    choice.call = kernel.gpu()->call();
    choice.algorithm.name = found->algorithm;
    std::string place = path + ": kernel " + found->name;
    CallLibrary *library = libraryOf(gpus_[0], *choice.call);
    if (!library)
      return {MT_INVALID,
              place + ": expected the library of its algorithm in the file's list of libraries, found none"};
    if (Status status = callSizes(*choice.call, place, choice.sizes); !status.ok())
      return status;
    if (Result result = driver_.ctxSetCurrent(gpus_[0].gpu->context); result != success)
      return failure(driver_, result, gpus_[0].gpu->title() + ": cannot use it");
    if (Status status = library->find(*choice.call, shardRows_, shards_, choice.algorithm); !status.ok())
      return std::move(status).in(place + ": ");
    if (uint64_t bytes = cut(choice, shards_).end; bytes > most_)
      return {MT_INVALID, place + ": expected at most " + std::to_string(most_) + " bytes of workspace, found " +
                              std::to_string(bytes)};
    choices_[k] = choice;
  }
  return choices_.empty() ? Status() : findHelpers();
}

} // namespace mtrun::cuda
