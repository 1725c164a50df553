#include "chat/scan/python_scan.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "chat/scan/marker_scan.h"

namespace foretoken {
namespace {

constexpr size_t kMaxPythonDepth = 256;
constexpr size_t kMaxWordLen = 4096;

bool is_octal(char byte) { return byte >= '0' && byte <= '7'; }

// A character of a string as JSON text; surrogates stay escapes.
std::string json_character(uint32_t code) {
  char escape[8];
  if (code < 0x20 || (code >= 0xd800 && code < 0xe000)) {
    std::snprintf(escape, sizeof(escape), "\\u%04x", code);
    return escape;
  }
  if (code == '"' || code == '\\') return {'\\', static_cast<char>(code)};
  std::string text;
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
  return text;
}

// A bare word or number as JSON, or "".
std::string json_word(std::string word) {
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  if (word == "None" || word == "null") return "null";
  if (word.starts_with("+")) word.erase(0, 1);
  const size_t sign = word.starts_with("-") ? 1 : 0;
  if (word.size() > sign && word[sign] == '.') word.insert(sign, "0");
  const size_t point = word.find('.');
  const bool bare_point =
      point != std::string::npos &&
      (point + 1 == word.size() || word[point + 1] < '0' || word[point + 1] > '9');
  if (bare_point) word.insert(point + 1, "0");
  return nlohmann::json::parse(word, nullptr, false).is_number() ? word : std::string();
}

}  // namespace

void PythonScan::separate(std::string* out) {
  if (comma_) *out += ", ";
  comma_ = false;
}

ScanOutcome PythonScan::close(std::string* out) {
  *out += stack_.back() == '{' ? '}' : ']';
  stack_.pop_back();
  mode_ = Mode::kAfter;
  comma_ = false;
  return stack_.empty() ? ScanOutcome::kDone : ScanOutcome::kMore;
}

ScanOutcome PythonScan::begin_value(char byte, std::string* out) {
  if (byte == '{' || byte == '[' || byte == '(') {
    if (stack_.size() >= kMaxPythonDepth || key_) return ScanOutcome::kFlaw;
    separate(out);
    stack_ += byte;
    *out += byte == '{' ? '{' : '[';
    mode_ = Mode::kFirst;
    return ScanOutcome::kMore;
  }
  if (byte == '"' || byte == '\'') {
    separate(out);
    quote_ = byte;
    *out += '"';
    mode_ = Mode::kString;
    return ScanOutcome::kMore;
  }
  const bool starts_word = std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '-' ||
                           byte == '+' || byte == '.';
  if (!starts_word || key_) return ScanOutcome::kFlaw;
  word_ = byte;
  mode_ = Mode::kWord;
  return ScanOutcome::kMore;
}

ScanOutcome PythonScan::structure(char byte, std::string* out) {
  if (is_space(byte)) return ScanOutcome::kMore;
  const char open = stack_.empty() ? '\0' : stack_.back();
  const char closing = open == '{' ? '}' : open == '[' ? ']' : open == '(' ? ')' : '\0';
  if (mode_ == Mode::kColon) {
    *out += ": ";
    key_ = false;
    mode_ = Mode::kValue;
    return byte == ':' ? ScanOutcome::kMore : ScanOutcome::kFlaw;
  }
  const bool may_close = mode_ == Mode::kAfter || mode_ == Mode::kFirst;
  if (may_close && closing != '\0' && byte == closing) return close(out);
  if (mode_ == Mode::kAfter) {
    comma_ = true;
    // A comma may stand before the closing bracket.
    mode_ = Mode::kFirst;
    return byte == ',' && !stack_.empty() ? ScanOutcome::kMore : ScanOutcome::kFlaw;
  }
  key_ = mode_ == Mode::kFirst && open == '{';
  return begin_value(byte, out);
}

ScanOutcome PythonScan::string_byte(char byte, std::string* out) {
  if (byte == '\\') {
    mode_ = Mode::kEscape;
    return ScanOutcome::kMore;
  }
  if (byte != quote_) {
    *out += byte == '"' ? "\\\"" : json_byte(byte, true);
    return ScanOutcome::kMore;
  }
  *out += '"';
  mode_ = key_ ? Mode::kColon : Mode::kAfter;
  return stack_.empty() ? ScanOutcome::kDone : ScanOutcome::kMore;
}

ScanOutcome PythonScan::escape_byte(char byte, std::string* out) {
  constexpr std::string_view kFrom = "abfnrtv\\'\"";
  constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\'\"";
  mode_ = Mode::kString;
  if (const size_t at = kFrom.find(byte); at != std::string_view::npos) {
    const char code = kTo[at];
    *out += std::string_view("\n\r\t").find(code) != std::string_view::npos
                ? json_byte(code, true)
                : json_character(static_cast<unsigned char>(code));
  } else if (byte == 'x' || byte == 'u' || byte == 'U' || is_octal(byte)) {
    escape_ = is_octal(byte) ? 'o' : byte;
    word_ = is_octal(byte) ? std::string(1, byte) : std::string();
    mode_ = Mode::kDigits;
  } else if (byte != '\n') {
    *out += "\\\\";
    *out += json_byte(byte, true);
  }
  return ScanOutcome::kMore;
}

ScanOutcome PythonScan::digit_byte(char byte, std::string* out) {
  uint32_t code = 0;
  const bool octal = escape_ == 'o';
  const bool fits = octal ? is_octal(byte) : std::isxdigit(static_cast<unsigned char>(byte)) != 0;
  if (fits) word_ += byte;
  const size_t most = octal ? 3 : escape_ == 'x' ? 2 : escape_ == 'u' ? 4 : 8;
  if (!fits && !octal) return ScanOutcome::kFlaw;
  if (fits && word_.size() < most) return ScanOutcome::kMore;
  std::from_chars(word_.data(), word_.data() + word_.size(), code, octal ? 8 : 16);
  if (code > 0x10ffff) return ScanOutcome::kFlaw;
  *out += json_character(code);
  mode_ = Mode::kString;
  return fits ? ScanOutcome::kMore : string_byte(byte, out);
}

ScanOutcome PythonScan::word_byte(char byte, std::string* out) {
  const bool sign = (byte == '-' || byte == '+') && (word_.back() == 'e' || word_.back() == 'E');
  if (std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '.' || sign) {
    word_ += byte;
    return word_.size() > kMaxWordLen ? ScanOutcome::kFlaw : ScanOutcome::kMore;
  }
  const std::string word = json_word(word_);
  if (word.empty()) return ScanOutcome::kFlaw;
  separate(out);
  *out += word;
  mode_ = Mode::kAfter;
  return stack_.empty() ? ScanOutcome::kDoneBefore : structure(byte, out);
}

ScanOutcome PythonScan::feed(char byte, std::string* out) {
  switch (mode_) {
    case Mode::kString:
      return string_byte(byte, out);
    case Mode::kEscape:
      return escape_byte(byte, out);
    case Mode::kDigits:
      return digit_byte(byte, out);
    case Mode::kWord:
      return word_byte(byte, out);
    default:
      return structure(byte, out);
  }
}

std::string python_as_json(const std::string& text) {
  PythonScan scan;
  std::string out;
  bool done = false;
  for (const char byte : text + "\n") {
    if (done && !is_space(byte)) return {};
    if (done) continue;
    const ScanOutcome outcome = scan.feed(byte, &out);
    if (outcome == ScanOutcome::kFlaw) return {};
    done = outcome != ScanOutcome::kMore;
  }
  return done ? out : std::string();
}

}  // namespace foretoken
