#pragma once
#include <string>
#include <vector>

#include "spec/acceptance_rates.h"
#include "spec/batch_rates.h"
#include "spec/cost_feedback.h"

namespace foretoken {

// What the length policy knows of a drafter (LengthController::learned). The default: nothing.
struct PolicyState {
  BatchRates rates = BatchRates();
  int num_seen = 0;          // verifications since the drafter last rested
  int num_ever = 0;          // verifications, of which the first few matter
  int num_draft_tokens = 0;  // that it may propose; 0: it rests
};

// What an engine knows of a drafter: where new sequences begin, and the policy's part.
struct LearnedDrafter {
  std::string name;
  int max_draft_tokens = 0;  // rates by position up to there
  DraftRates prior{};
  PolicyState policy = {};
  PolicyState in_lists = {};  // before other drafters
};

// How often the drafts of each drafter of an engine were accepted of late, what followed, and what
// steps took.
struct LearnedRates {
  std::string learned_on;  // the model, the drafters and the machine, as text
  std::vector<LearnedDrafter> drafters;
  std::string step_times;                  // the table that `steps` correct, as a hash; empty: none
  std::vector<CostFeedback::Known> steps;  // of an engine with the same table
};

}  // namespace foretoken
