#include <string>

#include "compat/context_ranks.h"
#include "compat/rules.h"

// Ranks, engines and hosts.

namespace foretoken {
namespace {

// "1, 2 or 4".
std::string divisors_of(int number) {
  std::string text = "1";
  for (int each = 2; each <= number; ++each) {
    if (number % each == 0) text += (each < number ? ", " : " or ") + std::to_string(each);
  }
  return text;
}

// Of all engines; as many as there are at least where a number is not known.
int ranks_with_experts(const Combination& c) {
  return c.num_tensor_ranks().value_or(1) * c.num_engines.value_or(1);
}

std::string context_flag(const Combination& c) {
  return "--decode-context-parallel-size " + std::to_string(*c.num_context_ranks);
}

bool cannot_share_context(const Combination& c) {
  const std::optional<int> ranks = c.num_tensor_ranks(), sharing = c.num_context_ranks;
  if (!ranks || !sharing) return false;
  return *sharing < 1 || *ranks % *sharing != 0;
}

const CompatRule kEngineRules[] = {
    {"`--distributed-executor-backend uni`, `--nnodes`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.one_process && c.num_hosts > 1; },
     [](const Combination&) -> std::string {
       return "--distributed-executor-backend uni keeps all ranks in one process, but they are on "
              "several hosts (--nnodes, --data-parallel-size-local); leave one of them out";
     },
     {.num_hosts = 2, .one_process = true}},
    {"`--communicator mpi`, `--device`",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return c.uses_mpi && c.device != nullptr && !c.device->exchanges_by_mpi;
     },
     [](const Combination&) -> std::string {
       return "--communicator mpi is for ranks on CPUs; leave it out: GPUs exchange through each "
              "other's memory, or through NCCL";
     },
     {.device = find_device_type("cuda"), .uses_mpi = true}},
};

const CompatRule kSharedRules[] = {
    {"`--decode-context-parallel-size`, `--tensor-parallel-size`",
     StatusCode::kInvalidArgument,
     cannot_share_context,
     [](const Combination& c) {
       return context_flag(c) + " does not divide --tensor-parallel-size " +
              std::to_string(*c.num_tensor_ranks()) + ", whose ranks it is for; use " +
              divisors_of(*c.num_tensor_ranks());
     },
     {.num_ranks = 4, .num_context_ranks = 3}},
    {"`draft_tensor_parallel_size`, `--tensor-parallel-size`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.num_draft_ranks > 1 && c.num_tensor_ranks() &&
              c.num_draft_ranks != c.num_tensor_ranks();
     },
     [](const Combination& c) {
       return "speculative config: draft_tensor_parallel_size " +
              std::to_string(*c.num_draft_ranks) + " is neither 1 nor the target's " +
              std::to_string(*c.num_tensor_ranks()) + "; leave it out or use one of these";
     },
     {.num_draft_ranks = 2, .num_ranks = 4}},
};

int equal_ranks(const Combination& c) {
  return ranks_with_equal_kv(c.kv_heads, *c.num_tensor_ranks());
}

bool lacks_equal_kv(const Combination& c) {
  if (c.kv_heads.empty() || !c.num_tensor_ranks() || !(c.num_context_ranks > 1)) return false;
  return equal_ranks(c) % *c.num_context_ranks != 0;
}

// Of the ranks that would have the same heads, where the model's queries divide among so many.
std::string with_more_ranks(const Combination& c) {
  const int enough = c.kv_heads.front() * *c.num_context_ranks;
  Combination changed = c;
  changed.num_ranks = enough * c.num_stages.value_or(1);
  const bool divides = c.num_heads && *c.num_heads % enough == 0;
  if (!divides || !is_helped(c, changed)) return "";
  return ", or use --tensor-parallel-size " + std::to_string(enough);
}

std::string equal_kv_sentence(const Combination& c) {
  const int heads = c.kv_heads.front(), most = equal_ranks(c);
  return context_flag(c) + ": " + c.architecture + " has " + std::to_string(heads) +
         (heads == 1 ? " head" : " heads") + " of keys and values, so that " +
         (most == 1 ? "no two" : "only " + std::to_string(most)) + " of " +
         std::to_string(*c.num_tensor_ranks()) + " tensor parallel ranks have the same ones; " +
         (most == 1 ? "leave it out"
                    : "use --decode-context-parallel-size " + std::to_string(most)) +
         with_more_ranks(c);
}

// What ranks that share positions need of a model.
const CompatRule kContextRules[] = {
    {"`--decode-context-parallel-size`, heads of keys and values",
     StatusCode::kInvalidArgument,
     lacks_equal_kv,
     equal_kv_sentence,
     {.architecture = "Model",
      .kv_heads = {2},
      .num_heads = 8,
      .num_ranks = 4,
      .num_context_ranks = 4}},
    {"`--decode-context-parallel-size`, the hidden size",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.hidden_size && c.num_context_ranks > 1 &&
              !divides_rows(*c.hidden_size, *c.num_context_ranks);
     },
     [](const Combination& c) {
       return context_flag(c) + ": " + std::to_string(*c.hidden_size) + ", the hidden size of " +
              c.architecture + ", is no multiple of " + std::to_string(2 * *c.num_context_ranks) +
              "; leave it out";
     },
     {.architecture = "Model", .hidden_size = 65, .num_ranks = 2, .num_context_ranks = 2}},
};

const CompatRule kExpertRules[] = {
    {"`--enable-expert-parallel`, the model",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.expert_parallel && c.num_experts == 0; },
     [](const Combination&) -> std::string {
       return "--enable-expert-parallel: the model is no mixture of experts; leave it out";
     },
     {.num_experts = 0, .expert_parallel = true}},
    {"`--enable-expert-parallel`, more ranks than the model has experts",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.expert_parallel && c.num_experts.value_or(0) > 0 &&
              ranks_with_experts(c) > *c.num_experts;
     },
     [](const Combination& c) -> std::string {
       const std::string experts = std::to_string(*c.num_experts);
       return "--enable-expert-parallel deals the model's " + experts + " experts out to " +
              std::to_string(ranks_with_experts(c)) +
              " ranks, so that some would have none; leave it out or use at most " + experts +
              " ranks";
     },
     {.num_experts = 4, .num_ranks = 8, .expert_parallel = true}},
};

const CompatRule kLaneRules[] = {
    {"`--enable-dbo`, `--cudagraph-mode PIECEWISE`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.two_lanes && c.only_pieces; },
     [](const Combination&) -> std::string {
       return "--enable-dbo: two lanes are within one graph, and steps run in pieces; use "
              "--cudagraph-mode FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE or NONE, with an "
              "attention backend that graphs can hold";
     },
     {.two_lanes = true, .only_pieces = true}},
    {"`--enable-dbo`, GPUs that do not reach each other's memory",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.two_lanes && !c.waiting_route.empty(); },
     [](const Combination& c) {
       return "--enable-dbo is for GPUs that reach each other's memory, and these exchange "
              "through " +
              c.waiting_route + "; leave it out";
     },
     {.two_lanes = true, .waiting_route = "NCCL"}},
    {"`--enable-dbo`, the hidden size",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       // Sums over ranks are written four numbers at a time, and the other lane's rows follow.
       return c.two_lanes && c.hidden_size && *c.hidden_size % 4 != 0 && c.num_tensor_ranks() > 1;
     },
     [](const Combination& c) {
       return "--enable-dbo: " + std::to_string(*c.hidden_size) + ", the hidden size of " +
              c.architecture + ", is no multiple of 4; leave it out";
     },
     {.architecture = "Model", .hidden_size = 65, .num_ranks = 2, .two_lanes = true}},
};

}  // namespace

std::span<const CompatRule> engine_rules() { return kEngineRules; }
std::span<const CompatRule> rank_rules() { return kSharedRules; }
std::span<const CompatRule> context_rules() { return kContextRules; }
std::span<const CompatRule> expert_rules() { return kExpertRules; }
std::span<const CompatRule> lane_rules() { return kLaneRules; }

}  // namespace foretoken
