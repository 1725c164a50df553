#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>
#include <foretoken/request.h>

// The members of what goes between a front end and engines of other processes (wire_archive.h).
// Each list binds all members of its type, so that a new one does not compile until it travels,
// too. The functions lie beside the types, where an archive finds them.
namespace foretoken {

template <class Archive>
void fields(Archive& archive, StructuredOutputs& value) {
  auto& [json, json_object, regex, choice, grammar, structural_tag, disable_any_whitespace,
         disable_additional_properties, whitespace_pattern, strict_schemas, reasoning_ends,
         space_after_reasoning] = value;
  archive(json, json_object, regex, choice, grammar, structural_tag, disable_any_whitespace,
          disable_additional_properties, whitespace_pattern, strict_schemas, reasoning_ends,
          space_after_reasoning);
}

// Logits processors are code, and stay.
template <class Archive>
void fields(Archive& archive, SamplingParams& value) {
  auto& [n, max_tokens, min_tokens, temperature, top_p, top_k, min_p, presence_penalty,
         frequency_penalty, repetition_penalty, seed, logit_bias, bad_words, allowed_token_ids,
         logits_processors, structured_outputs, logprobs, prompt_logprobs, processed_logprobs, stop,
         stop_token_ids, include_stop_str_in_output, ignore_eos, detokenize, skip_special_tokens,
         spaces_between_special_tokens] = value;
  archive(n, max_tokens, min_tokens, temperature, top_p, top_k, min_p, presence_penalty,
          frequency_penalty, repetition_penalty, seed, logit_bias, bad_words, allowed_token_ids,
          structured_outputs, logprobs, prompt_logprobs, processed_logprobs, stop, stop_token_ids,
          include_stop_str_in_output, ignore_eos, detokenize, skip_special_tokens,
          spaces_between_special_tokens);
}

template <class Archive>
void fields(Archive& archive, SpeculativeParams& value) {
  auto& [enabled, num_speculative_tokens, method] = value;
  archive(enabled, num_speculative_tokens, method);
}

template <class Archive>
void fields(Archive& archive, ReasoningMarkers& value) {
  auto& [opens, closes, opened] = value;
  archive(opens, closes, opened);
}

template <class Archive>
void fields(Archive& archive, Request& value) {
  auto& [request_id, prompt, prompt_token_ids, add_special_tokens, truncate_prompt_tokens,
         truncation_side, sampling, speculative, prediction, prediction_token_ids, pooling,
         normalize, priority, queue_timeout_seconds, timeout_seconds, cache_salt, flex_mask,
         flex_score, adapter, reasoning, data_parallel_rank] = value;
  archive(request_id, prompt, prompt_token_ids, add_special_tokens, truncate_prompt_tokens,
          truncation_side, sampling, speculative, prediction, prediction_token_ids, pooling,
          normalize, priority, queue_timeout_seconds, timeout_seconds, cache_salt, flex_mask,
          flex_score, adapter, reasoning, data_parallel_rank);
}

template <class Archive>
void fields(Archive& archive, RequestStats& value) {
  auto& [num_prompt_tokens, num_cached_tokens, num_output_tokens, num_steps, num_drafts,
         num_draft_tokens, num_accepted_tokens, num_accepted_branch_tokens,
         num_prediction_draft_tokens, num_accepted_prediction_tokens, num_draft_tokens_by_drafter,
         num_accepted_tokens_by_drafter, num_draft_tokens_per_pos, num_accepted_tokens_per_pos,
         num_preemptions, queue_ns] = value;
  archive(num_prompt_tokens, num_cached_tokens, num_output_tokens, num_steps, num_drafts,
          num_draft_tokens, num_accepted_tokens, num_accepted_branch_tokens,
          num_prediction_draft_tokens, num_accepted_prediction_tokens, num_draft_tokens_by_drafter,
          num_accepted_tokens_by_drafter, num_draft_tokens_per_pos, num_accepted_tokens_per_pos,
          num_preemptions, queue_ns);
}

template <class Archive>
void fields(Archive& archive, Logprob& value) {
  auto& [token_id, logprob, rank, decoded_token, bytes] = value;
  archive(token_id, logprob, rank, decoded_token, bytes);
}

template <class Archive>
void fields(Archive& archive, TokenLogprobs& value) {
  auto& [token, top] = value;
  archive(token, top);
}

template <class Archive>
void fields(Archive& archive, RequestOutput& value) {
  auto& [request_id, index, text, token_ids, num_accepted_tokens, accepted_text_bytes, logprobs,
         prompt_logprobs, embedding, finished, request_finished, finish_reason, stop_reason, status,
         stats] = value;
  archive(request_id, index, text, token_ids, num_accepted_tokens, accepted_text_bytes, logprobs,
          prompt_logprobs, embedding, finished, request_finished, finish_reason, stop_reason,
          status, stats);
}

template <class Archive>
void fields(Archive& archive, StepTiming& value) {
  auto& [num_steps, device_ns, draft_ns, exchange_ns, num_gaps, idle_ns, idle_median_ns,
         idle_p99_ns, num_planned, plan_ns, encode_ns, submit_ns, wait_ns, reconcile_ns] = value;
  archive(num_steps, device_ns, draft_ns, exchange_ns, num_gaps, idle_ns, idle_median_ns,
          idle_p99_ns, num_planned, plan_ns, encode_ns, submit_ns, wait_ns, reconcile_ns);
}

template <class Archive>
void fields(Archive& archive, StepTokens& value) {
  auto& [num_steps, sum] = value;
  archive(num_steps, sum);
}

template <class Archive>
void fields(Archive& archive, OffloadStats& value) {
  auto& [num_queried_tokens, num_hit_tokens, bytes_out, bytes_in] = value;
  archive(num_queried_tokens, num_hit_tokens, bytes_out, bytes_in);
}

template <class Archive>
void fields(Archive& archive, EngineStats& value) {
  auto& [num_steps, num_steps_in_lanes, num_finished_requests, timing, step_tokens, requests,
         drafters, num_running_requests, num_waiting_requests, num_free_blocks, num_total_blocks,
         num_free_slots, num_total_slots, sleep_level, offload, engines] = value;
  archive(num_steps, num_steps_in_lanes, num_finished_requests, timing, step_tokens, requests,
          drafters, num_running_requests, num_waiting_requests, num_free_blocks, num_total_blocks,
          num_free_slots, num_total_slots, sleep_level, offload, engines);
}

template <class Archive>
void fields(Archive& archive, DrafterInfo& value) {
  auto& [name, num_speculative_tokens, looks_up, leads, kv_cache_bytes, memory_bytes] = value;
  archive(name, num_speculative_tokens, looks_up, leads, kv_cache_bytes, memory_bytes);
}

template <class Archive>
void fields(Archive& archive, StartPhase& value) {
  auto& [name, seconds] = value;
  archive(name, seconds);
}

template <class Archive>
void fields(Archive& archive, EmbeddingPrompt& value) {
  auto& [name, text] = value;
  archive(name, text);
}

template <class Archive>
void fields(Archive& archive, EngineInfo& value) {
  auto& [device, architecture, dtype, attention_backend, drafter, drafters, rejection_sample_method,
         has_synthetic_acceptance, step_times, step_times_source, batch_invariant, num_parameters,
         vocab_size, hidden_size, max_position_embeddings, bos_token, eos_token, embedding_prompts,
         embedding_prompt, num_labels, pair_marks, second_text_ids, labels, problem_type,
         token_size, labels_tokens, pair_template, max_model_len, max_num_seqs,
         max_num_batched_tokens, max_logprobs, max_new_tokens, block_size, num_blocks, weight_bytes,
         kv_cache_bytes, token_page_bytes, block_table_bytes, state_bytes, num_state_snapshots,
         state_snapshot_bytes, num_host_blocks, host_block_bytes, drafter_bytes, scratch_bytes,
         load_seconds, num_engines, first_engine, ranks_per_engine, cudagraph_mode, num_graphs,
         graph_seconds, start_phases] = value;
  archive(device, architecture, dtype, attention_backend, drafter, drafters,
          rejection_sample_method, has_synthetic_acceptance, step_times, step_times_source,
          batch_invariant, num_parameters, vocab_size, hidden_size, max_position_embeddings,
          bos_token, eos_token, embedding_prompts, embedding_prompt, num_labels, pair_marks,
          second_text_ids, labels, problem_type, token_size, labels_tokens, pair_template,
          max_model_len, max_num_seqs, max_num_batched_tokens, max_logprobs, max_new_tokens,
          block_size, num_blocks, weight_bytes, kv_cache_bytes, token_page_bytes, block_table_bytes,
          state_bytes, num_state_snapshots, state_snapshot_bytes, num_host_blocks, host_block_bytes,
          drafter_bytes, scratch_bytes, load_seconds, num_engines, first_engine, ranks_per_engine,
          cudagraph_mode, num_graphs, graph_seconds, start_phases);
}

template <class Archive>
void fields(Archive& archive, AdapterInfo& value) {
  auto& [name, path, base_model_name] = value;
  archive(name, path, base_model_name);
}

template <class Archive>
void fields(Archive& archive, LoraModule& value) {
  auto& [name, path, base_model_name] = value;
  archive(name, path, base_model_name);
}

}  // namespace foretoken
