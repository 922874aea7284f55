// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/NcclCommunicator.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace mtrun::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto lookAround =
    std::chrono::milliseconds(2);                     // interval between checks of the other processes during a step
constexpr auto pause = std::chrono::microseconds(20); // interval between queries of an event
constexpr auto aftermath = std::chrono::milliseconds(100); // time until the process that caused an error is known
constexpr auto patience = std::chrono::seconds(10);        // for calls that end a communicator

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

} // namespace

Status NcclCommunicator::open(CudaDevices &group, ProcessGroup &peers, std::unique_ptr<Communicator> &links) {
  const Nccl *nccl = nullptr;
  if (Status status = openNccl(nccl); !status.ok())
    return status;
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(group, peers, *nccl));
  if (Status status = made->connect(); !status.ok())
    return status;
  links = std::move(made);
  return {};
}

// If NCCL does not return in time, its thread continues until the process ends.
NcclCommunicator::~NcclCommunicator() {
  if (comm_ && !aborted_) {
    aborted_ = std::make_shared<std::atomic<bool>>(false);
    std::thread([ended = aborted_, nccl = &nccl_, comm = comm_, &driver = group_.driver(),
                 context = group_.device(0).gpu->context, good = lost_.ok()] {
      (void)driver.ctxSetCurrent(context);
      (void)(good ? nccl->commDestroy(comm) : nccl->commAbort(comm));
      *ended = true;
    }).detach();
  }
  for (auto limit = Clock::now() + patience; aborted_ && !*aborted_ && Clock::now() < limit;)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  (void)group_.makeCurrent(0);
  if (first_)
    (void)group_.driver().memFree(first_);
}

Status NcclCommunicator::within(const char *what, std::function<NcclResult()> calls) {
  struct State {
    std::atomic<bool> entered = false, ended = false;
    NcclResult result = ncclOk;
  };
  auto state = std::make_shared<State>();
  std::thread([state, calls = std::move(calls), &driver = group_.driver(), context = group_.device(0).gpu->context] {
    bool current = driver.ctxSetCurrent(context) == success;
    state->entered = true;
    state->result = current ? calls() : ncclCudaError;
    state->ended = true;
  }).detach();
  peers_.begin();
  // The thread must have entered the context before this process can release it because of a lost peer.
  while (!state->entered)
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  for (auto limit = after(peers_.timeout()); !state->ended;) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (Status status = peers_.check(); !status.ok())
      return lost_ = status;
    if (Clock::now() >= limit)
      return lost_ = peers_.lose(std::string(what) + ": expected all within " + std::to_string(peers_.timeout()) +
                                 " seconds, found all processes connected, but the call did not return");
  }
  if (state->result != ncclOk)
    return lost_ = failed(state->result, what);
  peers_.end();
  return group_.makeCurrent(0) ? Status() : group_.health();
}

// Returns the name of this host as NCCL determines it.
static std::string hostName() {
  if (const char *given = std::getenv("NCCL_HOSTID"))
    return given;
  std::string name;
  if (FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    char text[64] = "";
    name.assign(text, std::fread(text, 1, sizeof text, file));
    std::fclose(file);
  }
  return name;
}

// NCCL refuses two processes on one GPU, and halves of one, as an invalid use without a name. Its own rule compares the
// host and the bus, too.
Status NcclCommunicator::expectOwnGpu() {
  const Gpu &gpu = *group_.device(0).gpu;
  char bus[32] = "";
  if (Result result = group_.driver().deviceGetPciBusId(bus, sizeof bus, gpu.device); result != success)
    return failure(group_.driver(), result, gpu.title() + ": cannot ask where it is");
  std::vector<std::string> all;
  if (Status status = peers_.gather(hostName() + " " + bus, all); !status.ok())
    return status;
  for (size_t i = 0; i < all.size(); ++i)
    if (size_t first = static_cast<size_t>(std::find(all.begin(), all.end(), all[i]) - all.begin()); first < i) {
      std::string device = "cuda:" + std::to_string(gpu.ordinal);
      return peers_.lose("expected a GPU of its own for each process, found " +
                             std::string(all[i], all[i].rfind(' ') + 1) + " in " +
                             peers_.title(static_cast<int>(first)) + " and in " + peers_.title(static_cast<int>(i)) +
                             "; several devices on one GPU are one process: --devices '" + device + "*2' --processes 1",
                         MT_INVALID);
    }
  return {};
}

Status NcclCommunicator::connect() {
  if (Status status = expectOwnGpu(); !status.ok())
    return status;
  std::string host = hostName();
  if (Status status = peers_.broadcast(host); !status.ok())
    return status;
  if (host != hostName() && nccl_.hangsBetweenHosts())
    return nccl_.refused();
  NcclId unique = {};
  if (peers_.process() == 0)
    if (NcclResult result = nccl_.getUniqueId(&unique); result != ncclOk)
      return failed(result, "cannot begin to connect the processes");
  std::string id(unique.bytes, sizeof unique.bytes);
  if (Status status = peers_.broadcast(id); !status.ok())
    return status;
  if (id.size() != sizeof unique.bytes)
    return {MT_LOST,
            "expected " + std::to_string(sizeof unique.bytes) + " bytes of NCCL's, found " + std::to_string(id.size())};
  std::memcpy(unique.bytes, id.data(), id.size());
  auto made = std::make_shared<NcclComm>(nullptr);
  int processes = peers_.processes(), process = peers_.process();
  Status status = within("cannot connect the processes",
                         [=, nccl = &nccl_] { return nccl->commInitRank(made.get(), processes, unique, process); });
  if (status.ok())
    comm_ = *made;
  return status;
}

// NCCL connects two devices at their first exchange, which must not be recorded. Which algorithm an all-reduce of NCCL
// has depends on its size, and each algorithm connects at its first use.
Status NcclCommunicator::warmUp(bool adding, const std::vector<uint64_t> &bytes) {
  const Driver &driver = group_.driver();
  auto devices = static_cast<size_t>(peers_.processes());
  Stream links = group_.device(0).links;
  std::string title = group_.device(0).gpu->title();
  if (!group_.makeCurrent(0))
    return group_.health();
  uint64_t room = std::max<uint64_t>(devices * sizeof(float), adding && !bytes.empty() ? bytes.back() : 0);
  if (Result result = driver.memAlloc(&first_, room); result != success)
    return failure(driver, result, title + ": cannot take " + std::to_string(room) + " bytes of its memory");
  Result result = driver.memsetD8Async(first_, 0, room, links);
  Status status = result == success ? Status() : failure(driver, result, title + ": cannot fill its memory");
  if (status.ok())
    status = within("cannot connect the processes", [=, this, bytes = bytes] {
      auto *floats = reinterpret_cast<float *>(first_);
      NcclResult added = ncclOk;
      for (size_t i = 0; adding && i < bytes.size() && added == ncclOk; ++i)
        added = nccl_.allReduce(floats, floats, bytes[i] / sizeof(float), ncclF32, ncclAdd, comm_, links);
      return added != ncclOk ? added
                             : exchange([&](int) { return Floats{floats + peers_.process(), 1}; },
                                        [&](int peer) { return Floats{floats + peer, 1}; });
    });
  Event event = group_.device(0).event;
  if (status.ok())
    if (Result recorded = driver.eventRecord(event, links); recorded != success)
      status = failure(driver, recorded, title + ": cannot record an event");
  peers_.begin();
  if (status.ok())
    status = wait(event);
  if (!status.ok())
    return status;
  peers_.end();
  Result freed = driver.memFree(std::exchange(first_, 0));
  return freed == success ? Status() : failure(driver, freed, title + ": cannot give back its memory");
}

// Groups calls into one NCCL operation.
NcclResult NcclCommunicator::exchange(const std::function<Floats(int peer)> &sent,
                                      const std::function<Floats(int peer)> &received) {
  NcclResult result = nccl_.groupStart();
  if (result != ncclOk)
    return result;
  Stream links = group_.device(0).links;
  for (int peer = 0; peer < peers_.processes() && result == ncclOk; ++peer) {
    if (peer == peers_.process())
      continue;
    if (Floats out = sent(peer); out.count)
      result = nccl_.send(out.memory, static_cast<size_t>(out.count), ncclF32, peer, comm_, links);
    if (Floats in = received(peer); in.count && result == ncclOk)
      result = nccl_.recv(in.memory, static_cast<size_t>(in.count), ncclF32, peer, comm_, links);
  }
  NcclResult ended = nccl_.groupEnd();
  return result == ncclOk ? ended : result;
}

Status NcclCommunicator::failed(NcclResult result, const char *what, mt_code code) {
  return failed(group_.device(0).gpu->title() + ": " + what + ": " + nccl_.describe(result, comm_), code);
}

Status NcclCommunicator::failed(std::string message, mt_code code) {
  for (auto limit = Clock::now() + aftermath; Clock::now() < limit;) {
    if (Status status = peers_.check(); !status.ok())
      return {status.code(), status.message() + "; " + message};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {code, std::move(message)};
}

// Each device sends every other device its chunk of the partial sum. A device without valid rows does so too; its
// partial sum is not added.
Status NcclCommunicator::gatherPartials(const Chunks &chunks) {
  int own = chunks.hostedBegin();
  NcclResult result =
      exchange([&](int peer) { return Floats{chunks.partial(own) + chunks.begin(peer), chunks.size(peer)}; },
               [&](int peer) { return Floats{chunks.node(own, peer), chunks.size(own)}; });
  return result == ncclOk ? Status() : failed(result, "cannot record an exchange of partial sums");
}

// Chunks may differ in size because of alignment, and NCCL's all-gather needs equal sizes.
Status NcclCommunicator::spreadResults(const Chunks &chunks) {
  int own = chunks.hostedBegin();
  NcclResult result =
      exchange([&](int) { return Floats{chunks.result(own) + chunks.begin(own), chunks.size(own)}; },
               [&](int peer) { return Floats{chunks.result(own) + chunks.begin(peer), chunks.size(peer)}; });
  return result == ncclOk ? Status() : failed(result, "cannot record an exchange of results");
}

Status NcclCommunicator::allReduce(const Chunks &chunks) {
  int own = chunks.hostedBegin();
  if (chunks.elements() == 0)
    return {};
  NcclResult result = nccl_.allReduce(chunks.partial(own), chunks.result(own), static_cast<size_t>(chunks.elements()),
                                      ncclF32, ncclAdd, comm_, group_.device(0).links);
  return result == ncclOk ? Status() : failed(result, "cannot record an all-reduce");
}

Status NcclCommunicator::lose(Status why) {
  if (!lost_.ok())
    return lost_;
  // The other processes receive the reason, not only the end of this process.
  lost_ = peers_.lose(why.message(), why.code());
  // Ends operations on the GPU that wait for other processes. ncclCommAbort() may block until the graphs are destroyed,
  // so a thread calls it.
  aborted_ = std::make_shared<std::atomic<bool>>(false);
  std::thread([ended = aborted_, nccl = &nccl_, comm = comm_, &driver = group_.driver(),
               context = group_.device(0).gpu->context] {
    (void)driver.ctxSetCurrent(context);
    (void)nccl->commAbort(comm);
    *ended = true;
  }).detach();
  return lost_;
}

// Waits at most for the processes' timeout. A short step is polled without a pause.
Status NcclCommunicator::wait(Event event) {
  const Driver &driver = group_.driver();
  if (!lost_.ok())
    return lost_;
  auto begin = Clock::now(), limit = after(peers_.timeout()), look = begin + lookAround;
  for (;;) {
    Result result = driver.eventQuery(event);
    if (result == success)
      return {};
    std::string title = group_.device(0).gpu->title();
    if (result != notReady)
      return lose(failed(title + ": the GPU failed in a step: " + driver.describe(result), MT_LOST));
    auto now = Clock::now();
    if (now < look) {
      std::this_thread::yield();
      continue;
    }
    look = now + lookAround;
    if (Status status = peers_.check(); !status.ok())
      return lose(std::move(status));
    NcclResult error = ncclOk, asked = nccl_.commGetAsyncError(comm_, &error);
    if (asked != ncclOk || (error != ncclOk && error != ncclWorking))
      return lose(failed(asked != ncclOk ? asked : error, "the exchange between processes failed", MT_LOST));
    if (now >= limit)
      return lose({MT_LOST, title + ": the other processes' GPUs did not answer for " +
                                std::to_string(static_cast<int64_t>(peers_.timeout())) + " seconds"});
    std::this_thread::sleep_for(pause);
  }
}

} // namespace mtrun::cuda
