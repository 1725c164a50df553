#pragma once
#include "kernels/step_types.h"
#include "support/random_data.h"
#include "support/test_device.h"

namespace foretoken {

// Base of the tests of row-wise ops: live counts on the device and typed buffers.
class RowOpTest : public DeviceTest {
 protected:
  const StepCounts* counts(int rows, int logits_rows = 0) {
    return to_device(std::vector<StepCounts>{{rows, logits_rows, 0, 0}});
  }
  void* upload_typed(const TypedData& data) { return to_device(data.bytes); }
  // A buffer whose every byte is 0x5a, to see what an op leaves alone.
  uint8_t* marked(size_t bytes) { return to_device(std::vector<uint8_t>(bytes, 0x5a)); }
  std::vector<float> read_typed(const void* memory, size_t count, DType dtype) {
    return to_floats(read(static_cast<const uint8_t*>(memory), count * dtype_size(dtype)), dtype);
  }
  static void expect_marked(const std::vector<uint8_t>& bytes, size_t from) {
    for (size_t i = from; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 0x5a) << "byte " << i;
  }
  // Rounding of one value stored as `dtype`, relative to it.
  static double storage_error(DType dtype) { return dtype == DType::kF32 ? 1e-6 : 4e-3; }
};

}  // namespace foretoken
