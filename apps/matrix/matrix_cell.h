#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// The device whose portable attention in float32 other devices and backends are held to.
inline constexpr const char* kReferenceDevice = "cpu";

// One combination that `foretoken matrix` decides and runs.
struct MatrixCell {
  int row = 0;  // of vLLM's list; 0: of the product of all parts
  std::string architecture = "LlamaForCausalLM";
  std::string drafter;  // a name of draft/registry.h; empty: none
  std::string attention = "auto";
  std::string stands_in_for;  // what the row names where it is not on this device; empty: nothing
  std::string graph_mode = "FULL_AND_PIECEWISE";
  std::string kv_cache_dtype = "auto";
  std::string quantization;  // as --quantization; empty: none
  std::string device = kReferenceDevice;
  std::string hardware;  // that the row names; empty: any
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int dcp = 1;
  bool ep = false;
  bool dbo = false;  // from two rows on, so that small batches show it

  int num_ranks() const { return tp * pp * dp; }
};

// "TP2 DP2 EP DBO", or "one rank".
std::string layout_name(const MatrixCell& cell);

// "auto for FLASH_ATTN", or the name alone.
std::string attention_name(const MatrixCell& cell);

// False where the named backend gives a row other bits in other batches, so that texts may differ.
bool is_batch_invariant(const MatrixCell& cell);

bool is_on_reference(const MatrixCell& cell);

// What tells cells apart, without blanks: the name under which results are kept.
std::string cell_id(const MatrixCell& cell);

// True where one cell differs from the other in nothing but its drafter, so that they share
// checkpoints and what runs without drafts.
bool differ_in_drafters(const MatrixCell& a, const MatrixCell& b);

// Every field, under the names of the flags. Read back by read_cell, which takes what is left out
// as it stands above (the device as it is given) and refuses unknown fields and wrong types by name
// (InvalidArgument).
nlohmann::ordered_json cell_json(const MatrixCell& cell);
Result<MatrixCell> read_cell(const nlohmann::ordered_json& json,
                             const std::string& device = kReferenceDevice);

// What `compat` says of the cell: OK, or the sentence of what does not go together.
Status check_cell(const MatrixCell& cell);

}  // namespace foretoken
