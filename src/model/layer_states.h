#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/step/move_blocks.h"
#include "model/config/config.h"
#include "model/decoder_plan.h"
#include "model/layer/layer_state.h"

namespace foretoken {

// Bytes of the states of one sequence of a whole model; 0: it keeps none.
int64_t state_bytes_each(const ModelConfig& config, int32_t max_draft_tokens);

// The states of a model's layers, or of a rank's part of them, for all slots: device memory that is
// taken once.
class LayerStates {
 public:
  explicit LayerStates(Device& device) : device_(device), arena_(device, MemoryKind::kDevice) {}

  // Bytes that `take` takes; 0: no layer keeps a state.
  static int64_t bytes(std::span<const LayerPlan> layers, const StateUse& use);
  // ResourceExhausted, with the remedy, where that is not free. Zero at the start.
  Status take(std::span<const LayerPlan> layers, const StateUse& use);
  // Nothing for a layer without a state, or before they are taken. `slots`: of BatchState, or null
  // where lengths are not known.
  LayerState of(int32_t layer, const SlotState* slots) const;
  // All arrays, by slot.
  const std::vector<BlockPart>& parts() const { return parts_; }

 private:
  Device& device_;
  Arena arena_;
  std::vector<BlockPart> parts_;
  std::vector<LayerState> layers_;
};

}  // namespace foretoken
