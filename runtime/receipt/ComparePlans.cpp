// SPDX-License-Identifier: Apache-2.0
#include "runtime/abi/kernel_symbol.h"
#include "runtime/plan/Check.h"
#include "runtime/receipt/Compare.h"

#include <cstring>
#include <elf.h>
#include <map>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

using Bytes = std::span<const uint8_t>;

// Reads a T at `offset`; false if it is not inside the bytes.
template <typename T> bool readAt(Bytes bytes, uint64_t offset, T &value) {
  if (!inside(offset, sizeof value, bytes.size()))
    return false;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

// Returns the bytes of each function of an ELF shared object by its symbol; of an object that is cut, what is there.
std::map<std::string, Bytes> functionsOf(Bytes elf) {
  std::map<std::string, Bytes> functions;
  Elf64_Ehdr header;
  if (!readAt(elf, 0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return functions;
  Elf64_Shdr symbols, names;
  auto section = [&](uint64_t index, Elf64_Shdr &found) {
    uint64_t offset;
    return multiplyAdd(index, sizeof(Elf64_Shdr), header.e_shoff, offset) && readAt(elf, offset, found);
  };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    if (!section(i, symbols) || symbols.sh_type != SHT_DYNSYM || !section(symbols.sh_link, names) ||
        !inside(names.sh_offset, names.sh_size, elf.size()) || !inside(symbols.sh_offset, symbols.sh_size, elf.size()))
      continue;
    Bytes text = elf.subspan(names.sh_offset, names.sh_size);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      Elf64_Shdr code;
      uint64_t offset;
      if (!readAt(elf, symbols.sh_offset + at, symbol) || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
          symbol.st_name >= text.size() || !section(symbol.st_shndx, code) ||
          __builtin_sub_overflow(symbol.st_value, code.sh_addr, &offset) ||
          __builtin_add_overflow(offset, code.sh_offset, &offset) || !inside(offset, symbol.st_size, elf.size()))
        continue;
      const char *name = reinterpret_cast<const char *>(text.data()) + symbol.st_name;
      functions[std::string(name, strnlen(name, text.size() - symbol.st_name))] = elf.subspan(offset, symbol.st_size);
    }
  }
  return functions;
}

bool equal(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || memcmp(a.data(), b.data(), a.size()) == 0);
}

// Returns the bytes of a table, which are equal for equal tables.
template <typename Table, typename Create> std::vector<uint8_t> packed(const Table *table, Create create) {
  flatbuffers::FlatBufferBuilder builder;
  std::unique_ptr<typename Table::NativeTableType> native(table->UnPack());
  builder.Finish(create(builder, native.get()));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::string text(const flatbuffers::String *string) { return string ? string->str() : ""; }

std::string targets(const fb::Plan &plan) {
  std::string names;
  for (const fb::Target *target : Each(plan.targets()))
    names += (names.empty() ? "" : ", ") + text(target->name());
  return names;
}

class Comparison {
public:
  Comparison(const Plan &first, const Plan &second, std::vector<std::string> &lines)
      : first_(first), second_(second), lines_(lines) {}

  void run();

private:
  bool found() const { return !lines_.empty(); }
  template <typename Value> void value(const char *what, const Value &a, const Value &b) {
    if (a != b && !found())
      lines_.push_back(std::string(what) + ": " + a + " and " + b);
  }
  void number(const char *what, uint64_t a, uint64_t b) { value(what, std::to_string(a), std::to_string(b)); }
  // Compares two lists of named tables.
  template <typename Vector, typename Create>
  void tables(const char *what, const Vector *a, const Vector *b, Create create) {
    number((std::string("number of ") + what + "s").c_str(), count(a), count(b));
    for (uint32_t i = 0; i < count(a) && !found(); ++i)
      if (packed(a->Get(i), create) != packed(b->Get(i), create))
        lines_.push_back(std::string(what) + " " + std::to_string(i) + ": " + text(a->Get(i)->name()) + " and " +
                         text(b->Get(i)->name()) +
                         (a->Get(i)->name()->str() == b->Get(i)->name()->str() ? ", with other tables" : ""));
  }
  void constants();
  void initialValues();
  void code();

  const Plan &first_, &second_;
  std::vector<std::string> &lines_;
};

void Comparison::constants() {
  Bytes a = first_.constants(), b = second_.constants();
  number("bytes of constants", a.size(), b.size());
  uint64_t at = 0;
  while (at < a.size() && !found() && a[at] == b[at])
    ++at;
  if (found() || at == a.size())
    return;
  std::string name = "a constant";
  for (const fb::Program *program : Each(first_.tables().programs()))
    for (const fb::Buffer *buffer : Each(program->buffers()))
      if (buffer->space() == fb::Space::Constant && at >= buffer->offset()->Get(0) &&
          at - buffer->offset()->Get(0) < buffer->fixed_bytes())
        name = "constant " + text(buffer->name()) + " of " + text(program->name());
  lines_.push_back(name + ": byte " + std::to_string(at) + " of the constants is " + std::to_string(a[at]) + " and " +
                   std::to_string(b[at]));
}

void Comparison::initialValues() {
  for (uint32_t i = 0; i < count(first_.tables().variables()) && !found(); ++i) {
    auto bytes = [&](const Plan &plan) {
      const fb::Variable &variable = *plan.tables().variables()->Get(i);
      return variable.initial() < 0
                 ? Bytes()
                 : plan.initialValues().subspan(static_cast<size_t>(variable.initial()), variable.size());
    };
    if (!equal(bytes(first_), bytes(second_)))
      lines_.push_back("initial value of variable " + text(first_.tables().variables()->Get(i)->name()));
  }
}

// Compares the code of targets that both plans have, kernel by kernel.
void Comparison::code() {
  for (const fb::Target *a : Each(first_.tables().targets()))
    for (const fb::Target *b : Each(second_.tables().targets())) {
      if (found() || text(a->name()) != text(b->name()) ||
          equal(first_.section(a->section()), second_.section(b->section())))
        continue;
      std::map<std::string, Bytes> here = functionsOf(first_.section(a->section())),
                                   there = functionsOf(second_.section(b->section()));
      for (const fb::Kernel *kernel : Each(first_.tables().kernels())) {
        std::string symbol = kernelSymbol(kernel->name()->string_view());
        if (!found() && !equal(here[symbol], there[symbol]))
          lines_.push_back("kernel " + text(kernel->name()) + ": its code for " + text(a->name()));
      }
      if (!found())
        lines_.push_back("code for " + text(a->name()) + ", outside of the kernels");
    }
}

void Comparison::run() {
  const fb::Plan &a = first_.tables(), &b = second_.tables();
  if (first_.stepsHash() != second_.stepsHash()) {
    value("model", text(a.model()), text(b.model()));
    number("batch", a.batch(), b.batch());
    number("shards", a.shards(), b.shards());
    number("default seed", a.seed(), b.seed());
    value("precision", text(a.precision()), text(b.precision()));
    tables("variable", a.variables(), b.variables(),
           [](auto &builder, auto *table) { return fb::CreateVariable(builder, table); });
    tables("kernel", a.kernels(), b.kernels(), [](auto &builder, auto *table) {
      table->scratch_bytes = 0; // depends on the targets
      return fb::CreateKernel(builder, table);
    });
    constants();
    tables("program", a.programs(), b.programs(),
           [](auto &builder, auto *table) { return fb::CreateProgram(builder, table); });
  }
  initialValues();
  code();
  if (!found() && first_.stepsHash() != second_.stepsHash())
    lines_.push_back("a kernel's computation; plans for one CPU (mtc compile --cpu) show which kernel");
  value("targets", targets(a), targets(b));
}

} // namespace

void comparePlans(const Plan &first, const Plan &second, std::vector<std::string> &lines) {
  Comparison(first, second, lines).run();
}

} // namespace mtrun
