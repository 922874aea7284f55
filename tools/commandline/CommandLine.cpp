// SPDX-License-Identifier: Apache-2.0
#include "tools/commandline/CommandLine.h"

#include "runtime/abi/mt.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>

namespace commandline {
namespace {

// Prints only names and values of options. Exclusions and ranges are reported when they are violated.
class Help : public CLI::Formatter {
  std::string make_option_opts(const CLI::Option *option) const override {
    if (option->get_type_size() == 0)
      return "";
    std::string text = " " + option->get_type_name();
    if (std::string value = option->get_default_str(); !value.empty())
      text += "=" + value;
    return text + (option->get_required() ? " REQUIRED" : "");
  }
};

std::vector<std::string> optionsOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options([](const CLI::Option *o) { return o->nonpositional(); }))
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

std::vector<std::string> subcommandsOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *sub : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

const char *hintFor(std::span<const Hint> hints, const std::string &word) {
  for (const Hint &hint : hints)
    if (word == hint.word)
      return hint.text;
  return nullptr;
}

std::string joined(const std::vector<std::string> &words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

// Returns the error for unparsed words. An unknown option is reported before other words.
std::string unknown(const CLI::App &app, const CLI::App &command, const std::vector<std::string> &words,
                    std::span<const Hint> hints) {
  auto found = std::find_if(words.begin(), words.end(), [](const std::string &word) { return word.starts_with("-"); });
  bool option = found != words.end();
  std::string word = option ? found->substr(0, found->find('=')) : words.front();
  bool subcommand = &command == &app && !option;
  std::string text = subcommand ? "unknown subcommand " + word
                     : option   ? "unknown option " + word
                                : "unexpected argument " + word;
  if (const char *hint = hintFor(hints, word); hint && (option || subcommand))
    return text + "; " + hint;
  std::vector<std::string> known = subcommand ? subcommandsOf(app) : optionsOf(command);
  std::string nearest = option || subcommand ? mtrun::didYouMean(word, known) : "";
  return text + (subcommand && nearest.empty() ? ": expected " + joined(known, " or ") : nearest);
}

// Rewrites CLI11's messages in the style of all other messages.
std::string reworded(const CLI::ParseError &error) {
  std::string message = error.what();
  auto consume = [&](const std::string &begin) {
    bool there = message.starts_with(begin);
    if (there)
      message.erase(0, begin.size());
    return there;
  };
  if (dynamic_cast<const CLI::ConversionError *>(&error) && consume("Could not convert: ")) {
    size_t equals = message.find(" = ");
    return message.substr(0, equals) + ": expected a number, found " +
           (equals == std::string::npos ? "none" : message.substr(equals + 3));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error)) {
    size_t end = std::min(message.find(':'), message.find(' ')), received = message.rfind("received ");
    return message.substr(0, end) + ": expected one value, found " +
           (received == std::string::npos ? "none" : message.substr(received + 9));
  }
  if (message.size() > 1 && (!std::isupper(static_cast<unsigned char>(message[1]))))
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

} // namespace

bool parse(CLI::App &app, int argc, char **argv, std::span<const Hint> hints, int &exitCode) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.resize(std::min<size_t>(words.size(), 1));
    words.push_back("--help");
  }
  auto help = std::make_shared<Help>();
  app.formatter(help);
  for (CLI::App *sub : app.get_subcommands([](const CLI::App *) { return true; }))
    sub->formatter(help);
  try {
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    return true;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) { // --help, --version
      exitCode = app.exit(error);
      return false;
    }
    const CLI::App *command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    std::vector<std::string> left = app.remaining(true);
    std::erase(left, "--");
    bool said =
        dynamic_cast<const CLI::ValidationError *>(&error) || dynamic_cast<const CLI::ConversionError *>(&error);
    std::string message = left.empty() || said ? reworded(error) : unknown(app, *command, left, hints);
    if (left.empty() && command == &app)
      message += ": " + joined(subcommandsOf(app), " or ");
    std::string more = app.get_name() + (command == &app ? "" : " " + command->get_name());
    fprintf(stderr, "%s: error: %s\nsee %s --help\n", app.get_name().c_str(), message.c_str(), more.c_str());
    exitCode = MT_USAGE;
    return false;
  }
}

const char *keep(std::string text) {
  static std::deque<std::string> texts;
  return text.empty() ? nullptr : texts.emplace_back(std::move(text)).c_str();
}

const double *keep(double number) {
  static std::deque<double> numbers;
  return &numbers.emplace_back(number);
}

CLI::Validator oneOf(std::vector<std::string> words) {
  return CLI::Validator(
      [words](std::string &text) {
        if (std::find(words.begin(), words.end(), text) != words.end())
          return std::string();
        return "expected " + joined(words, " or ") + ", found " + text + mtrun::didYouMean(text, words);
      },
      "");
}

CLI::Validator atLeast(int64_t least) {
  return CLI::Validator(
      [least](std::string &text) {
        int64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool good = error == std::errc() && end == text.data() + text.size() && value >= least;
        return good ? std::string()
                    : "expected a whole number of at least " + std::to_string(least) + ", found " + text;
      },
      "");
}

CLI::Validator numberIn(double least, double most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most &&
            std::isfinite(value))
          return std::string(); // NaN fails all comparisons
        char range[80];
        snprintf(range, sizeof range, most < HUGE_VAL ? "a number from %g to %g" : "a number of at least %g", least,
                 most);
        return std::string("expected ") + range + ", found " + text;
      },
      "");
}

std::string parseBytes(const std::string &text, int64_t &bytes) {
  static constexpr struct {
    const char *name;
    int64_t size;
  } units[] = {{"", 1},
               {"b", 1},
               {"k", 1ll << 10},
               {"kib", 1ll << 10},
               {"kb", 1000},
               {"m", 1ll << 20},
               {"mib", 1ll << 20},
               {"mb", 1000000},
               {"g", 1ll << 30},
               {"gib", 1ll << 30},
               {"gb", 1000000000},
               {"t", 1ll << 40},
               {"tib", 1ll << 40},
               {"tb", 1000000000000}};
  double number = 0; // accepts "1.5GiB"; whole numbers of bytes below 2^53 are exact
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto &known : units) {
    double value = number * static_cast<double>(known.size);
    if (error == std::errc() && unit == known.name && value >= 0 && value < 0x1p62) {
      bytes = static_cast<int64_t>(value);
      return {};
    }
  }
  return "expected bytes such as 16GiB, 16G, 16GB, 512MiB or 1000000, found '" + text + "'";
}

} // namespace commandline
