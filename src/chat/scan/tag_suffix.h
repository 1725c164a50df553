#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

// Leaves out of the tags of a text what a checkpoint adds to their names behind a colon:
// "<tool_call:6124c78e>" becomes "<tool_call>", "</think:6124c78e>" becomes "</think>". Other text
// stays as it is. One thread.
class TagSuffix {
 public:
  // names: of the tags, as in "tool_call".
  explicit TagSuffix(std::vector<std::string> names) : names_(std::move(names)) {}

  // Appends to `text` what is certain.
  void feed(char byte, std::string* text);
  // What was held back.
  std::string take_held();

 private:
  enum class Match { kNone, kPerhaps, kTag };
  Match match(std::string_view name, std::string_view held) const;
  Match match_any(std::string_view* name) const;

  std::vector<std::string> names_;
  std::string held_;
};

// The same of a whole text.
std::string without_suffixes(const std::vector<std::string>& names, std::string_view text);

}  // namespace foretoken
