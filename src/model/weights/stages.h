#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/weights/sharding.h"

namespace foretoken {

// Which run of a model's layers this rank has, where ranks share layers out among them. Hidden
// states go from stage to stage; the last one does all else of a step: it tells the first one the
// rows, samples and drafts.
struct Stages {
  int32_t rank = 0;
  int32_t count = 1;
  // Communicator::handle of the ring that kernels/comm/stage_exchange.h wants; null with one stage.
  const void* comm = nullptr;

  bool is_cut() const { return count > 1; }
  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank == count - 1; }
  // The stage that has layer `layer` of `num_layers`.
  int32_t owner(int32_t layer, int32_t num_layers) const {
    int32_t stage = 0;
    while (first_layer(stage + 1, num_layers) <= layer) ++stage;
    return stage;
  }
  bool owns(int32_t layer, int32_t num_layers) const { return owner(layer, num_layers) == rank; }
  ShardRange layers(int32_t num_layers) const {
    const int32_t begin = first_layer(rank, num_layers);
    return {begin, first_layer(rank + 1, num_layers) - begin};
  }

 private:
  int32_t first_layer(int32_t stage, int32_t num_layers) const {
    return static_cast<int32_t>(int64_t{num_layers} * stage / count);
  }
};

// InvalidArgument where there are more stages than layers.
inline Status check_stages(const Stages& stages, int32_t num_layers) {
  if (stages.count <= num_layers) return {};
  return invalid_argument("--pipeline-parallel-size " + std::to_string(stages.count) +
                          " exceeds the model's " + std::to_string(num_layers) +
                          " layers; lower it");
}

}  // namespace foretoken
