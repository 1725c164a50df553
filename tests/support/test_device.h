#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace foretoken {

// The device that the tests of this process run on: FORETOKEN_TEST_DEVICE=cpu (default, two
// threads) or cuda. Opened once; prints `device=<name>`. Null, with the reason on stderr, when the
// device cannot be opened: then the test is skipped.
Device* test_device();

// That of a rank among threads of this process: each has a CUDA device of its own, or a thread of
// the CPU.
std::unique_ptr<Device> open_rank_device(int rank);

// Why so many ranks cannot run here: each needs a device of its own, but on a CPU. Empty: they can.
std::string missing_devices(int num_ranks);

// Memory and one queue on the test device, freed at the end of the test. Device memory is touched
// only through the queue.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Device& device() { return *device_; }
  Queue& queue() { return *queue_; }

  void* allocate_bytes(size_t bytes, MemoryKind kind = MemoryKind::kDevice);

  template <class T>
  T* allocate(size_t count, MemoryKind kind = MemoryKind::kDevice) {
    return static_cast<T*>(allocate_bytes(count * sizeof(T), kind));
  }

  // Device copy of host values.
  template <class T>
  T* to_device(const std::vector<T>& values) {
    T* memory = allocate<T>(values.size() + 1);
    write(memory, values);
    return memory;
  }
  template <class T>
  void write(T* memory, const std::vector<T>& values) {
    write_bytes(memory, values.data(), values.size() * sizeof(T));
  }

  // Runs everything enqueued, then copies device memory to the host.
  template <class T>
  std::vector<T> read(const T* memory, size_t count) {
    std::vector<T> values(count);
    read_bytes(values.data(), memory, count * sizeof(T));
    return values;
  }

  void* pack(const void* rows, int64_t n, int64_t k, DType dtype,
             WeightOrder order = WeightOrder::kPlain);
  void drain();

 private:
  void write_bytes(void* to, const void* from, size_t bytes);
  void read_bytes(void* to, const void* from, size_t bytes);

  Device* device_ = nullptr;
  std::unique_ptr<Queue> queue_;
  std::vector<std::pair<void*, MemoryKind>> memory_;
  std::vector<void*> weights_;
};

}  // namespace foretoken
