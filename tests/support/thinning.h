#pragma once

namespace foretoken {

// FORETOKEN_TEST_THINNING=n (1 by default): tests that launch the same ops a great many times take
// every nth launch only. For tools under which a launch takes seconds, such as compute-sanitizer's
// racecheck. Anything but a number from 1 on ends the process.
int test_thinning();

// How many of so many launches are left: one at least.
inline int thinned(int times) { return (times + test_thinning() - 1) / test_thinning(); }

}  // namespace foretoken
