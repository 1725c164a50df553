#include "apps/options/engine_options.h"

#include <spdlog/fmt/fmt.h>

#include "apps/flags/file_validators.h"
#include "apps/flags/flag_table.h"
#include "apps/options/default_model.h"
#include "apps/options/engine_choices.h"
#include "apps/options/parallel_options.h"
#include "apps/options/rank_process.h"
#include "apps/terminal/download_progress_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "attention/flex_choice.h"
#include "base/json_log.h"
#include "base/log.h"
#include "engine/measure/step_time_cache.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

void add_model_flags(CLI::App& app, EngineConfig& config, bool positional) {
  app.add_option(positional ? "--model,model" : "--model", config.model,
                 "Folder with config.json, *.safetensors and tokenizer.json, or Hub id "
                 "org/name[@revision] (default: the bundled " +
                     bundled_model_name() + ")")
      ->type_name(kModelType);
  app.add_option("--revision", config.revision,
                 "Branch, tag or commit of a Hub id (default: main)");
  app.add_option("--download-dir", config.download_dir,
                 "Cache folder of Hub files (default: as HF_HUB_CACHE or HF_HOME say)")
      ->type_name(kFolderType);
  app.add_option("--device", config.device, "cpu or cuda")
      ->capture_default_str()
      ->type_name(choices_type({"cpu", "cuda"}));
  app.add_option("--dtype", config.dtype, "auto, float32 or bfloat16")
      ->capture_default_str()
      ->type_name(choices_type({"auto", "float32", "bfloat16"}));
  app.add_option("--quantization", config.quantization,
                 "fp8: round the matrices of layers to FP8 (E4M3, a scale for each output) while "
                 "they are loaded; or the method by which the files are quantised already")
      ->type_name(choices_type({"fp8", "awq", "gptq", "compressed-tensors", "modelopt", "mxfp4"}));
  app.add_option(
         "--load-format", config.load_format,
         "auto, safetensors, gguf, dummy (random weights, config.json only), or dummy-TYPE: "
         "quantised by a type of foretoken convert, as dummy-q4_k_m (CPU)")
      ->capture_default_str()
      ->type_name(choices_type({"auto", "safetensors", "gguf", "dummy"}));
  app.add_option("--hf-overrides", config.hf_overrides, "JSON object laid over config.json")
      ->type_name("JSON");
  app.add_option("--generation-config", config.generation_config,
                 "Sampling defaults: auto (the model's), vllm (none) or a folder with a "
                 "generation_config.json")
      ->capture_default_str()
      ->type_name(choices_type({"auto", "vllm"}));
  app.add_option("--override-generation-config", config.override_generation_config,
                 "JSON object laid over it: {\"temperature\": 0.5}")
      ->type_name("JSON");
  app.add_option("--chat-template", config.chat_template,
                 "File of a chat template, or the template itself (default: the model's)")
      ->type_name(std::string("TEXT|") + kFileType);
  app.add_flag("--skip-tokenizer-init", config.skip_tokenizer_init,
               "Load no tokenizer: prompts and outputs are token ids");
  app.add_option("--attention-backend", config.attention_backend,
                 "Attention kernels, as foretoken inspect lists them (default: the first that fits "
                 "and is as --batch-invariant says)")
      ->type_name(choices_type(attention_backend_names()));
  // After --attention-backend, to whose choice they are added.
  app.add_option_function<std::string>(
         "--flex-mask",
         [&config](const std::string& text) {
           AttentionChoice choice = read_attention_choice(config.attention_backend);
           choice.mask = text;
           config.attention_backend = choice.text();
         },
         "Which positions a row sees, of those up to its own (--attention-backend flex): "
         "'kv <= q and q - kv < 128', of q, kv and h, the query head")
      ->type_name("EXPRESSION");
  app.add_option_function<std::string>(
         "--flex-score",
         [&config](const std::string& text) {
           AttentionChoice choice = read_attention_choice(config.attention_backend);
           choice.score = text;
           config.attention_backend = choice.text();
         },
         "What becomes of a score: 'score - 0.1 * (q - kv)'")
      ->type_name("EXPRESSION");
  app.add_option(
         "--batch-invariant", config.batch_invariant,
         "auto, on: the same bits in every batch; off: prompts may take kernels of libraries, "
         "where the build and the GPU have them. auto is on unless --attention-backend names "
         "other kernels")
      ->capture_default_str()
      ->type_name(choices_type({"auto", "on", "off"}));
  app.add_option("--cpu-threads", config.cpu_threads,
                 "Threads of the CPU device (default: one a physical core)")
      ->check(at_least(0));
  app.add_option("--seed", config.seed, "Seed of requests that have none")
      ->capture_default_str()
      ->check(seed_number());
}

void add_batch_flags(CLI::App& app, EngineConfig& config) {
  app.add_option("--max-model-len", config.max_model_len,
                 "Most tokens of prompt and output together: 4096, 32k, 1M, or auto for what "
                 "memory allows (default: as the model allows)")
      ->transform(human_integer_or_auto())
      ->type_name("N[k|m|g|K|M|G]|auto");
  app.add_option("--max-num-seqs", config.max_num_seqs,
                 "Most sequences in a step (default: 64 on a CPU, 256 on CUDA)")
      ->check(at_least(1));
  app.add_option("--max-num-batched-tokens", config.max_num_batched_tokens,
                 "Most tokens in a step; longer prompts are computed in chunks (default: 512 on a "
                 "CPU, 8192 on GPUs of 64 GiB and more, 2048 on others)")
      ->check(at_least(1))
      ->transform(human_integer())
      ->type_name("N[k|m|g|K|M|G]");
  app.add_option("--long-prefill-token-threshold", config.long_prefill_token_threshold,
                 "Most tokens of a prompt in a step that others share; 0: any (default: as many "
                 "of a long one as take about the time of the rest of the step)")
      ->check(at_least(0))
      ->transform(human_integer())
      ->type_name("N[k|m|g|K|M|G]");
  app.add_option("--scheduling-policy", config.scheduling_policy,
                 "fcfs (first come, first served) or priority")
      ->capture_default_str()
      ->check(CLI::IsMember({"fcfs", "priority"}));
  app.add_option("--max-logprobs", config.max_logprobs,
                 "Most alternatives a token that a request may ask for; -1: all, 0: no logprobs")
      ->capture_default_str()
      ->check(at_least(-1));
}

void add_memory_flags(CLI::App& app, EngineConfig& config) {
  app.add_option("--block-size", config.block_size, "Tokens of a KV block: 16, 32 or 64")
      ->capture_default_str()
      ->type_name("INT:{16,32,64}");
  app.add_option("--kv-cache-dtype", config.kv_cache_dtype,
                 "Type of the KV cache: auto (what the checkpoint asks for, else the model's), or "
                 "half the memory of bfloat16: fp8 (e4m3, with the checkpoint's scales) or int8 "
                 "(CPU)")
      ->capture_default_str()
      ->type_name(choices_type({"auto", "int8", "fp8"}));
  app.add_option("--num-gpu-blocks-override", config.num_gpu_blocks_override,
                 "Number of KV blocks (default: what memory allows)")
      ->check(at_least(1));
  app.add_option("--kv-cache-memory-bytes", config.kv_cache_memory_bytes,
                 "Memory of the KV cache (default: what --gpu-memory-utilization leaves; on a CPU "
                 "half of the free memory times that, at most 4 GiB or one sequence)")
      ->check(at_least(1))
      ->transform(human_integer())
      ->type_name("N[k|m|g|K|M|G]");
  app.add_option("--gpu-memory-utilization", config.gpu_memory_utilization,
                 "Share of a GPU's memory for weights, scratch and KV cache; not looked at where "
                 "--num-gpu-blocks-override or --kv-cache-memory-bytes is given")
      ->capture_default_str();
  app.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", config.enable_prefix_caching,
               "Share KV blocks of equal prefixes (default: on)");
}

void add_step_flags(CLI::App& app, EngineConfig& config) {
  app.add_flag("--enforce-eager", config.enforce_eager,
               "Run without recorded graphs, as --cudagraph-mode NONE");
  app.add_option("--steps-in-flight", config.steps_in_flight, "Steps queued ahead: 1 to 3")
      ->capture_default_str();
  app.add_option("--step-timeout-seconds", config.step_timeout_seconds,
                 "Give a device up that finishes no step for so long; 0: never")
      ->capture_default_str()
      ->check(at_least(0));
}

std::string load_text(int64_t done, int64_t total) {
  return fmt::format("loading weights: {:.0f} of {:.0f} MiB ({} %)", mebibytes(done),
                     mebibytes(total), total > 0 ? 100 * done / total : 100);
}

}  // namespace

void EngineOptions::add_to(CLI::App& app, bool positional_model) {
  add_model_flags(app, config, positional_model);
  add_batch_flags(app, config);
  add_memory_flags(app, config);
  add_step_flags(app, config);
  add_parallel_flags(app, config.parallel);
  app.parse_complete_callback([this] { note_engine_options(*this); });
  adapters.add_to(app, config);
  graphs.add_to(app);
  speculative.add_to(app);
  app.add_option(
         "--step-time-table", config.step_time_table,
         "JSON file of the costs that the length policy adaptive reckons with: read where it "
         "exists, otherwise measured at start and written (default: that of --step-time-cache)")
      ->group("Speculation")
      ->type_name(kFileType)
      ->check(file_in_a_folder());
  app.add_option("--step-time-cache", step_time_cache,
                 "Folder that keeps measured costs for later starts, or off (default: "
                 "foretoken/step-times in XDG_CACHE_HOME or ~/.cache)")
      ->type_name("FOLDER|off")
      ->group("Speculation");
  app.add_option("--profile", config.profile,
                 "File for what the engine's threads and the device did, step by step, as "
                 "chrome://tracing and ui.perfetto.dev show it, written when the engine ends; "
                 "without graphs op by op")
      ->type_name("FILE");
  app.add_flag("--enable-layerwise-nvtx-tracing", config.enable_layerwise_nvtx_tracing,
               "NVTX ranges of steps and ops even where no profiler is attached (cuda)");
  app.add_flag("--disable-log-stats,!--no-disable-log-stats", config.disable_log_stats,
               "No lines about speculation in the log");
  app.add_option("--log-level", log_level, "Least level logged to stderr")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  app.add_option("--log-format", log_format, "Lines of the log as text or as JSON objects")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  vllm.add_to(app);
}

Result<EngineConfig> EngineOptions::resolve() const {
  EngineConfig resolved = config;
  for (const auto& [flag, text] :
       {std::pair{"--hf-overrides", &config.hf_overrides},
        std::pair{"--override-generation-config", &config.override_generation_config}}) {
    if (!text->empty()) FT_RETURN_IF_ERROR(parse_json_object(*text, flag).status());
  }
  FT_RETURN_IF_ERROR(graphs.apply_to(resolved));
  FT_RETURN_IF_ERROR(adapters.apply_to(resolved));
  resolved.model = resolved.model.empty() ? default_model() : bundled_or_given(resolved.model);
  if (resolved.model.empty()) {
    return not_found("the bundled model models/" + bundled_model_name() +
                     " was not found; name a model folder with --model");
  }
  FT_ASSIGN_OR_RETURN(resolved.speculative, speculative.resolve(resolved.model));
  resolved.step_time_cache = step_time_cache.empty() ? default_step_time_folder() : step_time_cache;
  if (step_time_cache == "off") resolved.step_time_cache.clear();
  if (resolved.speculative.empty() && !resolved.step_time_table.empty()) {
    return invalid_argument(
        "--step-time-table is for speculation; add --speculative-config or remove it");
  }
  return resolved;
}

Result<EngineConfig> prepare_engine(const EngineOptions& options) {
  init_logging(options.log_level.c_str());
  if (options.log_format == "json") use_json_logs();
  FT_ASSIGN_OR_RETURN(EngineConfig config, options.resolve());
  FT_RETURN_IF_ERROR(options.vllm.check(config.model));
  options.graphs.warn();
  FT_LOG(info, "loading {}", config.model);
  config.cancel_load = &interrupt_flag();
  return config;
}

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig config, prepare_engine(options));
  ProgressLine progress;
  config.on_load_progress = [&progress](int64_t done, int64_t total) {
    if (progress.due()) progress.show(load_text(done, total));
  };
  DownloadProgressText fetched;
  config.on_download_progress = [&](const std::string& file, int64_t done, int64_t total) {
    fetched.note(file, done, total);
    if (progress.due()) progress.show(fetched.text(config.model));
  };
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(config, &engine));
  if (interrupt_flag().load()) return aborted("loading was interrupted");
  progress.clear();
  FT_LOG(info, "{}", engine_banner(engine->info(), config.model));
  return engine;
}

}  // namespace foretoken
