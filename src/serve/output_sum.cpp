#include "serve/output_sum.h"

#include <algorithm>

namespace foretoken {
namespace {

template <class T>
void append(std::vector<T>& sum, const std::vector<T>& more) {
  sum.insert(sum.end(), more.begin(), more.end());
}

bool is_finished(const RequestOutput& choice) { return choice.finished; }

}  // namespace

void OutputSum::add(const RequestOutput& output) {
  if (!output.status.ok() && output.request_finished) return fail(output.status);
  const auto index = static_cast<size_t>(std::max(output.index, 0));
  if (index >= choices_.size()) choices_.resize(index + 1);
  RequestOutput& sum = choices_[index];
  sum.request_id = output.request_id;
  sum.index = output.index;
  sum.text += output.text;
  append(sum.token_ids, output.token_ids);
  append(sum.logprobs, output.logprobs);
  append(sum.prompt_logprobs, output.prompt_logprobs);
  append(sum.embedding, output.embedding);
  sum.num_accepted_tokens += output.num_accepted_tokens;
  sum.finished = output.finished;
  sum.finish_reason = output.finish_reason;
  sum.stop_reason = output.stop_reason;
  sum.status = output.status;
  sum.stats = output.stats;
  finished_ = output.request_finished || std::all_of(choices_.begin(), choices_.end(), is_finished);
}

void OutputSum::fail(const Status& status) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    RequestOutput& choice = choices_[i];
    if (choice.finished) continue;
    choice.index = static_cast<int>(i);
    choice.finished = true;
    choice.finish_reason = FinishReason::kError;
    choice.status = status;
  }
  finished_ = true;
}

Status OutputSum::status() const {
  for (const RequestOutput& choice : choices_) {
    if (!choice.status.ok()) return choice.status;
  }
  return {};
}

RequestStats OutputSum::stats() const {
  RequestStats sum;
  for (const RequestOutput& choice : choices_) sum += choice.stats;
  sum.num_cached_tokens = choices_.front().stats.num_cached_tokens;
  sum.num_prompt_tokens = 0;
  for (const RequestOutput& choice : choices_) {
    sum.num_prompt_tokens = std::max(sum.num_prompt_tokens, choice.stats.num_prompt_tokens);
  }
  return sum;
}

}  // namespace foretoken
