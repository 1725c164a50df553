#include "serve/openai/openai_format.h"

#include <optional>
#include <utility>

#include "serve/answer/sse.h"
#include "serve/answer/timings.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/metrics/speculation_metrics.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_logprobs.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

const char* chunk_object(OpenAiKind kind) {
  return kind == OpenAiKind::kChat ? "chat.completion.chunk" : "text_completion";
}

}  // namespace

OpenAiFormat::OpenAiFormat(OpenAiRequest request, PromptTexts prompts, OpenAiLabel label)
    : request_(std::move(request)),
      prompts_(std::move(prompts)),
      label_(std::move(label)),
      usage_(request_.requests) {
  for (const int count : choice_counts(request_)) {
    first_index_.push_back(static_cast<int>(choices_.size()));
    choices_.resize(choices_.size() + static_cast<size_t>(count));
  }
  num_open_ = choices_.size();
  waits_.resize(prompts_.size());
  if (!request_.stream || request_.kind != OpenAiKind::kChat) return;
  for (Choice& choice : choices_) choice.parser = make_choice_parser(request_);
}

std::string OpenAiFormat::whole(const std::vector<const OutputSum*>& sums) {
  return json_text(openai_response(request_, sums, prompts_, label_));
}

std::string OpenAiFormat::error(const ServeError& error) { return json_text(openai_error(error)); }

ordered_json OpenAiFormat::chunk() const {
  ordered_json json = start_openai_body(chunk_object(request_.kind), label_);
  json["choices"] = ordered_json::array();
  return json;
}

void OpenAiFormat::add_usage(ordered_json& json, int64_t num_untold) const {
  UsageCounts counts = usage_.counts();
  counts.output -= num_untold;
  if (request_.prompt_only) counts.output = 0;
  if (splits_reasoning(request_)) {
    counts.reasoning = 0;
    for (const Choice& choice : choices_) {
      *counts.reasoning += choice.reasoning.tokens_of(choice.num_tokens);
    }
  }
  json["usage"] = openai_usage(counts);
}

void OpenAiFormat::add_timings(ordered_json& json, const ChoiceOutput& news) {
  if (!request_.timings || choices_.size() != 1) return;
  if (!times_.first) times_.first = news.times.first;
  if (news.times.last) times_.last = news.times.last;
  json["timings"] = timings_json(news.output.stats, times_, label_.submitted);
}

ordered_json OpenAiFormat::bare_chunk(int index, ordered_json delta) const {
  ordered_json json = chunk();
  ordered_json choice = {{"index", index},
                         {"delta", std::move(delta)},
                         {"logprobs", nullptr},
                         {"finish_reason", nullptr}};
  json["choices"].push_back(std::move(choice));
  return json;
}

std::string OpenAiFormat::role_chunk(size_t request, int index, const RequestOutput& first) const {
  const Request& asked = request_.requests[request];
  ordered_json json = bare_chunk(index, {{"role", "assistant"}, {"content", ""}});
  if (asked.sampling.prompt_logprobs && first.index == 0) {
    json["prompt_logprobs"] = prompt_logprobs(first.prompt_logprobs);
  }
  if (request_.return_token_ids) json["prompt_token_ids"] = prompt_ids_of(asked, first.stats);
  if (request_.continuous_usage) add_usage(json, first.stats.num_output_tokens);
  return sse_data(json);
}

std::string OpenAiFormat::echo_chunk(int index, const RequestOutput& first) const {
  if (request_.echoed.empty()) return {};
  ordered_json json = bare_chunk(index, {{"content", request_.echoed}});
  if (request_.continuous_usage) add_usage(json, first.stats.num_output_tokens);
  return sse_data(json);
}

void OpenAiFormat::add_tokens(ordered_json& json, const ChoiceOutput& news) const {
  if (request_.return_token_ids) json["token_ids"] = told_token_ids(request_, news.output);
  if (request_.return_token_origins && !request_.prompt_only) {
    json["token_origins"] = token_origins(news.output.text, news.origins);
  }
}

ordered_json OpenAiFormat::delta_json(const ChatDelta& delta) const {
  ordered_json told = chat_delta(request_, delta);
  if (!names_pieces_ || !told.contains("tool_calls")) return told;
  for (ordered_json& call : told["tool_calls"]) {
    ordered_json& function = call["function"];
    if (!function.contains("name")) function["name"] = "";
  }
  return told;
}

// Null where nothing is to be told yet.
ordered_json OpenAiFormat::chat_choice(Choice& choice, int index, const ChoiceOutput& news,
                                       std::string* earlier) const {
  const RequestOutput& output = news.output;
  const SamplingParams& sampling = request_.requests.front().sampling;
  ChatDelta delta;
  std::vector<ChatPiece> pieces = choice.parser->push(output.text);
  if (output.finished) {
    for (ChatPiece& piece : choice.parser->finish()) pieces.push_back(std::move(piece));
  }
  add_pieces(pieces, &delta);
  choice.reasoning.add(pieces);
  const std::vector<ChatDelta> turns = deltas_in_turn(delta);
  for (size_t i = 0; i + 1 < turns.size(); ++i) {
    ordered_json before = delta_json(turns[i]);
    if (before.empty()) continue;
    ordered_json json = bare_chunk(index, std::move(before));
    if (request_.continuous_usage) add_usage(json);
    *earlier += sse_data(json);
  }
  ordered_json told = delta_json(turns.back());
  const bool has_tokens = sampling.logprobs || request_.return_token_ids ||
                          request_.return_token_origins || request_.continuous_usage;
  if (told.empty() && !has_tokens && !output.finished) return nullptr;
  ordered_json json = {{"index", output.index}, {"delta", std::move(told)}, {"logprobs", nullptr}};
  if (sampling.logprobs) {
    json["logprobs"] = request_.tokens_as_token_ids ? chat_logprobs(named_by_id(output.logprobs))
                                                    : chat_logprobs(output.logprobs);
  }
  json["finish_reason"] = finish_reason(request_, output, choice.parser->num_tool_calls());
  if (output.finished) json["stop_reason"] = stop_reason(output, sampling);
  add_tokens(json, news);
  return json;
}

ordered_json OpenAiFormat::completion_choice(Choice& choice, size_t request,
                                             const ChoiceOutput& news) const {
  const Request& asked = request_.requests[request];
  const bool is_first = !choice.begun;
  std::optional<EchoedPrompt> echoed;
  if (is_first && request < prompts_.size()) {
    echoed = {prompts_[request], waits_[request].prompt_tokens};
  }
  ordered_json json = {{"index", first_index_[request] + news.output.index}};
  json.update(completion_part(request_, asked, news.output, echoed, choice.num_characters));
  json["finish_reason"] = finish_reason(request_, news.output, 0);
  json["stop_reason"] = stop_reason(news.output, asked.sampling);
  if (is_first && news.output.index == 0 && asked.sampling.prompt_logprobs) {
    json["prompt_logprobs"] = prompt_logprobs(news.output.prompt_logprobs);
  }
  if (is_first && request_.return_token_ids) {
    json["prompt_token_ids"] = prompt_ids_of(asked, news.output.stats);
  }
  add_tokens(json, news);
  return json;
}

std::string OpenAiFormat::events(size_t request, const ChoiceOutput& news) {
  if (request >= waits_.size()) return choice_events(request, news);
  EchoWait& wait = waits_[request];
  if (wait.over) return choice_events(request, news);
  if (news.output.index != 0) {
    wait.others.push_back(news);
    return {};
  }
  wait.over = true;
  wait.prompt_tokens = news.output.prompt_logprobs;
  std::string events = choice_events(request, news);
  for (const ChoiceOutput& other : std::exchange(wait.others, {})) {
    events += choice_events(request, other);
  }
  return events;
}

std::string OpenAiFormat::choice_events(size_t request, const ChoiceOutput& news) {
  const int index = first_index_[request] + news.output.index;
  Choice& choice = choices_.at(static_cast<size_t>(index));
  usage_.note(request, news.output.index, news.output.stats);
  choice.num_tokens = news.output.stats.num_output_tokens;
  last_stats_ = news.output.stats;
  std::string events;
  if (request_.kind == OpenAiKind::kChat && !choice.begun) {
    events = role_chunk(request, index, news.output) + echo_chunk(index, news.output);
  }
  ordered_json told = request_.kind == OpenAiKind::kChat ? chat_choice(choice, index, news, &events)
                                                         : completion_choice(choice, request, news);
  choice.begun = true;
  if (news.output.finished) --num_open_;
  if (told.is_null()) return events;
  ordered_json json = chunk();
  json["choices"].push_back(std::move(told));
  if (request_.continuous_usage) add_usage(json);
  add_timings(json, news);
  if (num_open_ == 0 && !has_sums()) put_warnings(request_.warnings, &json);
  return events + sse_data(json);
}

std::string OpenAiFormat::last_events() {
  std::string events;
  if (has_sums()) {
    ordered_json json = chunk();
    if (request_.include_usage) add_usage(json);
    if (label_.num_spec_tokens > 0) {
      ordered_json metrics = nullptr;
      if (choices_.size() == 1) metrics = speculation_metrics(last_stats_, label_.num_spec_tokens);
      json["metrics"] = {{"speculative_decoding", std::move(metrics)}};
    }
    put_warnings(request_.warnings, &json);
    events = sse_data(json);
  }
  return events + sse_done();
}

std::string OpenAiFormat::error_events(const ServeError& error) {
  return sse_data(openai_error(error)) + sse_done();
}

}  // namespace foretoken
