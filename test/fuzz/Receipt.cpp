// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a receipt, as they are and with a right chain of hashes: the reader says no, or gives records in order,
// and options that a run can have.
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/RunOptions.h"

using namespace mtrun;

static void parse(const std::string &text, bool cut) {
  Receipt receipt;
  Status status = parseReceipt(text, "fuzz", cut, receipt);
  if (!status.ok()) {
    if (status.code() != MT_INVALID || status.message().find('\n') != std::string::npos)
      __builtin_trap();
    return;
  }
  if (receipt.every < 1 || receipt.lines.empty())
    __builtin_trap();
  int64_t last = 0;
  for (const ReceiptLine &line : receipt.lines) {
    if (line.step < last || (!line.end && receipt.find(line.step) < 0))
      __builtin_trap();
    last = line.step;
    nlohmann::json json = nlohmann::json::parse(line.text);
    (void)recordDifference(receipt.head["variables"], json, nlohmann::json::parse(receipt.lines[0].text));
  }
  OptionTexts texts;
  mtrun_loop_options options = mtrun_loop_options_init();
  (void)setRunOptions(receipt.head["run"], options, texts);
}

// Replaces each "prev" by the hash of the line before.
static std::string chained(std::string_view rest) {
  std::string text, previous;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    constexpr std::string_view member = "\"prev\":\"";
    if (size_t at = line.find(member); at != std::string::npos) {
      at += member.size();
      line.replace(at, std::min(line.find('"', at), line.size()) - at, previous);
    }
    previous = hashOfLine(line);
    text += line + "\n";
  }
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  parse(text, false);
  parse(text, true);
  parse(chained(text), false);
  return 0;
}
