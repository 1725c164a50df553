#include "serve/flow/beam_search.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "serve/openai/openai_response.h"

namespace foretoken {
namespace {

// As the engine cuts prompts.
void cut_prompt(const Request& request, int max_len, std::vector<int32_t>* ids) {
  const int wanted = request.sampling.max_tokens;
  const int room = wanted < max_len ? max_len - wanted : max_len - 1;
  const int kept = *request.truncate_prompt_tokens;
  const auto most = static_cast<size_t>(std::max(kept < 0 ? room : kept, 0));
  if (ids->size() <= most) return;
  const auto end = request.truncation_side == TruncationSide::kRight
                       ? ids->end()
                       : ids->end() - static_cast<ptrdiff_t>(most);
  const auto begin = request.truncation_side == TruncationSide::kRight
                         ? ids->begin() + static_cast<ptrdiff_t>(most)
                         : ids->begin();
  ids->erase(begin, end);
}

}  // namespace

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
    FT_RETURN_IF_ERROR(
        request_.truncate_prompt_tokens
            ? encode(request_.prompt, &ids)
            : encode_prompt(request_.prompt, engine_.info().max_model_len, encode, &ids));
  }
  request_.prompt.clear();
  const int max_len = engine_.info().max_model_len;
  if (request_.truncate_prompt_tokens) cut_prompt(request_, max_len, &ids);
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
  begun_ = std::chrono::steady_clock::now();
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

// What is left of its time; 0: any.
Result<double> BeamSearch::seconds_left() const {
  if (request_.timeout_seconds <= 0) return 0.0;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun_;
  const double left = request_.timeout_seconds - spent.count();
  if (left <= 0) return too_late();
  return left;
}

Status BeamSearch::too_late() const {
  return aborted(
      "'use_beam_search' did not end within the request's timeout_seconds; ask for "
      "fewer tokens or a smaller 'n', or allow more time");
}

Request BeamSearch::step_of(size_t beam, double seconds) const {
  Request one;
  one.request_id = step_ids_[beam];
  one.prompt_token_ids = request_.prompt_token_ids;
  const std::vector<int32_t>& ids = beams_[beam].ids;
  one.prompt_token_ids.insert(one.prompt_token_ids.end(), ids.begin(), ids.end());
  one.sampling.max_tokens = 1;
  one.sampling.temperature = 0;
  one.sampling.logprobs = 2 * request_.sampling.n;
  one.sampling.ignore_eos = true;
  one.sampling.detokenize = false;
  one.speculative.enabled = false;
  one.priority = request_.priority;
  // It counts before the first step alone.
  if (ids.empty()) one.queue_timeout_seconds = request_.queue_timeout_seconds;
  one.timeout_seconds = seconds;
  one.cache_salt = request_.cache_salt;
  one.adapter = request_.adapter;
  one.data_parallel_rank = request_.data_parallel_rank;
  return one;
}

// A token behind each beam. An error where none could be asked for.
Status BeamSearch::step() {
  FT_ASSIGN_OR_RETURN(const double seconds, seconds_left());
  const size_t count = beams_.size();
  {
    std::lock_guard lock(mutex_);
    rows_.assign(count, {});
    step_ids_.clear();
    for (size_t i = 0; i < count; ++i) step_ids_.push_back(make_openai_id("beam"));
    num_waiting_ = count;
  }
  for (size_t i = 0; i < count; ++i) {
    const Status status = engine_.submit(
        step_of(i, seconds),
        [self = shared_from_this(), i](const RequestOutput& output) { self->receive(i, output); });
    if (status.ok()) continue;
    if (i == 0) return status;
    for (size_t left = i; left < count; ++left) answered(status, false);
    return {};
  }
  // Before the engine knew them.
  if (aborted_.load()) abort();
  return {};
}

void BeamSearch::abort() {
  aborted_.store(true);
  std::vector<std::string> ids;
  {
    std::lock_guard lock(mutex_);
    ids = step_ids_;
  }
  for (const std::string& id : ids) engine_.abort(id);
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
    if (!status.ok() && error_.ok()) {
      error_ = status.code() == StatusCode::kAborted ? too_late() : status;
    }
    if (is_aborted) aborted_.store(true);
    if (--num_waiting_ > 0) return;
  }
  advance();
}

// All beams have been answered, so that no other thread is here.
void BeamSearch::advance() {
  if (!error_.ok()) return finish(error_);
  if (aborted_.load()) return finish({});
  struct Candidate {
    size_t beam;
    const Logprob* token;
    double score;
  };
  std::vector<Candidate> going;
  for (size_t i = 0; i < beams_.size(); ++i) {
    for (const Logprob& token : rows_[i].top) {
      if (eos_ == token.token_id) {
        completed_.push_back(extended(beams_[i], rows_[i], token));
      } else {
        const double sum = beams_[i].sum + token.logprob;
        going.push_back({i, &token, score(sum, beams_[i].ids.size() + 1)});
      }
    }
  }
  keep_best(&completed_);
  std::stable_sort(going.begin(), going.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  going.resize(std::min(going.size(), static_cast<size_t>(request_.sampling.n)));
  std::vector<Beam> next;
  for (const Candidate& one : going) {
    next.push_back(extended(beams_[one.beam], rows_[one.beam], *one.token));
  }
  beams_ = std::move(next);
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

double BeamSearch::score(double sum, size_t num_tokens) const {
  const size_t count = request_.prompt_token_ids.size() + num_tokens;
  return sum / std::pow(static_cast<double>(std::max<size_t>(count, 1)), length_penalty_);
}

// The n best, the best first.
void BeamSearch::keep_best(std::vector<Beam>* beams) const {
  const auto score_of = [this](const Beam& beam) {
    return score(beam.sum, beam.ids.size() - (beam.ended ? 1 : 0));
  };
  std::stable_sort(beams->begin(), beams->end(),
                   [&score_of](const Beam& a, const Beam& b) { return score_of(a) > score_of(b); });
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
