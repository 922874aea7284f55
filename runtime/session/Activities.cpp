// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Activities.h"

#include <cstring>
#include <string>
#include <vector>

namespace mtrun {

Status gatherActivities(const DeviceGroup &group, ProcessGroup *processGroup, mtrun_activity own,
                        std::span<mtrun_activity> activities) {
  DeviceGroup::Activity done = group.activity();
  own.rows = done.rows;
  own.received_bytes = static_cast<int64_t>(done.received);
  if (!processGroup) {
    activities[0] = own;
    return group.health();
  }
  std::vector<std::string> all;
  if (Status status = processGroup->gather({reinterpret_cast<const char *>(&own), sizeof own}, all); !status.ok())
    return status;
  for (size_t process = 0; process < all.size(); ++process) {
    if (all[process].size() != sizeof own)
      return processGroup->lose("expected " + std::to_string(sizeof own) + " bytes of process " +
                                std::to_string(process) + ", found " + std::to_string(all[process].size()));
    std::memcpy(&activities[process], all[process].data(), sizeof own);
  }
  return {};
}

} // namespace mtrun
