#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// The bytes of each token id in one piece of memory. Read by any number of threads.
class TokenTable {
 public:
  // Appends the next id. `is_special`: decoding with skip_special_tokens leaves it out.
  void add(std::string_view bytes, bool is_special) {
    bytes_ += bytes;
    ends_.push_back(bytes_.size());
    is_special_.push_back(is_special);
  }

  // Empty outside the table.
  std::string_view bytes(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i >= ends_.size()) return {};
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

  bool is_special(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < is_special_.size() &&
           is_special_[static_cast<size_t>(id)];
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
  std::vector<bool> is_special_;
};

}  // namespace foretoken
