// SPDX-License-Identifier: Apache-2.0
//
// Verifies that the programs of several lengths fit each other. Each program has been verified alone. Callers use the
// signature of the largest length, and a step's tensors are cut to another length.
#include "runtime/plan/Check.h"
#include "runtime/plan/Lengths.h"

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

constexpr uint32_t maxLengths = 64;
constexpr uint64_t maxLength = uint64_t{1} << 24;
constexpr const char *programNames[] = {"train_step", "eval_step", "predict"};

bool sameText(const flatbuffers::String *a, const flatbuffers::String *b) {
  return a->string_view() == b->string_view();
}

// Returns true if the shapes are equal except for the axis after the batch axis, which has the two lengths.
bool isCut(const fb::SignatureEntry &whole, uint64_t largest, const fb::SignatureEntry &part, uint64_t length) {
  const auto &a = *whole.shape(), &b = *part.shape();
  if (a.size() != b.size())
    return false;
  for (uint32_t i = 0; i < a.size(); ++i) {
    bool cut = i == 1 && static_cast<uint64_t>(a.Get(i)) == largest && static_cast<uint64_t>(b.Get(i)) == length;
    if (a.Get(i) != b.Get(i) && !cut)
      return false;
  }
  return true;
}

// Verifies the program of one length against the program of the largest length.
class PairVerifier {
public:
  PairVerifier(const fb::Plan &plan, const fb::Program &whole, uint64_t largest, const fb::Program &part,
               uint64_t length)
      : plan_(plan), whole_(whole), largest_(largest), part_(part), length_(length),
        place_("program " + part.name()->str() + " of length " + std::to_string(length)) {}

  Status verify() {
    if (Status status = signature(); !status.ok())
      return status;
    return metrics();
  }

private:
  Status signature() {
    if (count(whole_.signature()) != count(part_.signature()))
      return differs(place_, std::to_string(count(whole_.signature())) + " signature entries",
                     count(part_.signature()));
    for (uint32_t i = 0; i < count(part_.signature()); ++i) {
      const fb::SignatureEntry &a = *whole_.signature()->Get(i), &b = *part_.signature()->Get(i);
      bool same = sameText(a.name(), b.name()) && a.role() == b.role() && a.dtype() == b.dtype() &&
                  a.optional() == b.optional() && a.limit() == b.limit();
      // The smallest length is verified first; its entries determine which entries have the axis.
      same = same && (a.row_bytes() != b.row_bytes()) == hasLength(plan_, whole_.name()->string_view(), i);
      if (!same || !isCut(a, largest_, b, length_))
        return differs(place_,
                       "the entry " + a.name()->str() + " of " + whole_.name()->str() +
                           " whose shape differs only in the axis after the batch axis",
                       b.name()->str());
    }
    return {};
  }

  Status metrics() {
    if (count(whole_.metrics()) != count(part_.metrics()))
      return differs(place_, std::to_string(count(whole_.metrics())) + " metrics", count(part_.metrics()));
    for (uint32_t i = 0; i < count(part_.metrics()); ++i) {
      const fb::Metric &a = *whole_.metrics()->Get(i), &b = *part_.metrics()->Get(i);
      bool same = sameText(a.name(), b.name()) && a.is_loss() == b.is_loss() && a.finalizer() == b.finalizer() &&
                  a.better() == b.better() && count(a.shape()) == count(b.shape());
      for (uint32_t d = 0; same && d < count(a.shape()); ++d)
        same = a.shape()->Get(d) == b.shape()->Get(d);
      same = same && count(a.parameters()) == count(b.parameters());
      for (uint32_t k = 0; same && k < count(a.parameters()); ++k)
        same = a.parameters()->Get(k) == b.parameters()->Get(k);
      if (!same)
        return differs(place_, "the metric " + a.name()->str() + " of " + whole_.name()->str(), b.name()->str());
    }
    return {};
  }

  const fb::Plan &plan_;
  const fb::Program &whole_;
  uint64_t largest_;
  const fb::Program &part_;
  uint64_t length_;
  std::string place_;
};

// Verifies the numbers and the indices of one length.
Status verifyIndices(const fb::Plan &plan, uint32_t index, std::set<int32_t> &seen) {
  const fb::Length &length = *plan.lengths()->Get(index);
  std::string place = "length " + std::to_string(index);
  uint64_t before = index ? plan.lengths()->Get(index - 1)->length() : 0;
  if (length.length() <= before || length.length() > maxLength)
    return differs(place, "more than " + std::to_string(before) + " and at most 2^24", length.length());
  for (const char *name : programNames) {
    int32_t program = programAt(length, name);
    if (program < -1 || program >= static_cast<int64_t>(count(plan.programs())))
      return differs(place, std::string("a program for ") + name + " below " + std::to_string(count(plan.programs())),
                     std::to_string(program));
    if (program >= 0 && !seen.insert(program).second)
      return differs(place, "a program of its own",
                     plan.programs()->Get(static_cast<uint32_t>(program))->name()->str());
  }
  return {};
}

// Verifies that a program exists for all lengths or for none.
Status verifyPrograms(const fb::Plan &plan, const char *name) {
  const fb::Length &largest = *plan.lengths()->Get(plan.lengths()->size() - 1);
  int32_t whole = programAt(largest, name);
  const fb::Program *named = nullptr;
  for (uint32_t i = 0; i < count(plan.programs()); ++i)
    if (plan.programs()->Get(i)->name()->string_view() == name)
      named = plan.programs()->Get(i);
  if (named != (whole < 0 ? nullptr : plan.programs()->Get(static_cast<uint32_t>(whole))))
    return differs("length " + std::to_string(plan.lengths()->size() - 1), std::string("the program ") + name,
                   std::to_string(whole));
  for (uint32_t i = 0; i + 1 < plan.lengths()->size(); ++i) {
    const fb::Length &length = *plan.lengths()->Get(i);
    int32_t part = programAt(length, name);
    if ((part < 0) != (whole < 0))
      return differs("length " + std::to_string(i), std::string(name) + " as the largest length has it",
                     std::to_string(part));
    if (part < 0)
      continue;
    if (Status status = PairVerifier(plan, *named, largest.length(), *plan.programs()->Get(static_cast<uint32_t>(part)),
                                     length.length())
                            .verify();
        !status.ok())
      return status;
  }
  bool says = !named;
  for (uint32_t e = 0; named && e < count(named->signature()); ++e)
    says |= hasLength(plan, name, e) && saysLength(plan, *named->signature()->Get(e));
  if (!says)
    return differs(std::string("program ") + name, "an input that says how long a sample is",
                   plan.length_input() ? plan.length_input()->str() : "none");
  return {};
}

} // namespace

Status verifyLengths(const fb::Plan &plan) {
  uint32_t lengths = count(plan.lengths());
  if (lengths == 0)
    return plan.length_input() ? differs("length_input", "none in a plan of one length", plan.length_input()->str())
                               : Status();
  if (lengths == 1 || lengths > maxLengths)
    return differs("lengths", "2 to " + std::to_string(maxLengths), lengths);
  if (plan.length_input())
    if (Status status = checkName(plan.length_input(), "length_input"); !status.ok())
      return status;
  std::set<int32_t> seen;
  for (uint32_t i = 0; i < lengths; ++i)
    if (Status status = verifyIndices(plan, i, seen); !status.ok())
      return status;
  for (const char *name : programNames)
    if (Status status = verifyPrograms(plan, name); !status.ok())
      return status;
  return {};
}

} // namespace mtrun
