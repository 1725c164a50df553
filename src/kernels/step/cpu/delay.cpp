#include "kernels/step/delay.h"

#include <chrono>
#include <thread>

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void delay(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DelayArgs*>(args);
  std::this_thread::sleep_for(std::chrono::microseconds(a.microseconds));
}

}  // namespace foretoken::cpu
