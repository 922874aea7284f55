// SPDX-License-Identifier: Apache-2.0
//
// The data of a fit: numbers of classes, and the validation split.
#include "runtime/data/Labels.h"
#include "runtime/data/Split.h"
#include "runtime/loop/Fit.h"

namespace mtrun {

// Numbers the labels of all data by the plan's class names; without them by the names of the loaded or resumed
// variables; without them by the names of the training data.
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

// Splits by the seed, which a resumed run has from its checkpoint, so that the same samples are held out.
Status Fit::holdOut(mtrun_dataset *&data) {
  if (options_.validation_split == 0)
    return {};
  if (options_.validation)
    return {MT_INVALID, "expected either validation data or a validation split of the training data, found both"};
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
