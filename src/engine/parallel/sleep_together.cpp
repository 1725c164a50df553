#include "engine/parallel/sleep_together.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "base/result.h"

namespace foretoken {

// Engines that have experts together come to rest together, so that none may wait for another to
// be asked.
Status SleepTogether::sleep(int level, bool ends_requests, int64_t* bytes,
                            const std::stop_token& recall) {
  begin_call();
  std::stop_source any;
  const std::stop_callback recalled(recall, [&] { any.request_stop(); });
  std::vector<int64_t> freed(engines_.size());
  const Status status = ask_all([&](size_t i) {
    const Status own = engines_[i]->sleep(level, ends_requests, &freed[i], any.get_token());
    if (!own.ok()) any.request_stop();
    return own;
  });
  FT_RETURN_IF_ERROR(end_call(status));
  if (bytes != nullptr) *bytes = std::accumulate(freed.begin(), freed.end(), int64_t{0});
  return {};
}

Status SleepTogether::wake_up(const std::vector<std::string>& tags) {
  begin_call();
  return end_call(ask_all([&](size_t i) { return engines_[i]->wake_up(tags); }));
}

void SleepTogether::begin_call() {
  const std::lock_guard lock(mutex_);
  ++num_begun_;
  if (num_calls_++ == 0) before_ = levels();
}

// Whoever is the last sees to the levels, again where others have come and gone meanwhile.
Status SleepTogether::end_call(Status own) {
  std::unique_lock lock(mutex_);
  while (num_calls_ == 1) {
    const uint64_t begun = num_begun_;
    const std::vector<int> before = before_;
    lock.unlock();
    own = settle(before, own);
    lock.lock();
    if (num_begun_ == begun) break;
  }
  --num_calls_;
  return own;
}

// Where some engines are awake and others are not, all do as before; where weights of some are lost
// those of all are.
Status SleepTogether::settle(const std::vector<int>& before, const Status& own) {
  std::vector<int> now = levels();
  if (std::ranges::adjacent_find(now, std::not_equal_to()) == now.end()) return own;
  Status status = own;
  if (std::ranges::find(now, 0) != now.end()) {
    const Status overlapped =
        aborted("other calls to sleep or to wake up came meanwhile; the engines do as before");
    status = go_back(before, own.ok() ? overlapped : own);
    now = levels();
  }
  if (std::ranges::find(now, 2) == now.end()) return status;
  const Status fell = ask_all(
      [&](size_t i) { return now[i] == 1 ? engines_[i]->sleep(2, true, nullptr, {}) : Status(); });
  return status.ok() ? fell : status;
}

// After `why`: engines that were awake are again, and those that slept do.
Status SleepTogether::go_back(const std::vector<int>& before, const Status& why) {
  const std::vector<int> now = levels();
  const Status back = ask_all([&](size_t i) {
    if (before[i] == 0 && now[i] > 0) return engines_[i]->wake_up({});
    if (before[i] > 0 && now[i] == 0) return engines_[i]->sleep(before[i], false, nullptr, {});
    return Status();
  });
  if (back.ok()) return why;
  return {why.code(), why.message() + "; and, going back, " + back.message()};
}

std::vector<int> SleepTogether::levels() const {
  std::vector<int> levels;
  for (const auto& engine : engines_) levels.push_back(engine->stats().sleep_level);
  return levels;
}

// Asks all engines at once, by their place; the error of the first one that is no recall.
Status SleepTogether::ask_all(const std::function<Status(size_t)>& ask) const {
  std::vector<Status> told(engines_.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < engines_.size(); ++i) {
      threads.emplace_back([&, i] { told[i] = ask(i); });
    }
  }
  Status first;
  for (size_t i = 0; i < told.size(); ++i) {
    const bool says_more = first.ok() || first.code() == StatusCode::kAborted;
    if (told[i].ok() || (!first.ok() && told[i].code() == StatusCode::kAborted)) continue;
    if (says_more)
      first = {told[i].code(), "engine " + std::to_string(i) + ": " + told[i].message()};
  }
  return first;
}

}  // namespace foretoken
