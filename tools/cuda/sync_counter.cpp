// Counts the CUDA calls that make the host wait, through CUPTI callbacks. Built as a library and
// named in CUDA_INJECTION64_PATH, it is loaded by the driver itself and prints its counts at exit:
//   g++ -shared -fPIC -I$CUDA/include -I$CUPTI/include sync_counter.cpp -o libsync_counter.so
//   -lcupti CUDA_INJECTION64_PATH=./libsync_counter.so foretoken bench latency --device cuda ...
// Equal counts for runs of different length show that no step waits.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> num_waits{0};
std::atomic<long> num_launches{0};
std::atomic<long> num_calls{0};

bool makes_the_host_wait(const char* name) {
  return std::strstr(name, "Synchronize") != nullptr ||
         (std::strncmp(name, "cudaMemcpy", 10) == 0 && std::strstr(name, "Async") == nullptr) ||
         (std::strncmp(name, "cudaMemset", 10) == 0 && std::strstr(name, "Async") == nullptr) ||
         std::strncmp(name, "cudaMalloc", 10) == 0 || std::strncmp(name, "cudaFree", 8) == 0;
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  const auto* info = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || info->callbackSite != CUPTI_API_ENTER) return;
  num_calls.fetch_add(1);
  if (std::strncmp(info->functionName, "cudaGraphLaunch", 15) == 0) num_launches.fetch_add(1);
  if (makes_the_host_wait(info->functionName)) num_waits.fetch_add(1);
}

void report() {
  std::fprintf(stderr, "cupti: %ld runtime calls, %ld graph launches, %ld calls that wait\n",
               num_calls.load(), num_launches.load(), num_waits.load());
}

}  // namespace

extern "C" int InitializeInjection() {
  CUpti_SubscriberHandle subscriber;
  if (cuptiSubscribe(&subscriber, on_call, nullptr) != CUPTI_SUCCESS) return 0;
  cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
  std::atexit(report);
  return 1;
}
