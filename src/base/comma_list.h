#pragma once
#include <string>

namespace foretoken {

// The texts of a list for a sentence: "a, b, c".
template <class List>
std::string comma_list(const List& texts) {
  std::string all;
  for (const auto& text : texts) {
    if (!all.empty()) all += ", ";
    all += text;
  }
  return all;
}

}  // namespace foretoken
