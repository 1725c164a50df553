#pragma once
#include <cstdlib>

namespace foretoken::test {

// Whether FORETOKEN_TEST_PROMPTS asks for fewer repetitions, as ./test and .ci/run do and
// `./test --all` by hand does not.
inline bool is_short_run() { return std::getenv("FORETOKEN_TEST_PROMPTS") != nullptr; }

// What random tests repeat: `whole` times, or half as often.
inline int repetitions(int whole) { return is_short_run() ? (whole + 1) / 2 : whole; }

}  // namespace foretoken::test
