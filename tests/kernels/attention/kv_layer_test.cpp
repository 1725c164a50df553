#include "kernels/attention/kv_layer.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(KvLayer, BytesOfAnEntry) {
  KvLayer kv{nullptr, nullptr, 2, 16, 64, DType::kBF16};
  EXPECT_EQ(kv_entry_bytes(kv), 128);
  kv.dtype = DType::kF32;
  EXPECT_EQ(kv_entry_bytes(kv), 256);
  kv.format = KvFormat::kInt8;
  EXPECT_EQ(kv_entry_bytes(kv), 68);
  kv.dtype = DType::kBF16;
  EXPECT_EQ(kv_entry_bytes(kv), 68) << "the type of queries changes nothing";
}

}  // namespace
}  // namespace foretoken
