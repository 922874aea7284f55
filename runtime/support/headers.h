// SPDX-License-Identifier: Apache-2.0
//
// Precompiled: the standard headers that files of the runtime include. Each file includes what it uses: the build for
// 64-bit ARM precompiles nothing, and shows one that does not.
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
