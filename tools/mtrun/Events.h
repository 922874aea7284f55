// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard's event files: scalars, histograms of the variables, the model's graph and a text about the run, readable
// while training goes on.
#pragma once

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/EventRecords.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

// One file, opened when it is first written to. Whole records go to the system, so that a killed run leaves none in
// halves.
class EventFile {
public:
  // FOLDER/events.out.tfevents.TIME.HOST.PID.0
  explicit EventFile(std::string folder) : folder_(std::move(folder)) {}
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;
  ~EventFile();

  void add(const std::string &record);
  void add(int64_t step, const std::string &tag, double value); // a scalar
  // The path and the system's reason, or "".
  std::string flush();

private:
  std::string folder_, path_, pending_;
  int descriptor_ = -1;
};

// What Keras' callback writes: train/ and validation/ with epoch_NAME by epoch; in train/ batch_NAME by step,
// VARIABLE/histogram by epoch, the graph, and the text "run".
class EventLog {
public:
  // `session`: whose variables have histograms; null: none.
  explicit EventLog(const std::string &folder, mtrun_session *session = nullptr)
      : train_(folder + "/train"), validation_(folder + "/validation"), session_(session) {}
  // The graph of the plan's model, and a text about the run; before the first update.
  void describe(const mtrun_plan *plan, const std::string &markdown);
  // "", or what went wrong with a file; there is nothing more to do with the log then.
  std::string update(const mtrun_progress &progress);

private:
  void addHistograms(mtrun_session *session, int64_t epoch);

  EventFile train_, validation_;
  mtrun_session *session_;
  int64_t lastStep_ = -1;
  double lastFlush_ = 0;
};

} // namespace mtrun_tool
