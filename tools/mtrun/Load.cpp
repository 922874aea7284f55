// SPDX-License-Identifier: Apache-2.0
//
// Implements --load: reads variables from any file, all of them or the matching ones.
#include "runtime/support/suggest.h"
#include "tools/mtrun/Compiler.h"
#include "tools/mtrun/Run.h"

#include <cstdio>
#include <unistd.h>

namespace mtrun_tool {

constexpr std::string_view partialSuffix = ":partial";

static bool isKeras(const std::string &path) {
  std::string start = startOf(path, 8);
  return start.starts_with("PK\3\4") || start.starts_with("\x89HDF\r\n\x1a\n");
}

static void tell(void *user, const char *text) {
  const auto &names = *static_cast<const std::pair<std::string, std::string> *>(user);
  std::string line = text;
  if (!names.first.empty() && line.starts_with(names.first))
    line.replace(0, names.first.size(), names.second);
  fprintf(stderr, "mtrun: %s\n", line.c_str());
}

static bool isPartial(const std::string &load) {
  return load.ends_with(partialSuffix) && access(load.c_str(), F_OK) != 0;
}

// Suggests ":partial" for a misspelled suffix such as FILE:partal.
static std::string meant(const std::string &path) {
  std::string file = path.substr(0, path.rfind(':'));
  bool near = file.size() < path.size() && !mtrun::nearestWord(path.substr(file.size()), {":partial"}).empty();
  return near ? "; did you mean " + file + ":partial?" : "";
}

bool isComplete(const std::string &load) { return !load.empty() && !isPartial(load) && !isKeras(load); }

void loadVariables(const Run &run, const Arguments &arguments, mtrun_match match) {
  std::string path = arguments.load;
  if (isPartial(path)) {
    path.resize(path.size() - partialSuffix.size());
    match = MTRUN_MATCH_ANY;
  }
  auto line = arguments.session.process == 0 ? tell : nullptr;
  std::pair<std::string, std::string> names;
  mt_status *status = mtrun_load_matching(run.session.get(), path.c_str(), match, line, &names);
  bool foreign = mt_status_code(status) == MT_INVALID && isKeras(path) && !findCompiler().empty();
  if (std::string more = meant(path); mt_status_code(status) == MT_IO && !more.empty()) {
    more = mt_status_message(status) + more;
    mt_status_free(status);
    throw Failure{MT_IO, more};
  }
  if (!foreign)
    return check(status);
  mt_status_free(status);
  ImportedVariables imported(path);
  names = {imported.path(), path};
  match = match == MTRUN_MATCH_ALL ? MTRUN_MATCH_MODEL : match;
  try {
    check(mtrun_load_matching(run.session.get(), imported.path().c_str(), match, line, &names));
  } catch (Failure &failure) {
    for (size_t at = 0; (at = failure.message.find(names.first, at)) != std::string::npos; at += path.size())
      failure.message.replace(at, names.first.size(), path);
    throw;
  }
}

} // namespace mtrun_tool
