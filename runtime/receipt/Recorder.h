// SPDX-License-Identifier: Apache-2.0
//
// Records a fit in a receipt, or compares the fit with one. The fit calls it between steps.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/BatchStream.h"
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/VariableTree.h"

#include <optional>
#include <string>
#include <vector>

namespace mtrun {

// SHA-256 of the tables that determine the bits of the plan's steps, of the constants, and of Plan::stepsHash, which
// covers the kernels too. Plans that differ only in CPU targets, initial values or the archive have the same digest.
Digest stepsDigest(const Plan &plan);

// The facts about a run in the first line of its receipt, except for its options.
struct RunFacts {
  const mtrun_dataset *data = nullptr, *validation = nullptr; // `validation` may be null
  LoopState state;                                            // seed, batch and order of the data
};

// Returns the first line, without "prev". MT_INVALID: a run whose bits no receipt can describe.
Status describeRun(const Session &session, const RunFacts &facts, const mtrun_loop_options &options, int64_t every,
                   nlohmann::json &head);

class Recorder {
public:
  Recorder() = default;
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;
  ~Recorder(); // closes the file

  bool isOn() const { return session_ != nullptr; }
  // Begins to hash the rows of this process. `head`: the first line, from describeRun().
  void begin(Session &session, nlohmann::json head);
  // The rows of a batch that this process hashes.
  RowRange rows() const { return rows_; }

  // Process 0 calls it for a resumed run: reads the receipt and leaves out all lines after `step`. `from` receives the
  // step of the last record that stays: add() must be called for the steps after it.
  Status resume(const std::string &path, int64_t step, int64_t &from);
  // Compares with `expected` in place of writing, from its record of step `from` to that of step `until`; -1: to the
  // end of the run.
  void compareWith(const Receipt &expected, int64_t from, int64_t until);
  // Process 0 calls it: writes the first line and the record of step 0 to a new file `path`; or goes on with the
  // receipt of resume(). Or all processes call it, to compare.
  Status start(const std::string &path);

  // Adds the rows of a step that has finished.
  void add(const Batch &batch);
  bool isDue(int64_t step) const { return step % every_ == 0; }
  // Returns the number of steps from `step` to the next record.
  int64_t stepsUntilDue(int64_t step) const { return every_ - step % every_; }
  // Writes or compares the record of a step, or the end of the run. All processes must call them. A difference is
  // MT_INVALID, and is then differs().
  Status record(const LoopState &state, const std::vector<std::string> &names, const std::vector<double> &means);
  Status end(const LoopState &state);
  // True when the last record to compare has been compared.
  bool isComplete(int64_t step) const { return expected_ && until_ >= 0 && step >= until_; }
  bool differs() const { return differs_; }

private:
  Status startAlone();
  Status share(Status own);
  Status gatherRows(std::string &root);
  Status gatherParts(std::string &root); // also of variables
  Status addVariables(nlohmann::json &line, bool names);
  Status emit(nlohmann::json line);
  Status compare(const nlohmann::json &line);
  Status create();
  Status goOn();
  Status append(const std::string &text);
  Status openFile();

  Session *session_ = nullptr;
  nlohmann::json head_;
  int64_t every_ = 1;
  RowRange rows_;
  int64_t shardRows_ = 1;
  std::vector<Digest> chains_; // of the shards of this process: all rows since the last record
  VariableTree tree_;

  std::string path_, previous_; // previous_: the hash of the line before
  int file_ = -1;
  std::optional<Receipt> continued_; // the receipt of a resumed run
  const Receipt *expected_ = nullptr;
  size_t next_ = 0; // index of the line to compare with
  int64_t until_ = 0;
  bool differs_ = false;
};

} // namespace mtrun
