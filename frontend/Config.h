// SPDX-License-Identifier: Apache-2.0
//
// JSON from strangers, and objects of it in which every key must be asked for: what nobody asks for is an error, so
// that no option of a layer is ever ignored silently.
#ifndef FRONTEND_CONFIG_H
#define FRONTEND_CONFIG_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>

namespace mtc {

using Json = nlohmann::json;

// Empty on success, else what is wrong and where. Nesting is bounded before the parser runs.
std::string parseJson(llvm::StringRef text, Json &value);

// How a value is shown in messages: short, on one line.
std::string describe(const Json &value);

// A member of an object; null where there is none, or the value is not an object.
const Json *member(const Json &value, llvm::StringRef key);
// A member that is text, else "".
std::string textMember(const Json &value, llvm::StringRef key);

class Config {
public:
  using Sink = std::function<void(const std::string &)>;

  // `value` must outlive the config; anything but an object is an empty one and an error.
  Config(const Json &value, Sink error);

  bool failed() const { return errors != 0; }
  void error(const std::string &message);

  // The value of a key, null where it is missing or null. Marks the key as read.
  const Json *find(llvm::StringRef key);
  // Values of a type; an error, and the fallback, where the value has another. Without a fallback the key must be
  // there.
  int64_t integer(llvm::StringRef key, std::optional<int64_t> fallback = {});
  double real(llvm::StringRef key, std::optional<double> fallback = {});
  bool boolean(llvm::StringRef key, std::optional<bool> fallback = {});
  std::string text(llvm::StringRef key, std::optional<std::string> fallback = {});
  // A list of `count` integers (any number: -1), or one integer that stands for all of them.
  llvm::SmallVector<int64_t> integers(llvm::StringRef key, int64_t count = -1);

  // Keys that change no result.
  void ignore(llvm::ArrayRef<llvm::StringRef> keys);
  // Options that must stay as they are: missing, null or `value`.
  void expectAbsent(llvm::ArrayRef<llvm::StringRef> keys);
  void expect(llvm::StringRef key, const Json &value);
  // Every key has been read, or is null.
  void finish();

private:
  const Json *object;
  Sink sink;
  std::set<std::string> seen;
  unsigned errors = 0;
};

} // namespace mtc

#endif
