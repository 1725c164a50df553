#include "serve/flow/beam_search.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretoken {

Status BeamSearch::check() const {
  if (request_.sampling.structured_outputs) {
    return invalid_argument(
        "'use_beam_search' follows no form of the output ('response_format', "
        "'structured_outputs', a forced tool); leave one of the two out");
  }
  const int most = engine_.info().max_logprobs;
  const int wanted = 2 * request_.sampling.n;
  if (most >= 0 && wanted > most) {
    return invalid_argument("'use_beam_search' with 'n' " + std::to_string(request_.sampling.n) +
                            " asks for " + std::to_string(wanted) +
                            " log-probabilities a token, more than --max-logprobs " +
                            std::to_string(most) + "; ask for a smaller 'n', or raise it");
  }
  if (request_.sampling.max_tokens < 1) {
    return invalid_argument("'use_beam_search' needs 'max_tokens' of at least 1");
  }
  return {};
}

// The prompt as ids, and how many tokens may follow.
Status BeamSearch::read_prompt() {
  std::vector<int32_t>& ids = request_.prompt_token_ids;
  if (ids.empty()) {
    const auto encode = [this](const std::string& text, std::vector<int32_t>* to) {
      return engine_.encode(text, request_.add_special_tokens, to);
    };
    FT_RETURN_IF_ERROR(encode_prompt(request_.prompt, engine_.info().max_model_len, encode, &ids));
  }
  request_.prompt.clear();
  const int max_len = engine_.info().max_model_len;
  if (const std::optional<int> kept = std::exchange(request_.truncate_prompt_tokens, {})) {
    const int room = max_len - std::min(request_.sampling.max_tokens, max_len - 1);
    const auto most = static_cast<size_t>(*kept < 0 ? room : *kept);
    if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(most));
  }
  const int left = max_len - static_cast<int>(ids.size());
  max_tokens_ = std::min(request_.sampling.max_tokens, std::max(left, 1));
  std::vector<int32_t> end;
  const std::string& eos = engine_.info().eos_token;
  if (!request_.sampling.ignore_eos && !eos.empty() && engine_.encode(eos, false, &end).ok() &&
      end.size() == 1) {
    eos_ = end.front();
  }
  return {};
}

Status BeamSearch::start(Request request, OutputCallback callback) {
  request_ = std::move(request);
  callback_ = std::move(callback);
  const Status status = begin();
  // Whoever is called may own this.
  if (!status.ok()) callback_ = nullptr;
  return status;
}

Status BeamSearch::begin() {
  FT_RETURN_IF_ERROR(check());
  FT_RETURN_IF_ERROR(read_prompt());
  beams_.emplace_back();
  return step();
}

// A token behind each beam. An error where none could be asked for.
Status BeamSearch::step() {
  const size_t count = beams_.size();
  rows_.assign(count, {});
  num_waiting_ = count;
  for (size_t i = 0; i < count; ++i) {
    Request one;
    one.prompt_token_ids = request_.prompt_token_ids;
    const std::vector<int32_t>& ids = beams_[i].ids;
    one.prompt_token_ids.insert(one.prompt_token_ids.end(), ids.begin(), ids.end());
    one.sampling.max_tokens = 1;
    one.sampling.temperature = 0;
    one.sampling.logprobs = 2 * request_.sampling.n;
    one.sampling.ignore_eos = true;
    one.sampling.detokenize = false;
    one.speculative.enabled = false;
    one.priority = request_.priority;
    one.queue_timeout_seconds = request_.queue_timeout_seconds;
    one.timeout_seconds = request_.timeout_seconds;
    one.cache_salt = request_.cache_salt;
    one.adapter = request_.adapter;
    one.data_parallel_rank = request_.data_parallel_rank;
    const Status status = engine_.submit(
        std::move(one),
        [self = shared_from_this(), i](const RequestOutput& output) { self->receive(i, output); });
    if (status.ok()) continue;
    if (i == 0) return status;
    for (size_t left = i; left < count; ++left) answered(status, false);
    break;
  }
  return {};
}

void BeamSearch::receive(size_t beam, const RequestOutput& output) {
  {
    std::lock_guard lock(mutex_);
    if (!output.logprobs.empty()) rows_[beam] = output.logprobs.front();
    if (!output.request_finished) return;
    if (stats_.num_prompt_tokens == 0) {
      stats_.num_prompt_tokens = output.stats.num_prompt_tokens;
      stats_.num_cached_tokens = output.stats.num_cached_tokens;
      stats_.queue_ns = output.stats.queue_ns;
    }
    stats_.num_steps += output.stats.num_steps;
  }
  answered(output.status, output.finish_reason == FinishReason::kAbort);
}

void BeamSearch::answered(const Status& status, bool is_aborted) {
  {
    std::lock_guard lock(mutex_);
    if (!status.ok() && error_.ok()) error_ = status;
    if (is_aborted) aborted_.store(true);
    if (--num_waiting_ > 0) return;
  }
  advance();
}

// All beams have been answered, so that no other thread is here.
void BeamSearch::advance() {
  if (!error_.ok()) return finish(error_);
  if (aborted_.load()) return finish({});
  std::vector<Beam> going;
  for (size_t i = 0; i < beams_.size(); ++i) {
    for (const Logprob& token : rows_[i].top) {
      Beam next = extended(beams_[i], rows_[i], token);
      (next.ended ? completed_ : going).push_back(std::move(next));
    }
  }
  keep_best(&going);
  beams_ = std::move(going);
  const bool is_full = beams_.empty() || static_cast<int>(beams_.front().ids.size()) >= max_tokens_;
  if (is_full) return finish({});
  if (const Status status = step(); !status.ok()) finish(status);
}

BeamSearch::Beam BeamSearch::extended(const Beam& beam, const TokenLogprobs& row,
                                      const Logprob& token) const {
  Beam next = beam;
  next.ids.push_back(token.token_id);
  next.sum += token.logprob;
  next.ended = eos_ == token.token_id;
  if (!request_.sampling.logprobs) return next;
  TokenLogprobs& said = next.logprobs.emplace_back();
  said.token = token;
  said.top = row.top;
  const int wanted = *request_.sampling.logprobs;
  if (wanted >= 0 && said.top.size() > static_cast<size_t>(wanted)) {
    said.top.resize(static_cast<size_t>(wanted));
  }
  return next;
}

double BeamSearch::score(const Beam& beam) const {
  const size_t count = request_.prompt_token_ids.size() + beam.ids.size() - (beam.ended ? 1 : 0);
  return beam.sum / std::pow(static_cast<double>(std::max<size_t>(count, 1)), length_penalty_);
}

// The n best, the best first.
void BeamSearch::keep_best(std::vector<Beam>* beams) const {
  std::stable_sort(beams->begin(), beams->end(),
                   [this](const Beam& a, const Beam& b) { return score(a) > score(b); });
  const auto width = static_cast<size_t>(request_.sampling.n);
  if (beams->size() > width) beams->resize(width);
}

// As it stands behind the prompt's text: pieces of words may have a blank there that they lose
// alone.
std::string BeamSearch::text_of(const std::vector<int32_t>& ids) const {
  const bool skips = request_.sampling.skip_special_tokens;
  std::vector<int32_t> whole = request_.prompt_token_ids;
  std::string before, all, alone;
  if (!engine_.decode(whole, skips, &before).ok()) return {};
  whole.insert(whole.end(), ids.begin(), ids.end());
  if (engine_.decode(whole, skips, &all).ok() && all.starts_with(before)) {
    return all.substr(before.size());
  }
  return engine_.decode(ids, skips, &alone).ok() ? alone : std::string();
}

RequestOutput BeamSearch::output_of(const Beam& beam, int index) const {
  RequestOutput output;
  output.request_id = request_.request_id;
  output.index = index;
  output.token_ids = beam.ids;
  output.logprobs = beam.logprobs;
  if (beam.ended) output.token_ids.pop_back();
  if (request_.sampling.detokenize) output.text = text_of(output.token_ids);
  if (beam.ended && request_.sampling.include_stop_str_in_output) {
    output.token_ids.push_back(beam.ids.back());
  } else if (beam.ended && !output.logprobs.empty()) {
    output.logprobs.pop_back();
  }
  output.finish_reason = beam.ended        ? FinishReason::kStop
                         : aborted_.load() ? FinishReason::kAbort
                                           : FinishReason::kLength;
  if (beam.ended) output.stop_reason = std::to_string(*eos_);
  output.finished = true;
  output.stats = stats_;
  output.stats.num_output_tokens = static_cast<int64_t>(output.token_ids.size());
  return output;
}

void BeamSearch::finish(const Status& status) {
  std::vector<Beam> best = std::move(completed_);
  best.insert(best.end(), std::make_move_iterator(beams_.begin()),
              std::make_move_iterator(beams_.end()));
  beams_.clear();
  keep_best(&best);
  best.resize(static_cast<size_t>(request_.sampling.n));
  const OutputCallback callback = std::move(callback_);
  for (size_t i = 0; i < best.size(); ++i) {
    RequestOutput output = output_of(best[i], static_cast<int>(i));
    output.status = status;
    if (!status.ok()) output.finish_reason = FinishReason::kError;
    output.request_finished = i + 1 == best.size();
    callback(output);
  }
}

}  // namespace foretoken
