#include "engine/compat/compat.h"

#include <vector>

#include "engine/compat/kv_format.h"
#include "model/config/architecture.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

Status check_drafter(const Combination& c) {
  return c.drafter.empty() ? Status() : find_drafter(c.drafter).status();
}

Status check_architecture(const Combination& c) {
  if (c.architecture.empty() || find_architecture(c.architecture) != nullptr) return {};
  return unsupported("architecture '" + c.architecture +
                     "' is not supported; foretoken inspect lists those that are");
}

std::string name_of(const AttentionBackend& backend) { return backend.traits().name; }

// The backend that serves in place of one that does not.
const AttentionBackend& attention_instead(const Combination& c) {
  AttentionDemand demand = {.dtype = DType::kBF16, .head_dim = 128};
  if (c.latent || c.attention->traits().is_latent) demand = {DType::kBF16, 576, 0, true, 512};
  if (c.model != nullptr) demand = *c.model;
  const DeviceType type = (c.device != nullptr ? *c.device : device_types().front()).type;
  return default_attention(demand, type, c.opened);
}

Status check_attention(const Combination& c) {
  if (c.attention == nullptr) return {};
  const AttentionTraits& traits = c.attention->traits();
  if (c.device != nullptr) {
    FT_RETURN_IF_ERROR(check_attention_place(*c.attention, c.device->type, c.opened));
  }
  const std::string flag = "--attention-backend " + std::string(traits.name);
  if (c.batch_invariant && !traits.batch_invariant) {
    return invalid_argument(flag + " is not batch-invariant; give --batch-invariant off with it, " +
                            "or --attention-backend " + name_of(attention_instead(c)));
  }
  const bool lacks_latents = c.latent && !traits.is_latent;
  if (lacks_latents || (c.model != nullptr && !c.attention->serves(*c.model))) {
    return invalid_argument(flag + " takes " + c.attention->model_needs() +
                            ", which this model does not have; use --attention-backend " +
                            name_of(attention_instead(c)));
  }
  const int32_t blocks = c.model != nullptr ? c.model->block_size : 0;
  if (blocks > 0 && traits.block_size > 0 && blocks != traits.block_size) {
    return invalid_argument(flag + " reads KV blocks of " + std::to_string(traits.block_size) +
                            " tokens alone; give --block-size " +
                            std::to_string(traits.block_size) + " with it, or " +
                            "--attention-backend " + name_of(attention_instead(c)));
  }
  return {};
}

// The types of device on which a format is built.
std::string places_of(KvFormat format) {
  std::string places;
  for (const DeviceTraits& device : device_types()) {
    if (!is_kv_format_built(device.type, format)) continue;
    places += (places.empty() ? "" : " and ") + std::string(device.title);
  }
  return places;
}

bool has_latent_form(KvFormat format) { return latent_format(format) == format; }

// What --kv-cache-dtype takes, but for the names of the model's type: "auto, int8 or fp8".
std::string kv_names(const Combination& c) {
  std::vector<std::string> names = {"auto"};
  for (const NamedKvFormat& each : named_kv_formats()) {
    const bool fits = !c.latent || has_latent_form(each.format);
    if (fits && is_kv_format_built(c.device->type, each.format)) names.emplace_back(each.name);
  }
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) {
    text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  }
  return text;
}

Status check_kv_cache(const Combination& c) {
  if (c.kv_cache_dtype.empty() || c.device == nullptr || !c.dtype) return {};
  const std::string flag = "--kv-cache-dtype " + c.kv_cache_dtype;
  const std::string use = "; use " + kv_names(c);
  const std::optional<KvFormat> format = find_kv_format(c.kv_cache_dtype, *c.dtype);
  if (!format && find_dtype(c.kv_cache_dtype)) {
    return unsupported(flag + " is not the model's type, " + dtype_name(*c.dtype) + use +
                       ", or give --dtype " + c.kv_cache_dtype);
  }
  if (!format && is_unbuilt_kv_format(c.kv_cache_dtype)) {
    return unsupported(flag + " is not built" + use);
  }
  if (!format) {
    return invalid_argument("--kv-cache-dtype '" + c.kv_cache_dtype + "' is unknown" + use);
  }
  if (!is_kv_format_built(c.device->type, *format)) {
    return unsupported(flag + " is built for " + places_of(*format) + " only" + use);
  }
  if (c.latent && !has_latent_form(*format)) {
    return unsupported(flag + " is not built for latent attention" + use);
  }
  if (c.attention == nullptr || c.attention->traits().reads(c.device->type, *format)) return {};
  const AttentionBackend& instead = attention_instead(c);
  const bool reads = instead.traits().reads(c.device->type, *format);
  return invalid_argument(
      flag + " is not read by --attention-backend " + c.attention->traits().name +
      (reads ? "; leave one of them out, or use --attention-backend " + name_of(instead) : use));
}

// "1, 2 or 4".
std::string divisors_of(int number) {
  std::string text = "1";
  for (int each = 2; each <= number; ++each) {
    if (number % each == 0) text += (each < number ? ", " : " or ") + std::to_string(each);
  }
  return text;
}

// Ranks that have positions of a sequence each.
Status check_context(const Combination& c) {
  if (c.num_context_ranks == 1) return {};
  const std::string flag = "--decode-context-parallel-size " + std::to_string(c.num_context_ranks);
  const int tensor_ranks = c.num_ranks / c.num_stages;
  if (c.num_context_ranks < 1 || tensor_ranks % c.num_context_ranks != 0) {
    return invalid_argument(flag + " does not divide --tensor-parallel-size " +
                            std::to_string(tensor_ranks) + ", whose ranks it is for; use " +
                            divisors_of(tensor_ranks));
  }
  if (c.num_stages > 1) {
    return unsupported(flag +
                       " and --pipeline-parallel-size together are not built; leave one of "
                       "them out");
  }
  return {};
}

Status check_ranks(const Combination& c) {
  if (c.num_engines > 1 && c.num_hosts > 1 && !c.expert_parallel) {
    return unsupported(
        "--data-parallel-size and --nnodes together: data parallel engines are on one host; start "
        "a server on each host and put a balancer before them");
  }
  if (c.num_engines > 1 && c.has_launcher) {
    return unsupported(
        "--data-parallel-size under mpirun, srun or torchrun: one process serves all data parallel "
        "engines; start it without a launcher, or a server for each engine");
  }
  if (c.uses_mpi && c.device != nullptr && !c.device->exchanges_by_mpi) {
    return unsupported(
        "--communicator mpi is for ranks on CPUs; leave it out: GPUs exchange through each other's "
        "memory, or through NCCL");
  }
  return {};
}

// Experts on the ranks of one engine, or of several.
Status check_experts(const Combination& c) {
  if (!c.expert_parallel) return {};
  if (c.num_experts == 0) {
    return invalid_argument(
        "--enable-expert-parallel: the model is no mixture of experts; leave it out");
  }
  if (c.num_engines == 1 || !c.uses_mpi) return {};
  return unsupported(
      "--enable-expert-parallel and --data-parallel-size together exchange through sockets; leave "
      "--communicator mpi out");
}

// Two lanes of rows within a step.
Status check_lanes(const Combination& c) {
  if (!c.two_lanes) return {};
  if (c.num_stages > 1) {
    return unsupported(
        "--enable-dbo and --pipeline-parallel-size together: a stage hands the rows of a step on "
        "in "
        "one piece; leave one of them out");
  }
  if (c.only_pieces) {
    return unsupported(
        "--enable-dbo: two lanes are within one graph, and steps run in pieces; use "
        "--cudagraph-mode FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE or NONE, with an attention "
        "backend that graphs can hold");
  }
  return {};
}

Status check_requests(const Combination& c) {
  if (c.structured_outputs && c.is_synthetic) {
    return invalid_argument(
        "structured_outputs cannot be used with --rejection-sample-method synthetic, which accepts "
        "drafts whatever they are; start the engine with another rule");
  }
  if (c.logits_processors && c.num_ranks > 1) {
    return invalid_argument(
        "logits_processors run on the host of rank 0 alone and cannot be used with several ranks; "
        "start the engine with --tensor-parallel-size 1 and --pipeline-parallel-size 1");
  }
  return {};
}

Status check_measuring(const Combination& c) {
  if (!c.parts_of_steps) return {};
  if (c.num_ranks > 1) {
    return unsupported(
        "parts of steps are measured on one rank; leave --tensor-parallel-size and "
        "--pipeline-parallel-size out, or use bench decode");
  }
  if (c.two_lanes) {
    return unsupported(
        "parts of steps are measured in one lane of rows; leave --enable-dbo out, or use bench "
        "decode");
  }
  if (c.has_profile) {
    return unsupported(
        "--profile tells of an engine's steps, and parts of steps are none; use bench decode");
  }
  return {};
}

// States of sequences, which belong to one position alone.
Status check_states(const Combination& c) {
  if (c.states_of.empty()) return {};
  if (c.num_context_ranks > 1) {
    return unsupported("--decode-context-parallel-size " + std::to_string(c.num_context_ranks) +
                       " is not built where " + c.states_of +
                       " keeps states of sequences, which all positions go through; leave it out");
  }
  if (c.host_blocks) {
    return unsupported("--kv-offloading-size is not built where " + c.states_of +
                       " keeps states of sequences, which blocks do not bring; leave it out");
  }
  return {};
}

// Keys of indexers, which one rank compares.
Status check_indexers(const Combination& c) {
  if (!c.is_sparse || c.num_context_ranks == 1) return {};
  return unsupported("--decode-context-parallel-size " + std::to_string(c.num_context_ranks) +
                     " is not built for sparse attention, whose indexers compare all positions; "
                     "leave it out");
}

// KV blocks in host memory.
Status check_host_blocks(const Combination& c) {
  if (!c.host_blocks) return {};
  if (!c.prefix_caching) {
    return invalid_argument(
        "--kv-offloading-size keeps blocks that the prefix cache gives up, and there is no prefix "
        "cache; leave it out, or --enable-prefix-caching off");
  }
  if (c.windowed) {
    return unsupported(
        "--kv-offloading-size is not built for models with sliding-window layers, whose blocks are "
        "freed on their own; leave it out");
  }
  return {};
}

}  // namespace

Status compat(const Combination& c) {
  for (const auto check : {check_architecture, check_drafter, check_attention, check_kv_cache,
                           check_ranks, check_context, check_experts, check_lanes, check_requests,
                           check_measuring, check_states, check_indexers, check_host_blocks}) {
    FT_RETURN_IF_ERROR(check(c));
  }
  return {};
}

}  // namespace foretoken
