#include "serve/openai/openai_response.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "serve/answer/timings.h"
#include "serve/answer/usage.h"
#include "serve/fields/request_warnings.h"
#include "serve/metrics/speculation_metrics.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_logprobs.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

void add_choice_end(ordered_json& object, const OpenAiRequest& request, const Request& asked,
                    const OutputSum& sum, const RequestOutput& choice, int num_calls) {
  object["finish_reason"] = finish_reason(request, choice, num_calls);
  object["stop_reason"] = stop_reason(choice, asked.sampling);
  object["token_ids"] = nullptr;
  if (request.return_token_ids) object["token_ids"] = told_token_ids(request, choice);
  if (request.return_token_origins && !request.prompt_only) {
    const auto index = static_cast<size_t>(choice.index);
    object["token_origins"] = token_origins(choice.text, sum.origins(index));
  }
}

// `*num_reasoning` is raised by the tokens of its reasoning.
ordered_json chat_choice(const OpenAiRequest& request, const OutputSum& sum,
                         const RequestOutput& choice, int64_t* num_reasoning) {
  const Request& asked = request.requests.front();
  int num_calls = 0;
  ReasoningShare share;
  ordered_json object = {{"index", choice.index}};
  object["message"] = chat_message(request, choice.text, &num_calls, &share);
  if (!request.echoed.empty()) {
    ordered_json& content = object["message"]["content"];
    content = request.echoed + (content.is_string() ? content.get<std::string>() : std::string());
  }
  *num_reasoning += share.tokens_of(choice.stats.num_output_tokens);
  object["logprobs"] = nullptr;
  if (asked.sampling.logprobs) {
    object["logprobs"] = request.tokens_as_token_ids ? chat_logprobs(named_by_id(choice.logprobs))
                                                     : chat_logprobs(choice.logprobs);
  }
  add_choice_end(object, request, asked, sum, choice, num_calls);
  return object;
}

ordered_json completion_choice(const OpenAiRequest& request, const Request& asked,
                               const OutputSum& sum, const RequestOutput& choice,
                               const std::string& prompt) {
  int64_t offset = 0;
  const std::vector<TokenLogprobs>& prompt_tokens = sum.choices().front().prompt_logprobs;
  std::optional<EchoedPrompt> echoed;
  if (request.echo) echoed = {prompt, prompt_tokens};
  ordered_json object = completion_part(request, asked, choice, echoed, offset);
  add_choice_end(object, request, asked, sum, choice, 0);
  object["prompt_token_ids"] = nullptr;
  if (request.return_token_ids) object["prompt_token_ids"] = prompt_ids_of(asked, choice.stats);
  object["prompt_logprobs"] = nullptr;
  if (asked.sampling.prompt_logprobs) {
    object["prompt_logprobs"] = prompt_logprobs(prompt_tokens);
  }
  return object;
}

UsageCounts counts_of(const OpenAiRequest& request, const std::vector<const OutputSum*>& sums) {
  UsageCounts all;
  for (size_t i = 0; i < sums.size(); ++i) {
    std::vector<RequestStats> stats;
    for (const RequestOutput& choice : sums[i]->choices()) stats.push_back(choice.stats);
    all += usage_counts(stats, request.requests[i].has_prediction());
  }
  return all;
}

void add_metrics(ordered_json& body, const std::vector<const OutputSum*>& sums,
                 const OpenAiLabel& label) {
  if (label.num_spec_tokens == 0) return;
  ordered_json metrics = nullptr;
  if (sums.size() == 1 && sums.front()->choices().size() == 1) {
    metrics = speculation_metrics(sums.front()->choices().front().stats, label.num_spec_tokens);
  }
  body["metrics"] = {{"speculative_decoding", std::move(metrics)}};
}

// Of one choice alone, as llama.cpp has it.
void add_timings(ordered_json& body, const OpenAiRequest& request,
                 const std::vector<const OutputSum*>& sums, const OpenAiLabel& label) {
  if (!request.timings || sums.size() != 1 || sums.front()->choices().size() != 1) return;
  body["timings"] =
      timings_json(sums.front()->choices().front().stats, sums.front()->times(0), label.submitted);
}

// Of a batch, what there is once for each prompt is left out, as in vLLM.
ordered_json chat_response(const OpenAiRequest& request, const std::vector<const OutputSum*>& sums,
                           const OpenAiLabel& label) {
  const Request& asked = request.requests.front();
  const RequestOutput& first = sums.front()->choices().front();
  const bool alone = sums.size() == 1;
  ordered_json body = start_openai_body("chat.completion", label);
  body["choices"] = ordered_json::array();
  int64_t num_reasoning = 0;
  for (const OutputSum* sum : sums) {
    for (const RequestOutput& choice : sum->choices()) {
      ordered_json object = chat_choice(request, *sum, choice, &num_reasoning);
      object["index"] = body["choices"].size();
      body["choices"].push_back(std::move(object));
    }
  }
  UsageCounts counts = counts_of(request, sums);
  if (splits_reasoning(request)) counts.reasoning = num_reasoning;
  body["usage"] = openai_usage(counts);
  body["prompt_logprobs"] = alone && asked.sampling.prompt_logprobs
                                ? prompt_logprobs(first.prompt_logprobs)
                                : ordered_json(nullptr);
  body["prompt_token_ids"] = nullptr;
  if (request.return_token_ids && alone) {
    body["prompt_token_ids"] = prompt_ids_of(asked, first.stats);
  }
  add_metrics(body, sums, label);
  add_timings(body, request, sums, label);
  put_warnings(request.warnings, &body);
  return body;
}

ordered_json completion_response(const OpenAiRequest& request,
                                 const std::vector<const OutputSum*>& sums,
                                 const PromptTexts& prompts, const OpenAiLabel& label) {
  ordered_json body = start_openai_body("text_completion", label);
  body["choices"] = ordered_json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string prompt = i < prompts.size() ? prompts[i] : std::string();
    for (const RequestOutput& choice : sums[i]->choices()) {
      ordered_json object = {{"index", body["choices"].size()}};
      object.update(completion_choice(request, request.requests[i], *sums[i], choice, prompt));
      body["choices"].push_back(std::move(object));
    }
  }
  UsageCounts counts = counts_of(request, sums);
  if (request.prompt_only) counts.output = 0;
  body["usage"] = openai_usage(counts);
  add_metrics(body, sums, label);
  add_timings(body, request, sums, label);
  put_warnings(request.warnings, &body);
  return body;
}

ordered_json embedding_response(const OpenAiRequest& request,
                                const std::vector<const OutputSum*>& sums,
                                const OpenAiLabel& label) {
  ordered_json body = start_openai_body("list", label);
  body["data"] = ordered_json::array();
  for (const OutputSum* sum : sums) {
    body["data"].push_back(
        {{"index", body["data"].size()},
         {"object", "embedding"},
         {"embedding", embedding_value(request, sum->choices().front().embedding)}});
  }
  const int64_t num_prompt = counts_of(request, sums).prompt;
  body["usage"] = {{"prompt_tokens", num_prompt}, {"total_tokens", num_prompt}};
  put_warnings(request.warnings, &body);
  return body;
}

}  // namespace

ordered_json embedding_value(const OpenAiRequest& request, std::vector<float> values) {
  const auto wanted = static_cast<size_t>(request.dimensions);
  if (wanted > 0 && wanted < values.size()) {
    values.resize(wanted);
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    const double length = std::sqrt(squares);
    if (request.requests.front().normalize && length > 0) {
      for (float& value : values) value = static_cast<float>(value / length);
    }
  }
  return vector_json(values, request.vectors);
}

ordered_json start_openai_body(const char* object, const OpenAiLabel& label) {
  ordered_json body = {
      {"id", label.id}, {"object", object}, {"created", label.created}, {"model", label.model}};
  if (label.synthetic_acceptance) body["system_fingerprint"] = "synthetic-acceptance";
  return body;
}

std::vector<int32_t> prompt_ids_of(const Request& request, const RequestStats& stats) {
  const std::vector<int32_t>& ids = request.prompt_token_ids;
  const auto kept = std::min(ids.size(), static_cast<size_t>(stats.num_prompt_tokens));
  const auto count = static_cast<std::ptrdiff_t>(kept);
  if (request.truncation_side == TruncationSide::kRight) return {ids.begin(), ids.begin() + count};
  return {ids.end() - count, ids.end()};
}

ordered_json openai_response(const OpenAiRequest& request,
                             const std::vector<const OutputSum*>& sums, const PromptTexts& prompts,
                             const OpenAiLabel& label) {
  switch (request.kind) {
    case OpenAiKind::kChat:
      return chat_response(request, sums, label);
    case OpenAiKind::kCompletion:
      return completion_response(request, sums, prompts, label);
    default:
      return embedding_response(request, sums, label);
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
