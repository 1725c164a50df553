#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// The drafter that `name` means: a name or an alias of the registry. The error tells whether the
// name is known elsewhere, a likely slip, or neither, and what there is.
Result<std::string> canonical_method(const std::string& name);

// The folder of the bundled drafter of this method, where `target` is the bundled model and there
// is one. Empty otherwise.
std::string bundled_drafter(const std::string& method, const std::string& target);

}  // namespace foretoken
