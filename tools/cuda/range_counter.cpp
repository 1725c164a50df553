// Counts the NVTX ranges of a program as a profiler receives them. Built as a library and named in
// NVTX_INJECTION64_PATH, as Nsight Systems names its own, it prints each range's name and number
// at exit:
//   g++ -shared -fPIC -I$CUDA/include range_counter.cpp -o librange_counter.so
//   NVTX_INJECTION64_PATH=./librange_counter.so foretoken generate --device cuda --enforce-eager
//   ...
// Ranges that are still open then, and pops without a push, are told too: both should be 0.
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, long>& counts() {
  static auto* const all = new std::map<std::string, long>();  // threads may outlive statics
  return *all;
}
std::atomic<long> num_open{0};
std::atomic<long> num_unpaired{0};
thread_local long depth = 0;

void report() {
  const std::lock_guard lock(mutex);
  long all = 0;
  for (const auto& [name, count] : counts()) {
    std::fprintf(stderr, "nvtx: %-16s %ld\n", name.c_str(), count);
    all += count;
  }
  std::fprintf(stderr, "nvtx: %ld ranges, %ld open, %ld unpaired\n", all, num_open.load(),
               num_unpaired.load());
}

int on_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  const std::lock_guard lock(mutex);
  ++counts()[attributes->message.ascii];
  ++num_open;
  return static_cast<int>(depth++);
}

int on_pop(nvtxDomainHandle_t) {
  if (depth == 0) {
    ++num_unpaired;
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  --num_open;
  return static_cast<int>(--depth);
}

nvtxDomainHandle_t on_create(const char* name) {
  std::fprintf(stderr, "nvtx: domain %s\n", name);
  static int domain;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

template <class F>
void set(NvtxFunctionTable table, unsigned size, unsigned id, F* function) {
  if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, on_push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, on_pop);
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, on_create);
  std::atexit(report);
  return 1;
}
