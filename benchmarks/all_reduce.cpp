// SPDX-License-Identifier: Apache-2.0
//
// all_reduce BYTES...: compares the all-reduce between CPU processes with MPI_Allreduce of the same library, which adds
// in an order of its own. The two alternate in one run. Process 0 prints the median times and their ratio; above 1 the
// first is faster. benchmarks/all-reduce builds and runs it.
#include "runtime/device/Collectives.h"
#include "runtime/device/HostCommunicator.h"
#include "runtime/device/mpi/MpiTransport.h"
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mpi.h>
#include <vector>

using Clock = std::chrono::steady_clock;

namespace {

double microsecondsOf(auto &&work) {
  auto begin = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void addFloats(const float *a, const float *b, float *out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    out[i] = a[i] + b[i];
}

} // namespace

int main(int count, char **arguments) {
  int level = 0, process = 0, processes = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  std::unique_ptr<mtrun::Transport> transport;
  if (mtrun::Status status = mtrun::openMpi(process, processes, {}, transport); !status.ok()) {
    fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  mtrun::HostCommunicator communicator(*transport, {});
  int shards = static_cast<int>(std::bit_ceil(static_cast<unsigned>(processes)));
  auto sums = mtrun::treeSums(mtrun::splitShards(shards, processes))[static_cast<size_t>(processes)];
  for (int i = 1; i < count; ++i) {
    int64_t elements = std::clamp<int64_t>(std::atoll(arguments[i]) / 4, 1, 1 << 28);
    int repeats = static_cast<int>(std::clamp<int64_t>(50'000'000 / (elements + 1), 11, 2001));
    std::vector<float> partial(static_cast<size_t>(elements), 1), result(partial.size());
    std::vector<float> staging(static_cast<size_t>(mtrun::HostCommunicator::stagingElements(elements, processes)));
    std::vector<double> ours, theirs;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      MPI_Barrier(MPI_COMM_WORLD);
      ours.push_back(microsecondsOf([&] {
        (void)communicator.allReduce({elements, processes, partial.data(), result.data(), staging.data()}, sums,
                                     addFloats);
      }));
      MPI_Barrier(MPI_COMM_WORLD);
      theirs.push_back(microsecondsOf([&] {
        MPI_Allreduce(partial.data(), result.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }));
    }
    double own = median(ours), other = median(theirs);
    if (process == 0)
      printf("%9lld bytes: ours %10.1f us, MPI_Allreduce %10.1f us, ratio %.2f\n", static_cast<long long>(elements * 4),
             own, other, other / own);
  }
  MPI_Finalize();
  return 0;
}
