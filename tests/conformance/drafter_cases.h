#pragma once
#include <foretoken/config.h>

#include <ostream>
#include <string>
#include <vector>

#include "conformance/harness.h"

namespace foretoken {

// A drafter of the registry, configured for a target of the tests.
struct DrafterCase {
  std::string name;
  SpeculativeConfig config;
};

// Every drafter of the registry with the bundled target and the drafter that ships for it; a row of
// the registry without a case is a failure. Lengths are fixed unless the caller changes that.
std::vector<DrafterCase> bundled_drafters(int num_draft_tokens);
// The one of this name.
DrafterCase bundled_drafter(const std::string& name, int num_draft_tokens);
std::vector<std::string> drafter_names();

// A parameter of tests that run every drafter, greedy and sampled.
struct SampledDrafter {
  std::string drafter;
  bool sampled = false;
};
void PrintTo(const SampledDrafter& c, std::ostream* out);
std::vector<SampledDrafter> sampled_drafters();

// The folders of models/ by name, and the texts of MATH-500.
std::string bundled_folder(const std::string& name);
std::vector<std::string> math500_prompts();

// run_variant with these drafters instead of the variant's.
RunResult run_with_drafters(const Variant& variant, std::vector<SpeculativeConfig> drafters,
                            const std::vector<std::string>& prompts, bool sampled, int max_tokens);

}  // namespace foretoken
