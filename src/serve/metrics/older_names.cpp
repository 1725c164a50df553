#include "serve/metrics/older_names.h"

#include <string>

namespace foretoken {
namespace {

struct OlderName {
  const char* name;
  const char* older;
};

constexpr OlderName kOlderNames[] = {
    {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
    {"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"},
    {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"},
    {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
};

}  // namespace

void add_older_names(std::vector<prometheus::MetricFamily>* families) {
  const size_t count = families->size();
  for (const OlderName& row : kOlderNames) {
    for (size_t i = 0; i < count; ++i) {
      if ((*families)[i].name != row.name) continue;
      prometheus::MetricFamily copy = (*families)[i];
      copy.name = row.older;
      copy.help = std::string("The same as ") + row.name + ", by its older name.";
      families->push_back(std::move(copy));
    }
  }
}

}  // namespace foretoken
