#include "sched/serving_world.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace foretoken {
namespace {

struct StepTime {
  int rows;
  double ms;
};

// `bench forward` of one prompt: steps of up to so many rows.
constexpr std::array<StepTime, 14> kSteps{{{16, 3.9},
                                           {64, 4.2},
                                           {128, 5.4},
                                           {192, 6.9},
                                           {256, 7.6},
                                           {384, 11.6},
                                           {512, 13.2},
                                           {640, 18.9},
                                           {768, 20.5},
                                           {1024, 24.2},
                                           {1280, 33.5},
                                           {1536, 40.0},
                                           {1792, 44.4},
                                           {2048, 49.3}}};

double rows_ms(int rows) {
  constexpr double kLeastBehind = 7;  // of rows that begin another wave
  const int last = kSteps.back().rows;
  const double whole = rows / last * kSteps.back().ms;
  const int rest = rows % last;
  if (rest == 0) return whole;
  const auto fits = [&](const StepTime& time) { return rest <= time.rows; };
  const double ms = std::find_if(kSteps.begin(), kSteps.end(), fits)->ms;
  return whole > 0 ? whole + std::max(ms, kLeastBehind) : ms;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double p99(std::vector<double> values) {
  const auto at = static_cast<ptrdiff_t>(0.99 * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

}  // namespace

ServingWorld::Times ServingWorld::run(const Load& load) {
  std::mt19937 random(load.seed);
  std::exponential_distribution<double> pause(load.rate / 1000);
  std::uniform_int_distribution<int> length(load.shortest, load.longest);
  double now = 0;
  for (int i = 0; i < load.num_requests; ++i) {
    auto& request = *requests_.emplace_back(std::make_unique<Request>());
    now += pause(random);
    request.arrival = now;
    request.sequence.prompt_len = length(random);
    request.sequence.max_len = request.sequence.prompt_len + load.output_len;
    for (int id = 0; id < request.sequence.prompt_len; ++id) {
      request.sequence.tokens.push_back(i * 7 + id);
    }
  }
  now = 0;
  while (num_arrived_ < requests_.size() || !scheduler_.idle()) {
    arrive(now);
    const bool planned = submit(now);
    if (in_flight_.size() == 2 || (!planned && !in_flight_.empty())) {
      now = std::max(now, in_flight_.front().end);
      finish(in_flight_.front());
      in_flight_.pop_front();
    } else if (!planned) {
      now = std::max(now, requests_[num_arrived_]->arrival);
    }
  }
  return {mean(first_), p99(first_), mean(gaps_), p99(gaps_)};
}

void ServingWorld::arrive(double now) {
  for (; num_arrived_ < requests_.size() && requests_[num_arrived_]->arrival <= now;
       ++num_arrived_) {
    scheduler_.add(requests_[num_arrived_]->sequence);
    requests_[num_arrived_]->sequence.owner = requests_[num_arrived_].get();
  }
}

bool ServingWorld::submit(double now) {
  Step step;
  // What a pacer would grant long prompts.
  if (!scheduler_.plan(step.plan, {}, {.beside = 230, .alone = 8192})) return false;
  step.end = std::max(now, device_free_) + step_ms(step.plan);
  device_free_ = step.end;
  in_flight_.push_back(std::move(step));
  return true;
}

double ServingWorld::step_ms(const StepPlan& plan) const {
  constexpr double kReadMs = 131072 / 3.8e9;           // keys and values of a token
  constexpr double kScoreMs = 4.0 * 4096 * 32 / 4e11;  // of a row and a token
  double ms = rows_ms(plan.num_rows) + 0.3;
  for (const Span& span : plan.spans) {
    const double known = span.first_new_id >= 0 ? span.first_new_id : span.sequence->len_floor();
    ms += span.num_tokens == 1 ? kReadMs * known + 0.015 : kScoreMs * span.num_tokens * known;
  }
  return ms;
}

void ServingWorld::finish(const Step& step) {
  constexpr std::array<int32_t, 1> kId{7};
  for (const Span& span : step.plan.spans) {
    auto& request = *static_cast<Request*>(span.sequence->owner);
    Scheduler::Outcome outcome;
    if (span.samples) {
      outcome.ids = kId;
      outcome.ended = request.sequence.known_len() + 1 == request.sequence.max_len;
      (request.last < 0 ? first_ : gaps_)
          .push_back(step.end - (request.last < 0 ? request.arrival : request.last));
      request.last = step.end;
    }
    (void)scheduler_.reconcile(span, outcome);
  }
}

}  // namespace foretoken
