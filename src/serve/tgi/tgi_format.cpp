#include "serve/tgi/tgi_format.h"

#include <algorithm>
#include <utility>

#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

const char* error_type(int http) {
  if (http == 429 || http == 503) return "overloaded";
  return http < 500 ? "validation" : "generation";
}

const char* finish_of(const RequestOutput& output, const SamplingParams& sampling) {
  if (output.finish_reason == FinishReason::kLength) return "length";
  if (output.finish_reason != FinishReason::kStop) return "abort";
  return stop_reason(output, sampling).is_string() ? "stop_sequence" : "eos_token";
}

ordered_json token_json(const Logprob& token, const std::string& text, bool special) {
  return {{"id", token.token_id}, {"text", text}, {"logprob", token.logprob}, {"special", special}};
}

ordered_json token_json(const TokenText& token) {
  return token_json(token.position.token, token.text, token.special);
}

// The tokens that `texts` gives for `output`, before them one for text that none has.
std::vector<TokenText> tokens_of(TokenTexts* texts, const RequestOutput& output) {
  std::vector<TokenText> tokens = texts->take(output);
  const std::string& rest = texts->trailing_text();
  // The end has an event, with or without a token.
  const bool wants_end = output.finished && tokens.empty();
  if (wants_end || (output.finished && !rest.empty())) {
    TokenText bare;
    bare.position.token.token_id = 0;
    bare.text = rest;
    bare.special = rest.empty();
    tokens.insert(tokens.begin(), std::move(bare));
  }
  return tokens;
}

ordered_json seed_of(const SamplingParams& sampling) {
  if (sampling.temperature == 0 || !sampling.seed) return nullptr;
  return *sampling.seed;
}

}  // namespace

ordered_json tgi_error(const ServeError& error) {
  return {{"error", error.status.message()}, {"error_type", error_type(error.http)}};
}

TgiFormat::TgiFormat(TgiRequest request, bool as_list, IsSpecialToken is_special)
    : request_(std::move(request)),
      as_list_(as_list),
      is_special_(std::move(is_special)),
      texts_(token_texts()) {}

TokenTexts TgiFormat::token_texts() const {
  return {is_special_, !request_.text.requests.front().sampling.skip_special_tokens};
}

ordered_json TgiFormat::top_of(const TokenLogprobs& position) const {
  ordered_json top = ordered_json::array();
  const auto most = static_cast<size_t>(request_.num_top_tokens);
  for (size_t i = 0; i < std::min(most, position.top.size()); ++i) {
    const Logprob& token = position.top[i];
    top.push_back(token_json(token, token.decoded_token, is_special_(token.token_id)));
  }
  return top;
}

ordered_json TgiFormat::details_of(const RequestOutput& output) const {
  const SamplingParams& sampling = request_.text.requests.front().sampling;
  return {{"finish_reason", finish_of(output, sampling)},
          {"generated_tokens", output.stats.num_output_tokens},
          {"seed", seed_of(sampling)},
          {"input_length", output.stats.num_prompt_tokens}};
}

std::string TgiFormat::whole_text(const std::string& text) const {
  return request_.full_text ? request_.prompt + text : text;
}

std::string TgiFormat::whole(const std::vector<const OutputSum*>& sums) {
  const RequestOutput& output = sums.front()->choices().front();
  ordered_json answer = {{"generated_text", whole_text(output.text)}};
  if (request_.details) {
    ordered_json details = details_of(output);
    details.erase("input_length");
    details["prefill"] = ordered_json::array();
    for (const TokenLogprobs& position : output.prompt_logprobs) {
      const Logprob& token = position.token;
      details["prefill"].push_back(
          {{"id", token.token_id}, {"text", token.decoded_token}, {"logprob", token.logprob}});
    }
    details["tokens"] = ordered_json::array();
    TokenTexts texts = token_texts();
    if (!output.logprobs.empty() || !output.text.empty()) {
      for (const TokenText& token : tokens_of(&texts, output)) {
        details["tokens"].push_back(token_json(token));
      }
    }
    if (request_.num_top_tokens > 0) {
      details["top_tokens"] = ordered_json::array();
      for (const TokenLogprobs& position : output.logprobs) {
        details["top_tokens"].push_back(top_of(position));
      }
    }
    answer["details"] = std::move(details);
  }
  put_warnings(request_.text.warnings, &answer);
  return json_text(as_list_ ? ordered_json::array({std::move(answer)}) : answer);
}

std::string TgiFormat::error(const ServeError& error) { return json_text(tgi_error(error)); }

std::string TgiFormat::events(size_t, const ChoiceOutput& news) {
  const RequestOutput& output = news.output;
  told_ += output.text;
  std::vector<TokenText> tokens = tokens_of(&texts_, output);
  std::string events;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenLogprobs& position = tokens[i].position;
    ordered_json event = {{"index", ++num_events_}, {"token", token_json(tokens[i])}};
    if (request_.num_top_tokens > 0 && !position.top.empty())
      event["top_tokens"] = top_of(position);
    const bool last = output.finished && i + 1 == tokens.size();
    event["generated_text"] = last ? ordered_json(whole_text(told_)) : ordered_json(nullptr);
    event["details"] = last ? details_of(output) : ordered_json(nullptr);
    if (last) put_warnings(request_.text.warnings, &event);
    events += sse_data(event);
  }
  return events;
}

std::string TgiFormat::last_events() { return {}; }

std::string TgiFormat::error_events(const ServeError& error) { return sse_data(tgi_error(error)); }

}  // namespace foretoken
