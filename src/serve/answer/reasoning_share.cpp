#include "serve/answer/reasoning_share.h"

#include <cmath>

namespace foretoken {

void ReasoningShare::add(const std::vector<ChatPiece>& pieces) {
  for (const ChatPiece& piece : pieces) {
    const size_t size = piece.call_name.size() + piece.text.size();
    num_all_ += size;
    if (piece.kind == ChatPiece::Kind::kReasoning) num_reasoning_ += size;
  }
}

int64_t ReasoningShare::tokens_of(int64_t num_tokens) const {
  if (num_all_ == 0) return 0;
  const double share = static_cast<double>(num_reasoning_) / static_cast<double>(num_all_);
  return std::llround(share * static_cast<double>(num_tokens));
}

}  // namespace foretoken
