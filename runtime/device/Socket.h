// SPDX-License-Identifier: Apache-2.0
//
// Sockets by the names that a session's processes know them by. They close on exec.
#pragma once

#include "runtime/support/status.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace mtrun {

// "unix:NAME", a name in Linux' abstract space, which leaves no file behind, or "tcp:HOST:PORT". That listens at HOST's
// address and no other. Only where HOST is a name that leads to no address of this host but that of the loop, as
// Debian's /etc/hosts does with the host's own name, it listens at all. MT_INVALID: neither; MT_IO.
Status listenAt(const std::string &place, int &socket);
// A socket that never waits. Tries for so long. -1 in `socket` where nobody listens there yet.
Status connectTo(const std::string &place, int milliseconds, int &socket);
// Whether the other end is a process of this user, or on another host, where that cannot be told.
bool isOfThisUser(int socket);
// Makes a socket one that never waits.
void neverWait(int socket);

// What poll() may wait until then, and a tenth of a second at most.
inline int millisecondsTo(std::chrono::steady_clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 100));
}

} // namespace mtrun
