#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// The terms of keys of dynamic masks (GqaSpec::dynamic_mask), and the norms of heads before them,
// which are taken over the zeros behind heads too.
struct KeyMask {
  Linear steps;                   // dt_proj [all kv heads, kv heads * head_dim]
  int32_t first_head = 0;         // of the rank's kv heads among all
  const float* rates = nullptr;   // [kv heads]
  const float* q_norm = nullptr;  // [heads, head_dim]
  const float* k_norm = nullptr;  // [kv heads, head_dim]
  float eps = 0;                  // of both

  struct Scratch {
    float* qkv;    // [max_rows, qkv size]: what q, k and v are made of
    void* values;  // [max_rows, kv heads * head_dim] act
    float* steps;  // [max_rows, all kv heads]
  };

  // Loads dt_proj, A, q_norm and k_norm, whose names begin with `base`, of the rank's heads.
  Status load(PartLoader& loader, const std::string& base, const GqaSpec& whole);
  // Enqueues norms and terms, in place; `spec` is of the rank's part. All values say each step, so
  // that steps are summed over the ranks.
  void add(const LayerRows& rows, const GqaSpec& spec, DType dtype, const Scratch& scratch) const;

  // Of dt_proj, beside what the file has.
  static double num_zeros(const GqaSpec& spec);

 private:
  Status load_norm(PartLoader& loader, const std::string& name, const GqaSpec& spec, int32_t heads,
                   const float** out) const;
};

}  // namespace foretoken
