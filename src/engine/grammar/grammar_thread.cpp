#include "engine/grammar/grammar_thread.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/background.h"
#include "base/clock.h"
#include "base/cpu_clock.h"
#include "base/sleep_exactly.h"
#include "base/spin.h"
#include "base/thread_role.h"

namespace foretoken {
namespace {

constexpr int kSpinsBeforeSleep = 200;
constexpr size_t kMaxAlone = 2;  // spans that are not worth waking somebody for
// The longer a post is waited for, the rarer it is looked for.
constexpr int64_t kPatience = 16;
constexpr int64_t kShortestSleepNs = 20'000;
constexpr int64_t kLongestSleepNs = 500'000;
constexpr double kNewest = 1.0 / 16;  // of the mean time of a step
constexpr double kShare = 0.25;       // of a step, for the masks of one span

uint64_t acquire(uint64_t* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }

void release(uint64_t* word, uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

}  // namespace

GrammarThread::GrammarThread(const MaskExchange& exchange, int64_t slow_ns, int num_helpers,
                             std::function<void()> masks_ready, double repair_share)
    : exchange_(exchange),
      slow_ns_(slow_ns),
      masks_ready_(std::move(masks_ready)),
      repair_pace_(repair_share),
      limit_ns_(slow_ns),
      num_helpers_(num_helpers) {
  spans_.reserve(static_cast<size_t>(exchange.max_spans));
}

GrammarThread::~GrammarThread() { stop(); }

void GrammarThread::start() {
  thread_ = std::thread([this] { main(); });
  slow_thread_ = std::thread([this] { slow_main(); });
  for (int i = 0; i < num_helpers_; ++i) helpers_.emplace_back([this] { helper_main(); });
}

void GrammarThread::stop() {
  {
    std::scoped_lock lock(mutex_, slow_mutex_, help_mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  slow_wake_.notify_all();
  help_wanted_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (slow_thread_.joinable()) slow_thread_.join();
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
}

uint64_t GrammarThread::add(const std::shared_ptr<GrammarSequence>& sequence) {
  std::lock_guard lock(sequences_mutex_);
  if (sequences_.size() >= prune_at_) {
    std::erase_if(sequences_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = std::max<size_t>(1024, sequences_.size() * 2);
  }
  sequences_.emplace(next_number_, sequence);
  return next_number_++;
}

std::shared_ptr<GrammarSequence> GrammarThread::find(uint64_t number) {
  std::lock_guard lock(sequences_mutex_);
  const auto found = sequences_.find(number);
  return found == sequences_.end() ? nullptr : found->second.lock();
}

void GrammarThread::expect(int num_tickets) {
  tickets_each_.store(num_tickets, std::memory_order_relaxed);
  num_expected_.fetch_add(static_cast<uint64_t>(num_tickets));
  if (!parked_.load()) return;
  {
    std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

// Whether every step that was submitted has posted what it had to post.
bool GrammarThread::all_passed() const {
  const uint64_t expected = num_expected_.load();
  return acquire(exchange_.passed) >= expected;
}

// Parks while no step is on its way that could post, and polls otherwise. False: to stop.
bool GrammarThread::wait_for_post() {
  int64_t begin = now_ns();
  for (int spins = 0;; ++spins) {
    const uint64_t passed = acquire(exchange_.passed);
    if (acquire(exchange_.posted) > seen_) return true;
    // Tickets that found no room are over as well.
    release(exchange_.taken, passed);
    if (stopping_.load()) return false;
    if (all_passed()) {
      std::unique_lock lock(mutex_);
      parked_.store(true);
      // A step may have passed already when its announcement is seen.
      wake_.wait(lock, [&] {
        return !all_passed() || acquire(exchange_.posted) > seen_ || stopping_.load();
      });
      parked_.store(false);
      spins = 0;
      begin = now_ns();
      last_post_ns_ = 0;
    } else if (spins < kSpinsBeforeSleep) {
      spin_pause(spins);
    } else {
      const int64_t pause = (now_ns() - begin) / kPatience;
      sleep_exactly(std::clamp(pause, kShortestSleepNs, kLongestSleepNs));
    }
  }
}

void GrammarThread::note_step_time() {
  const int64_t now = now_ns();
  const uint64_t passed = acquire(exchange_.passed);
  if (last_post_ns_ != 0 && passed > last_passed_) {
    const double each = static_cast<double>(now - last_post_ns_) /
                        static_cast<double>(passed - last_passed_) *
                        tickets_each_.load(std::memory_order_relaxed);
    step_ns_ = step_ns_ == 0 ? each : step_ns_ + (each - step_ns_) * kNewest;
    const auto limit = static_cast<int64_t>(step_ns_ * kShare);
    limit_ns_.store(std::clamp(limit, slow_ns_ / kSlowRange, slow_ns_));
  }
  last_post_ns_ = now;
  last_passed_ = passed;
}

void GrammarThread::main() {
  set_thread_role(ThreadRole::kOther, "ft-grammar");
  while (wait_for_post()) {
    note_step_time();
    const uint64_t passed = acquire(exchange_.passed);
    // Only the newest is still of use: nothing was committed by those that had no answer.
    seen_ = acquire(exchange_.posted);
    const uint64_t ticket = seen_ - 1;
    const auto entry = static_cast<int64_t>(ticket % kMaskRing);
    const MaskSpan* spans = exchange_.spans + entry * exchange_.max_spans;
    spans_.assign(spans, spans + exchange_.num_spans[entry]);
    release(exchange_.taken, std::max(seen_, passed));
    const int64_t begin = thread_cpu_ns();
    answer(ticket);
    release(exchange_.answered, seen_);
    note_repairs(thread_cpu_ns() - begin);
    num_tickets_.fetch_add(1, std::memory_order_relaxed);
  }
}

void GrammarThread::note_repairs(int64_t ns) {
  const bool repaired =
      std::ranges::any_of(spans_, [](const MaskSpan& span) { return span.num_repaired > 0; });
  if (repaired) {
    repair_pace_.note_repaired(ns, step_ns_);
  } else {
    repair_pace_.note_step();
  }
  release(exchange_.resting, repair_pace_.rests() ? 1 : 0);
}

// First what costs next to nothing, so that nobody waits for a neighbour without need.
void GrammarThread::answer(uint64_t ticket) {
  work_.clear();
  for (size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].grammar == 0) continue;
    std::shared_ptr<GrammarSequence> sequence = find(spans_[i].grammar);
    if (sequence == nullptr) continue;
    if (sequence->pace.is_slow()) {
      answer_span(ticket, static_cast<int>(i), spans_[i], sequence);
    } else {
      work_.emplace_back(static_cast<int>(i), std::move(sequence));
    }
  }
  next_work_.store(0);
  if (num_helpers_ > 0 && work_.size() > kMaxAlone) {
    share_work(ticket);
  } else {
    work(ticket);
  }
  work_.clear();
}

void GrammarThread::work(uint64_t ticket) {
  for (size_t i = next_work_.fetch_add(1); i < work_.size(); i = next_work_.fetch_add(1)) {
    const auto& [index, sequence] = work_[i];
    answer_span(ticket, index, spans_[static_cast<size_t>(index)], sequence);
  }
}

void GrammarThread::share_work(uint64_t ticket) {
  {
    std::lock_guard lock(help_mutex_);
    help_ticket_ = ticket;
    wants_help_ = true;
  }
  help_wanted_.notify_all();
  work(ticket);
  std::unique_lock lock(help_mutex_);
  wants_help_ = false;
  help_done_.wait(lock, [&] { return num_helping_ == 0; });
}

void GrammarThread::helper_main() {
  set_thread_role(ThreadRole::kOther, "ft-grammar-help");
  std::unique_lock lock(help_mutex_);
  for (;;) {
    help_wanted_.wait(lock, [&] {
      return (wants_help_ && next_work_.load() < work_.size()) || stopping_.load();
    });
    if (stopping_.load()) return;
    ++num_helping_;
    const uint64_t ticket = help_ticket_;
    lock.unlock();
    work(ticket);
    lock.lock();
    if (--num_helping_ == 0) help_done_.notify_all();
  }
}

void GrammarThread::answer_span(uint64_t ticket, int index, const MaskSpan& span,
                                const std::shared_ptr<GrammarSequence>& sequence) {
  std::unique_lock lock(sequence->mutex, std::try_to_lock);
  // The slow thread is at it; what it finds is there when the span comes again.
  if (!lock.owns_lock()) return;
  if (span.num_repaired > 0) return repair_span(ticket, index, span, *sequence);
  sequence->begin(span);
  int num_published = 0;
  publish(ticket, index, *sequence, num_published);
  const int64_t begin = thread_cpu_ns();
  while (!sequence->is_done() && !sequence->pace.is_slow()) {
    sequence->advance();
    publish(ticket, index, *sequence, num_published);
    if (thread_cpu_ns() - begin > limit_ns()) sequence->pace.note_slow();
  }
  if (!sequence->is_done()) hand_over(sequence, span);
}

// The masks that it takes are those of the next step, so they are not published. A slow sequence
// gets no answer: its masks are computed when that step asks for them.
void GrammarThread::repair_span(uint64_t ticket, int index, const MaskSpan& span,
                                GrammarSequence& sequence) {
  if (sequence.pace.is_slow()) return;
  sequence.begin(span);
  const int64_t begin = thread_cpu_ns();
  while (!sequence.is_done() && !sequence.pace.is_slow()) {
    sequence.advance();
    if (thread_cpu_ns() - begin > limit_ns()) sequence.pace.note_slow();
  }
  if (!sequence.is_done()) return;
  std::ranges::copy(sequence.drafts(), exchange_.repairs + int64_t{index} * kMaxDraftTokens);
  const auto entry = static_cast<int64_t>(ticket % kMaskRing);
  release(exchange_.answers + entry * exchange_.max_spans + index,
          mask_answer_word(ticket, sequence.answer()));
}

void GrammarThread::publish(uint64_t ticket, int index, const GrammarSequence& sequence,
                            int& num_published) {
  const MaskAnswer answer = sequence.answer();
  const auto words = static_cast<size_t>(exchange_.mask_words);
  for (; num_published < answer.num_masks; ++num_published) {
    const int64_t row = int64_t{index} * exchange_.rows_each + num_published;
    std::memcpy(exchange_.masks + row * exchange_.mask_words, sequence.row(num_published).data(),
                words * sizeof(uint32_t));
  }
  const auto entry = static_cast<int64_t>(ticket % kMaskRing);
  release(exchange_.answers + entry * exchange_.max_spans + index,
          mask_answer_word(ticket, answer));
}

void GrammarThread::hand_over(std::shared_ptr<GrammarSequence> sequence, const MaskSpan& span) {
  num_slow_spans_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(slow_mutex_);
    std::erase_if(slow_spans_, [&](const SlowSpan& job) { return job.sequence == sequence; });
    if (!sequence->is_awaited.exchange(true)) num_awaited_.fetch_add(1);
    slow_spans_.push_back({std::move(sequence), span});
  }
  slow_wake_.notify_one();
}

void GrammarThread::slow_main() {
  enter_background("ft-grammar-slow");
  for (;;) {
    SlowSpan job;
    {
      std::unique_lock lock(slow_mutex_);
      slow_wake_.wait(lock, [&] { return !slow_spans_.empty() || stopping_.load(); });
      if (stopping_.load()) return;
      job = std::move(slow_spans_.front());
      slow_spans_.pop_front();
    }
    compute(job);
    end_wait(*job.sequence);
  }
}

void GrammarThread::compute(const SlowSpan& job) {
  GrammarSequence& sequence = *job.sequence;
  std::lock_guard lock(sequence.mutex);
  // A newer span may have been begun meanwhile.
  if (!sequence.is_at(job.span)) return;
  const int64_t begin = thread_cpu_ns();
  while (!sequence.is_done() && !stopping_.load()) sequence.advance();
  if (thread_cpu_ns() - begin < limit_ns() / 2) {
    sequence.pace.note_fast();
  } else {
    sequence.pace.note_slow();
  }
}

// Unless a newer span of it waits here.
void GrammarThread::end_wait(GrammarSequence& sequence) {
  {
    std::lock_guard lock(slow_mutex_);
    const bool again = std::any_of(slow_spans_.begin(), slow_spans_.end(), [&](const auto& job) {
      return job.sequence.get() == &sequence;
    });
    if (again) return;
    sequence.is_awaited.store(false);
    num_awaited_.fetch_sub(1);
  }
  if (masks_ready_) masks_ready_();
}

}  // namespace foretoken
