#pragma once

namespace foretoken {

inline constexpr int kMaxSpeculativeTokens = 16;  // drafts of one sequence and step
inline constexpr int kMaxDrafters = 4;            // of one engine, chosen per request

}  // namespace foretoken
