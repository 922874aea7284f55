// SPDX-License-Identifier: Apache-2.0
//
// A receipt: a text file of JSON lines, each with the SHA-256 of the line before. docs/reproducibility.md has the
// format. Receipts come from strangers: limits are checked before memory is allocated.
#pragma once

#include "runtime/support/sha256.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

constexpr int64_t receiptVersion = 1;
constexpr uint64_t maxReceiptBytes = uint64_t{1} << 30, maxLineBytes = uint64_t{1} << 24;

// The line of a record or of the end of a run.
struct ReceiptLine {
  int64_t step = 0;
  bool end = false;
  std::string text; // without the newline
};

struct Receipt {
  std::string path;
  nlohmann::json head; // the first line
  std::string headText;
  int64_t every = 0;
  std::vector<ReceiptLine> lines; // steps 0, every, 2 * every ..., then the end if the run has ended

  bool ended() const { return !lines.empty() && lines.back().end; }
  int64_t lastStep() const { return lines.back().step; } // receipts have the record of step 0
  // Returns the index of the record of a step; -1 if there is none.
  int64_t find(int64_t step) const;
};

// Returns the canonical text: sorted members without blanks.
std::string canonical(const nlohmann::json &json);
inline std::string hashOfLine(std::string_view line) { return hexadecimal(sha256(line)); }
// Parses one canonical line of limited depth. Throws std::runtime_error.
nlohmann::json parseLine(std::string_view line);

// `cut`: accepts a last line that is not complete and leaves it out, because the run may have been killed while it
// wrote the line. MT_IO, MT_INVALID: the message names the line.
Status readReceipt(const std::string &path, bool cut, Receipt &receipt);
Status parseReceipt(std::string_view text, const std::string &path, bool cut, Receipt &receipt);

// Reads a file of at most maxReceiptBytes. MT_IO, MT_INVALID.
Status readLimited(const std::string &path, std::string &text);

// Returns the first member that differs, as "plan.sha256: expected X, found Y"; "" if the two are equal.
std::string firstDifference(const nlohmann::json &expected, const nlohmann::json &found, const std::string &where = "");

// Describes how two records of a run differ: data, then variables with the first chunk, then others. `variables`: from
// the first line.
std::string recordDifference(const nlohmann::json &variables, const nlohmann::json &expected,
                             const nlohmann::json &found);

} // namespace mtrun
