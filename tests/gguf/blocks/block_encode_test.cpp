#include "gguf/blocks/block_encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/files/text_file.h"
#include "gguf/gguf_bytes.h"

namespace foretoken {
namespace {

const BlockType& type_of(std::string_view name) {
  for (const BlockType& type : block_types()) {
    if (type.name == name) return type;
  }
  ADD_FAILURE() << name;
  return block_types()[0];
}

std::vector<std::byte> encoded(const BlockType& type, const std::vector<float>& values,
                               const float* importance = nullptr) {
  const int64_t count = std::ssize(values) / type.elements;
  std::vector<std::byte> blocks(static_cast<size_t>(count * type.bytes));
  find_block_encode(type)(values.data(), importance, count, blocks.data());
  return blocks;
}

std::vector<float> decoded(const BlockType& type, const std::vector<std::byte>& blocks) {
  const int64_t count = std::ssize(blocks) / type.bytes;
  std::vector<float> values(static_cast<size_t>(count * type.elements));
  type.decode(blocks.data(), count, values.data());
  return values;
}

template <class T>
std::vector<T> bytes_of_hex(const std::string& hex) {
  std::vector<T> values(hex.size() / 2 / sizeof(T));
  for (size_t i = 0; i < hex.size() / 2; ++i) {
    reinterpret_cast<uint8_t*>(values.data())[i] =
        static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return values;
}

double root_mean_square(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return std::sqrt(sum / double(a.size()));
}

// tools/golden/gguf_files.py: bytes of the package gguf where it has a quantiser; for the others
// the error of ggml's own.
TEST(BlockEncode, AsTheReference) {
  const auto text = read_text_file(test::golden_gguf("encoded.json"));
  ASSERT_TRUE(text.ok());
  const auto golden = nlohmann::json::parse(text.value());
  const auto values = bytes_of_hex<float>(golden["floats"]);
  for (const auto& [name, wanted] : golden["blocks"].items()) {
    EXPECT_EQ(encoded(type_of(name), values), bytes_of_hex<std::byte>(wanted)) << name;
  }
  for (const auto& [name, wanted] : golden["errors"].items()) {
    const BlockType& type = type_of(name);
    const double error = root_mean_square(decoded(type, encoded(type, values)), values);
    EXPECT_LT(error, 1.03 * wanted.get<double>()) << name;
  }
}

std::vector<float> normal_floats(size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double error_of(const char* name, const std::vector<float>& values) {
  const BlockType& type = type_of(name);
  return root_mean_square(decoded(type, encoded(type, values)), values);
}

TEST(BlockEncode, MoreBitsAreNearer) {
  const std::vector<float> values = normal_floats(4096);
  EXPECT_LT(error_of("Q5_K", values), 0.55 * error_of("Q4_K", values));
  EXPECT_LT(error_of("Q6_K", values), 0.6 * error_of("Q5_K", values));
  EXPECT_LT(error_of("IQ4_NL", values), 0.95 * error_of("Q4_0", values));
}

// Columns that count more are nearer than without; the others pay for it.
TEST(BlockEncode, ImportanceMovesTheError) {
  const std::vector<float> values = normal_floats(4096);
  std::vector<float> importance(values.size());
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = i % 8 == 0 ? 100.0F : 1.0F;
  const auto weighted = [&](const std::vector<float>& back) {
    double sum = 0;
    for (size_t i = 0; i < back.size(); ++i) {
      sum += double(importance[i]) * (back[i] - values[i]) * (back[i] - values[i]);
    }
    return sum;
  };
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"}) {
    const BlockType& type = type_of(name);
    const double with = weighted(decoded(type, encoded(type, values, importance.data())));
    const double without = weighted(decoded(type, encoded(type, values)));
    EXPECT_LT(with, 0.97 * without) << name;
  }
}

TEST(BlockEncode, WhatWasReadIsWrittenAgain) {
  const std::vector<float> values = normal_floats(1024);
  for (const char* name : {"F16", "BF16", "Q8_0"}) {
    const BlockType& type = type_of(name);
    const auto blocks = encoded(type, values);
    EXPECT_EQ(encoded(type, decoded(type, blocks)), blocks) << name;
  }
}

TEST(BlockEncode, ExtremesStayInRange) {
  for (const BlockType& type : block_types()) {
    if (find_block_encode(type) == nullptr) continue;
    for (const float value : {0.0F, 1.0F, -1.0F, 1e-40F, -3e-6F, 3e4F, -6e4F}) {
      for (const bool alternate : {false, true}) {
        std::vector<float> values(256, value);
        for (size_t i = 0; alternate && i < 256; i += 2) values[i] = 0;
        const auto back = decoded(type, encoded(type, values));
        // MXFP4's scale is a power of two that lets 8 times it be stored as 6, as ggml writes it.
        const float share = std::string_view(type.name) == "MXFP4" ? 4 : 8;
        const float allowed = std::abs(value) / share + 5e-6F;
        for (size_t i = 0; i < 256; ++i) {
          ASSERT_NEAR(back[i], values[i], allowed) << type.name << " " << value << " " << i;
        }
      }
    }
  }
}

TEST(BlockEncode, TypesThatAreOnlyKnown) {
  EXPECT_EQ(find_block_encode(type_of("Q3_K")), nullptr);
  EXPECT_EQ(find_block_encode(type_of("I64")), nullptr);
}

}  // namespace
}  // namespace foretoken
