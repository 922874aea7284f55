// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h for files of variables.
#include "runtime/api/Handles.h"
#include "runtime/checkpoint/Variables.h"
#include "runtime/session/Export.h"

using namespace mtrun;

mt_status *mtrun_check_save(const mtrun_plan *plan, const char *path) {
  return guarded([&]() -> Status {
    if (!plan || !path)
      return {MT_INVALID, "save: expected a plan and a path, found NULL"};
    return checkSave(*plan->plan, path);
  });
}

mt_status *mtrun_save(mtrun_session *session, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return {MT_INVALID, "save: expected a session and a path, found NULL"};
    return saveVariables(*session->session, path);
  });
}

mt_status *mtrun_load(mtrun_session *session, const char *path) {
  return mtrun_load_matching(session, path, MTRUN_MATCH_ALL, nullptr, nullptr);
}

mt_status *mtrun_load_matching(mtrun_session *session, const char *path, mtrun_match match,
                               void (*line)(void *user, const char *text), void *user) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return {MT_INVALID, "load: expected a session and a path, found NULL"};
    if (match < MTRUN_MATCH_ALL || match > MTRUN_MATCH_ANY)
      return {MT_INVALID, "load: expected a match of 0 to 2, found " + std::to_string(match)};
    std::function<void(const std::string &)> tell;
    if (line)
      tell = [&](const std::string &text) { line(user, text.c_str()); };
    return loadVariables(*session->session, path, match, tell);
  });
}
