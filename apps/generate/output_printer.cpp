#include "apps/generate/output_printer.h"

#include <nlohmann/json.hpp>

#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// With the line or prompt that it comes from, where there are several.
std::string error_message(const PromptItem& item, const Status& status, bool single) {
  const std::string& message = status.message();
  if (single || message.rfind(item.origin, 0) == 0) return message;
  return item.origin + ": " + message;
}

ordered_json token_json(const Logprob& token) {
  return {{"token_id", token.token_id},
          {"token", token.decoded_token},
          {"logprob", token.logprob},
          {"rank", token.rank}};
}

ordered_json logprobs_json(const std::vector<TokenLogprobs>& positions) {
  ordered_json all = ordered_json::array();
  for (const TokenLogprobs& position : positions) {
    ordered_json entry = token_json(position.token);
    entry["top"] = ordered_json::array();
    for (const Logprob& other : position.top) entry["top"].push_back(token_json(other));
    all.push_back(std::move(entry));
  }
  return all;
}

void add_choice(const RequestOutput& choice, const SamplingParams& sampling, ordered_json& json) {
  json["text"] = choice.text;
  json["token_ids"] = choice.token_ids;
  json["finish_reason"] = finish_reason_name(choice.finish_reason);
  json["stop_reason"] =
      choice.stop_reason.empty() ? ordered_json() : ordered_json(choice.stop_reason);
  if (sampling.logprobs) json["logprobs"] = logprobs_json(choice.logprobs);
}

// By drafter, in the order of the engine's.
ordered_json drafter_counts(const std::array<int64_t, kMaxDrafters>& counts) {
  size_t used = counts.size();
  while (used > 0 && counts[used - 1] == 0) --used;
  return std::vector<int64_t>(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(used));
}

ordered_json usage_json(const RequestStats& stats) {
  return {{"prompt_tokens", stats.num_prompt_tokens},
          {"cached_tokens", stats.num_cached_tokens},
          {"completion_tokens", stats.num_output_tokens},
          {"total_tokens", stats.num_prompt_tokens + stats.num_output_tokens},
          {"steps", stats.num_steps},
          {"drafts", stats.num_drafts},
          {"drafted_tokens", stats.num_draft_tokens},
          {"accepted_tokens", stats.num_accepted_tokens},
          {"drafted_by_position", position_counts(stats.num_draft_tokens_per_pos)},
          {"accepted_by_position", position_counts(stats.num_accepted_tokens_per_pos)},
          {"drafted_by_drafter", drafter_counts(stats.num_draft_tokens_by_drafter)},
          {"accepted_by_drafter", drafter_counts(stats.num_accepted_tokens_by_drafter)},
          {"preemptions", stats.num_preemptions}};
}

std::string json_line(const PromptItem& item, const OutputSum& sum) {
  const SamplingParams& sampling = item.request.sampling;
  ordered_json line;
  line["request_id"] = item.request.request_id;
  line["prompt"] = item.request.prompt;
  const RequestOutput& first = sum.choices().front();
  if (item.request.pooling != Pooling::kNone) {
    line["embedding"] = first.embedding;
  } else {
    add_choice(first, sampling, line);
  }
  if (sampling.prompt_logprobs) line["prompt_logprobs"] = logprobs_json(first.prompt_logprobs);
  if (sum.choices().size() > 1) {
    line["choices"] = ordered_json::array();
    for (const RequestOutput& choice : sum.choices()) {
      ordered_json entry = {{"index", choice.index}};
      add_choice(choice, sampling, entry);
      line["choices"].push_back(std::move(entry));
    }
  }
  line["usage"] = usage_json(sum.stats());
  const Status status = sum.status();
  line["error"] = status.ok() ? ordered_json() : ordered_json(status.message());
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string OutputPrinter::new_choice_text(size_t i, const RequestOutput& choice, bool several) {
  const PromptItem& item = items_[i];
  const bool has_news = choice.finished || !choice.token_ids.empty();
  std::string fresh;
  if (!started_ && choice.status.ok() && has_news) {
    if (i > 0 || choice.index > 0) fresh += "\n";
    if (several) fresh += "choice " + std::to_string(choice.index + 1) + ":\n";
    if (item.messages_json.empty()) fresh += item.request.prompt;
    started_ = true;
  }
  if (!started_) return fresh;
  fresh += choice.text.substr(num_shown_);
  num_shown_ = choice.text.size();
  if (choice.finished && !choice.embedding.empty()) {
    fresh += "\n" + ordered_json(choice.embedding).dump();
  }
  if (choice.finished) fresh += "\n";
  return fresh;
}

std::string OutputPrinter::new_text(size_t i, const OutputSum& sum) {
  std::string fresh;
  for (; choice_ < sum.choices().size(); ++choice_) {
    const RequestOutput& choice = sum.choices()[choice_];
    fresh += new_choice_text(i, choice, sum.choices().size() > 1);
    if (!choice.finished) break;
    started_ = false;
    num_shown_ = 0;
  }
  return fresh;
}

std::string OutputPrinter::take(const std::vector<OutputSum>& outputs,
                                std::vector<std::string>* errors) {
  std::string fresh;
  for (; current_ < outputs.size(); ++current_) {
    const OutputSum& sum = outputs[current_];
    if (!json_) fresh += new_text(current_, sum);
    if (!sum.finished()) break;
    if (json_) fresh += json_line(items_[current_], sum);
    if (const Status status = sum.status(); !status.ok()) {
      errors->push_back(error_message(items_[current_], status, items_.size() == 1));
      any_failed_ = true;
    }
    choice_ = 0;
  }
  return fresh;
}

}  // namespace foretoken
