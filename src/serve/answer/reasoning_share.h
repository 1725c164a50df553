#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chat/calls/chat_parser.h"

namespace foretoken {

// How much of a text that is split while it comes is reasoning. One thread.
class ReasoningShare {
 public:
  void add(const std::vector<ChatPiece>& pieces);
  // Of `num_tokens` of the text so far: an estimate, the share of its bytes; markers count with
  // what they are beside.
  int64_t tokens_of(int64_t num_tokens) const;

 private:
  size_t num_reasoning_ = 0;  // bytes
  size_t num_all_ = 0;
};

}  // namespace foretoken
