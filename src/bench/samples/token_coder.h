#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {
class Tokenizer;
class ChatTemplate;
}  // namespace foretoken

namespace foretoken::bench {

// Text to tokens and back, by a tokenizer or an engine. A function that is not there is empty.
struct TokenCoder {
  std::function<Result<std::vector<int32_t>>(std::string_view text, bool add_special_tokens)>
      encode;
  std::function<Result<std::string>(std::span<const int32_t> ids)> decode;
  // A chat's messages as the prompt of the model; `arguments_json` as for ChatTemplate::render.
  std::function<Result<std::string>(const std::string& messages_json,
                                    const std::string& arguments_json)>
      render_chat;
  // What random prompts are made of: all ids that are no special tokens, ascending.
  std::vector<int32_t> plain_ids;

  // Tokens of `text` as a prompt, special tokens included.
  Result<int> count(std::string_view text) const;
};

// `chat_template` may be null. Both must outlive the result.
TokenCoder make_token_coder(const Tokenizer& tokenizer, const ChatTemplate* chat_template);

}  // namespace foretoken::bench
