#include "chat/scan/json_repair.h"

#include <cstdint>

#include "base/files/half_pairs.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {
namespace {

constexpr size_t kEscapeLen = 6;  // \u1234

// The code unit of a \u escape at `at`, or -1.
int unit_at(std::string_view text, size_t at) {
  if (at + kEscapeLen > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  for (const char digit : text.substr(at + 2, 4)) {
    const bool decimal = digit >= '0' && digit <= '9';
    unit = unit * 16 + (decimal ? digit - '0' : (digit | 32) - 'a' + 10);
  }
  return unit;
}

bool is_high(int unit) { return unit >= 0xD800 && unit < 0xDC00; }

bool waits_for_low(std::string_view text) {
  return text.size() >= kEscapeLen && is_high(unit_at(text, text.size() - kEscapeLen));
}

}  // namespace

std::string JsonRepair::feed(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (ended_) return out;
    const bool fits = scan_.begun() || is_space(byte) || byte == '{';
    const ScanOutcome outcome = fits ? scan_.feed(byte) : ScanOutcome::kFlaw;
    ended_ = outcome != ScanOutcome::kMore;
    if (outcome == ScanOutcome::kFlaw) return out;
    held_ += byte;
    if (!scan_.closable() || (scan_.in_text() && waits_for_low(held_))) continue;
    out += without_half_pairs(held_);
    held_.clear();
    begun_ = true;
    whole_ = ended_;
    in_text_ = scan_.in_text();
  }
  return out;
}

std::string JsonRepair::finish() const {
  if (whole_) return {};
  if (!begun_) return "{}";
  std::string closing = in_text_ ? "\"" : "";
  const std::string& open = scan_.open_brackets();
  for (size_t i = open.size(); i > 0; --i) closing += open[i - 1] == '{' ? '}' : ']';
  return closing;
}

}  // namespace foretoken
