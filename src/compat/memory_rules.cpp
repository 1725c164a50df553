#include <string>

#include "compat/rules.h"

// Chosen blocks, of which ranks have equal parts, where ranks share positions; KV blocks in host
// memory.

namespace foretoken {
namespace {

const CompatRule kPositionRules[] = {
    {"blocks that an indexer chooses, `--decode-context-parallel-size`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.chosen_positions && c.num_context_ranks > 1 &&
              *c.chosen_positions % *c.num_context_ranks != 0;
     },
     [](const Combination& c) {
       return "--decode-context-parallel-size " + std::to_string(*c.num_context_ranks) +
              " does not divide the " + std::to_string(*c.chosen_positions) +
              " positions of the blocks that an indexer chooses; leave it out";
     },
     {.chosen_positions = 8, .num_ranks = 3, .num_context_ranks = 3}},
};

const CompatRule kHostBlockRules[] = {
    {"`--kv-offloading-size`, `--flex-mask` with `prompt`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.host_blocks && c.whole_prompts; },
     [](const Combination&) -> std::string {
       return "--kv-offloading-size keeps prefixes that sequences share, and a prompt that sees "
              "itself (--flex-mask with 'prompt') has none; leave --kv-offloading-size out, or "
              "use a mask of q and kv";
     },
     {.whole_prompts = true, .host_blocks = true}},
    {"`--kv-offloading-size`, a model that sees later tokens",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.host_blocks && c.bidirectional; },
     [](const Combination& c) {
       return "--kv-offloading-size keeps prefixes that sequences share, and texts of '" +
              c.architecture + "', which reads them from both ends, have none; leave it out";
     },
     {.bidirectional = true, .architecture = "BertModel", .host_blocks = true}},
    {"`--kv-offloading-size`, `--enable-prefix-caching off`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.host_blocks && c.prefix_caching.is_false(); },
     [](const Combination&) -> std::string {
       return "--kv-offloading-size keeps blocks that the prefix cache gives up, and there is no "
              "prefix cache; leave it out, or --enable-prefix-caching off";
     },
     {.host_blocks = true, .prefix_caching = false}},
};

}  // namespace

std::span<const CompatRule> position_rules() { return kPositionRules; }
std::span<const CompatRule> host_block_rules() { return kHostBlockRules; }

}  // namespace foretoken
