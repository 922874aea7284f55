// SPDX-License-Identifier: Apache-2.0
//
// The function mtrun_export().
#include "runtime/api/Handles.h"
#include "runtime/session/Export.h"

mt_status *mtrun_export(mtrun_session *session, const char *path) {
  return mtrun::guarded([&]() -> mtrun::Status {
    if (!session || !path)
      return {MT_INVALID, "export: expected a session and a path, found NULL"};
    return mtrun::writeArchive(*session->session, path, session->session->classNames());
  });
}
