#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// A matrix as FP-Quant has it (quant_method fp_quant): floats of four bits, or with pseudo-
// quantisation plain ones, for rows whose groups of columns a small matrix turned first.
struct FpQuantMatrix {
  std::string name;                    // "X.weight"
  std::vector<std::string> names;      // of all its tensors
  const TensorView* codes = nullptr;   // U8 [n, k / 2]; floats [n, k] where there are no scales
  const TensorView* scales = nullptr;  // U8 [n, k / 16] of E4M3, or [n, k / 32] of E8M0
  const TensorView* factor = nullptr;  // by which scales are divided; null: 1
  const TensorView* turn = nullptr;    // [g, g]: rows of x are x times it, g columns at a time

  // Whether scales are E4M3 (NVFP4).
  bool is_nvfp4() const;
};

// Those of a checkpoint. InvalidArgument names a matrix that lacks its scales or what turned it,
// Unsupported one of other types, or that is stored as it was before, which FP-Quant rounds while
// it runs.
Result<std::vector<FpQuantMatrix>> find_fp_quant(
    const std::map<std::string, const TensorView*>& tensors);

// What FP-Quant alone saves beside matrices, none of which is read.
bool is_fp_quant_range(const std::string& name);

}  // namespace foretoken
