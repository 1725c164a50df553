#include "engine/output_processor.h"

#include <algorithm>

#include "base/result.h"
#include "base/thread_role.h"

namespace foretoken {
namespace {

void add(RequestStats& sum, const OutputEvent& event) {
  if (event.num_ids > 0) ++sum.num_steps;
  if (event.num_drafted > 0) ++sum.num_drafts;
  sum.num_draft_tokens += event.num_drafted;
  sum.num_accepted_tokens += event.num_accepted;
  sum.num_output_tokens += event.num_ids;
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

OutputProcessor::OutputProcessor(OutputRing& ring, Intake& intake, Hooks hooks)
    : ring_(ring), intake_(intake), hooks_(std::move(hooks)) {}

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

int64_t OutputProcessor::num_finished() const {
  std::lock_guard lock(totals_mutex_);
  return num_finished_;
}

void OutputProcessor::main() {
  set_thread_role(ThreadRole::kOutput, "ft-output");
  for (OutputEvent event; ring_.pop(event);) {
    handle(event);
    if (event.released) delete event.request;
  }
}

void OutputProcessor::handle(const OutputEvent& event) {
  RequestState& request = *event.request;
  if (request.finished) return;
  count(request, event);
  append_ids(request, event);
  if (request.finished) return;
  if (event.finish != FinishReason::kNone) {
    finish(request, event.finish);
  } else if (!request.output.token_ids.empty()) {
    emit(request);
  }
}

void OutputProcessor::count(RequestState& request, const OutputEvent& event) {
  RequestStats& stats = request.stats;
  if (event.num_cached_tokens >= 0 && event.num_preemptions == 0) {
    stats.num_cached_tokens = event.num_cached_tokens;
  }
  stats.num_preemptions = std::max<int64_t>(stats.num_preemptions, event.num_preemptions);
  add(stats, event);
  std::lock_guard lock(totals_mutex_);
  add(totals_, event);
}

// Stop ids are kept among the ids but leave no text; min_tokens puts off stop strings.
void OutputProcessor::append_ids(RequestState& request, const OutputEvent& event) {
  for (int i = 0; i < event.num_ids && !request.finished; ++i) {
    request.output.token_ids.push_back(event.ids[i]);
    const bool is_stop_id = event.finish == FinishReason::kStop && i + 1 == event.num_ids;
    if (is_stop_id) {
      const SamplingParams& sampling = request.request.sampling;
      const auto& stops = sampling.stop_token_ids;
      if (std::find(stops.begin(), stops.end(), event.ids[i]) != stops.end()) {
        request.output.stop_reason = std::to_string(event.ids[i]);
      }
      if (!sampling.include_stop_str_in_output) continue;
    }
    if (request.detokenizer == nullptr) continue;
    Result<std::string> piece = request.detokenizer->append(event.ids[i]);
    if (!piece.ok()) {
      request.output.status = piece.status();
      end_here(request, FinishReason::kError, event.num_ids - 1 - i);
    } else if (append_text(request, piece.value())) {
      end_here(request, FinishReason::kStop, event.num_ids - 1 - i);
    }
  }
}

// An end that the engine thread does not know of yet; the event's last ids are dropped.
void OutputProcessor::end_here(RequestState& request, FinishReason reason, int num_dropped) {
  request.stats.num_output_tokens -= num_dropped;
  {
    std::lock_guard lock(totals_mutex_);
    totals_.num_output_tokens -= num_dropped;
  }
  finish(request, reason);
  request.end_requested.store(true);
  intake_.announce_end();
}

// True when a stop string ended the text.
bool OutputProcessor::append_text(RequestState& request, std::string_view piece) {
  const int64_t num_tokens = request.output.stats.num_output_tokens +
                             static_cast<int64_t>(request.output.token_ids.size());
  if (request.stop_strings == nullptr || num_tokens <= request.request.sampling.min_tokens) {
    request.output.text += piece;
    return false;
  }
  StopStrings::Output found = request.stop_strings->append(piece);
  request.output.text += found.text;
  if (!found.matched) return false;
  request.output.stop_reason = request.request.sampling.stop[*found.matched];
  return true;
}

void OutputProcessor::finish(RequestState& request, FinishReason reason) {
  if (request.detokenizer != nullptr && reason != FinishReason::kError &&
      (request.stop_strings == nullptr || !request.stop_strings->stopped())) {
    const Result<std::string> rest = request.detokenizer->flush();
    if (rest.ok() && append_text(request, rest.value())) reason = FinishReason::kStop;
  }
  if (request.stop_strings != nullptr && !request.stop_strings->stopped()) {
    request.output.text += request.stop_strings->flush();
  }
  if (reason == FinishReason::kError && request.output.status.ok()) {
    const Status device = hooks_.device_error();
    request.output.status =
        device.ok() ? internal_error("request " + request.request.request_id +
                                     ": a token had no valid probability (NaN logits or "
                                     "every token masked)")
                    : device;
  }
  request.output.finished = true;
  request.output.finish_reason = reason;
  request.finished = true;
  hooks_.forget(request);
  {
    std::lock_guard lock(totals_mutex_);
    ++num_finished_;
    totals_.num_prompt_tokens += request.stats.num_prompt_tokens;
    totals_.num_cached_tokens += request.stats.num_cached_tokens;
    totals_.num_preemptions += request.stats.num_preemptions;
  }
  emit(request);
}

void OutputProcessor::emit(RequestState& request) {
  RequestOutput& output = request.output;
  output.stats = request.stats;
  if (request.callback) request.callback(output);
  output.text.clear();
  output.token_ids.clear();
}

}  // namespace foretoken
