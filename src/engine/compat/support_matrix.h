#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A row of vLLM's list of what speculative decoding was tried with.
struct SupportRow {
  int number = 0;
  const char* drafter = "";  // a name of draft/registry.h; empty: none
  int tp = 1;
  int dp = 1;
  std::vector<const char*> graph_modes = {"FULL_AND_PIECEWISE"};
  const char* attention =
      "FLASH_ATTN";  // as the row names it; portable stands in for what is not here
  const char* kv_cache_dtype = "auto";
  const char* architecture = "LlamaForCausalLM";
  int context_ranks = 1;
  bool experts = false;          // spread over the engines
  bool needs_blackwell = false;  // its hardware
};

std::span<const SupportRow> support_rows();

// What compat says of a row.
Status check_support_row(const SupportRow& row);

// All that compat decides, as tables in Markdown: KV formats and batch invariance by attention
// backend and device, drafters, what depends on ranks, and the rows above. Of the build, whatever
// devices are here.
std::string support_matrix();

}  // namespace foretoken
