#include "engine/measure/null_queue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/spin.h"
#include "kernels/plan_layout.h"
#include "kernels/step/mark_time.h"
#include "kernels/step/publish.h"
#include "kernels/step/upload.h"

namespace foretoken {
namespace {

// The ops that tell of a step, and of the time.
using StepOp = std::variant<UploadArgs, PublishArgs, MarkTimeArgs>;

class NullGraph final : public Graph {
 public:
  explicit NullGraph(std::vector<StepOp> ops) : ops_(std::move(ops)) {}
  int num_nodes() const override { return 1; }
  const std::vector<StepOp>& ops() const { return ops_; }

 private:
  const std::vector<StepOp> ops_;
};

// One thread uses it; results are made when a step is enqueued and shown when its time has come.
class NullQueue final : public Queue {
 public:
  explicit NullQueue(const NullQueueConfig& config) : config_(config) {}

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void*, const void*, size_t) override {}
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*)(void*), void*) override {}
  void record(Event event, uint64_t value) override { event.word->store(value); }
  void begin_capture() override { capturing_ = true; }
  std::unique_ptr<Graph> end_capture() override {
    capturing_ = false;
    return std::make_unique<NullGraph>(std::exchange(captured_, {}));
  }
  void replay(Graph& graph) override {
    for (const StepOp& op : static_cast<NullGraph&>(graph).ops()) run(op);
  }
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  // What a device knows of a slot.
  struct Slot {
    int32_t len = 0;
    int32_t computed = 0;
    int32_t max_len = 0;
    int32_t num_draft_tokens = 0;
    bool finished = false;
  };

  template <class Args>
  void take(const void* args, size_t args_bytes);
  void run(const StepOp& op);
  void run_step(const PublishArgs& publish);
  SpanResult result_of(const SpanPlan& span);
  Slot& slot(int32_t index);
  void wait_until(int64_t ns) const;

  const NullQueueConfig config_;
  bool capturing_ = false;
  std::vector<StepOp> captured_;
  UploadArgs upload_{};  // the last one
  // The one place of the device's memory that is kept: the step counter.
  const void* counter_ = nullptr;
  uint64_t step_ = 0;
  std::array<int64_t, kStepRingSize> done_ns_{};  // by step
  int64_t last_done_ns_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(4096);
};

void NullQueue::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  if (op == static_cast<uint16_t>(Op::kUpload)) take<UploadArgs>(args, args_bytes);
  if (op == static_cast<uint16_t>(Op::kPublish)) take<PublishArgs>(args, args_bytes);
  if (op == static_cast<uint16_t>(Op::kMarkTime)) take<MarkTimeArgs>(args, args_bytes);
}

template <class Args>
void NullQueue::take(const void* args, size_t args_bytes) {
  Args copy;
  FT_CHECK(args_bytes == sizeof copy);
  std::memcpy(&copy, args, args_bytes);
  if (capturing_) {
    captured_.emplace_back(copy);
  } else {
    run(copy);
  }
}

void NullQueue::fill(void* dst, int byte_value, size_t bytes) {
  if (dst == counter_) std::memset(&step_, byte_value, std::min(bytes, sizeof step_));
}

NullQueue::Slot& NullQueue::slot(int32_t index) { return slots_[static_cast<size_t>(index)]; }

void NullQueue::run(const StepOp& op) {
  if (const auto* upload = std::get_if<UploadArgs>(&op)) {
    upload_ = *upload;
  } else if (const auto* mark = std::get_if<MarkTimeArgs>(&op)) {
    *mark->ns = config_.now_ns();
  } else {
    run_step(std::get<PublishArgs>(op));
  }
}

void NullQueue::run_step(const PublishArgs& publish) {
  counter_ = publish.step;
  const auto at = static_cast<int64_t>(step_ % kStepRingSize);
  const PlanView plan =
      plan_view(const_cast<char*>(upload_.ring) + at * upload_.entry_bytes, upload_.limits);
  FT_CHECK(plan.header->step == step_);
  for (int i = 0; i < plan.header->num_inits; ++i) {
    const SlotInit& init = plan.inits[i];
    slot(init.slot) = {.len = init.len, .computed = init.computed, .max_len = init.params.max_len};
  }
  const ResultView result = result_view(publish.ring + at * publish.entry_bytes, publish.limits);
  *result.header = {step_, plan.header->num_spans, 0, 0};
  for (int i = 0; i < plan.header->num_spans; ++i) result.spans[i] = result_of(plan.spans[i]);
  const int64_t begin = std::max(config_.now_ns(), last_done_ns_);
  last_done_ns_ = begin + config_.step_ns;
  done_ns_[static_cast<size_t>(at)] = last_done_ns_;
  publish.stamps[at] = {begin, last_done_ns_, last_done_ns_};
  ++step_;
}

SpanResult NullQueue::result_of(const SpanPlan& span) {
  Slot& state = slot(span.slot);
  SpanResult result{};
  result.slot = span.slot;
  if (state.finished) return result;
  const int32_t known = std::min(state.computed + span.num_tokens, state.len);
  if (known < state.len) {
    state.computed = known;
    return result;
  }
  result.num_drafted = std::min(state.num_draft_tokens, span.max_verified);
  const int32_t accepted = std::min(result.num_drafted, config_.num_accepted);
  result.num_committed = std::min(accepted + 1, state.max_len - state.len);
  result.num_accepted = std::min(accepted, result.num_committed);
  std::fill_n(result.ids, result.num_committed, config_.token_id);
  state.len += result.num_committed;
  state.computed = state.len - 1;
  state.num_draft_tokens = span.num_draft_tokens;
  state.finished = state.len == state.max_len;
  if (state.finished) result.finish = static_cast<int32_t>(DeviceFinish::kLength);
  return result;
}

void NullQueue::wait_until(int64_t ns) const {
  while (config_.now_ns() < ns) spin_pause(0);
}

Status NullQueue::wait(Event event, uint64_t value, std::chrono::milliseconds) {
  FT_CHECK_MSG(value <= step_, "nothing enqueued would ever end this wait");
  wait_until(done_ns_[(value - 1) % kStepRingSize]);
  event.word->store(value);
  return {};
}

Status NullQueue::drain() {
  wait_until(last_done_ns_);
  return {};
}

}  // namespace

std::unique_ptr<Queue> make_null_queue(const NullQueueConfig& config) {
  return std::make_unique<NullQueue>(config);
}

}  // namespace foretoken
