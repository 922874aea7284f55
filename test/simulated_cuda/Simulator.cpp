// SPDX-License-Identifier: Apache-2.0
#include "Simulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace simulated {

void fatal(const std::string &message) {
  std::fprintf(stderr, "simulated CUDA driver: %s\n", message.c_str());
  std::abort();
}

static long setting(const char *name, long otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

Simulator::Simulator() {
  devices = static_cast<int>(setting("MTC_SIM_DEVICES", devices));
  version = static_cast<int>(setting("MTC_SIM_VERSION", version));
  memory = static_cast<size_t>(setting("MTC_SIM_MEMORY", static_cast<long>(memory)));
  driverBytes = static_cast<size_t>(setting("MTC_SIM_DRIVER", static_cast<long>(driverBytes)));
  peers = setting("MTC_SIM_PEERS", 1) != 0;
  tellsCopies = setting("MTC_SIM_COPIES", 0) != 0;
  order += static_cast<uint64_t>(setting("MTC_SIM_ORDER", 0));
  failAt = setting("MTC_SIM_FAIL", 0);
  loseAt = setting("MTC_SIM_LOST", 0);
  if (const char *text = std::getenv("MTC_SIM_CAPABILITY"))
    std::sscanf(text, "%d.%d", &major, &minor);
  contexts.resize(static_cast<size_t>(devices));
  for (int d = 0; d < devices; ++d)
    contexts[static_cast<size_t>(d)].device = d;
}

Simulator::~Simulator() {
  std::string left;
  auto add = [&](size_t count, const char *what) {
    if (count)
      left += (left.empty() ? "" : ", ") + std::to_string(count) + " of kind " + what;
  };
  for (const CUctx_st &context : contexts)
    add(static_cast<size_t>(context.retained), "context");
  add(memories.size(), "memory");
  add(modules.size(), modules.what());
  add(streams.size(), streams.what());
  add(events.size(), events.what());
  add(graphs.size(), graphs.what());
  add(execs.size(), execs.what());
  if (!left.empty())
    fatal("not freed: " + left);
  if (failAt > calls)
    std::fprintf(stderr, "simulated CUDA driver: call %ld was not reached, there were %ld\n", failAt, calls);
}

thread_local CUctx_st *Simulator::current = nullptr;

Simulator &simulator() {
  static Simulator one;
  return one;
}

bool Simulator::fails(const char *call, bool cleansUp) {
  if (++calls == failAt) {
    std::fprintf(stderr, "simulated CUDA driver: call %ld, %s, fails\n", calls, call);
    return true;
  }
  return lost && !cleansUp;
}

int Simulator::device(const char *call) {
  if (!current)
    fatal(std::string(call) + " without a current context");
  return current->device;
}

void Simulator::notWhileCapturing(const char *call) const {
  for (const auto &[handle, stream] : streams.all())
    if (stream->capture)
      fatal(std::string(call) + " while a stream is captured");
}

const Memory *Simulator::find(const void *address, size_t bytes, const char *call) const {
  auto place = reinterpret_cast<uintptr_t>(address);
  if (place < 4096)
    fatal(std::string(call) + " of a null pointer");
  auto after = memories.upper_bound(place);
  if (after != memories.end() && after->first < place + bytes)
    fatal(std::string(call) + " of " + std::to_string(bytes) + " bytes runs into memory that begins in it");
  if (after == memories.begin())
    return nullptr;
  const auto &[begin, memory] = *std::prev(after);
  if (place >= begin + memory.bytes)
    return nullptr;
  if (bytes > begin + memory.bytes - place)
    fatal(std::string(call) + " of " + std::to_string(bytes) + " bytes at offset " + std::to_string(place - begin) +
          " of " + std::to_string(memory.bytes));
  return &memory;
}

size_t Simulator::used(int device) const {
  size_t sum = 0;
  for (const auto &[begin, memory] : memories)
    sum += memory.device == device ? memory.bytes : 0;
  const CUctx_st &context = contexts[static_cast<size_t>(device)];
  sum += context.retained ? driverBytes + context.localBytes : 0;
  sum += device == 0 && driverBytes ? execs.size() << 20 : 0;
  return sum;
}

void Simulator::enqueue(CUstream_st &stream, Operation operation) {
  std::vector<Operation> &list = stream.capture ? stream.capture->operations : queue;
  operation.after = stream.tail;
  stream.tail = {list.size()};
  list.push_back(std::move(operation));
}

void Simulator::protect(bool open) {
  for (const auto &[begin, memory] : memories)
    if (memory.device >= 0)
      mprotect(reinterpret_cast<void *>(begin), memory.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool Simulator::run(Operation &operation) {
  clock += operation.kind == Operation::Kind::Stamp ? 10
           : operation.kind == Operation::Kind::Call
               ? (operation.eager ? 100000 : 100)
               : 1000 + static_cast<int64_t>(operation.bytes) / 10 + int64_t{100} * operation.gridX * operation.gridY;
  switch (operation.kind) {
  case Operation::Kind::Stamp:
    events.get(operation.event).time = clock;
    break;
  case Operation::Kind::Copy:
    std::memmove(operation.to, operation.from, operation.bytes);
    break;
  case Operation::Kind::Set:
    std::memset(operation.to, operation.byte, operation.bytes);
    break;
  case Operation::Kind::Kernel:
    runKernel(operation);
    break;
  case Operation::Kind::Call:
    operation.call();
    break;
  case Operation::Kind::External:
    if (!operation.running)
      operation.running = operation.begin();
    return operation.running->advance();
  }
  return true;
}

void Simulator::compact(const std::vector<bool> &done) {
  std::vector<size_t> place(queue.size());
  std::vector<Operation> rest;
  for (size_t i = 0; i < queue.size(); ++i) {
    place[i] = rest.size();
    if (!done[i])
      rest.push_back(std::move(queue[i]));
  }
  auto move = [&](std::set<size_t> &list) {
    std::set<size_t> moved;
    for (size_t i : list)
      if (!done[i])
        moved.insert(place[i]);
    list = std::move(moved);
  };
  for (Operation &operation : rest)
    move(operation.after);
  queue = std::move(rest);
  for (const auto &[handle, stream] : streams.all())
    if (!stream->capture)
      move(stream->tail);
  for (const auto &[handle, event] : events.all())
    if (!event->capture)
      move(event->tail);
}

bool Simulator::advanceQueue(const std::set<size_t> *until) {
  std::vector<size_t> waits(queue.size()), ready;
  std::vector<std::vector<size_t>> next(queue.size());
  std::vector<bool> needed(queue.size(), until == nullptr), done(queue.size());
  for (size_t i = queue.size(); until && i-- > 0;)
    if (until->count(i) || needed[i]) {
      needed[i] = true;
      for (size_t before : queue[i].after)
        needed[before] = true;
    }
  size_t missing = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    waits[i] = queue[i].after.size();
    for (size_t before : queue[i].after)
      next[before].push_back(i);
    if (waits[i] == 0)
      ready.push_back(i);
    missing += needed[i];
    lost |= needed[i] && queue[i].lost;
  }
  if (!lost && missing > 0) {
    protect(true);
    while (missing > 0 && !ready.empty()) {
      std::swap(ready[chance() % ready.size()], ready.back());
      size_t chosen = ready.back();
      ready.pop_back();
      lost |= queue[chosen].lost;
      if (!lost && !run(queue[chosen]))
        continue; // asked again next time
      done[chosen] = true;
      missing -= needed[chosen];
      for (size_t after : next[chosen])
        if (--waits[after] == 0)
          ready.push_back(after);
    }
    protect(false);
  }
  if (lost)
    done.assign(queue.size(), true);
  compact(done);
  return lost || missing == 0;
}

} // namespace simulated
