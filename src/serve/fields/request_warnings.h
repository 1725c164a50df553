#pragma once
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "http/message/exchange.h"

namespace foretoken {

// Adds a sentence about what an answer will not follow, once; a request keeps so many at most.
void add_warning(std::string sentence, std::vector<std::string>* warnings);
void add_warnings(const std::vector<std::string>& more, std::vector<std::string>* warnings);

// A name that a client chose, for a message: long ones are cut.
std::string shown_name(const std::string& name);

// "warnings": [...] of an answer or of an event, where there are any.
void put_warnings(const std::vector<std::string>& warnings, nlohmann::ordered_json* answer);

// The header X-Foretoken-Warnings: the sentences, as far as 2000 bytes hold them, between " | ",
// with "?" for each byte that is no printable ASCII. No header without warnings.
http::Headers warning_headers(const std::vector<std::string>& warnings);

// Tells the log of warnings: each sentence once, however often it comes, and at most 256 of them
// and 32 in a minute, since clients choose what is in them. Any thread.
class WarningLog {
 public:
  using Clock = std::chrono::steady_clock;

  // `tell` writes a line; without it the log does.
  explicit WarningLog(std::function<void(const std::string&)> tell = {});
  void tell(const std::vector<std::string>& warnings, Clock::time_point now = Clock::now());

 private:
  bool take(const std::string& line, Clock::time_point now);

  const std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  std::set<std::string> told_;
  Clock::time_point minute_{};
  int num_in_minute_ = 0;
};

}  // namespace foretoken
