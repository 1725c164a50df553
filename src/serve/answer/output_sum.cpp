#include "serve/answer/output_sum.h"

#include <algorithm>

namespace foretoken {
namespace {

template <class T>
void append(std::vector<T>& sum, const std::vector<T>& more) {
  sum.insert(sum.end(), more.begin(), more.end());
}

void append_to(RequestOutput& sum, const RequestOutput& output) {
  sum.request_id = output.request_id;
  sum.index = output.index;
  sum.text += output.text;
  append(sum.token_ids, output.token_ids);
  append(sum.logprobs, output.logprobs);
  append(sum.prompt_logprobs, output.prompt_logprobs);
  append(sum.embedding, output.embedding);
  sum.num_accepted_tokens += output.num_accepted_tokens;
  sum.finished = output.finished;
  sum.request_finished = output.request_finished;
  sum.finish_reason = output.finish_reason;
  sum.stop_reason = output.stop_reason;
  sum.status = output.status;
  sum.stats = output.stats;
}

void append_origin(const OriginPiece& piece, std::vector<OriginPiece>* pieces) {
  if (piece.num_tokens == 0 && piece.num_bytes == 0) return;
  if (pieces->empty() || pieces->back().drafted != piece.drafted) {
    pieces->push_back(piece);
    return;
  }
  pieces->back().num_tokens += piece.num_tokens;
  pieces->back().num_bytes += piece.num_bytes;
}

void append_origins(const RequestOutput& output, std::vector<OriginPiece>* pieces) {
  const int num_own = static_cast<int>(output.token_ids.size()) - output.num_accepted_tokens;
  append_origin({true, output.num_accepted_tokens, output.accepted_text_bytes}, pieces);
  append_origin({false, num_own, output.text.size() - output.accepted_text_bytes}, pieces);
}

bool is_finished(const RequestOutput& choice) { return choice.finished; }

}  // namespace

void OutputTimes::note(const RequestOutput& output) {
  if (output.token_ids.empty()) return;
  last = std::chrono::steady_clock::now();
  if (!first) first = last;
}

void ChoiceOutput::add(const RequestOutput& more) {
  append_to(output, more);
  append_origins(more, &origins);
  times.note(more);
}

void OutputSum::add(const RequestOutput& output) {
  const auto index = static_cast<size_t>(std::max(output.index, 0));
  if (index >= choices_.size()) {
    choices_.resize(index + 1);
    origins_.resize(index + 1);
    times_.resize(index + 1);
  }
  append_to(choices_[index], output);
  append_origins(output, &origins_[index]);
  times_[index].note(output);
  if (!output.status.ok() && output.request_finished) {
    choices_[index].finished = false;
    return fail(output.status);
  }
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
