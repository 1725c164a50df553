#include <string>

#include "attention/families.h"
#include "compat/rules.h"

// Families of attention: where they run, and what they take.

namespace foretoken {
namespace {

const AttentionTraits& traits_of(const Combination& c) { return c.attention->traits(); }

std::string backend_flag(const Combination& c) {
  return "--attention-backend " + std::string(traits_of(c).name);
}

Status place_of_attention(const Combination& c) {
  if (c.attention == nullptr || c.device == nullptr) return {};
  return check_attention_place(*c.attention, c.device->type, c.opened);
}

bool is_unserved(const Combination& c) {
  if (c.attention == nullptr) return false;
  const bool lacks_latents = c.latent && !traits_of(c).is_latent;
  return lacks_latents || (c.model && !c.attention->serves(*c.model));
}

bool has_other_blocks(const Combination& c) {
  if (c.attention == nullptr || !c.model) return false;
  const int32_t blocks = c.model->block_size;
  return blocks > 0 && traits_of(c).block_size > 0 && blocks != traits_of(c).block_size;
}

std::string other_blocks(const Combination& c) {
  const std::string size = std::to_string(traits_of(c).block_size);
  return backend_flag(c) + " reads KV blocks of " + size + " tokens alone; give --block-size " +
         size + " with it, or --attention-backend " + name_of(attention_instead(c));
}

constexpr AttentionDemand kSoftCapped = {DType::kBF16, 128, 30.0f, true};
constexpr AttentionDemand kSmallBlocks = {DType::kBF16, 576, 0, true, 512, false, 16};

const CompatRule kBackendRules[] = {
    {"`--attention-backend`, `--device`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return !place_of_attention(c).ok(); },
     [](const Combination& c) { return place_of_attention(c).message(); },
     {.device = find_device_type("cpu"), .attention = &flashinfer_attention()}},
    {"`--attention-backend`, `--batch-invariant`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.attention != nullptr && c.batch_invariant && !traits_of(c).batch_invariant;
     },
     [](const Combination& c) {
       return backend_flag(c) +
              " is not batch-invariant; give --batch-invariant off with it, or "
              "--attention-backend " +
              name_of(attention_instead(c));
     },
     {.attention = &flashinfer_attention(), .batch_invariant = true}},
    {"`--attention-backend`, the model's attention",
     StatusCode::kInvalidArgument,
     is_unserved,
     [](const Combination& c) {
       return backend_flag(c) + " takes " + c.attention->model_needs() +
              ", which this model does not have; " +
              (c.expressions ? "leave --flex-mask and --flex-score out"
                             : "use --attention-backend " + name_of(attention_instead(c)));
     },
     {.attention = &flashinfer_attention(), .model = kSoftCapped}},
    {"`--attention-backend`, `--block-size`",
     StatusCode::kInvalidArgument,
     has_other_blocks,
     other_blocks,
     {.attention = &flashmla_attention(), .model = kSmallBlocks}},
};

const CompatRule kExpressionRules[] = {
    {"`--flex-mask`, `--attention-backend`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.expressions && c.attention != nullptr &&
              traits_of(c).family != AttentionFamily::kFlex;
     },
     [](const Combination& c) {
       return "--flex-mask and --flex-score are of --attention-backend flex, not " +
              name_of(*c.attention) + "; leave one of them out";
     },
     {.attention = &portable_attention(), .expressions = true}},
    {"`--flex-mask` with `prompt`, blocks that an indexer chooses",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.whole_prompts && c.chooses_blocks; },
     [](const Combination&) -> std::string {
       return "--flex-mask lets a prompt see what comes later ('prompt'), among which the model's "
              "indexer chooses no blocks; use a mask of q and kv";
     },
     {.whole_prompts = true, .chooses_blocks = true}},
    {"`request` in `--flex-mask` or `--flex-score`, blocks that an indexer chooses",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.asks_requests && c.chooses_blocks; },
     [](const Combination&) -> std::string {
       return "--flex-mask and --flex-score ask what requests say ('request'), which rows among "
              "blocks that the model's indexer chose do not find; leave --flex-mask and "
              "--flex-score "
              "out, or write them without it";
     },
     {.asks_requests = true, .chooses_blocks = true}},
    {"`--flex-mask`, a model without attention",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.expressions && c.attends.is_false(); },
     [](const Combination& c) {
       return "no layer of '" + c.architecture +
              "' attends to positions, so that --flex-mask and --flex-score would change nothing; "
              "leave --flex-mask and --flex-score out";
     },
     {.expressions = true, .attends = false, .architecture = "RWKV7ForCausalLM"}},
    {"`--flex-mask`, a model that sees later tokens",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.expressions && c.bidirectional; },
     [](const Combination& c) {
       return "'" + c.architecture +
              "' reads a text from both ends, which --flex-mask and --flex-score do not know; "
              "leave --flex-mask and --flex-score out";
     },
     {.expressions = true, .bidirectional = true, .architecture = "BertModel"}},
};

}  // namespace

std::string name_of(const AttentionBackend& backend) { return backend.traits().name; }

const AttentionBackend& attention_instead(const Combination& c) {
  AttentionDemand demand = {.dtype = DType::kBF16, .head_dim = 128};
  if (c.latent || traits_of(c).is_latent) demand = {DType::kBF16, 576, 0, true, 512};
  if (c.model) demand = *c.model;
  const DeviceType type = (c.device != nullptr ? *c.device : device_types().front()).type;
  return default_attention(demand, type, c.opened);
}

std::span<const CompatRule> backend_rules() { return kBackendRules; }
std::span<const CompatRule> expression_rules() { return kExpressionRules; }

}  // namespace foretoken
