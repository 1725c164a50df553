#include "bench/samples/token_coder.h"

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foretoken::bench {

Result<int> TokenCoder::count(std::string_view text) const {
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encode(text, true));
  return static_cast<int>(ids.size());
}

TokenCoder make_token_coder(const Tokenizer& tokenizer, const ChatTemplate* chat_template) {
  TokenCoder coder;
  coder.encode = [&tokenizer](std::string_view text, bool add_special_tokens) {
    return tokenizer.encode(text, add_special_tokens);
  };
  coder.decode = [&tokenizer](std::span<const int32_t> ids) {
    return tokenizer.decode(ids, false);
  };
  if (chat_template != nullptr) {
    coder.render_chat = [chat_template](const std::string& messages_json,
                                        const std::string& arguments_json) {
      return chat_template->render(messages_json, arguments_json, true);
    };
  }
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_added(id) && tokenizer.token_bytes(id)) coder.plain_ids.push_back(id);
  }
  return coder;
}

}  // namespace foretoken::bench
