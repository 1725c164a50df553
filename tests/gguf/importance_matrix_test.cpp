#include "gguf/importance_matrix.h"

#include <gtest/gtest.h>

#include <limits>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

template <class T>
void put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string old_form(const std::string& name, int32_t runs, const std::vector<float>& values) {
  std::string bytes;
  put(bytes, int32_t{1});
  put(bytes, static_cast<int32_t>(name.size()));
  bytes += name;
  put(bytes, runs);
  put(bytes, static_cast<int32_t>(values.size()));
  for (const float value : values) put(bytes, value);
  return bytes;
}

class ImportanceMatrixTest : public ::testing::Test {
 protected:
  std::string error(const std::string& bytes) {
    return ImportanceMatrix::open(folder_.write("m", bytes)).status().message();
  }
  const test::ScratchFolder folder_;
};

TEST_F(ImportanceMatrixTest, TheOlderForm) {
  const std::string path = folder_.write("m.dat", old_form("blk.0.attn_q.weight", 4, {8, 2}));
  const auto matrix = ImportanceMatrix::open(path);
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(matrix.value()->size(), 1u);
  EXPECT_EQ(*matrix.value()->find("blk.0.attn_q.weight"), (std::vector<float>{2, 0.5F}));
  EXPECT_EQ(matrix.value()->find("blk.0.attn_k.weight"), nullptr);
}

TEST_F(ImportanceMatrixTest, Gguf) {
  test::GgufBytes bytes(2, 1);
  bytes.text_value("general.type", "imatrix");
  bytes.tensor("a.weight.counts", {1, 2}, 0, 0).tensor("a.weight.in_sum2", {2, 2}, 0, 32).align();
  bytes.number(4.0F).number(0.0F).align();
  for (const float sum : {8.0F, 2.0F, 5.0F, 6.0F}) bytes.number(sum);
  const auto matrix = ImportanceMatrix::open(bytes.align().write(folder_.file("m.gguf")));
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(*matrix.value()->find("a.weight"), (std::vector<float>{2, 0.5F, 1, 1}));
}

TEST_F(ImportanceMatrixTest, BrokenFilesAreNamed) {
  const std::string whole = old_form("a", 1, {1, 2});
  for (size_t size = 4; size < whole.size(); ++size) {
    EXPECT_NE(error(whole.substr(0, size)).find("ends too early"), std::string::npos) << size;
  }
  EXPECT_NE(error("x").find("no importance matrix"), std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {-1.0F, nan}) {
    EXPECT_NE(error(old_form("a", 1, {value})).find("'a' are no numbers"), std::string::npos);
  }
  EXPECT_NE(error(test::GgufBytes(0, 0).align().bytes()).find("no importance matrix"),
            std::string::npos);
  test::GgufBytes alone(1, 0);
  alone.tensor("a.in_sum2", {1}, 0, 0).align().number(1.0F).align();
  EXPECT_NE(error(alone.bytes()).find("'a.counts' of floats is missing"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
