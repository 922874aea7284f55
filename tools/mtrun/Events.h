// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard's event files: scalars, histograms of variables, the model's graph and a description of the run. They can
// be read during training.
#pragma once

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/EventRecords.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

// An event file, which is created by the first write. Each write has complete records, so a killed run leaves no
// partial record.
class EventFile {
public:
  // The file is FOLDER/events.out.tfevents.TIME.HOST.PID.0.
  explicit EventFile(std::string folder) : folder_(std::move(folder)) {}
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;
  ~EventFile();

  void add(const std::string &record);
  void add(int64_t step, const std::string &tag, double value); // adds a scalar
  // Returns the path and the system's reason on failure, or "".
  std::string flush();

private:
  std::string folder_, path_, pending_;
  int descriptor_ = -1;
};

// Writes the files of Keras' callback: train/ and validation/ with epoch_NAME per epoch; in train/ also batch_NAME per
// step, VARIABLE/histogram per epoch, the graph, and the text "run".
class EventLog {
public:
  // `session`: the session whose variables have histograms; null: no histograms.
  explicit EventLog(const std::string &folder, mtrun_session *session = nullptr)
      : train_(folder + "/train"), validation_(folder + "/validation"), session_(session) {}
  // Adds the graph of the plan's model and a text about the run. Call before the first update.
  void describe(const mtrun_plan *plan, const std::string &markdown);
  // Returns "", or the error of a file; the log must not be used after an error.
  std::string update(const mtrun_progress &progress);

private:
  void addHistograms(mtrun_session *session, int64_t epoch);

  EventFile train_, validation_;
  mtrun_session *session_;
  int64_t lastStep_ = -1;
  double lastFlush_ = 0;
};

} // namespace mtrun_tool
