#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A row of vLLM's list of what speculative decoding was tried with, or of our own behind it.
struct SupportRow {
  int number = 0;
  std::string architecture = "LlamaForCausalLM";
  std::string hardware = {};       // that the row names; empty: H100
  std::string device = "cuda";     // all of it are GPUs
  std::string drafter = {};        // a name of draft/registry.h; empty: none
  std::string attention = "auto";  // as the row names it; another stands in for what is not here
  std::vector<std::string> graph_modes = {"FULL_AND_PIECEWISE"};
  std::string kv_cache_dtype = "auto";
  int tp = 1;
  int dp = 1;
  int context_ranks = 1;
  bool experts = false;    // spread over the engines
  bool two_lanes = false;  // dual batch overlap
};

// The rows of support_rows.yaml, in the order of their numbers.
std::span<const SupportRow> support_rows();

// A row as an entry of that file has it. InvalidArgument names the field.
Result<SupportRow> read_support_row(const nlohmann::ordered_json& entry);

// The text of support_rows.yaml, which is compiled in.
const char* support_rows_text();

// What compat says of a row with the attention that it names, on its type of device.
Status check_support_row(const SupportRow& row);

}  // namespace foretoken
