#pragma once
#include <string>
#include <vector>

#include "chat/calls/chat_parser.h"

namespace foretoken {

// One part of a message: reasoning, text, or a tool call with its arguments as text.
struct ContentBlock {
  ChatPiece::Kind kind = ChatPiece::Kind::kContent;
  std::string text;
  int call_index = 0;
  std::string call_id;
  std::string call_name;

  // Whether `piece` goes on with this block.
  bool goes_on_with(const ChatPiece& piece) const;
};

// What pieces do to the blocks of a message, in order.
struct BlockStep {
  enum class Kind { kOpen, kText, kClose };
  Kind kind = Kind::kText;
  size_t block = 0;  // index among the blocks
  std::string text;  // of kText
};

// The blocks of one message while it comes. One thread.
class ContentBlocks {
 public:
  // `tells_reasoning`: false leaves reasoning out.
  explicit ContentBlocks(bool tells_reasoning = true) : tells_reasoning_(tells_reasoning) {}

  // Empty pieces make no step, but the first of a call opens its block.
  std::vector<BlockStep> add(const std::vector<ChatPiece>& pieces);
  // Closes the last block, if one is open.
  std::vector<BlockStep> finish();

  const std::vector<ContentBlock>& all() const { return blocks_; }
  // All text of a kind.
  std::string text_of(ChatPiece::Kind kind) const;

 private:
  bool tells_reasoning_;
  std::vector<ContentBlock> blocks_;
  bool open_ = false;
};

}  // namespace foretoken
