// SPDX-License-Identifier: Apache-2.0
//
// HTML pages without external resources: a page loads no script, style or image, and text from files is escaped.
// Reports of runs and visualizations of plans are pages of this kind.
#pragma once

#include <string>
#include <string_view>

namespace mtrun {

// Escapes tags and quotes, and replaces invalid UTF-8 and characters that HTML does not allow by U+FFFD. `text` may be
// any bytes.
std::string htmlText(std::string_view text);

// Returns the page from the doctype to the opening tag of the body. `title` is any text; `style` is CSS that follows
// the common style.
std::string pageHead(std::string_view title, std::string_view style);
inline constexpr const char *pageEnd = "</body></html>\n";

// Appends formatted text to `out`. Text from files must be escaped with htmlText() before.
__attribute__((format(printf, 2, 3))) void append(std::string &out, const char *format, ...);

} // namespace mtrun
