#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "sched/scheduler.h"

namespace foretoken {

// Requests of a server that arrive at random, scheduled as the engine does with two steps in
// flight, on a device whose steps take the times of Llama-3-8B's shape on an H200: what its
// products take by the tiles that they are cut into, keys and values that are read, and some
// microseconds a row. Sequences have no drafts.
class ServingWorld {
 public:
  struct Load {
    double rate = 16;  // requests a second, by Poisson
    int shortest = 1024;
    int longest = 1024;  // prompts, every length alike
    int output_len = 128;
    int num_requests = 400;
    unsigned seed = 1;
  };
  // In milliseconds.
  struct Times {
    double mean_first = 0;  // from arrival to the first token
    double p99_first = 0;
    double mean_token = 0;  // between two tokens
    double p99_token = 0;
  };

  explicit ServingWorld(const SchedulerConfig& config) : scheduler_(config) {}

  Times run(const Load& load);

 private:
  struct Request {
    Sequence sequence;
    double arrival = 0;
    double last = -1;  // its last token came
  };
  struct Step {
    StepPlan plan;
    double end = 0;
  };

  void arrive(double now);
  bool submit(double now);
  double step_ms(const StepPlan& plan) const;
  void finish(const Step& step);

  Scheduler scheduler_;
  std::vector<std::unique_ptr<Request>> requests_;  // by arrival
  size_t num_arrived_ = 0;
  std::deque<Step> in_flight_;
  double device_free_ = 0;
  std::vector<double> first_;
  std::vector<double> gaps_;
};

}  // namespace foretoken
