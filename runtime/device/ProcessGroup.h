// SPDX-License-Identifier: Apache-2.0
//
// The processes of a session with one device each: how they connect, compare their settings, and detect that one is
// gone. Each process has a connection to process 0, which carries only a few bytes: tensors are exchanged directly
// between devices.
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
  std::string rendezvous; // "unix:NAME" on one host, "tcp:HOST:PORT", or for process 0 "fd:N", a listening socket
  std::string secret;     // known to all processes of the run and to no one else; required for "tcp:"
  std::string agreement;  // settings that must be equal in all processes: lines "WHAT: VALUE"
  std::string name;       // name of this process's device, for messages
  double timeout = 600;   // seconds
};

class ProcessGroup {
public:
  // Waits until all processes are connected; other connections are ignored. MT_INVALID: invalid address, an address
  // reachable by others without a secret, or processes with different settings, which is reported in all processes.
  // MT_LOST: a process did not connect in time. MT_IO.
  static Status open(const ProcessGroupOptions &options, std::unique_ptr<ProcessGroup> &processGroup);
  ~ProcessGroup(); // tells the others that this process ends normally

  int process() const { return options_.process; }
  int processes() const { return options_.processes; }
  double timeout() const { return options_.timeout; }

  // Broadcasts `bytes` from process 0. Collective: all processes must call it the same number of times. MT_LOST.
  Status broadcast(std::string &bytes);
  // Collects a text of each process in process 0: `all` receives them by process there, and nothing elsewhere.
  // Collective: all processes must call it the same number of times. MT_LOST.
  Status gather(const std::string &own, std::vector<std::string> &all);
  // Ends the group in all processes: waits until each has called it after the same pieces of work. Returns false if a
  // process is lost, has ended with an error, or does not call it before the timeout. Nothing may follow.
  bool leave();
  // Compares lines "WHAT: VALUE" in all processes. Collective: all processes must call it the same number of times.
  // MT_INVALID in all processes if a process has other lines; with `force` in process 0 the difference is only passed
  // to `warn`. MT_LOST.
  Status agree(const std::string &lines, bool force, const std::function<void(const std::string &)> &warn);
  // The same for lines whose difference cannot be ignored.
  Status agree(const std::string &lines) { return compare(lines, nullptr, ""); }
  // Mark the begin and the end of a piece of collective work. All processes mark the same pieces; a piece may begin
  // before the one before it ends.
  void begin(uint64_t pieces = 1) { begun_ += pieces; }
  void end(uint64_t pieces = 1) { done_ += pieces; }
  // Checks that all processes are connected, and that none has ended before the work that this process has begun. Does
  // not wait. MT_LOST names the process, and is final.
  Status check();
  // Ends the run in all processes: process 0 informs the others, and another process informs process 0. Returns the
  // first error, which is final.
  Status lose(std::string message, mt_code code = MT_LOST);
  // Returns a text such as "process 2".
  std::string title(int process) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int process = 0, socket = -1;
    std::string name;
    MessageReader reader;
    std::vector<std::string> shared; // received broadcasts, oldest first
    bool answered = false;           // the name of process 0 has arrived: all processes are connected
    bool ended = false;              // the process ended normally after `after` pieces of work
    uint64_t after = 0;
    bool allEnded = false; // from process 0: all processes have ended normally after the same work
  };
  // In process 0: a connection that has not identified itself.
  struct Stranger {
    int socket = -1;
    Greeting greeting;
    Connection connection;
    Clock::time_point until;
  };
  explicit ProcessGroup(const ProcessGroupOptions &options) : options_(options) {}

  Status connectAll();
  Status listen(int &socket);
  Status accept(int listening, Clock::time_point deadline);
  Status welcome(int listening);
  Status readStranger(Stranger &stranger);
  Status admit(Connection &connection, const Message &hello);
  Status connect(Clock::time_point deadline);
  Status greet(Clock::time_point deadline, int &socket);
  std::string agreement() const;
  Status send(Connection &to, char kind, std::string_view bytes);
  // Handles messages that arrive within `milliseconds`.
  void receive(Connection &from, int milliseconds);
  Status waitForBroadcast(Connection &from, std::string &bytes);
  // `warn`: receives a difference, which is then ignored; null: a difference is an error that ends with `hint`.
  Status compare(const std::string &lines, const std::function<void(const std::string &)> *warn, const char *hint);
  // Handles messages until `happened`, a field of the connection, is true. Returns false after a loss or the timeout.
  bool waitFor(Connection &from, const bool &happened);
  void take(Connection &from, const Message &message);
  Status missing() const;
  std::string patience() const; // a text such as "600 seconds"

  ProcessGroupOptions options_;
  std::vector<Connection> connections_; // process 0 has one per other process; another process has one to process 0
  std::vector<Stranger> strangers_;     // oldest first
  uint64_t refused_ = 0;                // number of connections that did not know the secret
  Status lost_;
  uint64_t begun_ = 0, done_ = 0;
  bool left_ = false; // the others know that this process has ended
};

} // namespace mtrun
