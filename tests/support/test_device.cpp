#include "support/test_device.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/cuda_plugin.h"
#include "kernels/devices/open_device.h"

namespace foretoken {
namespace {

std::string wanted_device() {
  const char* wanted = std::getenv("FORETOKEN_TEST_DEVICE");
  return wanted != nullptr ? wanted : "cpu";
}

std::unique_ptr<Device> open_test_device() {
  const std::string name = wanted_device();
  if (name != "cpu" && name != "cuda") {
    std::fprintf(stderr, "FORETOKEN_TEST_DEVICE=%s: use cpu or cuda\n", name.c_str());
    std::exit(2);
  }
  auto opened = open_device(name == "cpu" ? DeviceType::kCpu : DeviceType::kCuda, 0, 2);
  if (!opened.ok()) {
    std::fprintf(stderr, "SKIPPING ALL DEVICE TESTS: %s\n", opened.status().message().c_str());
    return nullptr;
  }
  std::printf("device=%s\n", opened.value()->name().c_str());
  return std::move(opened).value();
}

}  // namespace

Device* test_device() {
  static const std::unique_ptr<Device> device = open_test_device();
  return device.get();
}

std::unique_ptr<Device> open_rank_device(int rank) {
  const bool is_cpu = wanted_device() == "cpu";
  return open_device(is_cpu ? DeviceType::kCpu : DeviceType::kCuda, is_cpu ? 0 : rank, 1).value();
}

std::string missing_devices(int num_ranks) {
  if (wanted_device() == "cpu") return {};
  // A kernel that is loaded at its first launch would wait for those of ranks that wait for it.
  load_kernels_at_start();
  return open_device(DeviceType::kCuda, num_ranks - 1, 1).status().message();
}

void DeviceTest::SetUp() {
  device_ = test_device();
  if (device_ == nullptr) GTEST_SKIP() << "no device; see SKIPPING ALL DEVICE TESTS above";
  auto made = device_->make_queue();
  ASSERT_TRUE(made.ok()) << made.status().message();
  queue_ = std::move(made).value();
}

void DeviceTest::TearDown() {
  if (device_ == nullptr) return;
  queue_.reset();
  for (void* weight : weights_) device_->free_weight(weight);
  for (const auto& [pointer, kind] : memory_) device_->deallocate(pointer, kind);
}

void* DeviceTest::allocate_bytes(size_t bytes, MemoryKind kind) {
  void* memory = device_->allocate(bytes == 0 ? 1 : bytes, kind);
  if (memory == nullptr) {
    ADD_FAILURE() << "out of memory: " << bytes << " bytes";
    std::abort();
  }
  memory_.emplace_back(memory, kind);
  return memory;
}

void* DeviceTest::pack(const void* rows, int64_t n, int64_t k, DType dtype, WeightOrder order) {
  const WeightPart part{rows, n};
  void* weight = device_->pack_weight({&part, 1}, k, dtype, order);
  EXPECT_NE(weight, nullptr);
  weights_.push_back(weight);
  return weight;
}

void DeviceTest::drain() {
  const Status status = queue_->drain();
  ASSERT_TRUE(status.ok()) << status.message();
}

void DeviceTest::write_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  void* staging = device_->allocate(bytes, MemoryKind::kPinned);
  std::memcpy(staging, from, bytes);
  queue_->copy(to, staging, bytes);
  drain();
  device_->deallocate(staging, MemoryKind::kPinned);
}

void DeviceTest::read_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  void* staging = device_->allocate(bytes, MemoryKind::kPinned);
  queue_->copy(staging, from, bytes);
  drain();
  std::memcpy(to, staging, bytes);
  device_->deallocate(staging, MemoryKind::kPinned);
}

}  // namespace foretoken
