#include "evidence/html_text.hpp"

namespace qpn8 {

std::string html_text(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else if (c == '"') {
      html += "&quot;";
    } else if (byte < 0x20 && c != '\n' && c != '\t') {
      // U+2400 + code: its last UTF-8 byte is 0x80 + code.
      html += "\xE2\x90";
      html += static_cast<char>(0x80 + byte);
    } else {
      html += c;
    }
  }
  return html;
}

}  // namespace qpn8
