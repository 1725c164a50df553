#include "engine/step/clocks/op_tracer.h"

#include "kernels/op_cost.h"
#include "kernels/step/mark_time.h"

namespace foretoken {

Result<std::unique_ptr<OpTracer>> OpTracer::create(Device& device, std::unique_ptr<Queue> queue,
                                                   size_t max_ops) {
  std::unique_ptr<OpTracer> tracer(new OpTracer(device, std::move(queue)));
  FT_ASSIGN_OR_RETURN(tracer->marks_,
                      tracer->pinned_.take_array<int64_t>(2 * max_ops, "the profile of ops"));
  tracer->ops_.reserve(max_ops);
  tracer->max_ops_ = max_ops;
  return tracer;
}

void OpTracer::start(uint16_t step_op) {
  is_on_ = true;
  step_op_ = step_op;
}

void OpTracer::add_to(TraceLane* lane, int64_t offset_ns) const {
  for (size_t i = 0; i < ops_.size(); ++i) {
    lane->add(op_name(static_cast<Op>(ops_[i].op)), marks_[2 * i] + offset_ns,
              marks_[2 * i + 1] + offset_ns, ops_[i].step);
  }
}

void OpTracer::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  if (!is_on_ || is_capturing_ || ops_.size() == max_ops_) {
    queue_->launch_op(op, args, args_bytes);
    return;
  }
  if (op == step_op_) ++num_steps_;
  int64_t* marks = marks_ + 2 * ops_.size();
  ops_.push_back({op, num_steps_ - 1});
  mark_time(*queue_, {&marks[0]});
  queue_->launch_op(op, args, args_bytes);
  mark_time(*queue_, {&marks[1]});
}

void OpTracer::copy(void* dst, const void* src, size_t bytes) { queue_->copy(dst, src, bytes); }

void OpTracer::fill(void* dst, int byte_value, size_t bytes) {
  queue_->fill(dst, byte_value, bytes);
}

void OpTracer::call_host(void (*function)(void*), void* context) {
  queue_->call_host(function, context);
}

void OpTracer::record(Event event, uint64_t value) { queue_->record(event, value); }

void OpTracer::begin_capture() {
  is_capturing_ = true;
  queue_->begin_capture();
}

std::unique_ptr<Graph> OpTracer::end_capture() {
  is_capturing_ = false;
  return queue_->end_capture();
}

void OpTracer::replay(Graph& graph) { queue_->replay(graph); }

Status OpTracer::wait(Event event, uint64_t value, std::chrono::milliseconds timeout) {
  return queue_->wait(event, value, timeout);
}

Status OpTracer::drain() { return queue_->drain(); }

}  // namespace foretoken
