// SPDX-License-Identifier: Apache-2.0
//
// Pages for a browser that need nothing beside them: no script, no style and no picture comes from elsewhere, and what
// comes from files is text on them, whatever it holds. Reports of runs and pictures of plans are such pages.
#pragma once

#include <string>
#include <string_view>

namespace mtrun {

// `text` may be any bytes. What a browser would take for a tag or a quote is written as a word of its own, and what is
// no UTF-8, or no character that a page may have, becomes U+FFFD.
std::string htmlText(std::string_view text);

// From the doctype to the opened body. `title` is any text; `style` is CSS after that of all pages.
std::string pageHead(std::string_view title, std::string_view style);
inline constexpr const char *pageEnd = "</body></html>\n";

// printf at the end of `out`; texts of files go through htmlText() before.
__attribute__((format(printf, 2, 3))) void append(std::string &out, const char *format, ...);

} // namespace mtrun
