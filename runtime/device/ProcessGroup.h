// SPDX-License-Identifier: Apache-2.0
//
// The processes of a session with one device each: how they connect, compare their settings, and detect that one is
// gone. Each process has a connection to process 0, which carries only a few bytes: tensors are exchanged directly
// between devices. A thread of the group reads all connections, and sends a heartbeat to each every second.
#pragma once

#include "runtime/support/greeting.h"
#include "runtime/support/status.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mtrun {

struct ProcessGroupOptions {
  int process = 0, processes = 1;
  std::string rendezvous; // "unix:NAME" on one host, "tcp:HOST:PORT", or for process 0 "fd:N", a listening socket
  std::string secret;     // known to all processes of the run and to no one else; required for "tcp:"
  std::string agreement;  // settings that must be equal in all processes: lines "WHAT: VALUE"
  std::string name;       // name of this process's device, for messages
  double timeout = 600;   // seconds until the processes must have met, and that a step may stand still
  double interval = 1;    // seconds between two heartbeats
  double silence = 15;    // seconds without a heartbeat after which a process is lost
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
  // MT_DEVICE in all processes if a process has other lines, with a message that ends with `hint`; with `force` in
  // process 0 the difference is only passed to `warn`. MT_LOST.
  Status agree(const std::string &lines, const char *hint, bool force,
               const std::function<void(const std::string &)> &warn);
  // The same for lines that do not tell of devices, and whose difference cannot be ignored: MT_INVALID.
  Status agree(const std::string &lines) { return compare(lines, nullptr, "", MT_INVALID); }
  // Mark the begin and the end of a piece of collective work. All processes mark the same pieces; a piece may begin
  // before the one before it ends. Any thread may call these functions, which take no lock.
  void begin(uint64_t pieces = 1) { own_.begun.fetch_add(pieces, std::memory_order_relaxed); }
  void end(uint64_t pieces = 1) { own_.done.fetch_add(pieces, std::memory_order_relaxed); }
  // Marks the begin of a part of a piece, such as an all-reduce: the others wait for the process that has
  // begun the fewest parts.
  void beginPart() { own_.parts.fetch_add(1, std::memory_order_relaxed); }
  // Checks that no process is lost: all are connected, all send heartbeats, the work of none stands still, and none has
  // ended before the work that this process has begun. Does not wait. MT_LOST names the process, and is final.
  Status check();
  // Ends the run in all processes: process 0 informs the others, and another process informs process 0. Returns the
  // first error, which is final.
  Status lose(std::string message, mt_code code = MT_LOST);
  // Returns a text such as "process 2".
  std::string title(int process) const;

private:
  using Clock = std::chrono::steady_clock;
  // The work of a process.
  struct Work {
    uint64_t begun = 0, done = 0, parts = 0;
    bool operator==(const Work &) const = default;
  };
  struct Connection {
    int process = 0, socket = -1;
    std::string name;
    MessageReader reader;
    std::string outgoing;            // the part of sent messages that the system has not accepted yet
    std::vector<std::string> shared; // received broadcasts, oldest first
    bool answered = false;           // the name of process 0 has arrived: all processes are connected
    bool ended = false;              // the process ended normally after `after` pieces of work
    uint64_t after = 0;
    bool allEnded = false; // from process 0: all processes have ended normally after the same work
    Clock::time_point heard;
    Work work; // as the last heartbeat says
  };
  // In process 0: a connection that has not identified itself.
  struct Stranger {
    int socket = -1;
    Greeting greeting;
    Connection connection;
    Clock::time_point until;
  };
  explicit ProcessGroup(const ProcessGroupOptions &options) : options_(options) {}

  // Rendezvous.cpp: everything before the thread starts
  Status connectAll();
  Status raiseLimit() const;
  Status listen(int &socket);
  Status accept(int listening, Clock::time_point deadline);
  Status welcome(int listening);
  Status readStranger(Stranger &stranger);
  Status admit(Connection &connection, const Message &hello);
  Status connect(Clock::time_point deadline);
  Status greet(Clock::time_point deadline, int &socket);
  std::string agreement() const;
  // `warn`: receives a difference, which is then ignored; null: a difference is an error that ends with `hint`.
  Status compare(const std::string &lines, const std::function<void(const std::string &)> *warn, const char *hint,
                 mt_code code);
  Status missing() const;

  // Heartbeat.cpp: the thread
  Status startHeart();
  void stopHeart();
  void watch();
  void waitForEvents(Clock::time_point next);
  void beat();
  void judge(Clock::time_point now);
  Work ownWork() const;
  std::string standsStill(Clock::time_point now) const;

  // These functions need the lock once the thread runs.
  Status send(Connection &to, char kind, std::string_view bytes);
  bool flush(Connection &to);     // returns false if the connection is broken
  void receive(Connection &from); // handles messages that have arrived
  void take(Connection &from, const Message &message);
  Status inspect(); // finds connections that have ended
  Status fail(std::string message, mt_code code = MT_LOST);
  // Waits for the next broadcast message of a process.
  Status waitForBroadcast(std::unique_lock<std::mutex> &lock, Connection &from, std::string &bytes);
  // Waits until `happened`, a field of a connection, is true. Returns false after a loss or the timeout.
  bool waitFor(std::unique_lock<std::mutex> &lock, const Connection &from, const bool &happened);
  Clock::time_point limit() const;
  std::string patience() const; // a text such as "600 seconds"

  ProcessGroupOptions options_;
  std::vector<Stranger> strangers_; // oldest first
  uint64_t refused_ = 0;            // number of connections that did not know the secret
  struct {
    std::atomic<uint64_t> begun = 0, done = 0, parts = 0;
  } own_;

  std::thread thread_;
  int wake_ = -1; // an eventfd that ends the thread's waiting
  std::atomic<bool> stops_ = false;
  std::atomic<bool> suspicious_ = false; // a process is lost or has ended: check() takes the lock
  std::mutex mutex_;                     // guards everything below
  std::condition_variable changed_;      // messages have arrived, or a process is lost
  std::vector<Connection> connections_;  // process 0 has one per other process; another process has one to process 0
  Status lost_;
  bool left_ = false;      // the others know that this process has ended
  std::vector<Work> last_; // in process 0: the work of all processes as it last changed
  Clock::time_point lastChange_;
};

} // namespace mtrun
