// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h for sessions, except for files.
#include "runtime/api/Handles.h"
#include "runtime/device/DeviceGroup.h"
#include "runtime/plan/Check.h"
#include "runtime/session/ChooseDevices.h"
#include "runtime/session/DefaultDevices.h"
#include "runtime/support/launcher.h"
#include "runtime/support/number_range.h"
#include "runtime/support/option_struct.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using mtrun::guarded;
using mtrun::Session;
using mtrun::Status;

namespace mtrun {
namespace fb = ::mt::plan;
}

namespace {

constexpr const char *launchedAlone = "MTRUN_PROCESSES=1 in the environment";

// Finds a variable by name and checks that it has `size` bytes.
Status findVariable(const Session &session, const char *name, size_t size, uint32_t &index) {
  if (Status status = session.findVariable(name ? name : "", index); !status.ok())
    return status;
  if (size_t expected = session.variableSize(index); size != expected)
    return {MT_INVALID, "variable " + std::string(name) + ": expected " + std::to_string(expected) + " bytes, found " +
                            std::to_string(size)};
  return {};
}

// Checks the ids in the rows of one tensor. Ids are integers, or floats that the model truncates to integers.
template <typename T> Status checkIds(const mtrun::fb::SignatureEntry &entry, const void *tensor, int64_t rows) {
  const T *values = static_cast<const T *>(tensor);
  auto each = static_cast<int64_t>(entry.row_bytes() / sizeof(T));
  for (int64_t i = 0; i < rows * each; ++i)
    if (!mtrun::isWithin(values[i], 0, entry.limit() - 1))
      return {MT_INVALID, "\"" + entry.name()->str() + "\": row " + std::to_string(i / each) + " has " +
                              mtrun::numberText(values[i]) + ", expected 0 to " + std::to_string(entry.limit() - 1)};
  return {};
}

Status checkIds(const mtrun::fb::SignatureEntry &entry, const void *tensor, int64_t rows) {
  switch (entry.dtype()) {
  case mtrun::fb::DType::I32:
    return checkIds<int32_t>(entry, tensor, rows);
  case mtrun::fb::DType::I64:
    return checkIds<int64_t>(entry, tensor, rows);
  case mtrun::fb::DType::F32:
    return checkIds<float>(entry, tensor, rows);
  case mtrun::fb::DType::F64:
    return checkIds<double>(entry, tensor, rows);
  default:
    return {};
  }
}

// Runs a step on the caller's tensors, which are checked first.
Status run(mtrun_session *session, const char *name, const void *const *tensors, int64_t n, mtrun_results *results) {
  const mtrun::fb::Program *program = session->plan->plan->program(name);
  bool good = n >= 1 && n <= mtrun_plan_batch(session->plan); // otherwise the session returns the error
  size_t i = 0;
  for (const mtrun::fb::SignatureEntry *entry : mtrun::Each(program ? program->signature() : nullptr)) {
    const void *tensor = tensors[i++];
    if (session->uncheckedIds || !good || !tensor || entry->limit() < 0 || entry->role() == mtrun::fb::Role::Output)
      continue;
    if (Status status = checkIds(*entry, tensor, n); !status.ok())
      return std::move(status).in(std::string(name) + ": ");
  }
  if (session->comparesTensors)
    if (Status status = session->session->compareTensors(name, tensors, n); !status.ok())
      return status;
  return session->session->run(name, tensors, n, results);
}

} // namespace

mt_status *mtrun_session_activities(mtrun_session *session, mtrun_activity *activities) {
  return guarded([&]() -> Status {
    return session->session->gatherActivities({activities, static_cast<size_t>(session->session->processes())});
  });
}

mt_status *mtrun_options_launched(mtrun_options *options) {
  return guarded([&]() -> Status {
    mtrun::LaunchedProcess found;
    if (Status status = mtrun::findLaunchedProcess("devices of kind cpu", launchedAlone, found); !status.ok())
      return status;
    options->processes = found.processes;
    options->process = found.process;
    options->local_process = found.local;
    return {};
  });
}

mt_status *mtrun_options_abandon(const mtrun_options *options, mt_code code, const char *message) {
  return guarded([&]() -> Status {
    mtrun_options read;
    Status status = MTRUN_READ_OPTIONS(mtrun_options, unchecked_ids, options, read);
    return status.ok() ? mtrun::abandonProcesses(read, {code, message}) : status;
  });
}

mt_status *mtrun_session_create(const mtrun_plan *plan, const mtrun_options *options, mtrun_session **session) {
  return guarded([&]() -> Status {
    *session = nullptr;
    mtrun_options read;
    if (Status status = MTRUN_READ_OPTIONS(mtrun_options, unchecked_ids, options, read); !status.ok())
      return status;
    std::unique_ptr<Session> created;
    if (Status status = Session::create(*plan->plan, &read, created); !status.ok())
      return status;
    *session = new mtrun_session{plan, std::move(created), read.unchecked_ids != 0,
                                 read.compare_tensors != 0 && read.processes > 1};
    return {};
  });
}

void mtrun_session_free(mtrun_session *session) { delete session; }

mt_status *mtrun_session_init(mtrun_session *session, int64_t seed) {
  return guarded([&] { return session->session->init(seed); });
}

const char *mtrun_session_class_name(const mtrun_session *session, int64_t label) {
  const std::vector<std::string> &names = session->session->classNames();
  return label >= 0 && label < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(label)].c_str() : nullptr;
}

mt_status *mtrun_train_step(mtrun_session *session, const void *const *tensors, int64_t n, mtrun_results *results) {
  return guarded([&] { return run(session, "train_step", tensors, n, results); });
}

mt_status *mtrun_eval_step(mtrun_session *session, const void *const *tensors, int64_t n, mtrun_results *results) {
  return guarded([&] { return run(session, "eval_step", tensors, n, results); });
}

mt_status *mtrun_predict(mtrun_session *session, void *const *tensors, int64_t n) {
  return guarded([&] { return run(session, "predict", tensors, n, nullptr); });
}

mt_status *mtrun_get_variable(mtrun_session *session, const char *name, void *data, size_t size) {
  return guarded([&]() -> Status {
    uint32_t index;
    if (Status status = findVariable(*session->session, name, size, index); !status.ok())
      return status;
    std::span<const std::byte> bytes = session->session->variable(index);
    if (bytes.size() != size)
      return {MT_INVALID, "expected a variable that this process has, found " + std::string(name) +
                              ", which is divided among the processes (shard_optimizer); mtrun_collect_variables() and "
                              "mtrun_fit() collect the parts in process 0"};
    std::memcpy(data, bytes.data(), size);
    return session->session->health();
  });
}

mt_status *mtrun_collect_variables(mtrun_session *session, int everywhere) {
  return guarded([&] { return session->session->collect(everywhere != 0); });
}

mt_status *mtrun_set_variable(mtrun_session *session, const char *name, const void *data, size_t size) {
  return guarded([&]() -> Status {
    uint32_t index;
    if (Status status = findVariable(*session->session, name, size, index); !status.ok())
      return status;
    if (Status status = session->session->setVariable(index, {static_cast<const std::byte *>(data), size});
        !status.ok())
      return status;
    return session->session->health();
  });
}

static mt_status *tell(Status (*list)(std::vector<std::string> &lines), void (*line)(void *user, const char *text),
                       void *user) {
  return guarded([&]() -> Status {
    std::vector<std::string> lines;
    if (Status status = list(lines); !status.ok())
      return status;
    for (const std::string &text : lines)
      line(user, text.c_str());
    return {};
  });
}

mt_status *mtrun_list_devices(void (*line)(void *user, const char *text), void *user) {
  return tell(mtrun::listDevices, line, user);
}

mt_status *mtrun_default_devices(const mtrun_plan *plan, char *text, size_t size) {
  return guarded([&]() -> Status {
    std::string devices = mtrun::defaultDevices(*plan->plan);
    if (devices.size() >= size)
      return {MT_INVALID,
              "expected room for " + std::to_string(devices.size() + 1) + " bytes, found " + std::to_string(size)};
    std::copy_n(devices.c_str(), devices.size() + 1, text);
    return {};
  });
}

mt_status *mtrun_list_libraries(void (*line)(void *user, const char *text), void *user) {
  return tell(mtrun::listLibraries, line, user);
}

void mtrun_session_get_info(const mtrun_session *session, mtrun_session_info *info) {
  *info = session->session->info();
}

const mtrun_plan *mtrun_session_plan(const mtrun_session *session) { return session->plan; }

int64_t mtrun_session_length_steps(const mtrun_session *session, int32_t index) {
  std::vector<int64_t> steps = session->session->lengthSteps();
  return index >= 0 && static_cast<size_t>(index) < steps.size() ? steps[static_cast<size_t>(index)] : -1;
}

int32_t mtrun_session_shards(const mtrun_session *session, int32_t device) { return session->session->shards(device); }

void mtrun_session_own_rows(const mtrun_session *session, int64_t *first, int64_t *rows) {
  mtrun::Session::Rows own = session->session->ownRows();
  *first = own.first;
  *rows = own.count;
}
