// SPDX-License-Identifier: Apache-2.0
//
// Options of a command from the tables of runtime/support/option_table.h. Their values go to the fields of C structs.
#pragma once

#include "runtime/support/option_table.h"
#include "tools/commandline/CommandLine.h"

#include <algorithm>
#include <type_traits>

namespace commandline {

template <typename Struct> CLI::Option *addField(CLI::App &app, const mtrun::Option<Struct> &row, const char *&text) {
  if (row.form != mtrun::OptionForm::list)
    return app.add_option_function<std::string>(
        row.flags, [&text](const std::string &value) { text = keep(value); }, row.help);
  auto join = [&text](const std::vector<std::string> &texts) { text = keep(CLI::detail::join(texts, ";")); };
  return app.add_option_function<std::vector<std::string>>(row.flags, join, row.help)->allow_extra_args(false);
}

template <typename Struct>
CLI::Option *addField(CLI::App &app, const mtrun::Option<Struct> &row, const double *&number) {
  return app.add_option_function<double>(row.flags, [&number](double value) { number = keep(value); }, row.help);
}

template <typename Struct, typename Number>
CLI::Option *addField(CLI::App &app, const mtrun::Option<Struct> &row, Number &number) {
  if (row.form == mtrun::OptionForm::toggle)
    return app.add_flag_function(row.flags, [&number](int64_t given) { number = given > 0; }, row.help);
  if (row.form == mtrun::OptionForm::value) {
    CLI::Option *option = app.add_option(row.flags, number, row.help);
    if (row.min > -HUGE_VAL)
      option->check(std::is_floating_point_v<Number> ? numberIn(row.min, HUGE_VAL)
                                                     : atLeast(static_cast<int64_t>(row.min)));
    return option;
  }
  auto parse = [&row, &number](const std::string &text) {
    std::vector<std::string> words = row.wordList();
    auto value = static_cast<int64_t>(std::find(words.begin(), words.end(), text) - words.begin());
    if (std::string problem = words.empty() ? parseBytes(text, value) : ""; !problem.empty())
      throw CLI::ValidationError(row.flag(), problem);
    number = static_cast<Number>(value);
  };
  return app.add_option_function<std::string>(row.flags, parse, row.help);
}

// The rows that `takes` says, for the fields of `values`. In the help they are in `group`; null: in the groups of the
// rows.
template <typename Struct, size_t count, typename Takes>
void addOptions(CLI::App &app, const mtrun::Option<Struct> (&rows)[count], Struct &values, const char *group,
                Takes takes) {
  for (const mtrun::Option<Struct> &row : rows) {
    if (!takes(row))
      continue;
    CLI::Option *option = std::visit([&](auto field) { return addField(app, row, values.*field); }, row.field);
    if (const char *title = group ? group : row.group; *title)
      option->group(title);
    if (*row.value)
      option->type_name(row.value);
    if (*row.standard)
      option->default_str(row.standard);
    if (*row.words)
      option->check(oneOf(row.wordList()));
    if (*row.without)
      option->excludes(app.get_option(row.without));
    if (*row.after)
      option->needs(app.get_option(row.after));
  }
}

// The options of `values` that are set, as words of a command line.
template <typename Struct, size_t count>
std::vector<std::string> wordsOf(const mtrun::Option<Struct> (&rows)[count], const Struct &values) {
  std::vector<std::string> words;
  auto add = [&](const mtrun::Option<Struct> &row, auto value) {
    if constexpr (std::is_same_v<decltype(value), const char *>) {
      for (std::string_view rest = value ? std::string_view(value) : std::string_view(); !rest.empty();) {
        size_t end = row.form == mtrun::OptionForm::list ? std::min(rest.find(';'), rest.size()) : rest.size();
        words.insert(words.end(), {row.flag(), std::string(rest.substr(0, end))});
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    } else if constexpr (std::is_arithmetic_v<decltype(value)>) {
      if (value != 0)
        words.push_back(row.flag());
      if (value != 0 && row.form != mtrun::OptionForm::toggle)
        words.push_back(row.form == mtrun::OptionForm::index ? row.wordList()[static_cast<size_t>(value)]
                                                             : std::to_string(value));
    }
  };
  for (const mtrun::Option<Struct> &row : rows)
    std::visit([&](auto field) { add(row, values.*field); }, row.field);
  return words;
}

} // namespace commandline
