#pragma once
#include <string>

#include "device/attention_families.h"
#include "device/device.h"

namespace foretoken::test {

// A device that says of itself what a test wants, such as that it is a Hopper. It has neither
// memory nor queues.
class ClaimedDevice final : public Device, public AttentionFamilies {
 public:
  ClaimedDevice(DeviceType type, bool is_hopper) : type_(type), is_hopper_(is_hopper) {}

  DeviceType type() const override { return type_; }
  std::string name() const override { return "claimed"; }
  int num_workers() const override { return 1; }
  int64_t free_memory() const override { return 0; }
  int64_t total_memory() const override { return 0; }
  void* allocate(size_t, MemoryKind) override { return nullptr; }
  void deallocate(void*, MemoryKind) override {}
  Result<std::unique_ptr<Queue>> make_queue() override { return unsupported("no queue"); }
  const AttentionFamilies* attention_families() const override { return this; }
  bool has_attention(AttentionFamily family) const override {
    switch (family) {
      case AttentionFamily::kPortable:
      case AttentionFamily::kFlex:
        return true;
      case AttentionFamily::kFlash:
      case AttentionFamily::kFlashInfer:
        return is_hopper_;
      default:
        return false;
    }
  }
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
  bool is_hopper_;
};

}  // namespace foretoken::test
