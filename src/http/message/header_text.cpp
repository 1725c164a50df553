#include "http/message/header_text.h"

#include <algorithm>

namespace foretoken::http {
namespace {

unsigned char lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c + ('a' - 'A')) : c;
}

// The length of the UTF-8 character at the front of `text`, or 0 where there is none: overlong
// forms, surrogates and code points beyond 0x10FFFF are none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  unsigned char least = 0x80;
  unsigned char most = 0xBF;
  if (first == 0xE0) least = 0xA0;
  if (first == 0xED) most = 0x9F;
  if (first == 0xF0) least = 0x90;
  if (first == 0xF4) most = 0x8F;
  if (byte(1) < least || byte(1) > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> members;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view member = trimmed(text.substr(0, comma));
    if (!member.empty()) members.emplace_back(member);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return members;
}

bool list_has(std::string_view list, std::string_view member) {
  const std::vector<std::string> members = split_list(list);
  return std::any_of(members.begin(), members.end(),
                     [&](const std::string& one) { return same_name(one, member); });
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string header_safe(std::string_view text) {
  std::string safe(text);
  for (char& c : safe) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 32 && c != '\t') || byte == 127) c = ' ';
  }
  return safe;
}

}  // namespace foretoken::http
