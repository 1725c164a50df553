#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/engine_impl.h"
#include "engine/start/resolve_config.h"
#include "model/heads/judge_labels.h"

// What the start decided, for those who ask.

namespace foretoken {

void EngineImpl::fill_text_info() {
  info_.embedding_prompts = texts_.embedding_prompts().all;
  info_.embedding_prompt = texts_.embedding_prompts().usual;
  const Tokenizer* tokenizer = texts_.tokenizer();
  if (tokenizer == nullptr) return;
  const auto text_of = [tokenizer](std::optional<int32_t> id) {
    return id ? tokenizer->id_to_token(*id).value_or("") : std::string();
  };
  info_.bos_token = text_of(tokenizer->bos_id());
  info_.eos_token = text_of(tokenizer->eos_id());
  // The tokenizers of RoBERTa, which other encoders have, too, put two marks between texts.
  const auto marks = tokenizer->encode("", true);
  const bool has_two = marks.ok() && marks.value().size() == 2 &&
                       tokenizer->id_to_token(marks.value().front()) == "<s>";
  if (info_.pair_marks > 0 && has_two) info_.pair_marks = 2;
}

void EngineImpl::fill_info(const ResolvedConfig& config, const AttentionBackend& attention) {
  const ModelConfig& model = model_->config();
  info_.device = device_->name();
  info_.ranks_per_engine = ranks_.size();
  info_.first_engine = std::max(config.parallel.data_parallel_start_rank, 0);
  info_.architecture = model.architecture;
  info_.dtype = dtype_name(model.dtype);
  info_.attention_backend = config.attention.text();
  info_.batch_invariant = attention.traits().batch_invariant;
  for (const std::string& name : drafter_names_) {
    info_.drafter += (info_.drafter.empty() ? "" : ", ") + name;
  }
  if (!drafters_.empty()) {
    info_.rejection_sample_method = acceptance_method_name(config.acceptance);
  }
  info_.has_synthetic_acceptance = config.acceptance == AcceptanceMethod::kSynthetic;
  info_.weight_bytes = model_->weight_bytes();
  info_.num_parameters = model_->num_weights();
  info_.vocab_size = model.vocab_size;
  info_.hidden_size = dense_.empty() ? model.hidden_size : dense_.outputs();
  info_.max_position_embeddings = model.max_position_embeddings;
  if (judge_) {
    info_.num_labels = judge_->num_labels();
    JudgeLabels labels = judge_labels(ModelFiles(config.model), info_.num_labels);
    info_.labels = std::move(labels.names);
    info_.problem_type = std::move(labels.problem_type);
    info_.pair_template = std::move(labels.pair_template);
  }
  info_.token_size = tokens_ ? tokens_->size() : 0;
  info_.labels_tokens = tokens_ && tokens_->gives_labels();
  // RoBERTa's positions begin behind some rows, and its texts have two marks between them.
  info_.pair_marks = !model.bidirectional ? 0 : model.first_position_row > 0 ? 2 : 1;
  info_.second_text_ids = model.second_text_ids;
  fill_text_info();
  info_.max_model_len = config.max_model_len;
  info_.max_num_seqs = config.max_num_seqs;
  info_.max_num_batched_tokens = config.max_num_batched_tokens;
  info_.max_logprobs = config.max_logprobs;
  info_.max_new_tokens = generation_.max_new_tokens;
  info_.block_size = config.block_size;
  info_.cudagraph_mode = graph_mode_name(graphs_.mode);
  if (ranks_.is_alone()) return;
  FT_LOG(debug, "rank {}, stage {}: {} bytes of weights, drafters' own left out", ranks_.rank(),
         ranks_.stages().rank, info_.weight_bytes);
}

}  // namespace foretoken
