#include "engine/parallel/wire_archive.h"

#include <gtest/gtest.h>

namespace foretoken {

struct Inner {
  std::vector<std::string> names;
  std::optional<double> weight;
};
struct Outer {
  int32_t number = 0;
  std::array<int64_t, 2> counts{};
  std::vector<Inner> inner;
  std::vector<std::pair<int32_t, float>> pairs;
  Status status;
};

template <class Archive>
void fields(Archive& archive, Inner& value) {
  archive(value.names, value.weight);
}
template <class Archive>
void fields(Archive& archive, Outer& value) {
  archive(value.number, value.counts, value.inner, value.pairs, value.status);
}

namespace {

std::string bytes_of_outer() {
  const Outer outer{.number = -3,
                    .counts = {5, int64_t{1} << 40},
                    .inner = {{{"a", ""}, std::nullopt}, {{}, 0.5}},
                    .pairs = {{7, -1.5f}},
                    .status = not_found("no such thing")};
  wire::Writer writer;
  writer(outer, true);
  return writer.take();
}

TEST(WireArchive, GivesBackWhatWasWritten) {
  const std::string bytes = bytes_of_outer();
  wire::Reader reader(bytes);
  Outer read;
  bool last = false;
  reader(read, last);
  ASSERT_TRUE(reader.status().ok());
  EXPECT_TRUE(last);
  EXPECT_EQ(read.number, -3);
  EXPECT_EQ(read.counts[1], int64_t{1} << 40);
  ASSERT_EQ(read.inner.size(), 2u);
  EXPECT_EQ(read.inner[0].names, (std::vector<std::string>{"a", ""}));
  EXPECT_FALSE(read.inner[0].weight);
  EXPECT_EQ(read.inner[1].weight, 0.5);
  EXPECT_EQ(read.pairs, (std::vector<std::pair<int32_t, float>>{{7, -1.5f}}));
  EXPECT_EQ(read.status.code(), StatusCode::kNotFound);
  EXPECT_EQ(read.status.message(), "no such thing");
}

// No end of the bytes is taken for a message, and none takes memory for what it says is there.
TEST(WireArchive, WhatIsCutOffIsAnError) {
  const std::string bytes = bytes_of_outer();
  for (size_t size = 0; size < bytes.size(); ++size) {
    wire::Reader reader(std::string_view(bytes).substr(0, size));
    Outer read;
    bool last = false;
    reader(read, last);
    EXPECT_FALSE(reader.status().ok()) << size;
  }
  const std::string longer = bytes + "x";
  wire::Reader reader(longer);
  Outer read;
  bool last = false;
  reader(read, last);
  EXPECT_FALSE(reader.status().ok());
  wire::Reader huge(std::string_view("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));
  std::vector<int32_t> numbers;
  huge(numbers);
  EXPECT_TRUE(numbers.empty());
  EXPECT_FALSE(huge.status().ok());
}

}  // namespace
}  // namespace foretoken
