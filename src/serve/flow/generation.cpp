#include "serve/flow/generation.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text/ascii_text.h"
#include "serve/answer/sse.h"
#include "serve/openai/openai_response.h"

namespace foretoken {
namespace {

// Bytes that a connection may hold unsent before events are gathered.
constexpr size_t kMaxUnsent = 64 * 1024;
constexpr int kTimeout = 504;

ServeError error_of(const Status& status) {
  if (status.code() == StatusCode::kAborted) return {kTimeout, status};
  return status;
}

http::Headers error_headers(const ServeError& error) {
  if (error.retry_after == 0) return {};
  return {{"Retry-After", std::to_string(error.retry_after)}};
}

// A value of the header that is no number is passed over.
std::optional<int> named_engine(const http::Request& request) {
  const std::string_view text = request.header("x-data-parallel-rank");
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number =
      !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (is_number) return number;
  return request.port_number >= 0 ? std::optional<int>(request.port_number) : std::nullopt;
}

}  // namespace

RequestOrigin origin_of(const http::Request& request) {
  RequestOrigin origin;
  origin.received = request.received;
  origin.traceparent = request.header("traceparent");
  origin.engine = named_engine(request);
  // Its members may come in several headers.
  for (const auto& [name, value] : request.headers) {
    if (lower_case(name) != "tracestate") continue;
    origin.tracestate += (origin.tracestate.empty() ? "" : ",") + value;
  }
  return origin;
}

Generation::Generation(const Parts& parts, GenerationJob job)
    : parts_(parts), job_(std::move(job)) {
  parts_.list.created();
  for (const Request& request : job_.requests) {
    One& one = all_.emplace_back();
    const int num_choices = std::max(request.sampling.n, 1);
    one.engine_id = make_openai_id("req");
    if (job_.beam_length_penalty) {
      one.beams = std::make_shared<BeamSearch>(parts_.engine, *job_.beam_length_penalty);
    }
    one.sum = OutputSum(num_choices);
    one.pending.resize(static_cast<size_t>(num_choices));
  }
  num_open_ = all_.size();
}

std::shared_ptr<Generation> Generation::start(const Parts& parts, GenerationJob job) {
  auto generation = std::make_shared<Generation>(parts, std::move(job));
  parts.list.add(generation->id(), generation);
  if (generation->job_.exchange != nullptr) {
    generation->job_.exchange->when_gone([weak = std::weak_ptr<Generation>(generation)] {
      if (const auto alive = weak.lock()) alive->abort();
    });
  }
  generation->submit_all();
  return generation;
}

void Generation::submit_all() {
  for (size_t i = 0; i < all_.size(); ++i) {
    Request request = std::move(job_.requests[i]);
    request.request_id = all_[i].engine_id;
    request.data_parallel_rank = job_.origin.engine;
    if (parts_.observer.on_submit) {
      const std::string number = all_.size() > 1 ? "-" + std::to_string(i) : "";
      parts_.observer.on_submit({request, job_.id + number, job_.origin});
    }
    OutputCallback callback = [self = shared_from_this(), i](const RequestOutput& output) {
      self->receive(i, output);
    };
    const Status status = all_[i].beams != nullptr
                              ? all_[i].beams->start(std::move(request), std::move(callback))
                              : parts_.engine.submit(std::move(request), std::move(callback));
    if (status.ok()) continue;
    if (parts_.observer.on_refused) parts_.observer.on_refused(all_[i].engine_id);
    fail(status);
    return abort();
  }
  // The client may have gone, or ended the requests, before the engine knew them.
  if (aborted_.load() || (job_.exchange != nullptr && job_.exchange->gone())) abort();
}

Generation::~Generation() {
  parts_.list.remove(job_.id, this);
  parts_.list.destroyed();
}

bool Generation::has_output() {
  std::lock_guard lock(mutex_);
  return has_output_;
}

void Generation::abort() {
  aborted_.store(true);
  for (const One& one : all_) {
    if (one.beams != nullptr) {
      one.beams->abort();
    } else {
      parts_.engine.abort(one.engine_id);
    }
  }
}

void Generation::fail(const Status& status) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || !error_.ok()) return;
    error_ = status;
    if (std::exchange(posted_, true)) return;
  }
  post_answer();
}

void Generation::post_answer() {
  if (job_.stream) {
    job_.exchange->post([self = shared_from_this()] { self->drain(); });
  } else {
    parts_.pool.post([self = shared_from_this()] { self->answer_whole(); });
  }
}

void Generation::receive(size_t index, const RequestOutput& output) {
  if (parts_.observer.on_output) parts_.observer.on_output(output);
  bool due = false;
  {
    std::lock_guard lock(mutex_);
    One& one = all_[index];
    if (ended_ || one.finished) return;
    if (!output.status.ok() && error_.ok()) error_ = output.status;
    if (job_.stream) {
      due = add_pending(one, output);
    } else {
      one.sum.add(output);
    }
    if (!std::exchange(has_output_, true)) job_.ticket.started();
    one.finished = output.request_finished;
    if (one.finished) --num_open_;
    due = due || num_open_ == 0 || !error_.ok();
    if (!due || posted_) return;
    posted_ = true;
  }
  post_answer();
}

// Whether there is enough for an event.
bool Generation::add_pending(One& one, const RequestOutput& output) {
  const auto choice = static_cast<size_t>(std::max(output.index, 0));
  if (choice >= one.pending.size()) return false;
  Pending& pending = one.pending[choice];
  pending.news.add(output);
  pending.any = true;
  return is_due(pending);
}

bool Generation::is_due(const Pending& pending) const {
  const auto num_tokens = static_cast<int>(pending.news.output.token_ids.size());
  return pending.any &&
         (!pending.begun || pending.news.output.finished || num_tokens >= job_.stream_interval);
}

void Generation::drain() {
  http::Exchange& exchange = *job_.exchange;
  if (exchange.num_queued_bytes() > kMaxUnsent && !exchange.gone()) {
    return exchange.when_sent([self = shared_from_this()] { self->drain(); });
  }
  std::vector<std::pair<size_t, ChoiceOutput>> news;
  bool last = false;
  Status error;
  {
    std::lock_guard lock(mutex_);
    posted_ = false;
    if (ended_) return;
    for (size_t i = 0; i < all_.size(); ++i) {
      for (Pending& pending : all_[i].pending) {
        const bool is_last = pending.any && !error_.ok();
        if (!is_last && !is_due(pending)) continue;
        news.emplace_back(i, std::exchange(pending.news, {}));
        pending.any = false;
        pending.begun = true;
      }
    }
    error = error_;
    last = num_open_ == 0 || !error.ok();
    ended_ = last;
  }
  try {
    if (!error.ok()) {
      write_before_error(std::move(news));
      answer_error(error_of(error));
      return abort();
    }
    write_events(std::move(news), last);
  } catch (const std::exception& fault) {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    answer_error(internal_error(std::string("the answer could not be written: ") + fault.what()));
    abort();
  }
}

void Generation::begin_stream() {
  if (std::exchange(stream_begun_, true)) return;
  const auto begin = job_.format->streams_lines() ? begin_lines : begin_events;
  begin(*job_.exchange, job_.headers);
}

void Generation::keep_alive(std::chrono::milliseconds silence) {
  const auto now = std::chrono::steady_clock::now();
  if (!job_.stream || job_.format->streams_lines() || now - last_write_.load() < silence) return;
  job_.exchange->post([self = shared_from_this(), silence] { self->write_comment(silence); });
}

void Generation::write_comment(std::chrono::milliseconds silence) {
  http::Exchange& exchange = *job_.exchange;
  const auto now = std::chrono::steady_clock::now();
  if (exchange.num_queued_bytes() > 0 || now - last_write_.load() < silence) return;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
  }
  begin_stream();
  exchange.write(": keep-alive\n\n");
  last_write_.store(now);
}

void Generation::write_events(std::vector<std::pair<size_t, ChoiceOutput>> news, bool last) {
  http::Exchange& exchange = *job_.exchange;
  begin_stream();
  std::string events;
  for (const auto& [index, output] : news) events += job_.format->events(index, output);
  if (last) events += job_.format->last_events();
  if (!events.empty()) {
    exchange.write(std::move(events));
    last_write_.store(std::chrono::steady_clock::now());
  }
  if (!last) return;
  exchange.end();
  finish();
}

// Tokens of the step that failed, as those accepted from drafts. A stream that has not begun
// answers with the error alone.
void Generation::write_before_error(std::vector<std::pair<size_t, ChoiceOutput>> news) {
  if (!stream_begun_) return;
  std::erase_if(news, [](const auto& piece) { return piece.second.output.token_ids.empty(); });
  for (auto& [index, piece] : news) {
    piece.output.finished = false;
    piece.output.finish_reason = FinishReason::kNone;
    piece.output.status = {};
  }
  write_events(std::move(news), false);
}

void Generation::answer_whole() {
  Status error;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    error = error_;
  }
  if (!error.ok()) {
    answer_error(error_of(error));
    return abort();
  }
  std::vector<const OutputSum*> sums;
  for (const One& one : all_) sums.push_back(&one.sum);
  try {
    std::string body = job_.format->whole(sums);
    if (job_.exchange != nullptr) {
      job_.exchange->respond(200, "application/json", std::move(body), job_.headers);
    }
    finish();
  } catch (const std::exception& fault) {
    answer_error(internal_error(std::string("the answer could not be written: ") + fault.what()));
  }
}

// Once, after ended_ was set.
void Generation::answer_error(const ServeError& error) {
  if (error.http == 500) FT_LOG(warn, "{}: {}", job_.id, error.status.message());
  if (job_.exchange != nullptr && stream_begun_) {
    job_.exchange->write(job_.format->error_events(error));
    job_.exchange->end();
  } else {
    std::string body = job_.format->error(error);
    if (job_.exchange != nullptr) {
      job_.exchange->respond(error.http, "application/json", std::move(body), error_headers(error));
    }
  }
  finish();
}

void Generation::finish() {
  job_.ticket.release();
  parts_.list.remove(job_.id, this);
}

}  // namespace foretoken
