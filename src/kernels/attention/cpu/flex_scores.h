#pragma once
#include "kernels/attention/attention.h"

namespace foretoken::cpu {

// Some scores of a row and query head of an op, of the cache's entries from `first_entry` on.
struct FlexScores {
  float* scores;
  int count;
  int64_t row;
  int first_entry;
  int head;
  int prompt_end = 0;  // as of FlexPlace
};

// Of a row of the first run of its sequence, which is its prompt (FlexProgram::sees_prompts): the
// position behind that run's last row. 0 of any other, and of rows of heads.
int prompt_end(const AttentionArgs& a, int64_t row);

// Lets the op's program change the scores, and sets those of positions that it hides to -infinity;
// false where it hides all.
bool apply_flex(const AttentionArgs& a, const FlexScores& x);

// Turns what apply_flex left into weights relative to the highest score; hidden ones are 0.
void weigh_flex(float* scores, int count, float& highest, float& sum);

}  // namespace foretoken::cpu
