#pragma once
#include "draft/parts/drafter.h"

namespace foretoken::test {

// A drafter of given traits that proposes nothing.
class FakeDrafter final : public Drafter {
 public:
  explicit FakeDrafter(const DrafterTraits& traits) : traits_(traits) {}
  const char* name() const override { return "fake"; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int) const override { return 0; }
  Status take_memory(int, int) override { return {}; }
  int64_t memory_bytes() const override { return 0; }
  void propose(Queue&, const DraftStep&, const DraftShape&) override {}

 private:
  const DrafterTraits traits_;
};

}  // namespace foretoken::test
