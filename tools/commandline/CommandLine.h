// SPDX-License-Identifier: Apache-2.0
//
// How mtc and mtrun read their arguments, show help, and say what is wrong with a command line.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace commandline {

// A word that users of other tools, or of the other half of this one, type: what there is for it here.
struct Hint {
  const char *word; // "--learning-rate", or the name of a subcommand: "fit"
  const char *text; // goes after "unknown option --learning-rate; "
};

// Parses; `help COMMAND` is `COMMAND --help`. True: a subcommand is chosen. False: `exitCode` says how the program
// ends, help or the error with the tool's name before it are printed.
bool parse(CLI::App &app, int argc, char **argv, std::span<const Hint> hints, int &exitCode);

// For fields of C structs: lives as long as the program. Null for an empty text.
const char *keep(std::string text);
const double *keep(double number);

// Options whose values go to a field of a C struct: a text; a number that may be missing; 1 where it is given.
CLI::Option *addText(CLI::App &app, const std::string &flags, const char *&field, const std::string &help);
CLI::Option *addNumber(CLI::App &app, const std::string &flags, const double *&field, const std::string &help);
CLI::Option *addToggle(CLI::App &app, const std::string &flags, int &field, const std::string &help);

// One of these, said so where it is not.
CLI::Validator oneOf(std::vector<std::string> words);
// A whole number of at least `least`.
CLI::Validator atLeast(int64_t least);
// A number from `least` to `most`, which may be infinite: then any finite one from `least` on.
CLI::Validator numberIn(double least, double most);

// "16GiB", "16G", "16GB", "512MiB", "1000000": bytes; K, M, G and T are powers of 1024, KB to TB of 1000. Empty on
// success, else what was expected.
std::string parseBytes(const std::string &text, int64_t &bytes);

} // namespace commandline
