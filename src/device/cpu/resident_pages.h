#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace foretoken::cpu {

// Which pages of a mapping are in memory, so that those which came in later can be given back.
class ResidentPages {
 public:
  // Of [begin, begin + bytes), whole pages of a private mapping without a file. Where the system
  // does not tell, all count as resident.
  static ResidentPages of(std::byte* begin, size_t bytes);

  // Gives back the pages of the same mapping that came in since `of`; they read as zeros then.
  void give_back_others() const;

 private:
  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
  std::vector<unsigned char> resident_;  // by page, bit 0; empty: none is given back
};

}  // namespace foretoken::cpu
