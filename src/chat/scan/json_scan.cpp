#include "chat/scan/json_scan.h"

#include "chat/scan/marker_scan.h"

namespace foretoken {
namespace {

constexpr size_t kMaxDepth = 256;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

}  // namespace

ScanOutcome JsonScan::value_end() {
  mode_ = Mode::kAfter;
  return stack_.empty() ? ScanOutcome::kDone : ScanOutcome::kMore;
}

ScanOutcome JsonScan::open(char bracket) {
  if (stack_.size() >= kMaxDepth) return ScanOutcome::kFlaw;
  stack_ += bracket;
  mode_ = bracket == '{' ? Mode::kFirstKey : Mode::kFirstItem;
  return ScanOutcome::kMore;
}

ScanOutcome JsonScan::close(char bracket) {
  const char opened = bracket == '}' ? '{' : bracket == ']' ? '[' : '\0';
  if (stack_.empty() || stack_.back() != opened) return ScanOutcome::kFlaw;
  stack_.pop_back();
  return value_end();
}

ScanOutcome JsonScan::begin_value(char byte) {
  if (byte == '{' || byte == '[') return open(byte);
  if (byte == '"') {
    key_ = false;
    mode_ = Mode::kString;
  } else if (byte == '-') {
    mode_ = Mode::kMinus;
  } else if (is_digit(byte)) {
    mode_ = byte == '0' ? Mode::kZero : Mode::kDigits;
  } else if (byte == 't' || byte == 'f' || byte == 'n') {
    literal_ = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
    mode_ = Mode::kLiteral;
  } else {
    return ScanOutcome::kFlaw;
  }
  return ScanOutcome::kMore;
}

ScanOutcome JsonScan::structure(char byte) {
  if (is_space(byte)) return ScanOutcome::kMore;
  switch (mode_) {
    case Mode::kFirstItem:
      return byte == ']' ? close(byte) : begin_value(byte);
    case Mode::kFirstKey:
    case Mode::kKey:
      if (byte == '}' && mode_ == Mode::kFirstKey) return close(byte);
      if (byte != '"') return ScanOutcome::kFlaw;
      key_ = true;
      mode_ = Mode::kString;
      return ScanOutcome::kMore;
    case Mode::kColon:
      mode_ = Mode::kValue;
      return byte == ':' ? ScanOutcome::kMore : ScanOutcome::kFlaw;
    case Mode::kAfter:
      if (byte != ',') return close(byte);
      if (stack_.empty()) return ScanOutcome::kFlaw;
      mode_ = stack_.back() == '{' ? Mode::kKey : Mode::kValue;
      return ScanOutcome::kMore;
    default:
      return begin_value(byte);
  }
}

ScanOutcome JsonScan::string_byte(char byte) {
  if (mode_ == Mode::kHex) {
    if (!is_hex(byte)) return ScanOutcome::kFlaw;
    if (--num_hex_ == 0) mode_ = Mode::kString;
    return ScanOutcome::kMore;
  }
  if (mode_ == Mode::kEscape) {
    if (std::string_view("\"\\/bfnrtu").find(byte) == std::string_view::npos) {
      return ScanOutcome::kFlaw;
    }
    num_hex_ = byte == 'u' ? 4 : 0;
    mode_ = byte == 'u' ? Mode::kHex : Mode::kString;
    return ScanOutcome::kMore;
  }
  if (byte == '\\') mode_ = Mode::kEscape;
  if (byte != '"') return ScanOutcome::kMore;
  if (!key_) return value_end();
  mode_ = Mode::kColon;
  return ScanOutcome::kMore;
}

ScanOutcome JsonScan::number_byte(char byte) {
  const bool digit = is_digit(byte);
  const bool exponent = byte == 'e' || byte == 'E';
  const Mode before = mode_;
  if (before == Mode::kMinus && digit) {
    mode_ = byte == '0' ? Mode::kZero : Mode::kDigits;
  } else if ((before == Mode::kZero || before == Mode::kDigits) && byte == '.') {
    mode_ = Mode::kPoint;
  } else if ((before == Mode::kZero || before == Mode::kDigits || before == Mode::kFraction) &&
             exponent) {
    mode_ = Mode::kExponent;
  } else if ((before == Mode::kPoint || before == Mode::kFraction) && digit) {
    mode_ = Mode::kFraction;
  } else if (before == Mode::kExponent && (byte == '+' || byte == '-')) {
    mode_ = Mode::kExponentSign;
  } else if (before >= Mode::kExponent && digit) {
    mode_ = Mode::kExponentDigits;
  } else if (before != Mode::kDigits || !digit) {
    const bool whole = before == Mode::kZero || before == Mode::kDigits ||
                       before == Mode::kFraction || before == Mode::kExponentDigits;
    if (!whole) return ScanOutcome::kFlaw;
    return value_end() == ScanOutcome::kDone ? ScanOutcome::kDoneBefore : structure(byte);
  }
  return ScanOutcome::kMore;
}

ScanOutcome JsonScan::feed(char byte) {
  if (mode_ >= Mode::kMinus) return number_byte(byte);
  if (mode_ == Mode::kLiteral) {
    if (byte != literal_.front()) return ScanOutcome::kFlaw;
    literal_.remove_prefix(1);
    return literal_.empty() ? value_end() : ScanOutcome::kMore;
  }
  if (mode_ >= Mode::kString) return string_byte(byte);
  return structure(byte);
}

bool JsonScan::closable() const {
  switch (mode_) {
    case Mode::kAfter:
    case Mode::kFirstItem:
    case Mode::kFirstKey:
    case Mode::kZero:
    case Mode::kDigits:
    case Mode::kFraction:
    case Mode::kExponentDigits:
      return true;
    default:
      return in_text();
  }
}

std::string json_byte(char byte, bool in_string) {
  if (!in_string || static_cast<unsigned char>(byte) >= 0x20) return {byte};
  constexpr const char* kHex = "0123456789abcdef";
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {'\\', 'u', '0', '0', kHex[byte >> 4 & 15], kHex[byte & 15]};
  }
}

}  // namespace foretoken
