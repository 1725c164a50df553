#include "device/cuda/nvtx_ranges.h"

#include <cstdlib>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace foretoken::cuda {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("foretoken");
  return handle;
}

void begin_range(const char* name, uint64_t number) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  if (number != kNoRangeNumber) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = number;
  }
  nvtxDomainRangePushEx(domain(), &attributes);
}

void end_range() { nvtxDomainRangePop(domain()); }

}  // namespace

ProfilerRanges nvtx_ranges(bool always) {
  // Profilers name their library so to the processes that they start.
  if (!always && std::getenv("NVTX_INJECTION64_PATH") == nullptr) return {};
  return {begin_range, end_range};
}

}  // namespace foretoken::cuda
#else
namespace foretoken::cuda {

ProfilerRanges nvtx_ranges(bool) { return {}; }

}  // namespace foretoken::cuda
#endif
