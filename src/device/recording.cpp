#include "device/recording.h"

#include <cstring>

#include "base/check.h"

namespace foretoken {

void Recording::replay(Queue& queue) const {
  for (const Piece& piece : pieces_) {
    if (const auto* graph = std::get_if<std::unique_ptr<Graph>>(&piece)) {
      queue.replay(**graph);
    } else {
      const auto& single = std::get<SingleOp>(piece);
      queue.launch_op(single.op, single.args.data(), single.args_bytes);
    }
  }
}

int Recording::num_nodes() const {
  int count = 0;
  for (const Piece& piece : pieces_) {
    const auto* graph = std::get_if<std::unique_ptr<Graph>>(&piece);
    count += graph != nullptr ? (*graph)->num_nodes() : 1;
  }
  return count;
}

// Whether there is a graph to record into.
bool Recorder::open() {
  if (!error_.ok()) return false;
  if (!is_open_) queue_.begin_capture();
  is_open_ = true;
  return true;
}

void Recorder::close() {
  if (!is_open_) return;
  is_open_ = false;
  std::unique_ptr<Graph> graph = queue_.end_capture();
  if (graph == nullptr) {
    error_ = queue_.capture_error();
    if (error_.ok()) error_ = internal_error("the device recorded nothing");
    return;
  }
  recording_.pieces_.emplace_back(std::move(graph));
}

Result<Recording> Recorder::finish() {
  close();
  if (!error_.ok()) return error_;
  return std::move(recording_);
}

void Recorder::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  if (stays_out_ == nullptr || !stays_out_(op)) {
    if (open()) queue_.launch_op(op, args, args_bytes);
    return;
  }
  FT_CHECK_MSG(!is_forked_, "an op outside of graphs between two lanes");
  close();
  FT_CHECK(args_bytes <= kMaxOpArgs);
  Recording::SingleOp single;
  single.op = op;
  single.args_bytes = args_bytes;
  std::memcpy(single.args.data(), args, args_bytes);
  recording_.pieces_.emplace_back(single);
}

void Recorder::copy(void* dst, const void* src, size_t bytes) {
  if (open()) queue_.copy(dst, src, bytes);
}

void Recorder::fill(void* dst, int byte_value, size_t bytes) {
  if (open()) queue_.fill(dst, byte_value, bytes);
}

void Recorder::call_host(void (*function)(void*), void* context) {
  if (open()) queue_.call_host(function, context);
}

void Recorder::record(Event event, uint64_t value) {
  if (open()) queue_.record(event, value);
}

void Recorder::fork() {
  is_forked_ = true;
  if (open()) queue_.fork();
}

void Recorder::use_lane(int lane) {
  if (open()) queue_.use_lane(lane);
}

void Recorder::join() {
  is_forked_ = false;
  if (open()) queue_.join();
}

void Recorder::begin_capture() { FT_CHECK_MSG(false, "a recording inside a recording"); }

std::unique_ptr<Graph> Recorder::end_capture() {
  FT_CHECK_MSG(false, "Recorder::finish ends a recording");
  return nullptr;
}

void Recorder::replay(Graph&) { FT_CHECK_MSG(false, "a graph inside a recording"); }

Status Recorder::wait(Event, uint64_t, std::chrono::milliseconds) {
  FT_CHECK_MSG(false, "a wait inside a recording");
  return {};
}

Status Recorder::drain() {
  FT_CHECK_MSG(false, "a wait inside a recording");
  return {};
}

}  // namespace foretoken
