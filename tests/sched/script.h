#pragma once
#include <deque>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "sched/scheduler.h"
#include "sched/time_bound.h"

namespace foretoken {

// Runs a scheduler against a plain-text script and says where they differ. One command a line:
//   submit NAME prompt=N max=N [drafts=K] [drafter=D] [base=B] [salt=S] [adapter=A] [begin=N]
//     [priority=P] [words=N] [features=F] [scores] [pools] [bypass]    prompt ids are B, B+1, ...
//   plan [limit=N] [rows=N] [spans=N] [missing=N] [class=N]  plans one step with this grant; keys
//     with the number of a drafter behind them grant to that; the lines "span ..." that follow must
//     equal its spans
//   span NAME tokens=N [drafts=K] [limit=N] [rows=N] [hits=N] [samples] [first] [place=N] [all]
//   done NAME=N[!][:M] ...  results of the oldest step: ids committed by each span; ! = it ended;
//     M = entries that the drafter lacks, as reported, otherwise as many as there can be
//   finish NAME     ends it on the host's side
//   pace N M        the rows that paced prompts may have from now on beside others and alone
//   bound N         from now on steps take N ms at most, of which each row takes one
//   hold NAME, let NAME    sets and clears is_held
//   state free=N window_free=N running=N waiting=N slots=N preemptions=N lookups=N    checks (any
//     subset); of the last plan: rows=N logits=N words=N features=F loads=N passes=N catch_up=N
//     drafting=N (and passes1=N ... of drafter 1); what drafter 0 could use next: decoding=N
//     ready=N coming=N fewest=N
class SchedulerScript {
 public:
  explicit SchedulerScript(const SchedulerConfig& config) : config_(config), scheduler_(config) {}

  // The empty string, or the first difference with its line number.
  std::string run(const std::string& script);
  Scheduler& scheduler() { return scheduler_; }

 private:
  std::string command(const std::string& line);
  void submit(std::istringstream& words);
  void bound(std::istringstream& words);
  std::string done(std::istringstream& words);
  std::string state(std::istringstream& words);
  std::vector<DraftGrant> read_grants(std::istringstream& words) const;
  std::string describe(const Span& span) const;

  PacedRows paced_;
  const SchedulerConfig config_;
  CostTable times_;
  std::unique_ptr<TimeBound> bound_;
  Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<Sequence>> sequences_;
  std::deque<StepPlan> in_flight_;
  StepPlan last_;
  size_t next_span_ = 0;
  bool in_plan_ = false;
};

// This configuration with a drafter that has no KV.
inline SchedulerConfig drafting(SchedulerConfig config) {
  config.drafters = {{}};
  return config;
}

// Of a scheduler with this configuration.
inline std::string run(const SchedulerConfig& config, const std::string& script) {
  return SchedulerScript(config).run(script);
}

}  // namespace foretoken
