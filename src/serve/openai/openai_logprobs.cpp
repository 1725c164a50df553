#include "serve/openai/openai_logprobs.h"

#include <cmath>

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity; vLLM clips so, too.
double finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

ordered_json bytes_of(const std::string& text) {
  ordered_json bytes = ordered_json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

ordered_json chat_token(const Logprob& token) {
  return {{"token", token.decoded_token},
          {"bytes", bytes_of(token_bytes(token))},
          {"logprob", finite(token.logprob)}};
}

// Parts of characters that differ have different names.
std::string name_of(const Logprob& token) {
  if (token.bytes.empty()) return token.decoded_token;
  constexpr const char* kHex = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char c : token.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128) {
      name += c;
    } else {
      name += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return name;
}

ordered_json top_of(const TokenLogprobs& position) {
  ordered_json top = ordered_json::object();
  for (const Logprob& other : position.top) top[name_of(other)] = finite(other.logprob);
  top.emplace(name_of(position.token), finite(position.token.logprob));
  return top;
}

}  // namespace

const std::string& token_bytes(const Logprob& token) {
  return token.bytes.empty() ? token.decoded_token : token.bytes;
}

int64_t num_characters(const std::string& text) {
  int64_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

ordered_json chat_logprobs(std::span<const TokenLogprobs> tokens) {
  ordered_json content = ordered_json::array();
  for (const TokenLogprobs& position : tokens) {
    ordered_json entry = chat_token(position.token);
    entry["top_logprobs"] = ordered_json::array();
    for (const Logprob& other : position.top) entry["top_logprobs"].push_back(chat_token(other));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

ordered_json completion_logprobs(std::span<const TokenLogprobs> tokens, const std::string* echoed,
                                 int64_t& offset) {
  ordered_json all = {{"text_offset", ordered_json::array()},
                      {"token_logprobs", ordered_json::array()},
                      {"tokens", ordered_json::array()},
                      {"top_logprobs", ordered_json::array()}};
  const auto add = [&](const std::string& name, const std::string& bytes, ordered_json logprob,
                       ordered_json top) {
    all["text_offset"].push_back(offset);
    all["token_logprobs"].push_back(std::move(logprob));
    all["tokens"].push_back(name);
    all["top_logprobs"].push_back(std::move(top));
    offset += num_characters(bytes);
  };
  if (echoed != nullptr) add(*echoed, *echoed, nullptr, nullptr);
  for (const TokenLogprobs& position : tokens) {
    add(name_of(position.token), token_bytes(position.token), finite(position.token.logprob),
        top_of(position));
  }
  return all;
}

ordered_json prompt_logprobs(std::span<const TokenLogprobs> tokens) {
  ordered_json all = ordered_json::array({nullptr});
  for (const TokenLogprobs& position : tokens) {
    ordered_json entry = ordered_json::object();
    const auto add = [&](const Logprob& token) {
      entry[std::to_string(token.token_id)] = {{"logprob", finite(token.logprob)},
                                               {"rank", token.rank},
                                               {"decoded_token", token.decoded_token}};
    };
    add(position.token);
    for (const Logprob& other : position.top) add(other);
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace foretoken
