#include "engine/step/plan_feed.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "kernels/plan_layout.h"
#include "kernels/step/plan_check.h"

namespace foretoken {
namespace {

// Calls part(pointer, count) for each list of a plan.
template <class Part>
void for_each_part(const PlanHeader& plan, const PlanView& view, const Part& part) {
  part(view.spans, plan.num_spans);
  part(view.inits, plan.num_inits);
  part(view.block_updates, plan.num_block_updates);
  part(view.tokens, plan.num_tokens);
  part(view.words, plan.num_words);
}

template <class T>
size_t array_bytes(const T*, int32_t count) {
  return sizeof(T) * static_cast<size_t>(count);
}

std::string text_of(uint64_t step) { return "the plan of step " + std::to_string(step); }

// The same where nothing may be allocated.
class PlanText {
 public:
  explicit PlanText(uint64_t step)
      : size_(std::snprintf(text_, sizeof text_, "the plan of step %llu",
                            static_cast<unsigned long long>(step))) {}
  operator std::string_view() const { return {text_, static_cast<size_t>(size_)}; }

 private:
  char text_[48];
  int size_;
};

}  // namespace

size_t live_plan_bytes(const PlanHeader& plan) {
  size_t bytes = 0;
  for_each_part(plan, PlanView{},
                [&](const auto* list, int32_t count) { bytes += array_bytes(list, count); });
  return bytes;
}

size_t max_plan_bytes(const PlanLimits& limits) {
  return live_plan_bytes({.step = 0,
                          .num_spans = limits.max_spans,
                          .num_inits = limits.max_spans,
                          .num_block_updates = limits.max_block_updates,
                          .num_tokens = limits.max_tokens,
                          .num_words = limits.max_words});
}

void pack_plan(const PlanView& entry, std::span<std::byte> packed) {
  FT_CHECK(packed.size() == live_plan_bytes(*entry.header));
  std::byte* to = packed.data();
  for_each_part(*entry.header, entry, [&](const auto* list, int32_t count) {
    if (count > 0) std::memcpy(to, list, array_bytes(list, count));
    to += array_bytes(list, count);
  });
}

Status unpack_plan(const PlanHeader& plan, std::span<const std::byte> packed,
                   const PlanLimits& limits, const PlanView& entry) {
  if (!is_valid_header(plan, limits) || packed.size() != live_plan_bytes(plan)) {
    return internal_error(text_of(plan.step) +
                          " exceeds this rank's limits; start all ranks with one configuration");
  }
  const std::byte* from = packed.data();
  for_each_part(plan, entry, [&](auto* list, int32_t count) {
    if (count > 0) std::memcpy(list, from, array_bytes(list, count));
    from += array_bytes(list, count);
  });
  *entry.header = plan;
  return {};
}

PlanFeed::PlanFeed(Ranks& ranks, const PlanLimits& limits, int64_t max_snapshots) : ranks_(ranks) {
  const auto max_moves = static_cast<size_t>(limits.max_block_updates + max_snapshots);
  const size_t move_bytes = 2 * sizeof(BlockMove) * max_moves;
  const size_t state_bytes = 4 * sizeof(StateMove) * static_cast<size_t>(limits.max_spans);
  message_.reserve(sizeof(PlanMessage) +
                   std::max({max_plan_bytes(limits), move_bytes, state_bytes}));
}

Status PlanFeed::begin(uint64_t step, const StepShape& shape, const PlanView& entry) {
  const size_t num_bytes = live_plan_bytes(*entry.header);
  const PlanMessage header{step, num_bytes, PlanMessage::Kind::kBegin, shape, *entry.header, {}};
  message_.resize(sizeof header + num_bytes);
  std::memcpy(message_.data(), &header, sizeof header);
  pack_plan(entry, std::span(message_).subspan(sizeof header));
  return send_to(ranks_.size(), message_, PlanText(step));
}

Status PlanFeed::finish(uint64_t step, const StepShape& shape) {
  const PlanMessage message{step, 0, PlanMessage::Kind::kFinish, shape, {}, {}};
  return send_to(ranks_.num_last_stage(), std::as_bytes(std::span(&message, 1)), PlanText(step));
}

Status PlanFeed::adapter(int slot, std::span<const std::byte> packed) {
  const PlanMessage message{static_cast<uint64_t>(slot),
                            packed.size(),
                            PlanMessage::Kind::kAdapter,
                            StepShape{},
                            PlanHeader{},
                            SleepOrder{}};
  FT_RETURN_IF_ERROR(
      send_to(ranks_.size(), std::as_bytes(std::span(&message, 1)), "sending an adapter"));
  return send_to(ranks_.size(), packed, "sending an adapter");
}

Status PlanFeed::moves(const StepPlan& plan) {
  return send_lists(PlanMessage::Kind::kMoves, plan.step, plan.moves_out.size(),
                    std::as_bytes(std::span(plan.moves_out)),
                    std::as_bytes(std::span(plan.moves_in)));
}

Status PlanFeed::states(const StepPlan& plan) {
  return send_lists(PlanMessage::Kind::kStates, plan.step, plan.states_out.size(),
                    std::as_bytes(std::span(plan.states_out)),
                    std::as_bytes(std::span(plan.states_in)));
}

Status PlanFeed::send_lists(PlanMessage::Kind kind, uint64_t step, size_t num_out,
                            std::span<const std::byte> out, std::span<const std::byte> in) {
  PlanMessage message{step, out.size() + in.size(), kind, StepShape{}, PlanHeader{}, SleepOrder{}};
  message.plan.num_spans = static_cast<int32_t>(num_out);
  message_.resize(sizeof message + out.size() + in.size());
  std::memcpy(message_.data(), &message, sizeof message);
  std::byte* const lists = message_.data() + sizeof message;
  if (!out.empty()) std::memcpy(lists, out.data(), out.size());
  if (!in.empty()) std::memcpy(lists + out.size(), in.data(), in.size());
  return send_to(ranks_.size(), message_, "sending moves of KV blocks or states");
}

Status PlanFeed::order(const SleepOrder& order) {
  PlanMessage message;
  message.kind = PlanMessage::Kind::kSleep;
  message.sleep = order;
  const std::lock_guard lock(order_mutex_);
  return send_to(ranks_.size(), std::as_bytes(std::span(&message, 1)), "putting ranks to sleep");
}

Status PlanFeed::end() {
  PlanMessage last;
  last.kind = PlanMessage::Kind::kEnd;
  return send_to(ranks_.size(), std::as_bytes(std::span(&last, 1)), "sending the last plan");
}

Status PlanFeed::fail(const Status& why) {
  ranks_.abort(why);
  const std::lock_guard lock(order_mutex_);
  const Status first = ranks_.plans().send(1, {}, "a step");
  return first.ok() ? why : first;
}

Status PlanFeed::send_to(int end_rank, std::span<const std::byte> bytes, std::string_view what) {
  for (int peer = 1; peer < end_rank; ++peer) {
    FT_RETURN_IF_ERROR(ranks_.plans().send(peer, bytes, what));
  }
  return {};
}

Status receive_plan(group::RankLink& link, ReceivedPlan* out) {
  FT_RETURN_IF_ERROR(
      link.receive(0, std::as_writable_bytes(std::span(&out->message, 1)), "waiting for a plan"));
  const uint64_t num_bytes = out->message.num_bytes;
  if (out->message.kind == PlanMessage::Kind::kAdapter) {
    out->adapter.resize(num_bytes);
    return link.receive(0, out->adapter, "receiving an adapter");
  }
  if (out->message.kind == PlanMessage::Kind::kMoves) {
    out->moves.resize(num_bytes / sizeof(BlockMove));
    return link.receive(0, std::as_writable_bytes(std::span(out->moves)), "receiving KV moves");
  }
  if (out->message.kind == PlanMessage::Kind::kStates) {
    out->states.resize(num_bytes / sizeof(StateMove));
    return link.receive(0, std::as_writable_bytes(std::span(out->states)), "receiving states");
  }
  if (num_bytes > out->packed.size()) {
    return internal_error(text_of(out->message.step) +
                          " exceeds this rank's limits; start all ranks with one configuration");
  }
  return link.receive(0, std::span(out->packed).first(num_bytes), PlanText(out->message.step));
}

}  // namespace foretoken
