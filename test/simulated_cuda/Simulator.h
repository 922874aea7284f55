// SPDX-License-Identifier: Apache-2.0
//
// A CUDA driver without a GPU: the functions that runtime/device/cuda calls, for tests. Work that is enqueued runs only
// when somebody waits for it, in an order that dependencies alone decide and chance varies, so that a missing
// dependency shows; device memory cannot be touched by the host meanwhile. What no caller may do ends the process with
// a message. Read from the environment:
//
//   MTC_SIM_DEVICES=N          GPUs (1)
//   MTC_SIM_CAPABILITY=M.N     compute capability (0.0: takes code for "cuda:simulated")
//   MTC_SIM_NAME=TEXT          name of the GPUs (Simulated GPU)
//   MTC_SIM_MEMORY=BYTES       of each GPU (1 GiB)
//   MTC_SIM_DRIVER=BYTES       that a context takes of each GPU (4 MiB); a graph that is ready takes 1 MiB of the first
//   MTC_SIM_VERSION=N          of the driver (12040); cubins of a newer toolkit are refused
//   MTC_SIM_PTX=FILE           code of the target "cuda:simulated", which the driver makes of any PTX text
//   MTC_SIM_PEERS=0            GPUs cannot reach one another's memory
//   MTC_SIM_COPIES=1           copies between GPUs are told when they are enqueued
//   MTC_SIM_ORDER=N            another order of independent work, and of a kernel's blocks
//   MTC_SIM_FAIL=N             the N-th call fails; the process says at its end if there were fewer
//   MTC_SIM_LOST=N             the N-th graph launch fails when it is waited for, and every call from then on
//
// At its end the process fails if something was not freed.
#pragma once

#include "runtime/abi/gpu_kernel.h"
#include "runtime/device/cuda/Driver.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

// The driver's handles.
struct CUctx_st {
  int device = 0;
  int retained = 0;
  size_t localBytes = 0; // for arrays of threads, as its limit says
};
struct CUmod_st {
  int device = 0;
  int fd = -1;
  void *library = nullptr;
  std::map<std::string, CUfunc_st *> functions;
};
struct CUfunc_st {
  std::string name;
  CUmod_st *module = nullptr;
  mt_sim_kernel_fn code = nullptr;
  unsigned dynamicBytes = 0; // of workgroup memory that launches may give
};

namespace simulated {

using namespace mtrun::cuda;

inline constexpr int greatestPriority = -3; // of a stream

// Work that does not end by itself: an exchange with other processes.
class External {
public:
  virtual ~External() = default;
  virtual bool advance() = 0; // true: it has ended
};

// One piece of work and what it waits for, as indices into the list that it is in.
struct Operation {
  enum class Kind { Copy, Set, Kernel, Stamp, External, Call } kind = Kind::Copy;
  std::byte *to = nullptr;
  const std::byte *from = nullptr;
  size_t bytes = 0;
  unsigned char byte = 0;
  CUfunc_st *function = nullptr;
  unsigned gridX = 0, gridY = 0, threads = 0;
  const mt_kernel_params *params = nullptr;
  const mt_gpu_word *segments = nullptr;
  std::function<std::unique_ptr<External>()> begin; // External
  std::shared_ptr<External> running;
  CUevent_st *event = nullptr; // of a stamp: takes the time
  std::function<void()> call;  // of a library, while device memory is open
  bool eager = false;          // a call that the host enqueued by itself, which takes the host longer than the GPU
  bool lost = false;           // fails when it is waited for
  std::set<size_t> after;
};

} // namespace simulated

struct CUgraph_st {
  std::vector<simulated::Operation> operations;
};
struct CUgraphExec_st {
  std::vector<simulated::Operation> operations;
};
struct CUstream_st {
  int device = 0;
  int priority = 0;
  std::set<size_t> tail;               // what its next operation waits for: of the queue, or of the capture
  std::shared_ptr<CUgraph_st> capture; // null: it is not captured
  bool origin = false;                 // of the capture
};
struct CUevent_st {
  int device = 0;
  bool timed = false;
  int64_t time = -1; // of the simulated clock, in nanoseconds; -1: none yet
  std::set<size_t> tail;
  std::shared_ptr<CUgraph_st> capture;
};

namespace simulated {

[[noreturn]] MT_API void fatal(const std::string &message);

// Live objects of one type.
template <typename T> class Handles {
public:
  explicit Handles(const char *what) : what_(what) {}
  T *make() {
    auto object = std::make_unique<T>();
    T *handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  T &get(T *handle) const {
    if (!objects_.count(handle))
      fatal(std::string("unknown ") + what_);
    return *handle;
  }
  void free(T *handle) {
    get(handle);
    objects_.erase(handle);
  }
  size_t size() const { return objects_.size(); }
  const char *what() const { return what_; }
  const std::map<T *, std::unique_ptr<T>> &all() const { return objects_; }

private:
  const char *what_;
  std::map<T *, std::unique_ptr<T>> objects_;
};

struct Memory {
  size_t bytes = 0;
  int device = -1; // -1: the host's, pinned
};

struct MT_API Simulator {
  Simulator();
  ~Simulator(); // reports what was not freed

  // settings
  int devices = 1, major = 0, minor = 0, version = 12040;
  size_t memory = size_t{1} << 30, driverBytes = size_t{4} << 20;
  bool peers = true, tellsCopies = false;
  uint64_t order = 1;
  long failAt = 0, loseAt = 0;

  bool started = false;
  int64_t clock = 0; // in nanoseconds: each operation takes some
  long calls = 0, graphLaunches = 0;
  bool lost = false;
  static thread_local CUctx_st *current;
  std::vector<CUctx_st> contexts; // one a device
  std::map<uintptr_t, Memory> memories;
  std::vector<Operation> queue; // enqueued, not yet run
  Handles<CUmod_st> modules{"module"};
  Handles<CUfunc_st> functions{"function"};
  Handles<CUstream_st> streams{"stream"};
  Handles<CUevent_st> events{"event"};
  Handles<CUgraph_st> graphs{"graph"};
  Handles<CUgraphExec_st> execs{"graph that is ready"};

  // The next number of chance.
  size_t chance() {
    order = order * 6364136223846793005u + 1442695040888963407u;
    return order >> 33;
  }
  // Whether this call fails: counts it. `cleansUp`: a call that frees, which works on a lost device.
  bool fails(const char *call, bool cleansUp = false);
  // The device of the current context.
  int device(const char *call);
  void notWhileCapturing(const char *call) const;
  // The memory around [address, address + bytes), null if it is the host's own; fatal if it sticks out.
  const Memory *find(const void *address, size_t bytes, const char *call) const;
  size_t used(int device) const;
  // Adds to the stream: to its capture or to the queue.
  void enqueue(CUstream_st &stream, Operation operation);
  // Runs all that is enqueued; with `until` what these wait for and these, and of the rest as much as chance wants.
  // False: the device is lost.
  bool runQueue(const std::set<size_t> *until = nullptr) {
    while (!advanceQueue(until))
      ::usleep(50);
    return !lost;
  }
  // The same as far as nothing waits for other processes; whether that is all of it, or the device is lost.
  bool advanceQueue(const std::set<size_t> *until);

private:
  void protect(bool open);        // device memory against the host
  bool run(Operation &operation); // false: it goes on
  // Forgets the operations that ran.
  void compact(const std::vector<bool> &done);
};

MT_API Simulator &simulator();

// What a call that fails returns: the error that its kind of call has most.
inline int refused() { return simulator().lost ? 719 : 999; }

// Runs a kernel: block after block, the threads of a block as fibers.
void runKernel(const Operation &operation);

// Loads the ELF shared object at `image`, whose size its own headers tell. False: it is none.
bool loadImage(const void *image, CUmod_st &module);
void unloadImage(CUmod_st &module);

} // namespace simulated
