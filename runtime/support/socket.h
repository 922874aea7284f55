// SPDX-License-Identifier: Apache-2.0
//
// Sockets for a session's processes. All sockets are closed on exec.
#pragma once

#include "runtime/support/status.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace mtrun {

// Listens at "unix:NAME", a name in Linux's abstract namespace, which creates no file, or at "tcp:HOST:PORT". TCP
// listens only at HOST's address, except if HOST is a name that resolves only to loopback addresses (Debian's
// /etc/hosts does this for the host's own name); then it listens at all addresses. MT_INVALID: neither syntax. MT_IO.
Status listenAt(const std::string &place, int &socket);
// Connects a non-blocking socket, for at most `milliseconds`. `socket` is -1 if no process listens there yet.
Status connectTo(const std::string &place, int milliseconds, int &socket);
// Returns true if the peer is a process of this user, or if it is on another host, where the user is unknown.
bool isOfThisUser(int socket);
// Returns the numeric addresses of this host that other hosts may reach.
std::vector<std::string> hostAddresses();
// Returns the port of a socket that listens for TCP; 0 on failure.
int portOf(int socket);
// Makes a socket non-blocking.
void neverWait(int socket);

// Returns the timeout for poll() until the deadline, at most a tenth of a second.
inline int millisecondsTo(std::chrono::steady_clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 100));
}

} // namespace mtrun
