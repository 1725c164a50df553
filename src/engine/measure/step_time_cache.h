#pragma once
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "spec/cost_table.h"

namespace foretoken {

// Step-time tables that earlier starts measured, one file each in a folder, found by what they were
// measured on. Any thread; engines and processes may share the folder.
class StepTimeCache {
 public:
  // `folder` need not exist; empty: nothing is found and nothing kept. `key`: all that times depend
  // on, as text.
  StepTimeCache(std::string folder, std::string key);

  // Of this key, with these drafters in this order. A file that is damaged, of another key or
  // cannot be read is told in one line of the log and counts as none.
  std::optional<CostTable> find(std::span<const std::string> drafters) const;

  // Makes the folder and the file, which is there whole or not at all. A line of the log says where
  // it is, or why it is nowhere: a start does not fail for it.
  void keep(CostTable times) const;

  // Of this key; empty without a folder.
  const std::string& path() const { return path_; }

 private:
  const std::string folder_;
  const std::string key_;
  const std::string path_;
};

// Equal for tables with equal times, whatever they were measured on.
std::string hash_of_times(CostTable times);

// $XDG_CACHE_HOME/foretoken/step-times, without that variable ~/.cache/foretoken/step-times, and
// without a home nothing.
std::string default_step_time_folder();

}  // namespace foretoken
