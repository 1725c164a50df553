#include "kernels/step/stamp.h"

#include "base/clock.h"
#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void stamp(const void* args, CpuPool&) {
  const auto& a = *static_cast<const StampArgs*>(args);
  a.stamps[(*a.step - 1) % kStepRingSize].end_ns = now_ns();
}

}  // namespace foretoken::cpu
