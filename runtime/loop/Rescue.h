// SPDX-License-Identifier: Apache-2.0
//
// The checkpoint that the processes of a run keep in memory when they lose one another, and how the next start finds
// it.
#pragma once

#include "runtime/checkpoint/RescueFolder.h"
#include "runtime/loop/Saver.h"
#include "runtime/session/Session.h"

#include <string>

namespace mtrun {

class Rescue {
public:
  // Opens the folder of the run for all processes, as process 0's `saver` and `option` say: the folder, "none", or null
  // for the default. Process 0 calls `warn` for each process that has no room. Collective. MT_INVALID: not possible
  // here, or a folder that the user named cannot be trusted.
  Status open(Session &session, const Saver &saver, const char *option, const Saver::Note &warn);
  // Finds the newest checkpoint of all processes, and gives it to all. In process 0, `found` and `checkpoint` may
  // already be the checkpoint that it has selected. `kept`: what was kept counts too. Collective.
  Status shareNewest(Session &session, Checkpoint &checkpoint, bool &found, bool kept) const;
  // Keeps the variables after a loss. The session's last step is complete, or had no effect.
  Status keep(const Session &session, const Manifest &manifest);
  // Removes what was kept: the run is in a checkpoint, or complete.
  void remove() { folder_.remove(); }
  bool opened() const { return folder_.opened(); }
  const std::string &path() const { return folder_.path(); }

private:
  RescueFolder folder_;
};

} // namespace mtrun
