// SPDX-License-Identifier: Apache-2.0
//
// The processes of a session, one a device: how they find one another, what they agree on, and how they notice that one
// is gone. Each has a connection to process 0, by which only a few bytes go: tensors go between devices.
#pragma once

#include "runtime/device/Greeting.h"
#include "runtime/support/status.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct ProcessGroupOptions {
  int process = 0, processes = 1;
  std::string rendezvous; // "unix:NAME" on one host, "tcp:HOST:PORT", or of process 0 "fd:N", a socket that listens
  std::string secret;     // that all of them know, and nobody else; "tcp:" is nothing without one
  std::string agreement;  // what must be the same in all: lines "WHAT: VALUE"
  std::string name;       // of this process' device, for messages
  double timeout = 600;   // seconds
};

class ProcessGroup {
public:
  // Waits until all are there, whoever else connects meanwhile. MT_INVALID: an address that is none, one for all to
  // reach without a secret, or processes that do not agree, told in all of them. MT_LOST: one is not there in time.
  // MT_IO.
  static Status open(const ProcessGroupOptions &options, std::unique_ptr<ProcessGroup> &processGroup);
  ~ProcessGroup(); // tells the others that this process ends in order

  int process() const { return options_.process; }
  int processes() const { return options_.processes; }
  double timeout() const { return options_.timeout; }

  // What process 0 calls it with, it has in all of them on return. Each calls it as often as the others. MT_LOST.
  Status share(std::string &bytes);
  // Whether all have these lines "WHAT: VALUE"; each calls it as often as the others. MT_INVALID: one has others, told
  // in all of them; where process 0 has `force` it is told to `warn` and no error. MT_LOST.
  Status agree(const std::string &lines, bool force, const std::function<void(const std::string &)> &warn);
  // Around a piece of work that no process can end alone, the same in all; pieces may follow each other before they
  // end.
  void begin(uint64_t pieces = 1) { begun_ += pieces; }
  void end(uint64_t pieces = 1) { done_ += pieces; }
  // Whether all are there, and none has left without the work that this one has begun; never waits. MT_LOST names the
  // process, and stays.
  Status check();
  // Ends all: process 0 tells the others, another tells process 0, which names it. What was first stays, and is
  // returned.
  Status lose(std::string message, mt_code code = MT_LOST);
  // "process 2".
  std::string title(int process) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int process = 0, socket = -1;
    std::string name;
    MessageReader reader;
    std::vector<std::string> shared; // oldest first
    bool answered = false;           // process 0 has told its name: all are there
    bool ended = false;              // in order, after so much work:
    uint64_t after = 0;
  };
  // Of process 0: who has not said who it is.
  struct Stranger {
    int socket = -1;
    Greeting greeting;
    Connection connection;
    Clock::time_point until;
  };
  explicit ProcessGroup(const ProcessGroupOptions &options) : options_(options) {}

  Status meet();
  Status listen(int &socket);
  Status accept(int listening, Clock::time_point deadline);
  Status welcome(int listening);
  Status hear(Stranger &stranger);
  Status admit(Connection &connection, const Message &hello);
  Status connect(Clock::time_point deadline);
  Status greet(Clock::time_point deadline, int &socket);
  std::string agreement() const;
  Status send(Connection &to, char kind, std::string_view bytes);
  // Takes what has come within `milliseconds`.
  void receive(Connection &from, int milliseconds);
  Status hear(Connection &from, std::string &bytes);
  void take(Connection &from, const Message &message);
  Status missing() const;
  std::string patience() const; // "600 seconds"

  ProcessGroupOptions options_;
  std::vector<Connection> connections_; // of process 0: to all others; of these: to 0
  std::vector<Stranger> strangers_;     // oldest first
  uint64_t refused_ = 0;                // of them: did not know the secret
  Status lost_;
  uint64_t begun_ = 0, done_ = 0;
};

} // namespace mtrun
