#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "compat/drafter_traits.h"

namespace foretoken {

// Lists of drafters, as configurations and requests name them: look-ups, which find drafts for some
// texts only, and behind them one drafter of any kind.

// One drafter of a list, as it is named there.
struct ListedDrafter {
  std::string name;
  DrafterTraits traits = {};
};

// "ngram+eagle3" as its names; a single name is a list of one.
std::vector<std::string> names_of_list(const std::string& method);
// The reverse.
std::string list_name(const std::vector<std::string>& names);

// InvalidArgument, beginning with `what`, for a list that is empty, names a drafter twice or has
// one behind another that always drafts.
Status check_list(const std::string& what, const std::vector<ListedDrafter>& list);

}  // namespace foretoken
