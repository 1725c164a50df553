#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/gguf_matrices.h"

namespace foretoken::test {

// Orders of rows and experts that converters to GGUF make of those of folders, whatever the family.

// From the queries of a key head, it and its value head, and so on, to all queries, keys, values.
inline Matrix by_kind(const Matrix& from, const ModelConfig& config) {
  const int64_t queries = config.num_heads / config.num_kv_heads;
  const int64_t width = from.shape.size() > 1 ? from.shape[1] : 1, head = config.head_dim * width;
  Matrix to{from.shape, {}};
  const auto take = [&](int64_t group, int64_t index) {
    const auto begin = from.values.begin() + (group * (queries + 2) + index) * head;
    to.values.insert(to.values.end(), begin, begin + head);
  };
  for (int64_t h = 0; h < config.num_heads; ++h) take(h / queries, h % queries);
  for (int64_t g = 0; g < config.num_kv_heads; ++g) take(g, queries);
  for (int64_t g = 0; g < config.num_kv_heads; ++g) take(g, queries + 1);
  return to;
}

// Tensors "<name>.<i>.weight" become one of three dimensions.
inline void stack(const std::string& name, int count, Matrices* all) {
  Matrix stacked;
  for (int i = 0; i < count; ++i) {
    const auto one = all->extract(name + "." + std::to_string(i) + ".weight");
    ASSERT_FALSE(one.empty()) << name;
    stacked.shape = {count, one.mapped().shape[0], one.mapped().shape[1]};
    stacked.values.insert(stacked.values.end(), one.mapped().values.begin(),
                          one.mapped().values.end());
  }
  (*all)[name + ".weight"] = stacked;
}

// One tensor of q, k and v becomes three.
inline void take_apart(const std::string& fused, const std::string& base, const ModelConfig& config,
                       Matrices* all) {
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string before = "model.layers." + std::to_string(layer) + ".";
    const auto whole = all->extract(before + fused);
    ASSERT_FALSE(whole.empty()) << before + fused;
    auto from = whole.mapped().values.begin();
    for (const auto& [name, heads] : {std::pair("q_proj.weight", config.num_heads),
                                      std::pair("k_proj.weight", config.num_kv_heads),
                                      std::pair("v_proj.weight", config.num_kv_heads)}) {
      const int64_t rows = int64_t{heads} * config.head_dim, cols = whole.mapped().shape[1];
      (*all)[before + base + name] = {{rows, cols}, {from, from + rows * cols}};
      from += rows * cols;
    }
  }
}

// Rows of the two halves of a head take turns.
inline Matrix alternating(const Matrix& from, int64_t head) {
  Matrix to = from;
  const int64_t width = from.shape.size() > 1 ? from.shape[1] : 1;
  for (int64_t row = 0; row < from.shape[0]; ++row) {
    const int64_t at = row % head, half = head / 2;
    const int64_t there = row - at + at % half * 2 + at / half;
    std::copy_n(from.values.begin() + row * width, width, to.values.begin() + there * width);
  }
  return to;
}

inline void interleave_heads(const ModelConfig& config, Matrices* all) {
  for (auto& [name, matrix] : *all) {
    if (name.find(".q_proj.") == std::string::npos && name.find(".k_proj.") == std::string::npos) {
      continue;
    }
    matrix = alternating(matrix, config.head_dim);
  }
}

// The matrices of all experts below each other become one tensor of three dimensions.
inline void stack_experts(const ModelConfig& config, Matrices* all) {
  const int64_t count = config.experts.count, inner = config.experts.inner;
  Matrices stacked;
  for (auto& [name, matrix] : *all) {
    if (name.find(".experts.") == std::string::npos) {
      stacked[name] = std::move(matrix);
      continue;
    }
    const int64_t hidden = matrix.shape[1];
    Matrix& to = stacked[name + ".weight"];
    to = {{count, inner, hidden}, matrix.values};
    if (!name.ends_with("w2")) continue;
    to.shape = {count, hidden, inner};
    for (int64_t i = 0; i < count * inner * hidden; ++i) {
      const int64_t expert = i / (inner * hidden), row = i / hidden % inner, col = i % hidden;
      to.values[size_t((expert * hidden + col) * inner + row)] = matrix.values[size_t(i)];
    }
  }
  *all = std::move(stacked);
}

// The matrices of each expert become a tensor of three dimensions of all.
inline void stack_each_expert(const ModelConfig& config, Matrices* all) {
  constexpr std::string_view kFirst = ".experts.0.";
  std::vector<std::string> first;
  for (const auto& [name, matrix] : *all) {
    if (name.find(kFirst) != std::string::npos) first.push_back(name);
  }
  for (const std::string& name : first) {
    const size_t at = name.find(kFirst);
    const std::string before = name.substr(0, at + 9), after = name.substr(at + kFirst.size() - 1);
    Matrix stacked;
    for (int32_t i = 0; i < config.experts.count; ++i) {
      const auto one = all->extract(before + std::to_string(i) + after);
      ASSERT_FALSE(one.empty()) << name;
      stacked.shape = {config.experts.count, one.mapped().shape[0], one.mapped().shape[1]};
      stacked.values.insert(stacked.values.end(), one.mapped().values.begin(),
                            one.mapped().values.end());
    }
    (*all)[before.substr(0, before.size() - 1) + after] = std::move(stacked);
  }
}

// Tensors of this name get the ending that all of GGUF files have.
inline void end_in_weight(const std::string& part, Matrices* all) {
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    renamed[name.ends_with(part) ? name + ".weight" : name] = std::move(matrix);
  }
  *all = std::move(renamed);
}

}  // namespace foretoken::test
