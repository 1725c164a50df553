#include "serve/sglang/sglang_format.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// [log-probability, id, text or null]
ordered_json entry_of(const Logprob& token, bool with_text) {
  return ordered_json::array(
      {token.logprob, token.token_id,
       with_text ? ordered_json(token.decoded_token) : ordered_json(nullptr)});
}

ordered_json top_of(const TokenLogprobs& position, size_t most, bool with_text) {
  ordered_json entries = ordered_json::array();
  for (size_t i = 0; i < std::min(most, position.top.size()); ++i) {
    entries.push_back(entry_of(position.top[i], with_text));
  }
  return entries;
}

ordered_json finish_of(const RequestOutput& choice, const SamplingParams& sampling,
                       int64_t num_output) {
  if (!choice.finished) return nullptr;
  if (choice.finish_reason == FinishReason::kLength) {
    return {{"type", "length"}, {"length", num_output}};
  }
  if (choice.finish_reason == FinishReason::kStop) {
    ordered_json matched = stop_reason(choice, sampling);
    if (matched.is_null() && !choice.token_ids.empty()) matched = choice.token_ids.back();
    return {{"type", "stop"}, {"matched", std::move(matched)}};
  }
  return {{"type", "abort"}, {"message", "the request was ended"}};
}

}  // namespace

SglangFormat::SglangFormat(SglangRequest request, OpenAiLabel label)
    : request_(std::move(request)), label_(std::move(label)) {
  for (const Request& one : request_.text.requests) {
    first_index_.push_back(static_cast<int>(told_.size()));
    told_.resize(told_.size() + static_cast<size_t>(std::max(one.sampling.n, 1)));
  }
  prompt_logprobs_.resize(request_.text.requests.size());
}

int SglangFormat::index_of(size_t request, const RequestOutput& output) const {
  return first_index_[request] + output.index;
}

// The first token told of a prompt has no probability there: it is what the others come behind.
void SglangFormat::add_logprobs(size_t request, const RequestOutput& choice,
                                ordered_json* meta) const {
  const bool with_text = request_.text_in_logprobs;
  const auto most = static_cast<size_t>(request_.num_top_logprobs);
  ordered_json input = ordered_json::array();
  ordered_json input_top = ordered_json::array();
  const std::vector<TokenLogprobs>& prompt = prompt_logprobs_[request];
  const std::vector<int32_t> ids = prompt_ids_of(request_.text.requests[request], choice.stats);
  const int start = request_.logprob_start_len;
  for (auto i = static_cast<size_t>(std::max(start, 0)); start >= 0 && i < ids.size(); ++i) {
    const bool known = i > 0 && i <= prompt.size();
    ordered_json entry = ordered_json::array({nullptr, ids[i], nullptr});
    if (known) entry = entry_of(prompt[i - 1].token, with_text);
    const bool first = input.empty();
    if (first) entry[0] = nullptr;
    input.push_back(std::move(entry));
    input_top.push_back(known && !first ? top_of(prompt[i - 1], most, with_text)
                                        : ordered_json(nullptr));
  }
  ordered_json output = ordered_json::array();
  ordered_json output_top = ordered_json::array();
  for (const TokenLogprobs& position : choice.logprobs) {
    if (request_.no_output) break;
    output.push_back(entry_of(position.token, with_text));
    output_top.push_back(top_of(position, most, with_text));
  }
  (*meta)["input_token_logprobs"] = std::move(input);
  (*meta)["output_token_logprobs"] = std::move(output);
  if (most == 0) return;
  (*meta)["input_top_logprobs"] = std::move(input_top);
  (*meta)["output_top_logprobs"] = std::move(output_top);
}

ordered_json SglangFormat::meta_info(size_t request, const RequestOutput& choice) const {
  const SamplingParams& sampling = request_.text.requests[request].sampling;
  const int64_t num_output = request_.no_output ? 0 : choice.stats.num_output_tokens;
  const std::chrono::duration<double> taken = OutputTimes::Time::clock::now() - label_.submitted;
  std::string id = label_.id;
  if (has_several()) id += "-" + std::to_string(index_of(request, choice));
  ordered_json meta = {{"id", std::move(id)},
                       {"finish_reason", finish_of(choice, sampling, num_output)},
                       {"prompt_tokens", choice.stats.num_prompt_tokens},
                       {"weight_version", "default"},
                       {"completion_tokens", num_output},
                       {"cached_tokens", choice.stats.num_cached_tokens},
                       {"e2e_latency", taken.count()}};
  if (request_.return_logprob) add_logprobs(request, choice, &meta);
  return meta;
}

ordered_json SglangFormat::choice_json(size_t request, const RequestOutput& choice) const {
  const bool told = !request_.no_output;
  return {{"text", told ? choice.text : std::string()},
          {"output_ids", told ? choice.token_ids : std::vector<int32_t>()},
          {"meta_info", meta_info(request, choice)}};
}

std::string SglangFormat::whole(const std::vector<const OutputSum*>& sums) {
  ordered_json all = ordered_json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    prompt_logprobs_[i] = sums[i]->choices().front().prompt_logprobs;
    for (const RequestOutput& choice : sums[i]->choices()) {
      ordered_json answer = choice_json(i, choice);
      put_warnings(request_.text.warnings, &answer);
      all.push_back(std::move(answer));
    }
  }
  return json_text(has_several() ? all : all.front());
}

std::string SglangFormat::error(const ServeError& error) { return json_text(openai_error(error)); }

std::string SglangFormat::events(size_t request, const ChoiceOutput& news) {
  const RequestOutput& output = news.output;
  const int index = index_of(request, output);
  RequestOutput& told = told_.at(static_cast<size_t>(index));
  ChoiceOutput sum;
  sum.output = std::move(told);
  sum.add(output);
  told = std::move(sum.output);
  std::vector<TokenLogprobs>& prompt = prompt_logprobs_[request];
  if (prompt.empty()) prompt = std::move(told.prompt_logprobs);
  told.prompt_logprobs.clear();
  if (output.token_ids.empty() && !output.finished) return {};
  ordered_json answer = choice_json(request, told);
  if (has_several()) answer["index"] = index;
  if (output.finished) put_warnings(request_.text.warnings, &answer);
  return sse_data(answer);
}

std::string SglangFormat::last_events() { return sse_done(); }

std::string SglangFormat::error_events(const ServeError& error) {
  return sse_data(openai_error(error)) + sse_done();
}

}  // namespace foretoken
