// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/html.h"

#include "runtime/support/text.h"

#include <cstdarg>
#include <cstdio>

namespace mtrun {

// Colors are CSS variables with other values on dark pages: foreground, muted, lines, background, soft background, and
// a to g for curves and bars.
static constexpr const char *baseStyle =
    ":root{color-scheme:light dark;--fg:#1b2430;--muted:#5b6876;--line:#d5dce4;--bg:#fff;--soft:#f3f5f8;--a:#1f6fd0;"
    "--b:#c8540a;--c:#2a8a57;--d:#7d4fd3;--e:#b3365b;--f:#0f8086;--g:#86690f;--bad:#b42318}\n"
    "@media(prefers-color-scheme:dark){:root{--fg:#dde3ea;--muted:#98a4b1;--line:#39434e;--bg:#14181d;--soft:#1e252d;"
    "--a:#62a6ff;--b:#ff9b54;--c:#5cc08b;--d:#b794ff;--e:#ff7d9c;--f:#4fc9c4;--g:#d7b350;--bad:#ff8a7a}}\n"
    "*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:20px;"
    "color:var(--fg);background:var(--bg)}h1{font-size:25px;line-height:1.2;margin:0 0 6px;overflow-wrap:anywhere}"
    "h2{font-size:18px;margin:30px 0 8px}p{margin:6px 0}.muted{color:var(--muted)}.bad{color:var(--bad)}\n"
    "table{border-collapse:collapse;margin:8px 0}th,td{padding:3px 16px 3px 0;border-bottom:1px solid var(--line);"
    "text-align:left;vertical-align:top;overflow-wrap:anywhere}th{color:var(--muted);font-weight:600;"
    "white-space:nowrap}th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".wide{overflow-x:auto}"
    "pre{background:var(--soft);padding:10px 12px;margin:8px 0;white-space:pre-wrap;overflow-wrap:anywhere}"
    "summary{cursor:pointer}svg{display:block;width:100%;height:auto}svg text{font:12px system-ui,sans-serif;"
    "fill:var(--muted)}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}.tile{border:1px solid var(--line);border-radius:6px;"
    "padding:7px 14px;color:var(--muted)}.tile b{display:block;color:var(--fg);font-size:19px;font-weight:600;"
    "font-variant-numeric:tabular-nums}\n";

std::string htmlText(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    size_t size = utf8Bytes(text);
    char first = text[0];
    const char *name = first == '&'    ? "&amp;"
                       : first == '<'  ? "&lt;"
                       : first == '>'  ? "&gt;"
                       : first == '"'  ? "&quot;"
                       : first == '\'' ? "&#39;"
                                       : nullptr;
    bool control = size == 1 && (static_cast<unsigned char>(first) < ' ' || first == 0x7f) && first != '\n';
    if (name)
      html += name;
    else if (size == 0 || control)
      html += "\xef\xbf\xbd";
    else
      html += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return html;
}

std::string pageHead(std::string_view title, std::string_view style) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>" +
         htmlText(title) + "</title>\n<style>" + baseStyle + std::string(style) + "</style></head><body>\n";
}

void append(std::string &out, const char *format, ...) {
  char text[512];
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  auto size = static_cast<size_t>(vsnprintf(text, sizeof text, format, arguments));
  if (size < sizeof text) {
    out.append(text, size);
  } else { // a long name or a curve
    size_t before = out.size();
    out.resize(before + size + 1);
    vsnprintf(out.data() + before, size + 1, format, again);
    out.resize(before + size);
  }
  va_end(again);
  va_end(arguments);
}

} // namespace mtrun
