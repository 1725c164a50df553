#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What config.json of a model's files, or a GGUF file's keys, said at a start; empty: there is
// none, or it cannot be read.
struct KeptConfig {
  std::string model;  // folder or file
  std::string text;   // without what says who wrote it
};

std::vector<KeptConfig> keep_configs(const std::vector<std::string>& models);

// InvalidArgument, with the name of the model, where its files say something else by now: weights
// are read again, the rules of the layers that they are for are not.
Status check_kept_configs(const std::vector<KeptConfig>& kept);

}  // namespace foretoken
