#include "engine/step/clocks/step_trace.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "device/arena.h"
#include "kernels/step/mark_time.h"

namespace foretoken {
namespace {

constexpr size_t kEventsOfALane = 262144;
constexpr int kNumComparisons = 30;

}  // namespace

TraceDetails step_details(const StepPlan& plan) {
  static constexpr TraceDetails::Names kNames = {"sequences", "rows",         "prompt rows",
                                                 "drafting",  "draft passes", "catch-up rows"};
  DraftUse all;
  for (const DraftUse& use : plan.drafts) {
    all.num_spans += use.num_spans;
    all.num_draft_tokens = std::max(all.num_draft_tokens, use.num_draft_tokens);
    all.catch_up_rows += use.catch_up_rows;
  }
  return {&kNames,
          {static_cast<int32_t>(plan.spans.size()), plan.num_rows, plan.num_new_ids, all.num_spans,
           all.num_draft_tokens, all.catch_up_rows}};
}

Result<std::unique_ptr<StepTrace>> StepTrace::start(const std::string& path, Device& device,
                                                    Queue& queue, const ProfilerRanges& ranges) {
  std::unique_ptr<StepTrace> trace(new StepTrace());
  FT_ASSIGN_OR_RETURN(trace->trace_, Trace::create(path, kEventsOfALane, ranges));
  trace->engine_ = trace->trace_->add_lane("engine");
  trace->output_ = trace->trace_->add_lane("output");
  trace->device_ = trace->trace_->add_lane("device");
  FT_RETURN_IF_ERROR(trace->compare_clocks(device, queue));
  return trace;
}

// The device marks its time somewhere between two looks at the host's clock; the closest looks tell
// most.
Status StepTrace::compare_clocks(Device& device, Queue& queue) {
  Arena pinned(device, MemoryKind::kPinned);
  FT_ASSIGN_OR_RETURN(int64_t* mark, pinned.take_array<int64_t>(1, "a time mark"));
  int64_t closest = INT64_MAX;
  for (int i = 0; i < kNumComparisons; ++i) {
    const int64_t before = now_ns();
    mark_time(queue, {mark});
    FT_RETURN_IF_ERROR(queue.drain());
    const int64_t after = now_ns();
    if (after - before >= closest) continue;
    closest = after - before;
    offset_ns_ = before + (after - before) / 2 - *mark;
  }
  return {};
}

void StepTrace::add_step(uint64_t step, int64_t begin_ns, int64_t published_ns, int64_t end_ns,
                         const TraceDetails& details) {
  device_->add("step", begin_ns + offset_ns_, published_ns + offset_ns_, step, details);
  if (end_ns > published_ns) {
    device_->add("draft", published_ns + offset_ns_, end_ns + offset_ns_, step);
  }
  if (num_steps_ == 0) first_begin_ns_ = begin_ns;
  ++num_steps_;
  busy_ns_ += std::max(end_ns, published_ns) - begin_ns;
  last_end_ns_ = std::max(end_ns, published_ns);
}

Status StepTrace::finish(const OpTracer* ops) {
  if (ops != nullptr) ops->add_to(trace_->add_lane("device ops"), offset_ns_);
  std::vector<Trace::Fact> facts = {{"steps", static_cast<double>(num_steps_)}};
  if (last_end_ns_ > first_begin_ns_) {
    const double share =
        static_cast<double>(busy_ns_) / static_cast<double>(last_end_ns_ - first_begin_ns_);
    facts.push_back({"share of the time that the device was busy", share});
  }
  FT_RETURN_IF_ERROR(trace_->write(facts));
  if (trace_->path().empty()) return {};
  FT_LOG(info, "wrote {} steps to {}; chrome://tracing and ui.perfetto.dev show it", num_steps_,
         trace_->path());
  return {};
}

}  // namespace foretoken
