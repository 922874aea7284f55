// SPDX-License-Identifier: Apache-2.0
//
// Precompiled: the standard headers that files of the runtime include. Each file includes what it uses, as the build for
// 64-bit ARM, which precompiles nothing, shows.
#ifndef RUNTIME_HEADERS_H
#define RUNTIME_HEADERS_H

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
