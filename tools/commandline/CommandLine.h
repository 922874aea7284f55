// SPDX-License-Identifier: Apache-2.0
//
// Parses the command lines of mtc and mtrun, prints help and reports errors.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace commandline {

// A word that users of other tools type, or a word of the other program (mtc or mtrun), and the suggestion for it.
struct Hint {
  const char *word; // an option such as "--learning-rate", or a subcommand such as "fit"
  const char *text; // text after "unknown option --learning-rate; "
};

// Parses a command line; `help COMMAND` means `COMMAND --help`. Returns true if a subcommand is chosen. Otherwise help
// or an error has been printed, and `exitCode` is set.
bool parse(CLI::App &app, int argc, char **argv, std::span<const Hint> hints, int &exitCode);

// Return storage for fields of C structs that lives as long as the program; null for an empty text.
const char *keep(std::string text);
const double *keep(double number);

// Accepts one of these words.
CLI::Validator oneOf(std::vector<std::string> words);
// Accepts a whole number that is at least `least`.
CLI::Validator atLeast(int64_t least);
// Accepts a finite number from `least` to `most`; `most` may be infinite.
CLI::Validator numberIn(double least, double most);

// Parses a size in bytes: "16GiB", "16G", "16GB", "512MiB", "1000000". K, M, G and T are powers of 1024; KB to TB are
// powers of 1000. Returns "" on success, else the expected syntax.
std::string parseBytes(const std::string &text, int64_t &bytes);

} // namespace commandline
