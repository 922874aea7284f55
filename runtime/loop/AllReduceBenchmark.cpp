// SPDX-License-Identifier: Apache-2.0
//
// Times all-reduces between processes without a plan, in turn with MPI_Allreduce of the same library.
#include "runtime/device/Collectives.h"
#include "runtime/device/HostCommunicator.h"
#include "runtime/device/ProcessExchange.h"
#include "runtime/device/mpi/MpiTransport.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Run.h"
#include "runtime/session/ChooseDevices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace mtrun {
namespace {

// Floats in large pages, as the memory of a session.
class Floats {
public:
  explicit Floats(int64_t elements) {
    constexpr size_t page = size_t{1} << 21;
    size_t bytes = (static_cast<size_t>(elements) * sizeof(float) + page - 1) / page * page;
    memory_.reset(static_cast<float *>(std::aligned_alloc(page, std::max(bytes, page))));
    if (!memory_)
      throw std::bad_alloc();
    madvise(memory_.get(), bytes, MADV_HUGEPAGE); // failure is harmless: the pages stay small
    std::memset(memory_.get(), 0, bytes);
  }
  float *get() const { return memory_.get(); }

private:
  struct Free {
    void operator()(float *memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
};

// The value of an element in the partial sum of a process: a number in [-1, 1) that depends on both alone.
float drawn(int process, int64_t element) {
  auto mixed = static_cast<uint64_t>(element) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(process + 1);
  mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<int32_t>(mixed >> 32)) * 0x1p-31f;
}

void addFloats(const float *a, const float *b, float *out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    out[i] = a[i] + b[i];
}

void fill(int process, float *partial, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    partial[i] = drawn(process, i);
}

// Counts the elements that differ from the sum of all partial sums along the reduction tree.
int64_t countDiffering(const float *result, int64_t elements, int processes, const std::vector<TreeSum> &sums) {
  constexpr int64_t block = 1024;
  std::vector<std::array<float, block>> partials(static_cast<size_t>(processes));
  int64_t differing = 0;
  for (int64_t begin = 0; begin < elements; begin += block) {
    int64_t size = std::min(block, elements - begin);
    for (int process = 0; process < processes; ++process)
      for (int64_t i = 0; i < size; ++i)
        partials[static_cast<size_t>(process)][static_cast<size_t>(i)] = drawn(process, begin + i);
    for (TreeSum sum : sums) {
      float *left = partials[static_cast<size_t>(sum.left)].data();
      addFloats(left, partials[static_cast<size_t>(sum.right)].data(), left, size);
    }
    for (int64_t i = 0; i < size; ++i)
      differing += std::memcmp(&result[begin + i], &partials[0][static_cast<size_t>(i)], sizeof(float)) != 0;
  }
  return differing;
}

class AllReduceBenchmark {
public:
  AllReduceBenchmark(SessionDevices &devices, HostCommunicator &communicator)
      : process_(devices.transport->process()), processes_(devices.devices()), places_(devices.places()),
        sums_(treeSums(devices.layout.shards)[static_cast<size_t>(processes_)]), communicator_(communicator),
        one_(static_cast<size_t>(HostCommunicator::stagingElements(1, places_))) {}

  Status measure(mtrun_all_reduce_timing &timing);

private:
  Status reduce(float *partial, float *result, float *staging, int64_t elements) {
    return communicator_.allReduce({elements, processes_, partial, result, staging}, sums_, addFloats);
  }
  // Returns when all processes have called it.
  Status meet() {
    float partial = 0, result = 0;
    return reduce(&partial, &result, one_.data(), 1);
  }
  // Returns how often to measure work of `us` microseconds: for about three seconds, and equally often everywhere.
  Status chooseRepeats(double us, int64_t &repeats) {
    constexpr float enough = 3e6;
    float own = static_cast<float>(us) / static_cast<float>(processes_), mean = 0;
    Status status = reduce(&own, &mean, one_.data(), 1);
    repeats = static_cast<int64_t>(std::clamp(enough / std::max(mean, 1.0f), 11.0f, 2001.0f));
    return status;
  }
  template <typename Work> Status time(std::vector<double> &times, Work work) {
    if (Status status = meet(); !status.ok())
      return status;
    Stopwatch watch;
    Status status = work();
    times.push_back(watch.seconds() * 1e6);
    return status;
  }

  int process_, processes_;
  ExchangePlaces places_;
  std::vector<TreeSum> sums_;
  HostCommunicator &communicator_;
  std::vector<float> one_; // staging memory of meet()
};

double medianOf(std::vector<double> &times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

} // namespace

Status AllReduceBenchmark::measure(mtrun_all_reduce_timing &timing) {
  timing.elements = timing.bytes / static_cast<int64_t>(sizeof(float));
  Floats partial(timing.elements), result(timing.elements);
  Floats staging(HostCommunicator::stagingElements(timing.elements, places_));
  auto ours = [&] { return reduce(partial.get(), result.get(), staging.get(), timing.elements); };
  auto theirs = [&] { return mpiAllReduce(partial.get(), result.get(), timing.elements); };
  fill(process_, partial.get(), timing.elements);
  if (Status status = theirs(); !status.ok())
    return status;
  timing.mpi_differing = countDiffering(result.get(), timing.elements, processes_, sums_);
  uint64_t before = communicator_.received();
  if (Status status = ours(); !status.ok()) // the partial sums may be overwritten from here on
    return status;
  timing.received_bytes = static_cast<double>(communicator_.received() - before);
  timing.differing = countDiffering(result.get(), timing.elements, processes_, sums_);
  fill(process_, partial.get(), timing.elements); // zeros would not be sent
  std::vector<double> own, other;
  if (Status status = time(own, ours); !status.ok())
    return status;
  if (Status status = time(other, theirs); !status.ok())
    return status;
  if (Status status = chooseRepeats(own[0] + other[0], timing.repeats); !status.ok())
    return status;
  own.clear();
  other.clear();
  for (int64_t repeat = 0; repeat < timing.repeats; ++repeat) {
    if (Status status = time(own, ours); !status.ok())
      return status;
    if (Status status = time(other, theirs); !status.ok())
      return status;
  }
  timing.median_us = medianOf(own);
  timing.min_us = own.front();
  timing.mpi_median_us = medianOf(other);
  timing.mpi_min_us = other.front();
  return {};
}

Status benchmarkAllReduces(const mtrun_options &options, std::span<mtrun_all_reduce_timing> timings) {
  constexpr int64_t least = sizeof(float), most = int64_t{1} << 30;
  std::string agreement = "sizes:";
  for (const mtrun_all_reduce_timing &timing : timings) {
    if (timing.bytes < least || timing.bytes > most)
      return {MT_INVALID, "all-reduce: expected " + std::to_string(least) + " to " + std::to_string(most) +
                              " bytes, found " + std::to_string(timing.bytes)};
    agreement += " " + std::to_string(timing.bytes);
  }
  auto log = [&options](int level, const std::string &message) {
    if (options.log)
      options.log(options.log_user, level, message.c_str());
  };
  SessionDevices devices;
  if (Status status = connectProcesses(options, agreement, log, devices); !status.ok())
    return status;
  HostCommunicator communicator(*devices.transport, watchOf(*devices.processGroup), devices.places());
  AllReduceBenchmark benchmark(devices, communicator);
  for (mtrun_all_reduce_timing &timing : timings)
    if (Status status = benchmark.measure(timing); !status.ok())
      return status;
  return {};
}

} // namespace mtrun
