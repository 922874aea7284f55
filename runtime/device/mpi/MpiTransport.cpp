// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/mpi/MpiTransport.h"

#include "runtime/device/mpi/MpiLibrary.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace mtrun {
namespace {

// MPI of this process.
struct World {
  MpiLibrary library;
  Status status; // of the first start, which is final
  int process = 0, processes = 0, anyThread = 0;
  bool opened = false, endsAtExit = false;
};

std::mutex worldMutex;

World &world() {
  static World world;
  return world;
}

std::string textOf(const mtrun_mpi_functions &functions, int error) {
  char text[512] = "";
  functions.describe(error, text, sizeof text);
  return text;
}

void endAtExit() {
  if (world().endsAtExit)
    world().library.functions->finish();
}

Status start(World &world) {
  if (Status status = openMpiLibrary(world.library); !status.ok())
    return status;
  const mtrun_mpi_functions &functions = *world.library.functions;
  if (int error = functions.start(&world.process, &world.processes, &world.anyThread))
    return {MT_NO_DEVICE, world.library.path + ": cannot start MPI: " + textOf(functions, error)};
  std::atexit(endAtExit); // before the library's own destructors
  return {};
}

class MpiTransport : public Transport {
public:
  explicit MpiTransport(const World &world) : world_(world), functions_(*world.library.functions) {}

  int process() const override { return world_.process; }
  int processes() const override { return world_.processes; }

  Status send(int peer, int tag, const void *data, size_t bytes, int &request) override {
    if (bytes > INT_MAX)
      return tooLong(bytes);
    Status status = good(functions_.send(peer, tag, data, static_cast<int>(bytes), &request), "cannot send to", peer);
    if (status.ok())
      expect(request, {peer, sent});
    return status;
  }

  Status receive(int peer, int tag, void *data, size_t bytes, int &request) override {
    if (bytes > INT_MAX)
      return tooLong(bytes);
    Status status =
        good(functions_.receive(peer, tag, data, static_cast<int>(bytes), &request), "cannot receive from", peer);
    if (status.ok())
      expect(request, {peer, static_cast<int>(bytes)});
    return status;
  }

  Status test(int request, bool &done, size_t *received) override {
    int ended = 0, bytes = 0;
    if (int error = functions_.test(request, &ended, &bytes))
      return {MT_LOST, "a message failed: " + textOf(functions_, error)};
    done = ended != 0;
    Message message = expected_[static_cast<size_t>(request)];
    if (!done || message.bytes == sent)
      return {};
    if (received)
      *received = static_cast<size_t>(bytes);
    else if (message.bytes != bytes)
      return {MT_LOST, "expected a message of " + std::to_string(message.bytes) + " bytes from process " +
                           std::to_string(message.peer) + ", found " + std::to_string(bytes)};
    return {};
  }

  void abandon() override { functions_.abandon(); }

private:
  static constexpr int sent = -1;
  struct Message {
    int peer;
    int bytes; // of a message to receive; else `sent`
  };

  void expect(int request, Message message) {
    expected_.resize(std::max(expected_.size(), static_cast<size_t>(request) + 1));
    expected_[static_cast<size_t>(request)] = message;
  }

  static Status tooLong(size_t bytes) {
    return {MT_INVALID,
            "expected a message of at most " + std::to_string(INT_MAX) + " bytes, found " + std::to_string(bytes)};
  }
  Status good(int error, const char *what, int peer) const {
    return error ? Status{MT_LOST,
                          std::string(what) + " process " + std::to_string(peer) + ": " + textOf(functions_, error)}
                 : Status();
  }

  const World &world_;
  const mtrun_mpi_functions &functions_;
  std::vector<Message> expected_; // by request
};

} // namespace

Status openMpi(int process, int processes, const std::function<void(int level, const std::string &message)> &log,
               std::unique_ptr<Transport> &transport) {
  std::lock_guard lock(worldMutex);
  World &opened = world();
  if (!opened.opened) {
    opened.opened = true;
    opened.status = start(opened);
  }
  if (!opened.status.ok())
    return opened.status;
  char version[512] = "";
  opened.library.functions->version(version, sizeof version);
  std::string title = opened.library.path + " (" + version + ")";
  if (log)
    log(0, "MPI: " + title);
  if (opened.processes != processes || opened.process != process)
    return {MT_NO_DEVICE, "expected process " + std::to_string(process) + " of " + std::to_string(processes) +
                              ", as the launcher says, found process " + std::to_string(opened.process) + " of " +
                              std::to_string(opened.processes) + " in " + title +
                              ": it is not the launcher's library of MPI, which MTRUN_MPI can name"};
  if (!opened.anyThread && gettid() != getpid())
    return {MT_NO_DEVICE,
            title + ": expected a library of MPI that any thread may call, found one for the main thread"};
  opened.endsAtExit = false;
  transport = std::make_unique<MpiTransport>(opened);
  return {};
}

bool hasOpenedMpi(Status &status) {
  std::lock_guard lock(worldMutex);
  status = world().status;
  return world().opened;
}

Status mpiAllReduce(const float *from, float *to, int64_t elements) {
  const mtrun_mpi_functions &functions = *world().library.functions;
  if (int error = functions.all_reduce(from, to, static_cast<int>(elements)))
    return {MT_LOST, "MPI_Allreduce failed: " + textOf(functions, error)};
  return {};
}

void endMpiAtExit(bool all) { world().endsAtExit = all; }

} // namespace mtrun
