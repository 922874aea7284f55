// SPDX-License-Identifier: Apache-2.0
//
// Sockets by the names that a session's processes know them by.
#pragma once

#include "runtime/abi/status.h"

#include <string>

namespace mtrun {

// "unix:NAME", a name in Linux' abstract space, which leaves no file behind, or "tcp:HOST:PORT". The socket closes on
// exec. MT_INVALID: neither; MT_IO.
Status listenAt(const std::string &place, int &socket);
// -1 in `socket` where nobody listens there yet.
Status connectTo(const std::string &place, int &socket);
// Whether the other end is a process of this user, or on another host, where that cannot be told.
bool isOfThisUser(int socket);

} // namespace mtrun
