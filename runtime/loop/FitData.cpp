// SPDX-License-Identifier: Apache-2.0
//
// The data of a fit: how its classes are numbered, and what of it is held out.
#include "runtime/data/Labels.h"
#include "runtime/data/Split.h"
#include "runtime/loop/Fit.h"

namespace mtrun {

// The plan's names, else those of what was loaded or resumed, else the training data's number the labels of all data.
Status Fit::nameClasses(mtrun_dataset &data) {
  std::vector<std::string> names = session_->classNames();
  if (names.empty())
    names = state_.classNames;
  if (names.empty())
    names = data.classNames;
  state_.classNames = names;
  session_->nameClasses(names);
  if (Status s = numberLabels(data, names); !s.ok())
    return s;
  return options_.validation ? numberLabels(*options_.validation, names).in("validation: ") : Status();
}

// By the seed that a resumed run has from its checkpoint: the same samples as before.
Status Fit::holdOut(mtrun_dataset *&data) {
  if (options_.validation_split == 0)
    return {};
  if (options_.validation)
    return {MT_INVALID, "expected validation data or a share of the training data to hold out, found both"};
  SplitOptions split = {options_.validation_split, options_.validation_last != 0, session_->info().seed};
  if (Status s = splitDataset(*data, split, kept_, held_); !s.ok())
    return s;
  for (const mtrun_dataset *part : {kept_.get(), held_.get()})
    for (const std::string &line : part->notes)
      warn(line);
  data = kept_.get();
  options_.validation = held_.get();
  return {};
}

} // namespace mtrun
