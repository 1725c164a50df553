#pragma once
#include <foretoken/request.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace foretoken {

// One field of a request, or one way to use it, set to a random value in its range.
struct FieldDraw {
  const char* name;
  std::function<void(Request& request, std::mt19937& random, int vocab_size)> set;
};

// Every field that can change an output.
const std::vector<FieldDraw>& field_draws();

// A short prompt with repetitions, so that n-gram drafts are made, with a seed and max_tokens, and
// every field of field_draws with its own chance: `number` below their count sets that field alone.
// Wishes that exclude one another are never drawn together.
Request draw_request(int number, int vocab_size = 2048);

// What was drawn, for messages.
std::string describe(const Request& request);

}  // namespace foretoken
