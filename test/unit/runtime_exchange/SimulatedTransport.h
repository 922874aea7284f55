// SPDX-License-Identifier: Apache-2.0
//
// Messages between threads of one process, each of which plays a process of a session.
#pragma once

#include "runtime/device/Transport.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun::test {

// The messages in flight, by sender, receiver and tag.
struct SimulatedNetwork {
  std::mutex mutex;
  std::map<std::vector<int>, std::deque<std::vector<char>>> messages;
};

class SimulatedTransport : public Transport {
public:
  SimulatedTransport(SimulatedNetwork &network, int process, int processes)
      : network_(network), process_(process), processes_(processes) {}

  int process() const override { return process_; }
  int processes() const override { return processes_; }

  // The first test of every second message is too early.
  Status send(int peer, int tag, const void *data, size_t bytes, int &request) override {
    requests_.push_back({peer, tag, const_cast<void *>(data), bytes, true, count_++ % 2 == 0});
    request = static_cast<int>(requests_.size()) - 1;
    return {};
  }
  Status receive(int peer, int tag, void *data, size_t bytes, int &request) override {
    requests_.push_back({peer, tag, data, bytes, false, count_++ % 2 == 0});
    request = static_cast<int>(requests_.size()) - 1;
    return {};
  }
  Status test(int number, bool &done, size_t *received) override {
    Request &request = requests_[static_cast<size_t>(number)];
    done = false;
    // Messages between two processes arrive in the order of their requests.
    bool isNext = std::none_of(requests_.begin(), requests_.begin() + number, [&](const Request &other) {
      return !other.done && other.sends == request.sends && other.peer == request.peer && other.tag == request.tag;
    });
    if (std::exchange(request.early, false) || !answers || !isNext)
      return {};
    std::lock_guard lock(network_.mutex);
    if (request.sends) {
      auto *bytes = static_cast<const char *>(request.data);
      network_.messages[{process_, request.peer, request.tag}].emplace_back(bytes, bytes + request.bytes);
      request.done = done = true;
      return {};
    }
    auto &messages = network_.messages[{request.peer, process_, request.tag}];
    if (messages.empty())
      return {};
    size_t size = messages.front().size();
    if (size > request.bytes || (!received && size != request.bytes))
      return {MT_LOST, "expected " + std::to_string(request.bytes) + " bytes, found " + std::to_string(size)};
    if (received)
      *received = size;
    std::memcpy(request.data, messages.front().data(), size);
    messages.pop_front();
    request.done = done = true;
    return {};
  }
  void abandon() override { requests_.clear(); }

  bool answers = true; // false: no message arrives or leaves

private:
  struct Request {
    int peer, tag;
    void *data;
    size_t bytes;
    bool sends, early;
    bool done = false;
  };
  SimulatedNetwork &network_;
  int process_, processes_;
  std::vector<Request> requests_;
  int count_ = 0;
};

// Calls `body` with each process of a network in a thread of its own.
template <typename Body> void inProcesses(int processes, Body body) {
  SimulatedNetwork network;
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process)
    threads.emplace_back([&, process] {
      SimulatedTransport transport(network, process, processes);
      body(transport);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace mtrun::test
