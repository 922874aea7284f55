// SPDX-License-Identifier: Apache-2.0
//
// tokens:FILE and text:FILE: windows of tokens. The target of each token is the next token.
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"
#include "runtime/support/text.h"

#include <unordered_map>

namespace mtrun {

// Makes windows of T + 1 tokens from byte `begin` on. With a stride of T consecutive windows share one token, so each
// token except the first is predicted once.
static Status makeWindows(const DataSpec &spec, std::vector<uint8_t> &&bytes, size_t begin, Stored type,
                          const std::string &opened, Table &table) {
  uint64_t size = storedSize(type), tokens = (bytes.size() - begin) / size, length = static_cast<uint64_t>(spec.length);
  if ((bytes.size() - begin) % size)
    return {MT_CORRUPT, opened + ": expected tokens of " + std::to_string(size) + " bytes, found " +
                            std::to_string(bytes.size() - begin) + " bytes"};
  if (length == 0)
    return {MT_INVALID, "data: expected length=T, the tokens of a sample, found none"};
  if (tokens < length + 1)
    return {MT_INVALID,
            opened + ": expected at least " + std::to_string(length + 1) + " tokens, found " + std::to_string(tokens)};
  std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
  uint64_t stride = spec.stride ? static_cast<uint64_t>(spec.stride) : length;
  uint64_t samples = (tokens - 1 - length) / stride + 1;
  // With one sample the stride is unused; a stride beyond the end of the file could overflow the product.
  uint64_t next = samples > 1 ? stride * size : 0;
  Field in = {"tokens", opened, MTRUN_INPUT, false, type, {length}, samples, next, {owner, owner.get() + begin}};
  Field out = in;
  out.name = "next";
  out.role = MTRUN_TARGET;
  out.bytes = {owner, owner.get() + begin + size};
  table.fields = {std::move(in), std::move(out)};
  return {};
}

// Returns true if the first bytes are printable ASCII or UTF-8: text instead of tokens is a common mistake.
static bool looksLikeText(const std::vector<uint8_t> &bytes) {
  size_t shown = std::min<size_t>(bytes.size(), 4096);
  for (size_t i = 0; i < shown; ++i)
    if (bytes[i] < 9 || (bytes[i] > 13 && bytes[i] < 32))
      return false;
  return shown > 0;
}

// nanoGPT's files have only u16 tokens. llm.c's files begin with 256 i32; the first three are magic, version and number
// of tokens.
static Status openTokens(const DataSpec &spec, Table &table) {
  constexpr size_t headerSize = 256 * 4;
  std::vector<uint8_t> bytes;
  std::string opened;
  if (Status s = readData(spec.paths[0], bytes, opened); !s.ok())
    return s;
  auto word = [&](size_t i) {
    return uint32_t(bytes[4 * i]) | uint32_t(bytes[4 * i + 1]) << 8 | uint32_t(bytes[4 * i + 2]) << 16 |
           uint32_t(bytes[4 * i + 3]) << 24;
  };
  if (bytes.size() < headerSize || (word(0) != 20240520 && word(0) != 20240801)) {
    if (looksLikeText(bytes))
      table.notes.push_back(opened + ": looks like a text, and is read as tokens of 16 bits; text:" + spec.paths[0] +
                            " reads its characters");
    Status s = makeWindows(spec, std::move(bytes), 0, Stored::U16, opened, table);
    return s.ok() || table.notes.empty() ? s : Status(s.code(), s.message() + "; " + table.notes.back());
  }
  uint32_t version = word(0) == 20240520 ? 1 : 7;
  Stored type = version == 1 ? Stored::U16 : Stored::U32;
  if (word(1) != version || bytes.size() - headerSize != uint64_t(word(2)) * storedSize(type))
    return {MT_CORRUPT, opened + ": expected version " + std::to_string(version) + " and " + std::to_string(word(2)) +
                            " tokens of " + std::to_string(storedSize(type)) + " bytes, found version " +
                            std::to_string(word(1)) + " and " + std::to_string(bytes.size() - headerSize) + " bytes"};
  return makeWindows(spec, std::move(bytes), headerSize, type, opened, table);
}

// Replaces the text's characters by their indices in the vocabulary, in the smallest type that fits.
static Status encode(const DataSpec &spec, const std::string &opened, std::vector<uint8_t> &bytes, Stored &type) {
  std::unordered_map<std::string_view, uint32_t> numbers;
  for (const std::string &character : spec.vocabulary)
    numbers.emplace(character, static_cast<uint32_t>(numbers.size()));
  size_t most = spec.vocabulary.size();
  type = most <= 256 ? Stored::U8 : most <= 65536 ? Stored::U16 : Stored::U32;
  std::vector<uint8_t> tokens;
  tokens.reserve(bytes.size() * storedSize(type));
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  size_t line = 1;
  for (size_t at = 0, size = 0; at < text.size(); at += size) {
    size = utf8Bytes(text.substr(at));
    auto number = size ? numbers.find(text.substr(at, size)) : numbers.end();
    if (number == numbers.end())
      return {MT_INVALID,
              opened + ", line " + std::to_string(line) + ": expected one of the " + std::to_string(most) +
                  " characters of the plan's vocabulary, found " +
                  (size ? "\"" + std::string(text.substr(at, size)) + "\"" : "byte " + std::to_string(bytes[at]))};
    line += text[at] == '\n';
    for (size_t byte = 0; byte < storedSize(type); ++byte)
      tokens.push_back(static_cast<uint8_t>(number->second >> 8 * byte));
  }
  bytes = std::move(tokens);
  return {};
}

static Status openText(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> bytes;
  std::string opened;
  if (Status s = readData(spec.paths[0], bytes, opened); !s.ok())
    return s;
  Stored type = Stored::U8;
  if (!spec.vocabulary.empty())
    if (Status s = encode(spec, opened, bytes, type); !s.ok())
      return s;
  return makeWindows(spec, std::move(bytes), 0, type, opened, table);
}

extern const SourceKind tokensSource = {
    .name = "tokens",
    .form = "tokens:FILE,length=T",
    .help = "windows of T tokens every stride=N tokens (default T); targets are the next tokens",
    .keys = "length=, stride=",
    .open = openTokens,
};

extern const SourceKind textSource = {
    .name = "text",
    .form = "text:FILE,length=T",
    .help = "windows of the characters of a text, by the plan's vocabulary, or of its bytes",
    .keys = "length=, stride=",
    .open = openText,
    .vocabulary = true,
};

} // namespace mtrun
