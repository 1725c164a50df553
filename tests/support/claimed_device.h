#pragma once
#include <string>

#include "device/device.h"

namespace foretoken::test {

// A device that says of itself what a test wants. It has neither memory nor queues.
class ClaimedDevice final : public Device {
 public:
  ClaimedDevice(DeviceType type, bool any_order_attention)
      : type_(type), any_order_attention_(any_order_attention) {}

  DeviceType type() const override { return type_; }
  std::string name() const override { return "claimed"; }
  int num_workers() const override { return 1; }
  int64_t free_memory() const override { return 0; }
  int64_t total_memory() const override { return 0; }
  void* allocate(size_t, MemoryKind) override { return nullptr; }
  void deallocate(void*, MemoryKind) override {}
  Result<std::unique_ptr<Queue>> make_queue() override { return unsupported("no queue"); }
  bool has_any_order_attention() const override { return any_order_attention_; }
  void* make_weight(int64_t, int64_t, DType, WeightOrder, int64_t) override { return nullptr; }
  int64_t weight_slice_rows(int64_t, int64_t, DType, WeightOrder, int64_t) const override {
    return 1;
  }
  void* pack_weight(std::span<const WeightPart>, int64_t, DType, WeightOrder, int64_t) override {
    return nullptr;
  }
  void free_weight(void*) override {}

 private:
  DeviceType type_;
  bool any_order_attention_;
};

}  // namespace foretoken::test
