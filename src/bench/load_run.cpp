#include "bench/load_run.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <random>

#include "bench/answer_reader.h"
#include "bench/server_queries.h"

namespace foretoken::bench {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kWatchEvery{50};
constexpr milliseconds kReadyRetry{500};

steady_clock::duration from_seconds(double seconds) {
  return duration_cast<steady_clock::duration>(duration<double>(seconds));
}

std::string local_time() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
  const std::time_t time = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  localtime_r(&time, &parts);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}", parts, micros);
}

// The requests of one run. Its functions are called by the client's loop.
class Load {
 public:
  Load(net::Client& client, const LoadOptions& options, const std::vector<Sample>& samples)
      : client_(client), options_(options), samples_(samples), records_(samples.size()) {}

  Result<LoadResult> run();

 private:
  using OnDone = std::function<void(RequestRecord record, bool aborted)>;

  Status make_bodies();
  RequestRecord try_once();
  Status wait_until_ready();
  Status warm_up();
  void measure();
  void release_from(size_t i);
  void start(size_t i);
  void send(const std::string& body, const std::string& id, OnDone done);
  void probe();
  void watch();
  void note_rate(size_t i);
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  void switch_profiler(const char* path);

  net::Client& client_;
  const LoadOptions& options_;
  const std::vector<Sample>& samples_;
  std::vector<std::string> bodies_;
  std::string probe_body_;
  steady_clock::time_point origin_ = steady_clock::now();
  steady_clock::time_point give_up_at_ = steady_clock::time_point::max();

  size_t num_running_ = 0;
  size_t num_done_ = 0;
  bool gave_up_ = false;
  bool measuring_ = false;
  std::deque<size_t> waiting_;
  std::vector<double> times_;     // seconds since origin_ at which each is to be released
  std::vector<double> arrivals_;  // and was
  std::vector<std::optional<RequestRecord>> records_;
  LoadResult result_;
};

Status Load::make_bodies() {
  std::mt19937_64 generator(options_.arrivals.seed);
  for (size_t i = 0; i < samples_.size(); ++i) {
    const size_t which = options_.models_in_turn ? i : generator();
    FT_ASSIGN_OR_RETURN(
        std::string body,
        request_body(options_.backend->protocol, options_.models[which % options_.models.size()],
                     samples_[i], options_.fields));
    bodies_.push_back(std::move(body));
  }
  if (options_.probe_rate == 0) return {};
  Sample hello;
  hello.text = "Hi";
  hello.output_len = 1;
  FT_ASSIGN_OR_RETURN(probe_body_, request_body(options_.backend->protocol, options_.models[0],
                                                hello, options_.fields));
  return {};
}

void Load::send(const std::string& body, const std::string& id, OnDone done) {
  net::ClientRequest request{"POST", options_.endpoint, options_.headers, body, milliseconds(0)};
  request.headers.emplace_back("Content-Type", "application/json");
  if (!id.empty()) request.headers.emplace_back("X-Request-Id", id);
  const auto sent = steady_clock::now();
  auto reader = std::make_shared<AnswerReader>(options_.backend->protocol, sent);
  reader->record().start_time = duration<double>(sent - origin_).count();
  net::ClientHandlers handlers;
  handlers.on_head = [reader](int status, const net::Headers& headers) {
    reader->head(status, headers);
  };
  handlers.on_body = [reader](std::string_view bytes) { reader->body(steady_clock::now(), bytes); };
  handlers.on_end = [reader, done = std::move(done)](const Status& status) {
    reader->end(steady_clock::now(), status);
    done(std::move(reader->record()), status.code() == StatusCode::kAborted);
  };
  client_.send(std::move(request), std::move(handlers));
}

// Looks for a signal and for the time, as long as requests are under way.
void Load::watch() {
  const auto now = steady_clock::now();
  gave_up_ = gave_up_ || interrupted();
  if (gave_up_ || now >= give_up_at_) return client_.stop();
  if (measuring_ && options_.progress) options_.progress(num_done_, samples_.size());
  const bool more = measuring_ ? num_done_ < samples_.size() : num_running_ > 0;
  if (more) client_.call_at(now + kWatchEvery, [this] { watch(); });
}

RequestRecord Load::try_once() {
  RequestRecord trial;
  num_running_ = 1;
  send(bodies_[0], "", [&](RequestRecord record, bool was_stopped) {
    if (was_stopped) record.error.clear();
    trial = std::move(record);
    num_running_ = 0;
  });
  watch();
  client_.run();
  return trial;
}

Status Load::wait_until_ready() {
  if (options_.ready_timeout_s == 0) return {};
  tell(fmt::format("Waiting up to {} s for the server", options_.ready_timeout_s));
  give_up_at_ = steady_clock::now() + std::chrono::seconds(options_.ready_timeout_s);
  std::string reason = "no answer to the first request";
  for (;;) {
    const RequestRecord trial = try_once();
    if (gave_up_) return aborted("interrupted");
    if (trial.success) break;
    // One that was stopped says less than one that was answered before.
    if (!trial.error.empty()) reason = trial.error;
    const auto next = steady_clock::now() + kReadyRetry;
    if (next >= give_up_at_) {
      return invalid_argument(fmt::format("the server was not ready within {} s: {}",
                                          options_.ready_timeout_s, reason));
    }
    client_.call_at(next, [] {});
    client_.run();
  }
  give_up_at_ = steady_clock::time_point::max();
  return {};
}

Status Load::warm_up() {
  if (options_.num_warmups == 0) return {};
  tell(fmt::format("Warming up with {} requests", options_.num_warmups));
  int num_left = options_.num_warmups;
  std::string error;
  std::function<void()> next = [&] {
    if (num_left == 0 || gave_up_) return;
    --num_left;
    ++num_running_;
    send(bodies_[0], "", [&](RequestRecord record, bool) {
      --num_running_;
      if (!record.success) error = record.error;
      next();
    });
  };
  const int limit = options_.max_concurrency > 0 ? options_.max_concurrency : num_left;
  for (int i = std::min(limit, num_left); i > 0; --i) next();
  watch();
  client_.run();
  if (gave_up_) return aborted("interrupted");
  if (!error.empty()) tell("A warm-up request failed: " + error);
  return {};
}

void Load::note_rate(size_t i) {
  if (options_.arrivals.ramp_up == RampUp::kNone) return;
  const int rps = static_cast<int>(rate_at(options_.arrivals, i, samples_.size()));
  std::vector<RateChange>& changes = result_.rate_changes;
  if (changes.empty()) changes.push_back({rps, local_time()});
  while (changes.back().rps < rps) changes.push_back({changes.back().rps + 1, local_time()});
}

// Releases all requests from `i` on whose time has come.
void Load::release_from(size_t i) {
  for (; i < samples_.size(); ++i) {
    const auto due = origin_ + from_seconds(times_[i]);
    if (due > steady_clock::now()) {
      return client_.call_at(due, [this, i] { release_from(i); });
    }
    note_rate(i);
    arrivals_[i] = duration<double>(steady_clock::now() - origin_).count();
    const auto limit = static_cast<size_t>(options_.max_concurrency);
    if (limit > 0 && num_running_ >= limit) {
      waiting_.push_back(i);
    } else {
      start(i);
    }
  }
}

void Load::start(size_t i) {
  ++num_running_;
  const std::string& prefix = options_.request_id_prefix;
  const std::string id = prefix.empty() ? "" : prefix + std::to_string(i);
  send(bodies_[i], id, [this, i](RequestRecord record, bool was_stopped) {
    --num_running_;
    ++num_done_;
    record.queue_time = record.start_time - arrivals_[i];
    if (record.prompt_len == 0) record.prompt_len = samples_[i].prompt_len;
    if (!was_stopped) records_[i] = std::move(record);
    result_.duration = duration<double>(steady_clock::now() - origin_).count();
    if (waiting_.empty() || gave_up_) return;
    const size_t next = waiting_.front();
    waiting_.pop_front();
    start(next);
  });
}

void Load::probe() {
  if (num_done_ >= samples_.size() || gave_up_) return;
  send(probe_body_, "", [this](RequestRecord record, bool was_stopped) {
    if (was_stopped) return;
    result_.probes.push_back(std::move(record));
    client_.call_at(steady_clock::now() + from_seconds(1 / options_.probe_rate),
                    [this] { probe(); });
  });
}

void Load::measure() {
  measuring_ = true;
  times_ = arrival_times(options_.arrivals, samples_.size());
  arrivals_.resize(samples_.size());
  origin_ = steady_clock::now();
  release_from(0);
  if (options_.probe_rate > 0) probe();
  watch();
  client_.run();
  measuring_ = false;
  if (gave_up_) result_.duration = duration<double>(steady_clock::now() - origin_).count();
}

void Load::switch_profiler(const char* path) {
  if (!options_.profile) return;
  const WholeAnswer answer = ask_server(client_, "POST", path, options_.headers);
  if (!answer.end.ok()) return tell(std::string(path) + ": " + answer.end.message());
  if (answer.status != 200) tell(fmt::format("{}: HTTP {}", path, answer.status));
}

Result<LoadResult> Load::run() {
  FT_RETURN_IF_ERROR(make_bodies());
  FT_RETURN_IF_ERROR(wait_until_ready());
  FT_RETURN_IF_ERROR(warm_up());
  switch_profiler("/start_profile");
  const std::optional<DraftCounters> before = fetch_draft_counters(client_, options_.headers);
  if (interrupted()) return aborted("interrupted");
  measure();
  result_.drafts = summarise_drafts(before, fetch_draft_counters(client_, options_.headers));
  switch_profiler("/stop_profile");
  for (std::optional<RequestRecord>& record : records_) {
    if (record) {
      result_.records.push_back(std::move(*record));
    } else {
      ++result_.num_unfinished;
    }
  }
  return std::move(result_);
}

}  // namespace

Result<LoadResult> run_load(net::Client& client, const LoadOptions& options,
                            const std::vector<Sample>& samples) {
  if (samples.empty()) return invalid_argument("there are no prompts to send");
  return Load(client, options, samples).run();
}

}  // namespace foretoken::bench
