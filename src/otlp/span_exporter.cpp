#include "otlp/span_exporter.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "net/client.h"
#include "otlp/export_request.h"

namespace foretoken::otlp {
namespace {

using std::chrono::steady_clock;

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kLastSending{2'000};

net::ClientOptions client_options(const TraceSettings& settings) {
  net::ClientOptions options;
  options.uses_proxies = true;
  options.ca_file = settings.ca_file;
  options.certificate_remedy =
      "name the certificates that are trusted in OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE";
  options.connect_timeout = settings.timeout;
  options.request_timeout = settings.timeout;
  return options;
}

net::ClientRequest post_of(const TraceSettings& settings, std::string body) {
  net::ClientRequest request;
  request.path = settings.address;
  request.headers = settings.headers;
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.body = std::move(body);
  return request;
}

// As OTLP says it.
bool may_change_its_mind(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

SpanExporter::SpanExporter(TraceSettings settings)
    : settings_(std::move(settings)), thread_([this] { run(); }) {}

SpanExporter::~SpanExporter() { stop(); }

void SpanExporter::add(TraceSpan span) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= settings_.max_queued_spans) {
      ++counts_.num_dropped;
      return;
    }
    queue_.push_back(std::move(span));
    if (queue_.size() != 1 && queue_.size() != settings_.max_batch_spans) return;
  }
  news_.notify_all();
}

SpanCounts SpanExporter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void SpanExporter::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(stopping_, true)) last_moment_ = steady_clock::now() + kLastSending;
  }
  news_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SpanExporter::run() {
  pthread_setname_np(pthread_self(), "ft-spans");
  net::Client client(client_options(settings_));
  for (;;) {
    const std::vector<TraceSpan> batch = wait_for_batch();
    if (batch.empty()) return;
    if (!export_batch(client, batch)) drop_queue();
  }
}

// Empty once the exporter stops and all was taken.
std::vector<TraceSpan> SpanExporter::wait_for_batch() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  news_.wait_for(lock, settings_.delay,
                 [this] { return stopping_ || queue_.size() >= settings_.max_batch_spans; });
  const size_t count = std::min(queue_.size(), settings_.max_batch_spans);
  const auto end = queue_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<TraceSpan> batch(std::make_move_iterator(queue_.begin()),
                               std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

// Whether the collector took it.
bool SpanExporter::export_batch(net::Client& client, const std::vector<TraceSpan>& batch) {
  const std::string body = export_request(settings_.resource, batch);
  Outcome outcome;
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    outcome = send(client, body);
    if (outcome.sent || !outcome.may_change || !wait_before_next(attempt)) break;
  }
  count(batch.size(), outcome);
  return outcome.sent;
}

SpanExporter::Outcome SpanExporter::send(net::Client& client, const std::string& body) {
  int status = 0;
  Status end;
  net::ClientHandlers handlers;
  handlers.on_head = [&status](int code, const net::Headers&) { status = code; };
  handlers.on_end = [&](const Status& of_end) {
    end = of_end;
    client.stop();
  };
  client.send(post_of(settings_, body), std::move(handlers));
  watch(client);
  client.run();
  Outcome outcome;
  if (!end.ok()) {
    outcome.may_change = end.code() != StatusCode::kInvalidArgument;
    outcome.why = end.message();
  } else if (status >= 200 && status < 300) {
    outcome.sent = true;
  } else {
    outcome.may_change = may_change_its_mind(status);
    outcome.why = "it answered " + std::to_string(status);
  }
  return outcome;
}

// Ends a sending that lasts beyond the end of the exporter.
void SpanExporter::watch(net::Client& client) {
  constexpr std::chrono::milliseconds kBetweenLooks(50);
  if (is_overdue()) return client.stop();
  client.call_at(steady_clock::now() + kBetweenLooks, [this, &client] { watch(client); });
}

bool SpanExporter::is_overdue() const {
  const std::lock_guard lock(mutex_);
  return stopping_ && steady_clock::now() > last_moment_;
}

// False where there is none: the exporter stops.
bool SpanExporter::wait_before_next(int attempt) {
  std::unique_lock lock(mutex_);
  return attempt < kAttempts &&
         !news_.wait_for(lock, std::chrono::seconds(attempt), [this] { return stopping_; });
}

void SpanExporter::count(size_t num_spans, const Outcome& outcome) {
  SpanCounts so_far;
  {
    const std::lock_guard lock(mutex_);
    (outcome.sent ? counts_.num_sent : counts_.num_dropped) += static_cast<int64_t>(num_spans);
    so_far = counts_;
  }
  const bool was_away = std::exchange(is_away_, !outcome.sent);
  if (was_away == is_away_) return;
  if (is_away_) {
    FT_LOG(warn, "{} takes no spans: {}; they are dropped until it does", settings_.address,
           outcome.why);
  } else {
    FT_LOG(info, "{} takes spans again; {} were dropped so far", settings_.address,
           so_far.num_dropped);
  }
}

// At the end a collector that took nothing is not waited for again.
void SpanExporter::drop_queue() {
  const std::lock_guard lock(mutex_);
  if (!stopping_) return;
  counts_.num_dropped += static_cast<int64_t>(queue_.size());
  queue_.clear();
}

}  // namespace foretoken::otlp
