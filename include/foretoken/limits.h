#pragma once

namespace foretoken {

inline constexpr int kMaxSpeculativeTokens = 16;  // drafts of one sequence and step
inline constexpr int kMaxDrafters = 4;            // of one engine, chosen per request
inline constexpr int kMaxLogprobs = 1024;         // alternatives a token
inline constexpr int kMaxAdapters = 512;          // on the device at once

}  // namespace foretoken
