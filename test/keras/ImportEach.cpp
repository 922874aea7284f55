// SPDX-License-Identifier: Apache-2.0
//
// Imports every file that standard input names, a line each, and says how it went: "model", or the error's code and
// message. For test/keras/inputs/mutate.py, to which the end of this program is a finding.
#include "runtime/abi/mtc.h"

#include <cstdio>
#include <iostream>
#include <string>

int main() {
  for (std::string path; std::getline(std::cin, path);) {
    mtc_options options = mtc_options_init();
    mtc_result *text = nullptr, *weights = nullptr;
    mt_status *status = mtc_import_file(path.c_str(), &options, &text, &weights);
    std::string message = mt_status_message(status);
    if (status)
      std::printf("%d %s\n", static_cast<int>(mt_status_code(status)), message.substr(0, message.find('\n')).c_str());
    else
      std::printf("model\n");
    std::fflush(stdout);
    mt_status_free(status);
    mtc_result_free(text);
    mtc_result_free(weights);
  }
}
