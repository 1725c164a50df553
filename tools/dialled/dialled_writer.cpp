#include "dialled/dialled_writer.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/check.h"
#include "dialled/dialled_fill.h"
#include "dialled/dialled_parts.h"
#include "dialled/safetensors_writer.h"
#include "model/config/config.h"
#include "model/registry.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kFirstCycleId = 2;
// Fisher-Yates with an engine whose output the standard fixes, so that files are the same anywhere.
void shuffle(std::vector<int32_t>* values, uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[engine() % i]);
}

// Words of a byte-level vocabulary: the decoder turns "Ġ" into the space before each word; or of a
// SentencePiece one, where that is "▁".
Json make_tokenizer(const DialledShape& shape) {
  const bool byte_level = shape.id_shift == 0;
  Json vocab = {{"<unk>", 0}, {"</s>", 1}};
  for (int32_t id = kFirstCycleId; id < shape.vocab_size; ++id) {
    const std::string word = "t" + std::to_string(dialled_word(shape, id));
    vocab[(byte_level ? "\u0120" : "\u2581") + word] = id;
  }
  const auto special = [](int32_t id, const char* content) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const Json split = {{"type", "WhitespaceSplit"}};
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", true},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  const Json pieces = {{"type", "Metaspace"},
                       {"replacement", "\u2581"},
                       {"prepend_scheme", "always"},
                       {"split", true}};
  const Json before = {{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes})}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", Json::array({special(0, "<unk>"), special(1, "</s>")})},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level ? before : pieces},
          {"post_processor", nullptr},
          {"decoder", byte_level ? bytes : pieces},
          {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}}}};
}

Status check_mixture(const DialledShape& shape) {
  const bool latent = shape.architecture == "DeepseekV3ForCausalLM";
  // Half of the groups, which are pairs, have half of the experts.
  const int32_t most = latent ? shape.num_experts / 2 : shape.num_experts;
  const bool grouped = !latent || shape.num_experts % 4 == 0;
  if (shape.experts_per_token < 1 || shape.experts_per_token > most || !grouped) {
    return invalid_argument(
        "a dialled checkpoint cannot have " + std::to_string(shape.num_experts) +
        " experts of which each row takes " + std::to_string(shape.experts_per_token) +
        "; DeepSeek's are a multiple of 4, and a row takes half at most");
  }
  return {};
}

}  // namespace

Status check_dialled_shape(const DialledShape& shape) {
  const auto too_small = [](const char* name, int64_t value, int64_t least) {
    return invalid_argument("a dialled checkpoint needs " + std::string(name) + " of at least " +
                            std::to_string(least) + ", not " + std::to_string(value));
  };
  if (find_architecture(shape.architecture) == nullptr) {
    return unsupported("architecture '" + shape.architecture + "' is not supported" +
                       known_architectures_hint(shape.architecture));
  }
  if (shape.vocab_size < 8) return too_small("vocab_size", shape.vocab_size, 8);
  if (shape.num_layers < 1) return too_small("num_layers", shape.num_layers, 1);
  if (shape.num_kv_heads < 1) return too_small("num_kv_heads", shape.num_kv_heads, 1);
  if (shape.intermediate_size < 1)
    return too_small("intermediate_size", shape.intermediate_size, 1);
  if (shape.num_heads < 1 || shape.num_heads % shape.num_kv_heads != 0 || shape.head_dim < 2 ||
      shape.head_dim % 2 != 0) {
    return invalid_argument(
        "a dialled checkpoint needs an even head_dim and a num_heads that is a multiple of "
        "num_kv_heads");
  }
  if (is_dialled_mixture(shape)) FT_RETURN_IF_ERROR(check_mixture(shape));
  for (const double agreement : {shape.agreement, shape.mtp_agreement}) {
    if (agreement < 0 || agreement > 1) {
      return invalid_argument("agreement must lie between 0 and 1");
    }
  }
  if (shape.num_mtp_modules < 0) return too_small("num_mtp_modules", shape.num_mtp_modules, 0);
  if (shape.id_shift < 0) return too_small("id_shift", shape.id_shift, 0);
  // The largest of all products of two codes is about sqrt(2 hidden ln(vocab^2 / 2)); it has to
  // stay below 0.85 hidden, the product of a code with itself being hidden.
  const double pairs = 0.5 * shape.vocab_size * shape.vocab_size;
  const auto least = static_cast<int64_t>(std::ceil(2 * std::log(pairs) / (0.85 * 0.85)));
  if (shape.hidden_size < least) return too_small("hidden_size", shape.hidden_size, least);
  return {};
}

Status write_dialled_json(const std::string& folder, const char* name,
                          const nlohmann::ordered_json& json) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::ofstream file(path, std::ios::trunc);
  file << json.dump(1) << "\n";
  file.close();
  if (!file)
    return invalid_argument("cannot write " + path + "; check that the folder is writable");
  return {};
}

Status make_dialled_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return invalid_argument("cannot create " + folder + " (" + error.message() +
                          "); choose another folder");
}

DialledCycle::DialledCycle(int32_t vocab_size, uint64_t seed)
    : order_(static_cast<size_t>(vocab_size - kFirstCycleId)),
      next_(static_cast<size_t>(vocab_size), -1) {
  std::iota(order_.begin(), order_.end(), kFirstCycleId);
  shuffle(&order_, seed);
  for (int64_t i = 0; i < length(); ++i) next_[static_cast<size_t>(at(i))] = at(i + 1);
}

std::vector<std::string> dialled_architectures() {
  return {kLlamaArchitecture.name, kMistralArchitecture.name, kQwen2Architecture.name,
          kQwen3Architecture.name, kGemma2Architecture.name,  kGemma3Architecture.name,
          kPhi3Architecture.name,  kSmolLm3Architecture.name, kGemma3ConditionalArchitecture.name,
          "MixtralForCausalLM",    "Qwen3MoeForCausalLM",     "Glm4MoeForCausalLM",
          "DeepseekV3ForCausalLM", kGptOssArchitecture.name};
}

std::vector<int32_t> dialled_successors(const DialledShape& shape) {
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  std::vector<int32_t> successors(static_cast<size_t>(shape.vocab_size), -1);
  std::vector<int32_t> ids;
  for (int32_t id = kFirstCycleId; id < shape.vocab_size; ++id) {
    successors[static_cast<size_t>(id)] = cycle.next(id);
    ids.push_back(id);
  }
  shuffle(&ids, shape.seed ^ 0xA9EEull);
  const auto wrong =
      static_cast<size_t>(std::lround((1 - shape.agreement) * static_cast<double>(ids.size())));
  // A rotation of the successors of the chosen ids keeps every id the successor of one id.
  for (size_t i = 0; i + 1 < wrong; ++i) {
    std::swap(successors[static_cast<size_t>(ids[i])], successors[static_cast<size_t>(ids[i + 1])]);
  }
  std::vector<int32_t> by_id(successors.size(), -1);
  for (const int32_t id : ids) {
    const int32_t next = successors[static_cast<size_t>(dialled_word(shape, id))];
    by_id[static_cast<size_t>(id)] = dialled_id(shape, next);
  }
  return by_id;
}

Status write_dialled_checkpoint(const std::string& folder, const DialledShape& shape) {
  FT_RETURN_IF_ERROR(check_dialled_shape(shape));
  FT_RETURN_IF_ERROR(make_dialled_folder(folder));
  const Json config_json = dialled_config(shape);
  FT_ASSIGN_OR_RETURN(const ModelConfig config,
                      parse_model_config(nlohmann::json(config_json), nlohmann::json::object(), {},
                                         "the dialled config"));
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "config.json", config_json));
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "generation_config.json", {{"eos_token_id", 1}}));
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "tokenizer.json", make_tokenizer(shape)));
  const Json tokenizer_config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"model_max_length", shape.max_position_embeddings},
      {"unk_token", "<unk>"},
      {"eos_token", "</s>"},
      {"add_bos_token", false},
      {"clean_up_tokenization_spaces", false},
      {"chat_template", "{% for message in messages %}{{ message['content'] }}{% endfor %}"}};
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "tokenizer_config.json", tokenizer_config));
  return write_safetensors(
      (std::filesystem::path(folder) / "model.safetensors").string(),
      dialled_tensors(shape, config, find_architecture(shape.architecture)->decoder));
}

}  // namespace foretoken
