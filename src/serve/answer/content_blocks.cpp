#include "serve/answer/content_blocks.h"

namespace foretoken {

bool ContentBlock::goes_on_with(const ChatPiece& piece) const {
  if (piece.kind != kind) return false;
  return kind != ChatPiece::Kind::kToolCall || piece.call_index == call_index;
}

std::vector<BlockStep> ContentBlocks::add(const std::vector<ChatPiece>& pieces) {
  std::vector<BlockStep> steps;
  for (const ChatPiece& piece : pieces) {
    if (piece.kind == ChatPiece::Kind::kReasoning && !tells_reasoning_) continue;
    const bool is_call = piece.kind == ChatPiece::Kind::kToolCall;
    const bool goes_on = open_ && blocks_.back().goes_on_with(piece);
    if (!goes_on && piece.text.empty() && !is_call) continue;
    if (!goes_on) {
      for (BlockStep& step : finish()) steps.push_back(std::move(step));
      blocks_.push_back({piece.kind, "", piece.call_index, piece.call_id, piece.call_name});
      steps.push_back({BlockStep::Kind::kOpen, blocks_.size() - 1, ""});
      open_ = true;
    }
    if (piece.text.empty()) continue;
    blocks_.back().text += piece.text;
    steps.push_back({BlockStep::Kind::kText, blocks_.size() - 1, piece.text});
  }
  return steps;
}

std::vector<BlockStep> ContentBlocks::finish() {
  if (!open_) return {};
  open_ = false;
  return {{BlockStep::Kind::kClose, blocks_.size() - 1, ""}};
}

std::string ContentBlocks::text_of(ChatPiece::Kind kind) const {
  std::string text;
  for (const ContentBlock& block : blocks_) {
    if (block.kind == kind) text += block.text;
  }
  return text;
}

}  // namespace foretoken
