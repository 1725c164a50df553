#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/vocabulary/file_vocabulary.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// RWKV's World vocabulary: tokens are bytes, and of a text the longest one that it goes on with is
// taken each time (text/longest_tokens.h).
inline constexpr const char* kWorldVocabulary = "rwkv_vocab_v20230424.txt";
inline constexpr const char* kWorldEnd = "<|rwkv_tokenizer_end_of_text|>";
// A template of chats, of which GGUF files have the name "rwkv-world" alone.
inline constexpr const char* kWorldTemplate =
    R"({% for message in messages %}{% if message['role'] == 'system' %}{{ 'System: ' + message['content'] | trim + '\n\n' }}{% elif message['role'] == 'user' %}{{ 'User: ' + message['content'] | trim + '\n\n' }}{% else %}{{ 'Assistant: ' + message['content'] | trim + '\n\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %})";

// Tokens by id.
using WorldTokens = std::map<int64_t, std::string>;

// Of such a file, whose lines have an id, a string or bytes as Python writes them, and how many
// bytes these are. InvalidArgument names the line that is none.
Result<WorldTokens> parse_world_file(std::string_view text, const std::string& where);
// Of a GGUF file, which has what stands between quotes; those that are special or unused left out.
// InvalidArgument names a token that is none.
Result<WorldTokens> gguf_world_tokens(const GgufVocabulary& vocabulary, const std::string& where);

// The tokenizer.json of such a vocabulary, with the end of a text as token 0.
MadeTokenizer world_tokenizer(const WorldTokens& tokens, const std::string& end,
                              const TokenizerSettings& settings);

}  // namespace foretoken
