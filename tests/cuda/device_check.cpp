#include <cstdlib>

#include "check.h"
#include "device/cuda_plugin.h"

using namespace foretoken;
using namespace foretoken::check;

// Checks every CUDA op against plain references: device_check [queue|rows|gemm|bits|large|
// attention|schedules|sample|logits|masks|step|draft|head|ranks]...; without arguments everything.
int main(int argc, char** argv) {
  const auto wanted = [&](const char* name) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], name) == 0) return true;
    }
    return argc == 1;
  };
  if (wanted("ranks")) check_ranks();
  auto device = open_cuda_device(0);
  if (!device.ok()) {
    std::printf("%s\n", device.status().message().c_str());
    return 77;
  }
  Gpu gpu{std::move(device).value(), nullptr};
  auto queue = gpu.device->make_queue();
  if (!queue.ok()) return 1;
  gpu.queue = std::move(queue).value();
  std::printf("device %s, %.1f GB free\n", gpu.device->name().c_str(),
              static_cast<double>(gpu.device->free_memory()) / 1e9);
  if (wanted("queue")) check_queue(gpu);
  if (wanted("rows")) check_rows(gpu);
  if (wanted("sample")) check_sample(gpu);
  if (wanted("logits")) check_logits(gpu);
  if (wanted("masks")) check_masks(gpu);
  if (wanted("step")) check_step(gpu);
  if (wanted("draft")) check_draft(gpu);
  if (wanted("head")) check_head(gpu, false);
  if (wanted("large")) check_head(gpu, true);
  if (wanted("attention")) check_attention(gpu);
  if (wanted("attention")) check_attention_bits(gpu);
  if (wanted("attention") || wanted("schedules")) check_attention_schedules(gpu);
  if (wanted("gemm")) check_gemm(gpu);
  if (wanted("bits")) check_gemm_bits(gpu, false);
  if (wanted("large")) check_gemm_bits(gpu, true);
  gpu.drain("end");
  std::printf("%s: %d failures\n", num_failures == 0 ? "PASSED" : "FAILED", num_failures);
  gpu.queue.reset();
  return num_failures == 0 ? 0 : 1;
}
