#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
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
  // The first layers of the stages from 1 on, where not every layer may begin one; none: the parts
  // are as even as can be.
  std::vector<int32_t> begins = {};

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
    if (stage > 0 && stage < count && !begins.empty()) {
      return begins[static_cast<size_t>(stage - 1)];
    }
    return static_cast<int32_t>(int64_t{num_layers} * stage / count);
  }
};

// Whether a stage may begin with the layer, above 0: no layer from it on reads the keys of one
// before it, and it is not the rest of what one number of the checkpoint stands for.
bool may_begin_stage(const ModelConfig& config, int32_t layer);

// The stages that a model's layers can make at most.
int32_t max_stages(const ModelConfig& config);

// `stages` with what each has of the layers: parts as even as the layers that may begin one allow.
// InvalidArgument where there are more stages than that.
Result<Stages> divide_layers(const ModelConfig& config, Stages stages);

}  // namespace foretoken
