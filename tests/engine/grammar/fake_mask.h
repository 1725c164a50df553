#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu_clock.h"
#include "kernels/sampling/token_masks.h"
#include "support/gate.h"
#include "text/token_mask.h"

namespace foretoken {

// A mask that is computed until somebody opens the gate.
struct HeldFill {
  int number = 1;  // of the fills of a FakeMask, the first is 1
  test::Gate reached;
  test::Gate gate;
};

// The output 0, 1, 2, ...: after n ids, id n alone may come.
class FakeMask final : public TokenMask {
 public:
  // Masks fail from the one after `fails_at` ids on; -1: none does.
  explicit FakeMask(int fails_at = -1, std::chrono::milliseconds delay = {})
      : fails_at_(fails_at), delay_(delay) {}

  Status fill(std::span<uint32_t> words) override {
    ++num_fills_;
    if (held != nullptr && num_fills_ == held->number) {
      held->reached.open();
      (void)held->gate.wait();
    }
    const int64_t begin = thread_cpu_ns();
    while (num_fills_ <= num_slow_fills &&
           thread_cpu_ns() - begin < std::chrono::nanoseconds(delay_).count()) {
    }
    if (fails_at_ >= 0 && position_ >= fails_at_) return invalid_argument("too complex");
    std::fill(words.begin(), words.end(), 0u);
    if (position_ != complete_at) {
      words[static_cast<size_t>(position_) / 32] = 1u << (position_ % 32);
      if (std::ranges::find(free_at, position_) != free_at.end()) words[1] |= kOtherBit;
    }
    return {};
  }
  int32_t forced(std::span<const uint32_t> words) const override {
    return (words[1] & kOtherBit) != 0 ? -1 : bit_of(words);
  }
  Status consume(int32_t id) override {
    if (id != position_) return internal_error("not what the mask allowed");
    ++position_;
    ++num_consumed_;
    return {};
  }
  bool ends(int32_t id) const override { return id == 63 || id == end_id; }
  Status rollback(int count) override {
    if (count > position_) return internal_error("taken back too much");
    position_ -= count;
    num_taken_back_ += count;
    return {};
  }
  bool is_complete() override { return position_ == complete_at; }

  int complete_at = -1;
  std::vector<int> free_at;  // behind so many ids another one is allowed too
  int end_id = 63;
  HeldFill* held = nullptr;
  int num_slow_fills = 1 << 30;  // those that take the delay
  int num_fills() const { return num_fills_; }
  int num_consumed() const { return num_consumed_; }
  int num_taken_back() const { return num_taken_back_; }

  // The only bit of a mask; -1: there is none.
  static int32_t bit_of(std::span<const uint32_t> words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] != 0) return static_cast<int32_t>(i) * 32 + std::countr_zero(words[i]);
    }
    return -1;
  }

  static MaskSpan span(uint64_t grammar, int prompt_len, const std::vector<int32_t>& output,
                       const std::vector<int32_t>& drafts, int num_repaired = 0) {
    MaskSpan span{};
    span.num_repaired = num_repaired;
    span.grammar = grammar;
    span.len = prompt_len + static_cast<int32_t>(output.size());
    span.num_tail = std::min<int32_t>(static_cast<int32_t>(output.size()), kMaxDraftTokens + 1);
    std::copy(output.end() - span.num_tail, output.end(), span.tail);
    span.num_draft_tokens = static_cast<int32_t>(drafts.size());
    std::copy(drafts.begin(), drafts.end(), span.drafts);
    return span;
  }

 private:
  static constexpr uint32_t kOtherBit = 1u << 29;  // id 61

  const int fails_at_;
  const std::chrono::milliseconds delay_;
  int position_ = 0;
  int num_fills_ = 0;
  int num_consumed_ = 0;
  int num_taken_back_ = 0;
};

}  // namespace foretoken
