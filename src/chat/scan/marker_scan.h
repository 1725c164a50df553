#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// `all`, and then `more`.
std::vector<std::string> joined(std::vector<std::string> all, const std::vector<std::string>& more);

// Finds the first of some markers in text that comes byte by byte. No marker may be the beginning
// of another one.
class MarkerScan {
 public:
  explicit MarkerScan(std::vector<std::string> markers) : markers_(std::move(markers)) {}

  // The number of the marker that this byte completes, or -1. Appends to `text` what is certain to
  // be no marker.
  int feed(char byte, std::string* text);
  // What was held back.
  std::string take_held();
  // The length of the longest marker.
  size_t max_len() const;
  const std::string& marker(int number) const { return markers_[static_cast<size_t>(number)]; }

 private:
  std::vector<std::string> markers_;
  std::string held_;
};

// Waits for one of some texts after any white space.
class ExpectScan {
 public:
  enum Outcome { kMore = -1, kFlaw = -2 };

  explicit ExpectScan(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  // The number of the text that this byte completes, kMore, or kFlaw when none can come any more.
  int feed(char byte);

 private:
  std::vector<std::string> texts_;
  std::string seen_;
};

inline bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

}  // namespace foretoken
