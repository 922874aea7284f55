// SPDX-License-Identifier: Apache-2.0
//
// The opcodes are documented in Python's Lib/pickletools.py: protocols 0 (in part) to 5.
#include "runtime/data/Pickle.h"

#include <charconv>

namespace mtrun {
namespace {

constexpr size_t maxName = 256;       // length of a function's name with its module
constexpr size_t maxValues = 1 << 22; // total number of values on the stack, in the memo and in lists

class PickleReader {
public:
  PickleReader(std::span<const uint8_t> bytes, const std::string &where, Pickle &pickle)
      : bytes_(bytes), where_(where), pickle_(pickle) {}
  Status read();

private:
  Status step(uint8_t code);
  Status constants(uint8_t code, bool &known);
  Status texts(uint8_t code, bool &known);
  Status collections(uint8_t code, bool &known);
  Status memo(uint8_t code, bool &known);
  Status call(const PickleValue &callee, const PickleValue *arguments);
  Status build();

  Status corrupt(const std::string &text) const {
    return {MT_CORRUPT, where_ + ": damaged pickle: " + text + " at byte " + std::to_string(at_)};
  }
  bool number(size_t size, uint64_t &value);
  bool take(uint64_t size, std::string &text);
  bool line(std::string &text);
  bool pop(PickleValue *&value);
  bool popMark(std::vector<PickleValue *> &items);
  Status remember(uint64_t index);
  Status recall(uint64_t index);
  void push(PickleValue value) { stack_.push_back(&pickle_.values.emplace_back(std::move(value))); }
  void pushText(std::string text) { push({.kind = PickleValue::Text, .text = std::move(text)}); }
  void pushInteger(int64_t value) { push({.kind = PickleValue::Integer, .integer = value}); }

  std::span<const uint8_t> bytes_;
  const std::string &where_;
  Pickle &pickle_;
  size_t at_ = 0, values_ = 0, encoded_ = 0;
  bool done_ = false;
  std::vector<PickleValue *> stack_, memo_;
  std::vector<size_t> marks_;
};

bool PickleReader::number(size_t size, uint64_t &value) {
  if (bytes_.size() - at_ < size)
    return false;
  value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= uint64_t(bytes_[at_ + i]) << 8 * i;
  at_ += size;
  return true;
}

bool PickleReader::take(uint64_t size, std::string &text) {
  if (bytes_.size() - at_ < size)
    return false;
  text.assign(reinterpret_cast<const char *>(bytes_.data()) + at_, size);
  at_ += size;
  return true;
}

bool PickleReader::line(std::string &text) {
  size_t end = at_;
  while (end < bytes_.size() && bytes_[end] != '\n')
    ++end;
  return end < bytes_.size() && take(end - at_, text) && ++at_;
}

bool PickleReader::pop(PickleValue *&value) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return false;
  value = stack_.back();
  stack_.pop_back();
  return true;
}

bool PickleReader::popMark(std::vector<PickleValue *> &items) {
  if (marks_.empty() || marks_.back() > stack_.size())
    return false;
  auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  items.assign(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return true;
}

// Indices count from 0, or from 1 in pickles of Python 2's C code.
Status PickleReader::remember(uint64_t index) {
  if (stack_.empty() || index > memo_.size() + 1)
    return corrupt("expected a value to remember, found index " + std::to_string(index));
  if (index >= memo_.size())
    memo_.resize(index + 1);
  memo_[index] = stack_.back();
  return {};
}

Status PickleReader::recall(uint64_t index) {
  if (index >= memo_.size() || !memo_[index])
    return corrupt("expected a value that was remembered, found index " + std::to_string(index));
  stack_.push_back(memo_[index]);
  return {};
}

Status PickleReader::constants(uint8_t code, bool &known) {
  uint64_t value = 0;
  std::string text;
  auto integer = [&](size_t size) { return number(size, value) ? Status() : corrupt("expected a number"); };
  switch (code) {
  case 'N':
    return push({}), Status();
  case 0x88: // NEWTRUE
  case 0x89: // NEWFALSE
    return pushInteger(code == 0x88), Status();
  case 'K':
  case 'M':
    if (Status s = integer(code == 'K' ? 1 : 2); !s.ok())
      return s;
    return pushInteger(static_cast<int64_t>(value)), Status();
  case 'J':
    if (Status s = integer(4); !s.ok())
      return s;
    return pushInteger(static_cast<int32_t>(static_cast<uint32_t>(value))), Status();
  case 'G': // a double; data sets of pictures do not use it
    if (Status s = integer(8); !s.ok())
      return s;
    return pushInteger(0), Status();
  case 0x8a: { // LONG1: little endian, two's complement
    uint64_t size = 0;
    if (!number(1, size) || size > 8 || !number(size, value))
      return corrupt("expected a number of at most 8 bytes");
    bool negative = size > 0 && size < 8 && value >> (8 * size - 1);
    return pushInteger(static_cast<int64_t>(negative ? value | ~uint64_t(0) << 8 * size : value)), Status();
  }
  default:
    return known = false, Status();
  }
}

Status PickleReader::texts(uint8_t code, bool &known) {
  // Size of the length field in bytes: 1 for U, C and SHORT_BINUNICODE; 4 for T, X and B; 8 for BINUNICODE8, BINBYTES8
  // and BYTEARRAY8.
  size_t size = code == 'U' || code == 'C' || code == 0x8c     ? 1
                : code == 'T' || code == 'X' || code == 'B'    ? 4
                : code == 0x8d || code == 0x8e || code == 0x96 ? 8
                                                               : 0;
  if (size == 0)
    return known = false, Status();
  uint64_t length = 0;
  std::string text;
  if (!number(size, length) || !take(length, text))
    return corrupt("expected a text of " + std::to_string(length) + " bytes, found the end");
  return pushText(std::move(text)), Status();
}

Status PickleReader::collections(uint8_t code, bool &known) {
  PickleValue *target = nullptr;
  std::vector<PickleValue *> items;
  auto missing = [&] { return corrupt("expected values for a list, a tuple or a dictionary"); };
  switch (code) {
  case '(':
    return marks_.push_back(stack_.size()), Status();
  case ']':
    return push({.kind = PickleValue::List}), Status();
  case '}':
    return push({.kind = PickleValue::Dictionary}), Status();
  case ')':
    return push({.kind = PickleValue::Tuple}), Status();
  case 'l':
  case 't':
  case 'd':
    if (!popMark(items))
      return missing();
    push({.kind = code == 'l'   ? PickleValue::List
                  : code == 't' ? PickleValue::Tuple
                                : PickleValue::Dictionary,
          .items = std::move(items)});
    return {};
  case 0x85: // TUPLE1 to TUPLE3
  case 0x86:
  case 0x87:
    items.resize(code - 0x84u);
    for (size_t i = items.size(); i-- > 0;)
      if (!pop(items[i]))
        return missing();
    push({.kind = PickleValue::Tuple, .items = std::move(items)});
    return {};
  case 'a':
    items.resize(1);
    if (!pop(items[0]) || !pop(target))
      return missing();
    break;
  case 's':
    items.resize(2);
    if (!pop(items[1]) || !pop(items[0]) || !pop(target))
      return missing();
    break;
  case 'e':
  case 'u':
    if (!popMark(items) || !pop(target))
      return missing();
    break;
  default:
    return known = false, Status();
  }
  bool list = code == 'a' || code == 'e';
  if (target->kind != (list ? PickleValue::List : PickleValue::Dictionary) || (!list && items.size() % 2))
    return corrupt(list ? "expected a list" : "expected a dictionary");
  values_ += items.size();
  target->items.insert(target->items.end(), items.begin(), items.end());
  stack_.push_back(target);
  return {};
}

Status PickleReader::memo(uint8_t code, bool &known) {
  uint64_t index = 0;
  std::string text;
  switch (code) {
  case 'q':
  case 'h':
  case 'r':
  case 'j':
    if (!number(code == 'q' || code == 'h' ? 1 : 4, index))
      return corrupt("expected an index");
    return code == 'q' || code == 'r' ? remember(index) : recall(index);
  case 'p':
  case 'g': {
    if (!line(text))
      return corrupt("expected an index");
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || end != text.data() + text.size())
      return corrupt("expected an index");
    return code == 'p' ? remember(index) : recall(index);
  }
  case 0x94: // MEMOIZE
    return remember(memo_.size());
  default:
    return known = false, Status();
  }
}

// Supports numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b'b') and numpy.dtype('u1', 0, 1), whose state
// follows with BUILD, and _codecs.encode(text, 'latin1'), by which protocol 2 writes bytes.
Status PickleReader::call(const PickleValue &callee, const PickleValue *arguments) {
  const std::string &name = callee.text;
  if (name == "numpy.core.multiarray _reconstruct" || name == "numpy._core.multiarray _reconstruct")
    return push({.kind = PickleValue::Array}), Status();
  if (name == "numpy dtype") {
    bool bytes = !arguments->items.empty() && arguments->items[0]->text == "u1";
    if (!bytes)
      return {MT_INVALID, where_ + ": expected arrays of bytes (u1), found another type"};
    return push({.kind = PickleValue::Global, .text = "dtype"}), Status();
  }
  // UTF-8 of characters below 256, which become a byte each
  if (name == "_codecs encode" && arguments->items.size() == 2) {
    std::string bytes;
    const std::string &text = arguments->items[0]->text;
    // Limits the sum of all encoded texts to the file's size; otherwise a small file could encode one text many times.
    if ((encoded_ += text.size()) > bytes_.size())
      return corrupt("expected texts that are encoded once");
    for (size_t i = 0; i < text.size(); ++i) {
      auto c = static_cast<uint8_t>(text[i]);
      bool two = (c == 0xC2 || c == 0xC3) && i + 1 < text.size();
      if (c >= 0x80 && !two)
        return corrupt("expected characters below 256");
      bytes += static_cast<char>(two ? (c & 3) << 6 | (text[++i] & 0x3F) : c);
    }
    return pushText(std::move(bytes)), Status();
  }
  return {MT_INVALID, where_ + ": expected plain data and arrays of bytes, found a call of " +
                          (callee.kind == PickleValue::Global ? name : "something else")};
}

// The state of an array is (version, shape, dtype, Fortran order, elements).
Status PickleReader::build() {
  PickleValue *state = nullptr, *target = nullptr;
  if (!pop(state) || !pop(target))
    return corrupt("expected an object and its state");
  stack_.push_back(target);
  if (target->kind != PickleValue::Array)
    return target->kind == PickleValue::Global && target->text == "dtype"
               ? Status()
               : Status(MT_INVALID, where_ + ": expected plain data and arrays of bytes, found an object with a state");
  if (state->items.size() != 5 || state->items[1]->kind != PickleValue::Tuple ||
      state->items[4]->kind != PickleValue::Text || state->items[3]->integer != 0)
    return {MT_INVALID, where_ + ": expected an array of bytes in C order, found another type, order or rank"};
  uint64_t elements = 1;
  constexpr size_t maxAxes = 64; // NumPy's limit
  if (state->items[1]->items.size() > maxAxes)
    return corrupt("expected an array of at most 64 axes");
  target->shape.clear();
  for (const PickleValue *size : state->items[1]->items) {
    if (size->kind != PickleValue::Integer || size->integer < 0 ||
        __builtin_mul_overflow(elements, static_cast<uint64_t>(size->integer), &elements))
      return corrupt("expected an array's shape");
    target->shape.push_back(size->integer);
  }
  target->elements = state->items[4]; // not copied: many arrays may share a text
  return elements == target->elements->text.size() ? Status() : corrupt("expected as many elements as the shape says");
}

Status PickleReader::step(uint8_t code) {
  uint64_t ignored = 0;
  PickleValue *callee = nullptr, *arguments = nullptr;
  switch (code) {
  case 0x80: // PROTO
    return number(1, ignored) && ignored <= 5 ? Status() : corrupt("expected a protocol of at most 5");
  case 0x95: // FRAME
    return number(8, ignored) ? Status() : corrupt("expected a frame's size");
  case '.':
    return done_ = true, Status();
  case 'c': {
    std::string module, name;
    if (!line(module) || !line(name))
      return corrupt("expected a name");
    return push({.kind = PickleValue::Global, .text = module + " " + name}), Status();
  }
  case 0x93: // STACK_GLOBAL
    if (!pop(arguments) || !pop(callee) || callee->kind != PickleValue::Text || arguments->kind != PickleValue::Text ||
        callee->text.size() + arguments->text.size() > maxName)
      return corrupt("expected a name");
    return push({.kind = PickleValue::Global, .text = callee->text + " " + arguments->text}), Status();
  case 'R':
    if (!pop(arguments) || !pop(callee) || arguments->kind != PickleValue::Tuple)
      return corrupt("expected a function and its arguments");
    return call(*callee, arguments);
  case 'b':
    return build();
  default:
    break;
  }
  using This = PickleReader;
  for (auto family : {&This::constants, &This::texts, &This::collections, &This::memo}) {
    bool known = true;
    if (Status s = (this->*family)(code, known); !s.ok() || known)
      return s;
  }
  return {MT_INVALID, where_ + ": expected plain data and arrays of bytes, found pickle opcode " +
                          std::to_string(code) + " at byte " + std::to_string(at_ - 1)};
}

Status PickleReader::read() {
  while (!done_) {
    uint64_t code = 0;
    if (!number(1, code))
      return corrupt("expected more, found its end");
    if (Status s = step(static_cast<uint8_t>(code)); !s.ok())
      return s;
    if (++values_ > maxValues)
      return {MT_INVALID, where_ + ": expected at most " + std::to_string(maxValues) + " values, found more"};
  }
  PickleValue *root = nullptr;
  if (!pop(root))
    return corrupt("expected a value, found none");
  pickle_.root = root;
  return {};
}

} // namespace

Status readPickle(std::span<const uint8_t> bytes, const std::string &where, Pickle &pickle) {
  return PickleReader(bytes, where, pickle).read();
}

const PickleValue *find(const PickleValue &dictionary, std::string_view key) {
  for (size_t i = 0; dictionary.kind == PickleValue::Dictionary && i + 1 < dictionary.items.size(); i += 2)
    if (dictionary.items[i]->kind == PickleValue::Text && dictionary.items[i]->text == key)
      return dictionary.items[i + 1];
  return nullptr;
}

} // namespace mtrun
