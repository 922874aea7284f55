// SPDX-License-Identifier: Apache-2.0
//
// A kernel's blocks in an order of chance, two at a time, which take turns where all of one's threads wait at a
// barrier; the threads of a block take turns, each on a stack of its own.
#include "Place.h"
#include "Simulator.h"
#include "TensorCores.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace simulated {
namespace {

constexpr unsigned maxThreads = 1024, warpThreads = 32;
constexpr size_t stackBytes = 128 << 10, sharedBytes = 48 << 10;

enum class State { Ready, AtBarrier, AtShuffle, Done };

struct Fiber {
  Place place;
  State state = State::Ready;
  uint32_t value = 0, mask = 0; // of a shuffle
  mt_sim_thread thread = {};
};

struct Block {
  const Operation *operation = nullptr;
  Place scheduler;
  Fiber *running = nullptr;
  unsigned threads = 0, x = 0, y = 0;
  bool backwards = false;
  void (*setTensorCores)(mt_sim_thread &) = nullptr;
  std::vector<Fiber> fibers = std::vector<Fiber>(maxThreads);
  std::byte *stacks = nullptr;
  alignas(64) std::byte shared[sharedBytes];

  Block() {
    void *memory = mmap(nullptr, maxThreads * stackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      fatal("no memory for the threads of a block");
    stacks = static_cast<std::byte *>(memory);
  }
  ~Block() { munmap(stacks, maxThreads * stackBytes); }

  void stop(Fiber &fiber, State state) {
    fiber.state = state;
    fiber.place.goTo(scheduler);
  }
  std::string name(const Fiber &fiber) const {
    return "kernel " + operation->function->name + ", block " + std::to_string(fiber.thread.block_x) + ", " +
           std::to_string(fiber.thread.block_y) + ": thread " + std::to_string(fiber.thread.thread);
  }
  void begin(const Operation &kernel, size_t tile);
  bool advance(); // to the next barrier, or to its end: true
  bool pass();
  void exchange(unsigned warp);
};

// The one that runs.
Block *active = nullptr;
Block &block() { return *active; }

void enter() {
  Block &b = block(); // a fiber is of one block
  Fiber &fiber = *b.running;
  b.operation->function->code(b.operation->params, b.operation->segments, &fiber.thread);
  b.stop(fiber, State::Done);
}

void barrier(const mt_sim_thread *thread) { block().stop(block().fibers[thread->thread], State::AtBarrier); }

uint32_t shuffle(const mt_sim_thread *thread, uint32_t value, uint32_t mask) {
  Fiber &fiber = block().fibers[thread->thread];
  fiber.value = value;
  fiber.mask = mask;
  block().stop(fiber, State::AtShuffle);
  return fiber.value;
}

void misaligned(const mt_sim_thread *thread, uint64_t address, uint32_t bytes) {
  fatal(block().name(block().fibers[thread->thread]) + " expects a multiple of " + std::to_string(bytes) +
        " bytes, found " + std::to_string(address % bytes) + " beyond one");
}

// Lets every thread run that can. False: none could.
bool Block::pass() {
  bool any = false;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber &fiber = fibers[backwards ? threads - 1 - i : i];
    if (fiber.state != State::Ready)
      continue;
    any = true;
    running = &fiber;
    scheduler.goTo(fiber.place);
  }
  return any;
}

// Gives the lanes of a warp what their partners had, if all of them wait for that.
void Block::exchange(unsigned warp) {
  unsigned begin = warp * warpThreads, end = std::min(threads, begin + warpThreads);
  uint32_t values[warpThreads];
  for (unsigned t = begin; t < end; ++t) {
    if (fibers[t].state != State::AtShuffle)
      return;
    unsigned partner = begin + ((t - begin) ^ fibers[t].mask);
    if (fibers[t].mask >= warpThreads || partner >= end || fibers[t].mask != fibers[begin].mask)
      fatal(name(fibers[t]) + " asks for the value of a thread that there is not");
    values[t - begin] = fibers[partner].value;
  }
  for (unsigned t = begin; t < end; ++t) {
    fibers[t].value = values[t - begin];
    fibers[t].state = State::Ready;
  }
}

void Block::begin(const Operation &kernel, size_t tile) {
  operation = &kernel;
  threads = kernel.threads;
  x = static_cast<unsigned>(tile % kernel.gridX);
  y = static_cast<unsigned>(tile / kernel.gridX);
  backwards = (x + y) % 2;
  std::memset(shared, 0xff, sizeof shared); // NaNs: nothing may depend on what it holds
  for (unsigned t = 0; t < threads; ++t) {
    fibers[t].state = State::Ready;
    mt_sim_thread &thread = fibers[t].thread;
    thread = {t, x, y, threads, shared, barrier, shuffle, nullptr, misaligned, nullptr, nullptr, nullptr};
    setTensorCores(thread);
    fibers[t].place.begin(stacks + t * stackBytes, stackBytes, enter);
  }
}

bool Block::advance() {
  active = this;
  for (;; backwards = !backwards) {
    if (pass()) {
      for (unsigned warp = 0; warp * warpThreads < threads; ++warp)
        exchange(warp);
      continue;
    }
    unsigned done = 0, waiting = 0;
    for (unsigned t = 0; t < threads; ++t) {
      done += fibers[t].state == State::Done;
      waiting += fibers[t].state == State::AtBarrier;
    }
    if (done == threads)
      return true;
    if (waiting != threads)
      fatal("kernel " + operation->function->name + ", block " + std::to_string(x) + ", " + std::to_string(y) +
            ": of " + std::to_string(threads) + " threads " + std::to_string(waiting) + " wait at a barrier, " +
            std::to_string(done) + " have left, the others wait for their warp");
    for (unsigned t = 0; t < threads; ++t)
      fibers[t].state = State::Ready;
    backwards = !backwards;
    return false;
  }
}

} // namespace

void runKernel(const Operation &operation) {
  static Block blocks[2];
  blocks[0].setTensorCores = setTensorCores<0>;
  blocks[1].setTensorCores = setTensorCores<1>;
  std::vector<size_t> tiles(size_t{operation.gridX} * operation.gridY);
  for (size_t i = 0; i < tiles.size(); ++i)
    tiles[i] = i;
  for (size_t i = tiles.size(); i > 1; --i)
    std::swap(tiles[i - 1], tiles[simulator().chance() % i]);
  size_t next = 0;
  bool busy[2] = {};
  do {
    for (size_t b : {0, 1}) {
      if (!busy[b] && next < tiles.size()) {
        blocks[b].begin(operation, tiles[next++]);
        busy[b] = true;
      }
      busy[b] = busy[b] && !blocks[b].advance();
    }
  } while (busy[0] || busy[1] || next < tiles.size());
}

} // namespace simulated
