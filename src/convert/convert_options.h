#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gguf/importance_matrix.h"

namespace foretoken {

// How and where a converted model is written.
struct ConvertOptions {
  std::string output;
  bool replaces = false;  // what is at `output`
  // Called by the converting thread now and then; may be empty.
  std::function<void(int64_t bytes_done, int64_t bytes_total)> progress;
  // What the columns of matrices count where scales are searched; null: all the same. GGUF only.
  std::shared_ptr<const ImportanceMatrix> importance;
  const std::atomic<bool>* cancelled = nullptr;  // looked at between pieces; may be null

  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  }
};

}  // namespace foretoken
