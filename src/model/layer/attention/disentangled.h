#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// Which row of the table of distances a key belongs to that stands `distance` places before a row:
// distances up to half of the buckets have one each, longer ones grow by a factor up to `reach`
// (He et al. 2021, DeBERTa V3); without buckets every distance has a row of its own.
int32_t place_of_distance(int32_t distance, const DistanceConfig& distances);

// Attention to what keys say and to where they stand, of whole texts (attend_disentangled.h): the
// products of the model's table of distances with a layer's own matrices of keys and queries, made
// while it is loaded.
struct Disentangled {
  DistanceConfig distances;
  const float* keys = nullptr;      // [the rank's heads, places, head_dim]
  const float* queries = nullptr;   // the same
  const int32_t* places = nullptr;  // as of AttendDisentangledArgs

  struct Scratch {
    const float* qkv;
    void* attended;
  };

  // Reads the table and, once more, q_proj and k_proj, whose names begin with `base`. Zeros for
  // random weights.
  Status load(PartLoader& loader, const std::string& base, const GqaSpec& whole);
  // Enqueues it; `own` is of the rank's part.
  void attend(const LayerRows& rows, const LayerKv& kv, const GqaSpec& own, DType dtype,
              const Scratch& scratch) const;
};

}  // namespace foretoken
