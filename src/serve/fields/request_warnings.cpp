#include "serve/fields/request_warnings.h"

#include <algorithm>

#include "base/log.h"

namespace foretoken {
namespace {

constexpr size_t kMaxWarnings = 64;
constexpr size_t kLongestName = 64;
constexpr size_t kLongestHeader = 2000;
constexpr size_t kLongestLine = 400;
constexpr size_t kMaxTold = 256;
constexpr int kMaxInAMinute = 32;

std::string printable(const std::string& text) {
  std::string shown = text;
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

}  // namespace

void add_warning(std::string sentence, std::vector<std::string>* warnings) {
  if (warnings->size() >= kMaxWarnings) return;
  if (std::find(warnings->begin(), warnings->end(), sentence) != warnings->end()) return;
  warnings->push_back(std::move(sentence));
}

void add_warnings(const std::vector<std::string>& more, std::vector<std::string>* warnings) {
  for (const std::string& sentence : more) add_warning(sentence, warnings);
}

std::string shown_name(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName) + "...";
}

void put_warnings(const std::vector<std::string>& warnings, nlohmann::ordered_json* answer) {
  if (!warnings.empty()) (*answer)["warnings"] = warnings;
}

http::Headers warning_headers(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  std::string value;
  for (const std::string& sentence : warnings) {
    if (!value.empty()) value += " | ";
    value += printable(sentence);
    if (value.size() > kLongestHeader) break;
  }
  if (value.size() > kLongestHeader) value = value.substr(0, kLongestHeader - 3) + "...";
  return {{"X-Foretoken-Warnings", std::move(value)}};
}

WarningLog::WarningLog(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

bool WarningLog::take(const std::string& line, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (told_.size() >= kMaxTold || told_.count(line) > 0) return false;
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    num_in_minute_ = 0;
  }
  if (num_in_minute_ >= kMaxInAMinute) return false;
  ++num_in_minute_;
  return told_.insert(line).second;
}

void WarningLog::tell(const std::vector<std::string>& warnings, Clock::time_point now) {
  for (const std::string& sentence : warnings) {
    const std::string line = printable(sentence.substr(0, kLongestLine));
    if (!take(line, now)) continue;
    if (tell_) {
      tell_(line);
    } else {
      FT_LOG(warn, "a request: {}", line);
    }
  }
}

}  // namespace foretoken
