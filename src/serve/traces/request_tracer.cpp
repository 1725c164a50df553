#include "serve/traces/request_tracer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace foretoken {
namespace {

using std::chrono::steady_clock;

int64_t nanoseconds(steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

double seconds(steady_clock::duration time) {
  return std::chrono::duration<double>(std::max(time, steady_clock::duration())).count();
}

// The time of the clock on the wall when the steady one showed `time`.
int64_t wall_ns(steady_clock::time_point time) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() -
         nanoseconds(steady_clock::now() - time);
}

// As vLLM names what a request asks for.
otlp::Attributes asked_for(const Submission& submission, const std::string& model) {
  const SamplingParams& sampling = submission.request.sampling;
  otlp::Attributes attributes = {{"gen_ai.request.id", submission.answer_id},
                                 {"gen_ai.response.model", model}};
  if (!submission.request.adapter.empty()) {
    attributes.emplace_back("foretoken.request.adapter", submission.request.adapter);
  }
  if (submission.request.pooling != Pooling::kNone) return attributes;
  attributes.emplace_back("gen_ai.request.n", int64_t{sampling.n});
  attributes.emplace_back("gen_ai.request.max_tokens", int64_t{sampling.max_tokens});
  attributes.emplace_back("gen_ai.request.temperature", double{sampling.temperature});
  attributes.emplace_back("gen_ai.request.top_p", double{sampling.top_p});
  return attributes;
}

}  // namespace

TracedRequest::TracedRequest(const Submission& submission, const std::string& model,
                             otlp::TraceSpan span)
    : span_(std::move(span)),
      received_(submission.origin.received),
      submitted_(steady_clock::now()) {
  span_.start_ns = wall_ns(received_);
  span_.attributes = asked_for(submission, model);
}

void TracedRequest::add(const RequestOutput& output) {
  end_ = steady_clock::now();
  if (!output.token_ids.empty()) {
    if (first_token_ == Time{}) first_token_ = end_;
    last_token_ = end_;
  }
  if (!output.status.ok() && !span_.failed) {
    span_.failed = true;
    span_.failure = output.status.message();
  }
  if (!output.finished) return;
  // Choices of one request have one prompt.
  const int64_t num_prompt_tokens = output.stats.num_prompt_tokens;
  const int64_t num_cached_tokens = output.stats.num_cached_tokens;
  sums_ += output.stats;
  sums_.num_prompt_tokens = num_prompt_tokens;
  sums_.num_cached_tokens = num_cached_tokens;
  ++num_sequences_;
  finish_reasons_.emplace_back(finish_reason_name(output.finish_reason));
}

int64_t TracedRequest::unix_ns(Time time) const {
  return span_.start_ns + std::max<int64_t>(nanoseconds(time - received_), 0);
}

TracedRequest::Time TracedRequest::first_step() const {
  const Time step = submitted_ + std::chrono::nanoseconds(sums_.queue_ns);
  return std::min(step, first_token_ == Time{} ? end_ : first_token_);
}

void TracedRequest::add_latencies(otlp::Attributes* attributes) const {
  attributes->emplace_back("gen_ai.latency.e2e", seconds(end_ - received_));
  attributes->emplace_back("gen_ai.latency.time_in_queue",
                           seconds(std::chrono::nanoseconds(sums_.queue_ns)));
  if (first_token_ == Time{}) return;
  attributes->emplace_back("gen_ai.latency.time_to_first_token", seconds(first_token_ - received_));
  attributes->emplace_back("gen_ai.latency.time_in_model_prefill",
                           seconds(first_token_ - first_step()));
  attributes->emplace_back("gen_ai.latency.time_in_model_decode",
                           seconds(last_token_ - first_token_));
  attributes->emplace_back("gen_ai.latency.time_in_model_inference",
                           seconds(last_token_ - first_step()));
}

void TracedRequest::add_counts(bool drafts, otlp::Attributes* attributes) const {
  attributes->emplace_back("gen_ai.usage.prompt_tokens", sums_.num_prompt_tokens);
  attributes->emplace_back("gen_ai.usage.completion_tokens", sums_.num_output_tokens);
  attributes->emplace_back("gen_ai.usage.cached_tokens", sums_.num_cached_tokens);
  attributes->emplace_back("gen_ai.usage.num_sequences", int64_t{num_sequences_});
  attributes->emplace_back("gen_ai.response.finish_reasons", finish_reasons_);
  if (span_.failed) attributes->emplace_back("error.type", std::string("engine"));
  if (sums_.num_preemptions > 0) {
    attributes->emplace_back("foretoken.num_preemptions", sums_.num_preemptions);
  }
  if (!drafts) return;
  attributes->emplace_back("foretoken.spec_decode.num_drafts", sums_.num_drafts);
  attributes->emplace_back("foretoken.spec_decode.num_draft_tokens", sums_.num_draft_tokens);
  attributes->emplace_back("foretoken.spec_decode.num_accepted_tokens", sums_.num_accepted_tokens);
}

otlp::TraceSpan TracedRequest::part(const char* name, Time begin, Time end) const {
  otlp::TraceSpan part;
  part.name = name;
  part.trace_id = span_.trace_id;
  part.span_id = otlp::random_span_id();
  part.parent_id = span_.span_id;
  part.state = span_.state;
  part.start_ns = unix_ns(begin);
  part.end_ns = std::max(unix_ns(end), part.start_ns);
  return part;
}

std::vector<otlp::TraceSpan> TracedRequest::spans(bool detailed, bool drafts) const {
  std::vector<otlp::TraceSpan> spans = {span_};
  otlp::TraceSpan& whole = spans.front();
  whole.end_ns = unix_ns(end_);
  add_latencies(&whole.attributes);
  add_counts(drafts, &whole.attributes);
  if (!detailed) return spans;
  spans.push_back(part("llm_request.input", received_, submitted_));
  spans.push_back(part("llm_request.queue", submitted_, first_step()));
  if (first_token_ == Time{}) return spans;
  spans.push_back(part("llm_request.prefill", first_step(), first_token_));
  spans.push_back(part("llm_request.decode", first_token_, last_token_));
  return spans;
}

RequestTracer::RequestTracer(const TraceOptions& options, std::string model, bool drafts, Take take)
    : sampler_(options.settings.sampler),
      detailed_(options.detailed),
      model_(std::move(model)),
      drafts_(drafts),
      take_(std::move(take)) {}

void RequestTracer::add_request(const Submission& submission) {
  const RequestOrigin& origin = submission.origin;
  const std::optional<otlp::TraceContext> parent =
      otlp::parse_trace_context(origin.traceparent, origin.tracestate);
  otlp::TraceSpan span;
  span.trace_id = parent ? parent->trace_id : otlp::random_trace_id();
  if (!sampler_.samples(parent ? &*parent : nullptr, span.trace_id)) return;
  span.name = "llm_request";
  span.kind = otlp::TraceSpan::Kind::kServer;
  span.span_id = otlp::random_span_id();
  if (parent) {
    span.parent_id = parent->span_id;
    span.parent_is_remote = true;
    span.state = parent->state;
  }
  const std::lock_guard lock(mutex_);
  running_.try_emplace(submission.request.request_id, submission, model_, std::move(span));
}

void RequestTracer::drop_request(const std::string& request_id) {
  const std::lock_guard lock(mutex_);
  running_.erase(request_id);
}

void RequestTracer::add_output(const RequestOutput& output) {
  std::vector<otlp::TraceSpan> spans;
  {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(output.request_id);
    if (found == running_.end()) return;
    found->second.add(output);
    if (!output.request_finished) return;
    spans = found->second.spans(detailed_, drafts_);
    running_.erase(found);
  }
  for (otlp::TraceSpan& span : spans) take_(std::move(span));
}

}  // namespace foretoken
