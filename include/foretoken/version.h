#pragma once

namespace foretoken {

// Semantic version of the library, for example "0.1.0".
inline constexpr const char* kVersion = "0.1.0";

}  // namespace foretoken
