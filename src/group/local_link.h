#pragma once
#include <vector>

#include "group/rank_link.h"

namespace foretoken::group {

// Links between `size` ranks that are threads of this process, by rank. An abort on one lane ends
// all of them. A message of any size is sent at once, as long as no more than 1 MiB waits between
// two ranks. The links may be destroyed in any order, by any thread.
std::vector<LaneLinks> make_local_links(int size);

}  // namespace foretoken::group
