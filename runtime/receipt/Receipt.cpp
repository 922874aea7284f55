// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/VariableTree.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

using Json = nlohmann::json;

int64_t Receipt::find(int64_t step) const {
  if (every < 1 || step < 0 || step % every != 0 || step / every >= static_cast<int64_t>(lines.size()))
    return -1;
  return lines[static_cast<size_t>(step / every)].end ? -1 : step / every;
}

std::string canonical(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json parseLine(std::string_view line) {
  constexpr int maxDepth = 8;
  if (line.size() > maxLineBytes)
    throw std::runtime_error("expected at most " + std::to_string(maxLineBytes) + " bytes, found " +
                             std::to_string(line.size()));
  auto limit = [](int depth, Json::parse_event_t, Json &) {
    if (depth > maxDepth)
      throw std::runtime_error("expected at most " + std::to_string(maxDepth) + " levels of brackets, found more");
    return true;
  };
  Json json = Json::parse(line, limit);
  if (!json.is_object() || canonical(json) != line)
    throw std::runtime_error("expected an object with sorted members and without blanks, found another text");
  return json;
}

static int64_t countIn(const Json &json, const char *member, int64_t least) {
  auto found = json.find(member);
  if (found == json.end() || !found->is_number_unsigned() || found->get<uint64_t>() > (uint64_t{1} << 53) ||
      found->get<int64_t>() < least)
    throw std::runtime_error(std::string("expected a number of at least ") + std::to_string(least) + " for \"" +
                             member + "\", found " + (found == json.end() ? "none" : canonical(*found).substr(0, 80)));
  return found->get<int64_t>();
}

static void checkMembers(const Json &json, const std::set<std::string> &names) {
  for (const std::string &name : names)
    if (!json.contains(name))
      throw std::runtime_error("expected the member \"" + name + "\", found none");
  for (const auto &[name, value] : json.items())
    if (!names.count(name))
      throw std::runtime_error("expected a line of version " + std::to_string(receiptVersion) + ", found a member \"" +
                               name.substr(0, 80) + "\"");
}

static void checkDigest(const Json &json, const char *member) {
  Digest digest;
  if (!json.at(member).is_string() || !parseHexadecimal(json.at(member).get_ref<const std::string &>(), digest))
    throw std::runtime_error(std::string("expected 64 hexadecimal digits for \"") + member + "\", found " +
                             canonical(json.at(member)).substr(0, 80));
}

static void checkHead(const Json &head, Receipt &receipt) {
  if (head.value("format", Json()) != "mtc-receipt")
    throw std::runtime_error("expected the first line of a receipt, found another");
  if (int64_t version = countIn(head, "version", 1); version != receiptVersion)
    throw std::runtime_error("expected a receipt of version " + std::to_string(receiptVersion) + ", found version " +
                             std::to_string(version));
  checkMembers(head, {"class", "data", "every", "format", "chunk", "plan", "prev", "run", "variables", "version"});
  receipt.every = countIn(head, "every", 1);
  if (!head["run"].is_object() || !head["plan"].is_object() || !head["data"].is_object() ||
      !head["variables"].is_array() || head["prev"] != "")
    throw std::runtime_error("expected objects for plan, data and run, and an empty prev, found other values");
  if (!head["run"].contains("seed") || !head["run"]["seed"].is_number_integer())
    throw std::runtime_error("expected a whole number for \"run.seed\", found none");
  for (const Json &variable : head["variables"])
    if (!variable.is_array() || variable.size() != 2 || !variable[0].is_string() || !variable[1].is_number_unsigned())
      throw std::runtime_error("expected a name and bytes of each variable, found " +
                               canonical(variable).substr(0, 80));
}

static ReceiptLine checkRecord(const Json &json, const Receipt &receipt) {
  ReceiptLine line;
  line.step = countIn(json, "step", 0);
  line.end = json.contains("end");
  if (line.end)
    checkMembers(json, {"by_name", "end", "epochs", "chunks", "prev", "rows", "step", "variables"});
  else if (line.step == 0)
    checkMembers(json, {"chunks", "prev", "step", "variables"});
  else
    checkMembers(json, {"epoch", "chunks", "metrics", "position", "prev", "rows", "step", "variables"});
  if (json.contains("rows"))
    checkDigest(json, "rows");
  checkDigest(json, "variables");
  if (json.contains("metrics") && !json["metrics"].is_object())
    throw std::runtime_error("expected an object for \"metrics\", found another value");
  if (line.end) {
    countIn(json, "epochs", 0);
    if (!json["by_name"].is_object())
      throw std::runtime_error("expected an object for \"by_name\", found another value");
    for (const auto &[name, digest] : json["by_name"].items())
      checkDigest(json["by_name"], name.c_str());
  }
  if (!json["chunks"].is_string())
    throw std::runtime_error("expected text for \"chunks\", found another value");
  if (receipt.ended())
    throw std::runtime_error("expected no line after the end of the run, found one");
  auto next = static_cast<int64_t>(receipt.lines.size()) * receipt.every;
  int64_t last = receipt.lines.empty() ? -1 : receipt.lastStep();
  if (line.end ? line.step < last || line.step >= next || receipt.lines.empty() : line.step != next)
    throw std::runtime_error("expected " + (line.end ? "the end before step " : std::string("the record of step ")) +
                             std::to_string(next) + ", found " + (line.end ? "it at step " : "one of step ") +
                             std::to_string(line.step));
  return line;
}

Status parseReceipt(std::string_view text, const std::string &path, bool cut, Receipt &receipt) {
  receipt = {};
  receipt.path = path;
  std::string previous;
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    size_t end = rest.find('\n');
    ++number;
    if (end == std::string_view::npos) {
      if (cut)
        break;
      return {MT_INVALID, path + ", line " + std::to_string(number) +
                              ": expected a newline at its end, found the end "
                              "of the file; the receipt is cut"};
    }
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    std::string place = path + ", line " + std::to_string(number) + ": ";
    try {
      Json json = parseLine(line);
      if (json.value("prev", Json()) != previous)
        throw std::runtime_error("expected the SHA-256 of the line before as \"prev\"" +
                                 (previous.empty() ? " (none)" : " (" + previous.substr(0, 16) + "...)") +
                                 ", found another: a line was changed, removed or moved");
      if (number == 1) {
        checkHead(json, receipt);
        receipt.head = std::move(json);
        receipt.headText = line;
      } else {
        ReceiptLine added = checkRecord(json, receipt);
        added.text = line;
        receipt.lines.push_back(std::move(added));
      }
    } catch (const std::exception &error) { // from the JSON parser, or thrown above
      return {MT_INVALID, place + printable(error.what())};
    }
    previous = hashOfLine(line);
  }
  if (receipt.lines.empty())
    return {MT_INVALID, path + ": expected a first line and the record of step 0, found " + std::to_string(number) +
                            (number == 1 ? " line" : " lines")};
  return {};
}

Status readLimited(const std::string &path, std::string &text) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return ioError("cannot open", path, errno);
  struct stat facts;
  Status status;
  if (fstat(file, &facts) != 0)
    status = ioError("cannot read", path, errno);
  else if (!S_ISREG(facts.st_mode))
    status = {MT_IO, "cannot read " + path + ": expected a regular file"};
  else if (static_cast<uint64_t>(facts.st_size) > maxReceiptBytes)
    status = {MT_INVALID, path + ": expected at most " + std::to_string(maxReceiptBytes) + " bytes, found " +
                              std::to_string(facts.st_size)};
  text.resize(status.ok() ? static_cast<size_t>(facts.st_size) : 0);
  size_t size = 0;
  while (status.ok() && size < text.size()) {
    ssize_t got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      status = ioError("cannot read", path, errno);
    if (got <= 0)
      break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  close(file);
  return status;
}

Status readReceipt(const std::string &path, bool cut, Receipt &receipt) {
  std::string text;
  if (Status s = readLimited(path, text); !s.ok())
    return s;
  return parseReceipt(text, path, cut, receipt);
}

std::string firstDifference(const Json &expected, const Json &found, const std::string &where) {
  constexpr size_t shown = 100;
  if (expected == found)
    return "";
  if (expected.is_object() && found.is_object()) {
    Json all = expected;
    all.update(found);
    for (const auto &[name, value] : all.items()) {
      std::string text = firstDifference(expected.value(name, Json()), found.value(name, Json()),
                                         where + (where.empty() ? "" : ".") + name);
      if (!text.empty())
        return text;
    }
  }
  if (expected.is_array() && found.is_array() && expected.size() == found.size())
    for (size_t i = 0; i < expected.size(); ++i)
      if (expected[i] != found[i])
        return firstDifference(expected[i], found[i], where + "[" + std::to_string(i) + "]");
  auto text = [](const Json &json) { return json.is_null() ? "none" : canonical(json).substr(0, shown); };
  return where + ": expected " + text(expected) + ", found " + text(found);
}

// Returns the first chunk that differs, as "variable NAME, chunk 3 (bytes 3145728 to 4194303)".
static std::string differingChunk(const Json &variables, const std::string &expected, const std::string &found) {
  size_t at = 0;
  for (const Json &variable : variables) {
    auto size = variable[1].get<uint64_t>();
    for (uint64_t chunk = 0; chunk < chunkCount(size); ++chunk, at += chunkDigits)
      if (at + chunkDigits > expected.size() || at + chunkDigits > found.size() ||
          expected.compare(at, chunkDigits, found, at, chunkDigits) != 0)
        return "variable " + variable[0].get<std::string>() + ", chunk " + std::to_string(chunk) + " (bytes " +
               std::to_string(chunk * chunkBytes) + " to " +
               std::to_string(std::min(size, (chunk + 1) * chunkBytes) - 1) + ")";
  }
  return "the variables";
}

std::string recordDifference(const Json &variables, const Json &expected, const Json &found) {
  std::string data = expected.value("rows", Json()) != found.value("rows", Json())
                         ? "the data of the steps since the record before; "
                         : "";
  if (expected.value("variables", Json()) == found.value("variables", Json()))
    return data + firstDifference(expected, found);
  return data + differingChunk(variables, expected.value("chunks", ""), found.value("chunks", "")) + "; " +
         firstDifference(expected.value("variables", Json()), found.value("variables", Json()),
                         "root of all variables");
}

} // namespace mtrun
