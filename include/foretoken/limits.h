#pragma once

namespace foretoken {

inline constexpr int kMaxSpeculativeTokens = 64;  // drafts of one sequence and step
inline constexpr int kMaxOwnDrafts = 16;   // the same where the drafter's files tell the number
inline constexpr int kMaxDrafters = 4;     // of one engine, chosen per request
inline constexpr int kMaxLogprobs = 1024;  // alternatives a token
inline constexpr int kMaxAdapters = 512;   // on the device at once

}  // namespace foretoken
