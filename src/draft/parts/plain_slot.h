#pragma once
#include <cstdint>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/step_types.h"

namespace foretoken {

// A slot without temperature and without known tokens, in the place of those of rows, so that the
// op `sample` chooses the likeliest id of each, whatever its request asks for.
class PlainSlot {
 public:
  // Takes it, and room for rows up to number max_rows - 1; once, blocks until it is there.
  // ResourceExhausted where memory is short.
  Status take(Device& device, Arena& arena, int32_t max_rows);
  // Makes it the slot of all rows.
  void put(StepTensors* rows, BatchState* batch) const;

 private:
  SlotParams* params_ = nullptr;
  SlotState* slot_ = nullptr;
  int32_t* rows_ = nullptr;  // [max_rows]
};

}  // namespace foretoken
