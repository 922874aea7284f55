// SPDX-License-Identifier: Apache-2.0
//
// How processes that a transport connects agree where process 0 waits for the connections of a ProcessGroup, without
// settings by the user.
#pragma once

#include "runtime/device/Transport.h"

#include <string>

namespace mtrun {

// Process 0 makes a random secret, and sends it to the others unless `secret` has one. If `rendezvous` is empty it also
// selects an address: a name that exists on one host only if all processes are there, else a port of process 0's host.
// Both strings receive what ProcessGroupOptions need. Collective. MT_LOST: a process sent nothing for `timeout`
// seconds, or process 0 cannot be reached. MT_IO. `failure`: why this process cannot take part; the call then fails in
// all processes, with this code and message.
Status shareAddress(Transport &transport, double timeout, std::string &rendezvous, std::string &secret,
                    const Status &failure = {});

} // namespace mtrun
