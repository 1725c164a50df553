#include "engine/request/output_processor.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_role.h"
#include "engine/request/logprob_text.h"
#include "model/heads/judge_head.h"
#include "model/heads/row_layers.h"
#include "model/heads/token_head.h"

namespace foretoken {
namespace {

constexpr int64_t kSameOutputsNs = 20'000;

void add(RequestStats& sum, const OutputEvent& event) {
  if (event.num_ids > 0) ++sum.num_steps;
  if (event.num_drafted > 0) ++sum.num_drafts;
  sum.num_draft_tokens += event.num_drafted;
  sum.num_accepted_tokens += event.num_accepted;
  sum.num_accepted_branch_tokens += event.num_by_branch;
  const auto drafter = static_cast<size_t>(event.drafter);
  sum.num_draft_tokens_by_drafter[drafter] += event.num_drafted;
  sum.num_accepted_tokens_by_drafter[drafter] += event.num_accepted;
  if (event.from_prediction) {
    sum.num_prediction_draft_tokens += event.num_drafted;
    sum.num_accepted_prediction_tokens += event.num_accepted;
  }
  for (int i = 0; i < event.num_drafted; ++i) ++sum.num_draft_tokens_per_pos[i];
  for (int i = 0; i < event.num_accepted; ++i) ++sum.num_accepted_tokens_per_pos[i];
  sum.num_output_tokens += event.num_ids;
}

// The prompt's rows leave with the first output.
void attach_prompt_logprobs(RequestState& request) {
  const LogprobRecord* record = request.logprobs.get();
  const std::optional<int> wanted = request.group->request.sampling.prompt_logprobs;
  if (!std::exchange(request.first_output, false)) return;
  if (record == nullptr || !wanted || !record->prompt_complete()) return;
  const int num_top = *wanted == -1 ? INT32_MAX : *wanted;
  for (int i = 0; i < record->num_prompt(); ++i) {
    request.output.prompt_logprobs.push_back(
        describe_row(record->prompt(i), num_top, request.group->tokenizer));
  }
}

bool wants_logprobs(const RequestState& request) {
  return request.logprobs != nullptr && request.logprobs->wants_output();
}

// The engine thread waits for room in the record, so rows of dropped ids must leave it too.
void drop_rows(RequestState& request, int count) {
  if (wants_logprobs(request)) request.logprobs->drop(count);
}

void attach_logprobs(RequestState& request) {
  if (!wants_logprobs(request)) return;
  const int wanted = *request.group->request.sampling.logprobs;
  request.output.logprobs.push_back(describe_row(
      request.logprobs->front(), wanted == -1 ? INT32_MAX : wanted, request.group->tokenizer));
  request.logprobs->drop(1);
}

void attach_embedding(RequestState& request) {
  std::vector<float>& state = request.embedding;
  const Request& asked = request.group->request;
  if (asked.pooling == Pooling::kTokens && request.group->tokens != nullptr) {
    request.output.embedding = request.group->tokens->run(state, asked.normalize);
    return;
  }
  const JudgeHead* judge = request.group->judge;
  if (judge != nullptr) {
    state = judge->judge(state);
  } else if (const RowLayers* dense = request.group->dense; dense != nullptr) {
    state = dense->run(state);
  }
  if (judge == nullptr && asked.normalize) {
    double sum = 0;
    for (const float x : state) sum += double{x} * x;
    const double length = std::sqrt(sum);
    for (float& x : state) x = length > 0 ? static_cast<float>(x / length) : x;
  }
  request.output.embedding = std::move(state);
}

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

Status late_error(const RequestState& request) {
  const Request& asked = request.group->request;
  if (request.late == RequestState::Late::kNotStarted) {
    return resource_exhausted("request " + asked.request_id + " was not begun within its " +
                              "queue_timeout_seconds of " +
                              seconds_text(asked.queue_timeout_seconds) +
                              "; the engine is busy, try again later or wait longer");
  }
  return aborted("request " + asked.request_id + " did not end within its timeout_seconds of " +
                 seconds_text(asked.timeout_seconds) + " and was ended after " +
                 std::to_string(request.stats.num_output_tokens) +
                 " tokens; ask for fewer tokens or allow more time");
}

Status error_of(const RequestState& request, const Status& device) {
  if (!request.refused.ok()) return request.refused;
  if (!device.ok()) return device;
  if (request.late != RequestState::Late::kNo) return late_error(request);
  const std::string& id = request.group->request.request_id;
  const std::string fault = request.processors != nullptr ? request.processors->fault() : "";
  if (!fault.empty()) return invalid_argument("request " + id + ": " + fault);
  if (request.grammar != nullptr) {
    return invalid_argument("request " + id + ": " + request.grammar->why_nothing_fits());
  }
  const SamplingParams& sampling = request.group->request.sampling;
  const bool takes_away =
      sampling.min_tokens > request.stats.num_output_tokens || !sampling.bad_words.empty();
  if (sampling.allowed_token_ids && takes_away) {
    return invalid_argument("request " + id +
                            ": no token is allowed by allowed_token_ids and by min_tokens and "
                            "bad_words at once; change one of them");
  }
  return internal_error("request " + id +
                        ": a token had no valid probability (NaN logits or every token masked)");
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

OutputProcessor::OutputProcessor(OutputRing& ring, Intake& intake, Hooks hooks, TraceLane* trace)
    : ring_(ring), intake_(intake), hooks_(std::move(hooks)), trace_(trace) {}

OutputProcessor::~OutputProcessor() { join(); }

void OutputProcessor::start() {
  thread_ = std::thread([this] { main(); });
}

void OutputProcessor::join() {
  if (thread_.joinable()) thread_.join();
}

RequestStats OutputProcessor::totals() const {
  std::lock_guard lock(totals_mutex_);
  return totals_;
}

RequestStats OutputProcessor::totals_of(int drafter) const {
  std::lock_guard lock(totals_mutex_);
  return drafter_totals_.at(static_cast<size_t>(drafter));
}

template <class Change>
void OutputProcessor::change_totals(const RequestState& request, int drafter,
                                    const Change& change) {
  std::lock_guard lock(totals_mutex_);
  change(totals_);
  if (request.sequence.max_draft_tokens > 0) change(drafter_totals_[static_cast<size_t>(drafter)]);
}

int64_t OutputProcessor::num_finished() const {
  std::lock_guard lock(totals_mutex_);
  return num_finished_;
}

void OutputProcessor::main() {
  set_thread_role(ThreadRole::kOutput, "ft-output");
  thread_id_.store(std::this_thread::get_id());
  using Popped = OutputRing::Popped;
  OutputEvent event;
  for (;;) {
    const Popped popped = ring_.pop_until(event, acceptance_log_.due());
    if (popped == Popped::kClosed) return;
    if (popped == Popped::kEvent) {
      handle_and_trace(event);
      if (event.released) delete event.request;
    }
    acceptance_log_.write_when_due(AcceptanceLog::Clock::now());
  }
}

// The outputs of a step come one after the other, and are one event of the trace.
void OutputProcessor::handle_and_trace(const OutputEvent& event) {
  if (trace_ == nullptr) {
    handle(event);
    return;
  }
  const int64_t begin = now_ns();
  handle(event);
  trace_->extend("outputs", begin, now_ns(), kSameOutputsNs);
}

// A grammar that is complete, in a model that has no token to say so.
bool OutputProcessor::is_complete(const RequestState& request, const OutputEvent& event) {
  const SamplingParams& sampling = request.group->request.sampling;
  const int64_t num_tokens = request.stats.num_output_tokens;
  return event.finish == FinishReason::kError && request.grammar != nullptr &&
         hooks_.device_error().ok() && num_tokens >= sampling.min_tokens &&
         request.grammar->completed_after(num_tokens);
}

void OutputProcessor::handle(const OutputEvent& event) {
  RequestState& request = *event.request;
  if (request.finished) {
    drop_rows(request, event.num_ids);
    return;
  }
  count(request, event);
  append_ids(request, event);
  if (request.finished) return;
  if (event.finish != FinishReason::kNone) {
    finish(request, is_complete(request, event) ? FinishReason::kStop : event.finish);
  } else if (!request.output.token_ids.empty()) {
    emit(request);
  }
}

void OutputProcessor::count(RequestState& request, const OutputEvent& event) {
  RequestStats& stats = request.stats;
  if (event.num_cached_tokens >= 0 && event.num_preemptions == 0) {
    stats.num_cached_tokens = event.num_cached_tokens;
  }
  if (request.first_step_ns > 0) stats.queue_ns = request.first_step_ns - request.submitted_ns;
  stats.num_preemptions = std::max<int64_t>(stats.num_preemptions, event.num_preemptions);
  add(stats, event);
  if (event.num_ids > 0) count_prompt(request);
  change_totals(request, event.num_drafted > 0 ? event.drafter : request.sequence.drafter,
                [&](RequestStats& sum) { add(sum, event); });
  acceptance_log_.add(event.num_drafted, event.num_accepted);
}

void OutputProcessor::append_ids(RequestState& request, const OutputEvent& event) {
  RequestOutput& output = request.output;
  for (int i = 0; i < event.num_ids; ++i) {
    output.token_ids.push_back(event.ids[i]);
    attach_logprobs(request);
    const bool is_stop_id = event.finish == FinishReason::kStop && i + 1 == event.num_ids;
    const bool stops = append_id(request, event.ids[i], is_stop_id);
    if (i < event.num_accepted) {
      output.num_accepted_tokens = i + 1;
      output.accepted_text_bytes = output.text.size();
    }
    if (!stops) continue;
    drop_rest(request, event, i + 1);
    end_here(request, output.status.ok() ? FinishReason::kStop : FinishReason::kError);
    return;
  }
}

// True when the text ends here: by a stop string, or by an error that `output.status` tells. Stop
// ids are kept among the ids but leave no text.
bool OutputProcessor::append_id(RequestState& request, int32_t id, bool is_stop_id) {
  const SamplingParams& sampling = request.group->request.sampling;
  if (is_stop_id) {
    const auto& stops = sampling.stop_token_ids;
    if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
      request.output.stop_reason = std::to_string(id);
    }
    if (!sampling.include_stop_str_in_output) return false;
  }
  if (request.detokenizer == nullptr) return false;
  Result<std::string> piece = request.detokenizer->append(id);
  if (!piece.ok()) {
    request.output.status = piece.status();
    return true;
  }
  return append_text(request, piece.value());
}

// Ids behind the end of the text count for nothing.
void OutputProcessor::drop_rest(RequestState& request, const OutputEvent& event, int num_kept) {
  const int num_dropped = event.num_ids - num_kept;
  const int accepted_dropped = std::max(event.num_accepted - num_kept, 0);
  drop_rows(request, num_dropped);
  const auto drop = [&](RequestStats& sum) {
    sum.num_output_tokens -= num_dropped;
    sum.num_accepted_tokens -= accepted_dropped;
    // A branch's are the last of them.
    sum.num_accepted_branch_tokens -= std::min(accepted_dropped, event.num_by_branch);
    sum.num_accepted_tokens_by_drafter[static_cast<size_t>(event.drafter)] -= accepted_dropped;
    if (event.from_prediction) sum.num_accepted_prediction_tokens -= accepted_dropped;
    for (int i = 0; i < accepted_dropped; ++i) --sum.num_accepted_tokens_per_pos[num_kept + i];
  };
  drop(request.stats);
  change_totals(request, event.num_drafted > 0 ? event.drafter : request.sequence.drafter, drop);
}

// An end that the engine thread does not know of yet.
void OutputProcessor::end_here(RequestState& request, FinishReason reason) {
  finish(request, reason);
  request.end_requested.store(true);
  intake_.announce_end();
}

// True when a stop string ended the text; min_tokens and reasoning put them off.
bool OutputProcessor::append_text(RequestState& request, std::string_view piece) {
  const SamplingParams& sampling = request.group->request.sampling;
  const int64_t num_tokens = request.output.stats.num_output_tokens +
                             static_cast<int64_t>(request.output.token_ids.size());
  if (request.stop_strings == nullptr) {
    request.output.text += piece;
    return false;
  }
  StopStrings::Output found = request.stop_strings->append(piece, num_tokens > sampling.min_tokens);
  request.output.text += found.text;
  if (!found.matched) return false;
  request.output.stop_reason = sampling.stop[*found.matched];
  return true;
}

// What is held back comes out; a stop string may be complete in it.
void OutputProcessor::finish_text(RequestState& request, FinishReason& reason) {
  if (request.detokenizer != nullptr && reason != FinishReason::kError &&
      (request.stop_strings == nullptr || !request.stop_strings->stopped())) {
    const Result<std::string> rest = request.detokenizer->flush();
    if (rest.ok() && append_text(request, rest.value())) reason = FinishReason::kStop;
  }
  if (request.stop_strings != nullptr && !request.stop_strings->stopped()) {
    request.output.text += request.stop_strings->flush();
  }
}

void OutputProcessor::finish(RequestState& request, FinishReason reason) {
  finish_text(request, reason);
  if (reason == FinishReason::kError && request.output.status.ok()) {
    request.output.status = error_of(request, hooks_.device_error());
  }
  if (reason == FinishReason::kStop && !request.embedding.empty()) attach_embedding(request);
  request.output.finished = true;
  request.output.finish_reason = reason;
  request.finished = true;
  request.output.request_finished = --request.group->num_open == 0;
  if (request.output.request_finished) hooks_.forget(*request.group);
  count_finished(request);
  emit(request);
}

// When the first token came, or at the end without one.
void OutputProcessor::count_prompt(RequestState& request) {
  if (std::exchange(request.prompt_counted, true)) return;
  RequestStats prompt;
  prompt.num_prompt_tokens = request.stats.num_prompt_tokens;
  prompt.num_cached_tokens = request.stats.num_cached_tokens;
  change_totals(request, request.sequence.drafter, [&](RequestStats& sum) { sum += prompt; });
}

void OutputProcessor::count_finished(RequestState& request) {
  count_prompt(request);
  // The other counts grew with the events.
  RequestStats rest;
  rest.num_preemptions = request.stats.num_preemptions;
  rest.queue_ns = request.stats.queue_ns;
  change_totals(request, request.sequence.drafter, [&](RequestStats& sum) { sum += rest; });
  if (!request.output.request_finished) return;
  std::lock_guard lock(totals_mutex_);
  ++num_finished_;
}

void OutputProcessor::emit(RequestState& request) {
  RequestOutput& output = request.output;
  output.stats = request.stats;
  attach_prompt_logprobs(request);
  const bool called = call_back(request);
  output.text.clear();
  output.token_ids.clear();
  output.logprobs.clear();
  output.prompt_logprobs.clear();
  output.num_accepted_tokens = 0;
  output.accepted_text_bytes = 0;
  if (called || request.finished) return;
  output.status = invalid_argument("request " + output.request_id +
                                   ": its output callback threw an exception; it may not");
  request.group->end_requested.store(true);
  end_here(request, FinishReason::kError);
}

// False when the callback threw; the first time a group's callback does so is logged.
bool OutputProcessor::call_back(RequestState& request) {
  RequestGroup& group = *request.group;
  if (!group.callback) return true;
  std::string reason = "no std::exception";
  try {
    group.callback(request.output);
    return true;
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
  }
  if (!std::exchange(group.callback_threw, true)) {
    FT_LOG(error, "request {}: its output callback threw ({}); the request ends",
           group.request.request_id, reason);
  }
  return false;
}

}  // namespace foretoken
