# SPDX-License-Identifier: Apache-2.0
# The GoogleTest programs that mtc_unit_test builds, each test counted.
import os
import lit.formats

config.name = "mtc-unit"
config.test_exec_root = config.test_source_root = os.path.join(config.binary_dir, "test", "unit")
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.environment["PATH"] = os.path.join(config.binary_dir, "bin") + os.pathsep + os.environ["PATH"]
