#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The files of a model folder that hold its weights.
struct WeightFiles {
  std::vector<std::filesystem::path> files;
  // Where an index named them: its path.
  std::string index;
  // Files of the same format beside them that the index does not name.
  std::vector<std::filesystem::path> others;
};

// Finds them, as people publish them. Where params.json stands for the configuration, those of
// Mistral's or Meta's own layout and no others; else model.safetensors; the shards of
// model.safetensors.index.json; without an index a set NAME-00001-of-00003.safetensors, or all
// *.safetensors; the same of pytorch_model.bin where there are no safetensors, and
// medusa_lm_head.pt where there is neither. An index none of whose shards exist is stale where
// there are other weights, and so is one that lacks shards beside a whole set of another number;
// it is left aside with a warning. NotFound when there are no weights or a
// shard is missing; Unsupported names files in a format that is not read; InvalidArgument a broken
// index.
Result<WeightFiles> find_weight_files(const std::filesystem::path& folder);

}  // namespace foretoken
