#include "gguf/vocabulary/end_tokens.h"

#include <algorithm>
#include <string_view>

namespace foretoken {
namespace {

constexpr std::string_view kEnds[] = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
    "<end_of_turn>", "<turn|>",         "<|return|>", "<|call|>",   "<|calls|>",
    "<|flush|>",     "<EOT>",           "[EOT]",      "[EOS]",      "<end_of_utterance>",
};

// Ends a turn but where it only ends a message: gpt-oss and Solar end turns by tokens of their own.
constexpr std::string_view kEndOfMessage = "<|end|>";
constexpr std::string_view kEndsBehindMessages[] = {"<|return|>", "<|flush|>"};

}  // namespace

std::vector<int64_t> gguf_end_tokens(const GgufVocabulary& vocabulary) {
  std::vector<int64_t> ids;
  int64_t message = -1;
  bool in_messages = false;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    const auto id = static_cast<int64_t>(i);
    if (std::ranges::find(kEnds, token) != std::end(kEnds)) ids.push_back(id);
    if (token == kEndOfMessage) message = id;
    in_messages |= std::ranges::find(kEndsBehindMessages, token) != std::end(kEndsBehindMessages);
  }
  if (message >= 0 && !in_messages) ids.insert(std::ranges::upper_bound(ids, message), message);
  return ids;
}

}  // namespace foretoken
