#include "serve/llamacpp/llama_format.h"

#include <algorithm>
#include <cmath>

#include "serve/answer/sse.h"
#include "serve/answer/timings.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_logprobs.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// "prob" for "logprob".
void tell_probability(ordered_json* token) {
  const double logprob = token->at("logprob");
  token->erase("logprob");
  (*token)["prob"] = std::exp(logprob);
}

// Tokens as above with probabilities, and "top_probs" of those that can be drawn.
void tell_probabilities(ordered_json* content) {
  for (ordered_json& token : *content) {
    ordered_json top = ordered_json::array();
    for (ordered_json& other : token["top_logprobs"]) {
      tell_probability(&other);
      if (other["prob"] > 0) top.push_back(std::move(other));
    }
    token.erase("top_logprobs");
    tell_probability(&token);
    token["top_probs"] = std::move(top);
  }
}

// {"id", "token", "bytes", "logprob"} of each token, with "top_logprobs".
ordered_json probabilities(const std::vector<TokenLogprobs>& positions, bool post_sampling) {
  ordered_json content = chat_logprobs(positions)["content"];
  for (size_t i = 0; i < positions.size(); ++i) {
    ordered_json named = {{"id", positions[i].token.token_id}};
    named.update(content[i]);
    ordered_json& top = named["top_logprobs"];
    for (size_t k = 0; k < top.size(); ++k) {
      ordered_json other = {{"id", positions[i].top[k].token_id}};
      other.update(top[k]);
      top[k] = std::move(other);
    }
    content[i] = std::move(named);
  }
  if (post_sampling) tell_probabilities(&content);
  return content;
}

bool is_stop_text(const RequestOutput& choice, const SamplingParams& sampling) {
  const std::vector<std::string>& stop = sampling.stop;
  return choice.finish_reason == FinishReason::kStop &&
         std::find(stop.begin(), stop.end(), choice.stop_reason) != stop.end();
}

const char* stop_type(const RequestOutput& choice, const SamplingParams& sampling) {
  if (choice.finish_reason == FinishReason::kLength) return "limit";
  if (choice.finish_reason != FinishReason::kStop) return "none";
  return is_stop_text(choice, sampling) ? "word" : "eos";
}

bool has_new_line(const std::string& text) { return text.find('\n') != std::string::npos; }

}  // namespace

LlamaFormat::LlamaFormat(LlamaRequest request, PromptTexts prompts, OpenAiLabel label)
    : request_(std::move(request)), prompts_(std::move(prompts)), label_(std::move(label)) {
  for (const Request& one : request_.text.requests) {
    first_index_.push_back(static_cast<int>(told_.size()));
    told_.resize(told_.size() + static_cast<size_t>(std::max(one.sampling.n, 1)));
  }
}

int LlamaFormat::index_of(size_t request, const RequestOutput& output) const {
  return first_index_[request] + output.index;
}

ordered_json LlamaFormat::final_json(size_t request, const RequestOutput& choice,
                                     const End& end) const {
  const Request& asked = request_.text.requests[request];
  const SamplingParams& sampling = asked.sampling;
  RequestStats stats = choice.stats;
  if (request_.no_output) stats.num_output_tokens = 0;
  const int index = index_of(request, choice);
  const bool word = is_stop_text(choice, sampling);
  const auto num_ids = static_cast<int64_t>(asked.prompt_token_ids.size());
  ordered_json json = {{"index", index},
                       {"content", end.content},
                       {"tokens", end.tokens},
                       {"id_slot", index},
                       {"stop", true},
                       {"model", label_.model},
                       {"tokens_predicted", stats.num_output_tokens},
                       {"tokens_evaluated", stats.num_prompt_tokens},
                       {"generation_settings", llama_settings(sampling, request_.text.stream)},
                       {"prompt", request < prompts_.size() ? prompts_[request] : std::string()},
                       {"has_new_line", end.has_new_line},
                       {"truncated", num_ids > stats.num_prompt_tokens},
                       {"stop_type", stop_type(choice, sampling)},
                       {"stopping_word", word ? choice.stop_reason : std::string()},
                       {"tokens_cached", stats.num_cached_tokens},
                       {"timings", timings_json(stats, end.times, label_.submitted)}};
  put_warnings(request_.text.warnings, &json);
  return json;
}

std::string LlamaFormat::whole(const std::vector<const OutputSum*>& sums) {
  ordered_json all = ordered_json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    for (const RequestOutput& choice : sums[i]->choices()) {
      End end;
      end.times = sums[i]->times(static_cast<size_t>(choice.index));
      if (!request_.no_output) {
        end.content = choice.text;
        end.has_new_line = has_new_line(choice.text);
        if (request_.return_tokens) end.tokens = choice.token_ids;
      }
      ordered_json json = final_json(i, choice, end);
      if (request_.num_probs > 0) {
        json["completion_probabilities"] =
            probabilities(choice.logprobs, request_.post_sampling_probs);
      }
      all.push_back(chosen_fields(json, request_.response_fields));
    }
  }
  return json_text(all.size() == 1 ? all.front() : all);
}

std::string LlamaFormat::error(const ServeError& error) { return json_text(openai_error(error)); }

std::string LlamaFormat::events(size_t request, const ChoiceOutput& news) {
  const RequestOutput& output = news.output;
  const int index = index_of(request, output);
  Told& told = told_.at(static_cast<size_t>(index));
  if (!told.times.first) told.times.first = news.times.first;
  if (news.times.last) told.times.last = news.times.last;
  const bool any = !request_.no_output && !output.token_ids.empty();
  std::string events;
  if (any) {
    told.new_line = told.new_line || has_new_line(output.text);
    ordered_json json = {{"index", index},
                         {"content", output.text},
                         {"tokens", output.token_ids},
                         {"stop", false},
                         {"id_slot", index},
                         {"tokens_predicted", output.stats.num_output_tokens},
                         {"tokens_evaluated", output.stats.num_prompt_tokens}};
    if (request_.text.timings) {
      json["timings"] = timings_json(output.stats, told.times, label_.submitted);
    }
    if (request_.num_probs > 0) {
      json["completion_probabilities"] =
          probabilities(output.logprobs, request_.post_sampling_probs);
    }
    events = sse_data(json);
  }
  if (!output.finished) return events;
  // Text that was held back until the end has no token of its own.
  End end;
  end.has_new_line = told.new_line;
  end.times = told.times;
  if (!any && !request_.no_output) end.content = output.text;
  const ordered_json json = final_json(request, output, end);
  return events + sse_data(chosen_fields(json, request_.response_fields));
}

std::string LlamaFormat::error_events(const ServeError& error) {
  return sse_data(openai_error(error));
}

}  // namespace foretoken
