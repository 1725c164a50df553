#pragma once
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "spec/learned_rates.h"

namespace foretoken {

// What earlier engines learned of their drafters, one file for each model with its drafters, in the
// part `acceptance` of a cache folder. Any thread; engines and processes may share the folder, and
// the last one that keeps something counts.
class LearnedRatesCache {
 public:
  // `folder` need not exist; empty: nothing is found and nothing kept. `name`: the model and how it
  // drafts, as text. `stamp`: what may change under that name and make rates worthless, files and
  // build.
  LearnedRatesCache(const std::string& folder, const std::string& name, const std::string& stamp);

  // Of this name and stamp, with drafters that have these names and numbers of drafts, in this
  // order. A file that is damaged, stale, of something else or cannot be read is told in one line
  // of the log and counts as none.
  std::optional<LearnedRates> find(std::span<const LearnedDrafter> drafters) const;

  // Makes the folder and the file, which is there whole or not at all; where it cannot, a line of
  // the log says why.
  void keep(LearnedRates learned) const;
  // The same without a line in the log; ok without a folder.
  Status keep_quietly(LearnedRates learned) const;

  // Of this name; empty without a folder.
  const std::string& path() const { return path_; }

 private:
  const std::string learned_on_;
  const std::string path_;
};

// Changes when a file of a model does: names, sizes and times of the files of its folder, or of a
// model that is one file.
std::string stamp_of_files(const std::string& model);

}  // namespace foretoken
