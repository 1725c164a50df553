#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Cuts texts by taking, each time, the longest token that they go on with: what RWKV's World
// vocabulary wants, which has a token for every byte. Used by any number of threads.
class LongestTokens {
 public:
  // The token's bytes, none of which are empty.
  void add(std::string bytes, int32_t id) { tokens_.push_back({std::move(bytes), id}); }
  // Behind the last of them.
  void sort();
  bool has_all_bytes() const;

  // Appends the ids of `text`; bytes that no token begins with are left out.
  void append(std::string_view text, std::vector<int32_t>* ids) const;
  // The first token that stands in `text`, the longest where several begin there: where, and how
  // many bytes; npos where none does.
  size_t find(std::string_view text, size_t* size, int32_t* id) const;

 private:
  struct Token {
    std::string bytes;
    int32_t id;
  };
  // The longest token that `text` begins with; 0 bytes: none.
  size_t longest(std::string_view text, int32_t* id) const;

  std::vector<Token> tokens_;
};

}  // namespace foretoken
