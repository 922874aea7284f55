// SPDX-License-Identifier: Apache-2.0
//
// Precompiled standard headers of the runtime. Each file still includes what it uses: the build for 64-bit ARM does not
// precompile headers and fails on a missing include.
#ifndef RUNTIME_SUPPORT_HEADERS_H
#define RUNTIME_SUPPORT_HEADERS_H

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#endif
