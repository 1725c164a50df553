#include "serve/openai_response.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "serve/openai_logprobs.h"
#include "serve/speculation_metrics.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

ordered_json stop_reason(const RequestOutput& choice, const SamplingParams& sampling) {
  const std::string& reason = choice.stop_reason;
  if (reason.empty()) return nullptr;
  const bool text =
      std::find(sampling.stop.begin(), sampling.stop.end(), reason) != sampling.stop.end();
  const bool digits = reason.find_first_not_of("0123456789") == std::string::npos;
  if (text || !digits || reason.size() > 9) return reason;
  return std::stoi(reason);
}

void add_choice_end(ordered_json& json, const OpenAiRequest& request, const Request& asked,
                    const RequestOutput& choice) {
  const bool prompt_only = request.prompt_only;
  json["finish_reason"] = prompt_only ? "length" : finish_reason_name(choice.finish_reason);
  json["stop_reason"] = stop_reason(choice, asked.sampling);
  if (request.return_token_ids) json["token_ids"] = choice.token_ids;
}

ordered_json chat_choice(const OpenAiRequest& request, const Request& asked,
                         const RequestOutput& choice, int index) {
  ordered_json json = {{"index", index}};
  json["message"] = {{"role", "assistant"},
                     {"content", choice.text},
                     {"refusal", nullptr},
                     {"tool_calls", ordered_json::array()}};
  json["logprobs"] =
      asked.sampling.logprobs ? chat_logprobs(choice.logprobs) : ordered_json(nullptr);
  add_choice_end(json, request, asked, choice);
  return json;
}

// The text of the prompt's first token: what the decoded others leave of the prompt.
std::string first_token(const std::string& prompt, std::span<const TokenLogprobs> others) {
  size_t length = 0;
  for (const TokenLogprobs& position : others) length += position.token.decoded_token.size();
  return length < prompt.size() ? prompt.substr(0, prompt.size() - length) : std::string();
}

ordered_json completion_choice(const OpenAiRequest& request, const Request& asked,
                               const RequestOutput& choice, const std::string& prompt) {
  const std::string text = request.prompt_only ? "" : choice.text;
  ordered_json json;
  json["text"] = request.echo ? prompt + text : text;
  json["logprobs"] = nullptr;
  if (asked.sampling.logprobs) {
    std::vector<TokenLogprobs> positions;
    if (request.echo) positions = choice.prompt_logprobs;
    if (!request.prompt_only) {
      positions.insert(positions.end(), choice.logprobs.begin(), choice.logprobs.end());
    }
    const std::string first = first_token(prompt, choice.prompt_logprobs);
    json["logprobs"] = completion_logprobs(positions, request.echo ? &first : nullptr);
  }
  add_choice_end(json, request, asked, choice);
  if (asked.sampling.prompt_logprobs) {
    json["prompt_logprobs"] = prompt_logprobs(choice.prompt_logprobs);
  }
  return json;
}

std::string base64_of(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) text += k > count ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

ordered_json usage_of(const std::vector<const OutputSum*>& sums, bool with_completion,
                      bool prompt_only) {
  int64_t num_prompt = 0;
  int64_t num_output = 0;
  int64_t num_cached = 0;
  for (const OutputSum* sum : sums) {
    const RequestStats stats = sum->stats();
    num_prompt += stats.num_prompt_tokens;
    num_cached += stats.num_cached_tokens;
    num_output += prompt_only ? 0 : stats.num_output_tokens;
  }
  if (!with_completion) return {{"prompt_tokens", num_prompt}, {"total_tokens", num_prompt}};
  return {{"prompt_tokens", num_prompt},
          {"total_tokens", num_prompt + num_output},
          {"completion_tokens", num_output},
          {"prompt_tokens_details", {{"cached_tokens", num_cached}}}};
}

ordered_json start_body(const char* object, const OpenAiLabel& label) {
  ordered_json body = {
      {"id", label.id}, {"object", object}, {"created", label.created}, {"model", label.model}};
  if (label.synthetic_acceptance) body["system_fingerprint"] = "synthetic-acceptance";
  return body;
}

void add_metrics(ordered_json& body, const std::vector<const OutputSum*>& sums,
                 const OpenAiLabel& label) {
  if (label.num_spec_tokens == 0) return;
  ordered_json metrics = nullptr;
  if (sums.size() == 1 && sums.front()->choices().size() == 1) {
    metrics = speculation_metrics(sums.front()->stats(), label.num_spec_tokens);
  }
  body["metrics"] = {{"speculative_decoding", std::move(metrics)}};
}

ordered_json chat_response(const OpenAiRequest& request, const OutputSum& sum,
                           const OpenAiLabel& label) {
  const Request& asked = request.requests.front();
  ordered_json body = start_body("chat.completion", label);
  body["choices"] = ordered_json::array();
  for (const RequestOutput& choice : sum.choices()) {
    body["choices"].push_back(chat_choice(request, asked, choice, choice.index));
  }
  body["usage"] = usage_of({&sum}, true, false);
  body["prompt_logprobs"] = asked.sampling.prompt_logprobs
                                ? prompt_logprobs(sum.choices().front().prompt_logprobs)
                                : ordered_json(nullptr);
  add_metrics(body, {&sum}, label);
  return body;
}

ordered_json completion_response(const OpenAiRequest& request,
                                 const std::vector<const OutputSum*>& sums,
                                 const PromptTexts& prompts, const OpenAiLabel& label) {
  ordered_json body = start_body("text_completion", label);
  body["choices"] = ordered_json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string prompt = i < prompts.size() ? prompts[i] : std::string();
    for (const RequestOutput& choice : sums[i]->choices()) {
      ordered_json json = {{"index", body["choices"].size()}};
      json.update(completion_choice(request, request.requests[i], choice, prompt));
      body["choices"].push_back(std::move(json));
    }
  }
  body["usage"] = usage_of(sums, true, request.prompt_only);
  add_metrics(body, sums, label);
  return body;
}

ordered_json embedding_response(const OpenAiRequest& request,
                                const std::vector<const OutputSum*>& sums,
                                const OpenAiLabel& label) {
  ordered_json body = start_body("list", label);
  body["data"] = ordered_json::array();
  for (const OutputSum* sum : sums) {
    const std::vector<float>& values = sum->choices().front().embedding;
    body["data"].push_back(
        {{"index", body["data"].size()},
         {"object", "embedding"},
         {"embedding", request.base64 ? ordered_json(base64_of(values)) : ordered_json(values)}});
  }
  body["usage"] = usage_of(sums, false, false);
  return body;
}

const char* error_type(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return "BadRequestError";
    case StatusCode::kNotFound:
      return "NotFoundError";
    case StatusCode::kUnsupported:
      return "NotImplementedError";
    case StatusCode::kResourceExhausted:
      return "ServiceUnavailableError";
    case StatusCode::kAborted:
      return "RequestAborted";
    default:
      return "InternalServerError";
  }
}

// The field that a message names first, as in "'top_p' must ...".
ordered_json param_of(const std::string& message) {
  if (message.empty() || message.front() != '\'') return nullptr;
  const size_t end = message.find('\'', 1);
  return end == std::string::npos ? ordered_json(nullptr)
                                  : ordered_json(message.substr(1, end - 1));
}

}  // namespace

ordered_json openai_response(const OpenAiRequest& request,
                             const std::vector<const OutputSum*>& sums, const PromptTexts& prompts,
                             const OpenAiLabel& label) {
  switch (request.kind) {
    case OpenAiKind::kChat:
      return chat_response(request, *sums.front(), label);
    case OpenAiKind::kCompletion:
      return completion_response(request, sums, prompts, label);
    default:
      return embedding_response(request, sums, label);
  }
}

ordered_json openai_error(const Status& status) {
  ordered_json error;
  error["error"] = {{"message", status.message()},
                    {"type", error_type(status.code())},
                    {"param", param_of(status.message())},
                    {"code", http_status(status)}};
  return error;
}

int http_status(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kResourceExhausted:
      return 503;
    case StatusCode::kAborted:
      return 499;
    default:
      return 500;
  }
}

std::string make_openai_id(const std::string& prefix) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  constexpr const char* kHex = "0123456789abcdef";
  std::string id = prefix + "-";
  for (int word = 0; word < 2; ++word) {
    const uint64_t bits = generator();
    for (int k = 0; k < 16; ++k) id += kHex[bits >> (4 * k) & 15];
  }
  return id;
}

}  // namespace foretoken
