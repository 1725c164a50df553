#include "kernels/step/mark_time.h"

#include "base/clock.h"
#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void mark_time(const void* args, CpuPool&) {
  *static_cast<const MarkTimeArgs*>(args)->ns = now_ns();
}

}  // namespace foretoken::cpu
