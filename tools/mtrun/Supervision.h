// SPDX-License-Identifier: Apache-2.0
//
// The connection from process 0 of a supervised run to its supervisor, by which a request to stop reaches the run past
// the launcher: Open MPI kills its processes one second after it is asked to stop.
#pragma once

#include "runtime/support/greeting.h"

#include <string>
#include <vector>

namespace mtrun_tool {

// The supervisor's side. All functions return at once.
class SupervisorPort {
public:
  SupervisorPort(); // listens; throws Failure
  SupervisorPort(const SupervisorPort &) = delete;
  SupervisorPort &operator=(const SupervisorPort &) = delete;
  ~SupervisorPort();

  // Returns the value of mtrun::supervisorVariable for the processes.
  std::string variable() const;
  std::string name() const { return name_; }
  // Returns the sockets to wait for.
  std::vector<int> sockets() const;
  // Handles what has arrived.
  void serve();
  // Begins a start of the run. left(): process 0 of this start was connected, and is not any more.
  void reset() { wasConnected_ = false; }
  bool left() const { return wasConnected_ && !isConnected(); }
  // Asks each process that is connected, or connects later, to stop.
  void stop();

private:
  struct Caller {
    int socket;
    mtrun::Greeting greeting;
    bool asked = false;
  };
  void greet(Caller &caller);
  bool isConnected() const;

  std::string name_, secret_, places_;
  std::vector<int> listening_;
  std::vector<Caller> callers_;
  bool stops_ = false, wasConnected_ = false;
};

// Process 0's side: connects to the supervisor that the environment names, if there is one, and sends this process
// stopSignal when the supervisor asks to stop. A thread waits.
void obeySupervisor();

} // namespace mtrun_tool
