# See tests/entries.cmake.
set(sanitizers tsan)
# One axis of a drafter stands for the others under a sanitizer: they differ in values, not in who
# touches them.
set(slow
  "DrafterIdentity\\.(Alone|Adaptive|Probabilistic|Reduced)" "Identity.*Sampled" "Math500" "/Bonus"
  "StaysFlat" "GrammarIdentity\\.(OverSteps|WhenMasks)" "GrammarIdentity\\.Under.*/[1-8]$"
  "OthersEndBesideHostile" "RowsOverRanks" "/[TP]P4$" "/TP2x[DP]P2$" "GoldenGreedy"
  "GraphModes.*/(ngram|draft_model|eagle|mtp|dflash)$" "IdentityCombinations" "FamilyIdentity" "Layouts\\.IdsAre"
  "SamplingFields\\.(Alone|Eager|WithDraftsAndTwo|AreAll)" "AnyOrderIdentity" "Int8Kv" "Fp8Kv\\." "Rounded(Activations|Mixtures)" "Quantised(Weights|Layouts)"
  "Fp8KvFamilies.*_(draft_model|eagle3|dflash|dspark|domino)"
  "MixtureIdentity.*_(ngram|eagle|eagle3|draft_model_shifted|mtp_own|mtp_chained|dflash|dspark|domino)_Greedy"
  "MixtureIdentity.*/(Mixtral|Qwen3Moe)" "MixtureLayouts.*/Glm4Moe" "MixtureLayouts.*(4EP|DP2EP)" "ExpertEngines\\..*/(DP4|[TP]P2xDP2)EP"
  "ContextParallel\\..*/(Deepseek|Gemma3|GptOss|Llama_TP4)" "TrainedContexts"
  "KvOffloadOf.*Sampled" "KvOffloadOf.*/(ngram|suffix|draft_model|eagle|mtp|medusa|mlp_speculator|gemma4_assistant|dflash|dspark|domino|pard|p_eagle)Greedy"
  "BundledMixture" "BundledExperts" "ForManyRequests"
  "DualBatch\\..*/(Llama_TP2|Llama_TP2DCP2|DeepseekV3_TP2EP|Llama_DP2|DeepseekV3_TP2EPDCP2|DeepseekV3_TP2DP2EP|DeepseekV3_DP4EP|DeepseekV3_TP4DCP4|GptOss_TP2EP|Gemma3_TP2)$")
set(slow_tsan "Allocation\\." "HostImages\\..*/(gemma|mistral|cohere2|olmo3|llama4|deci|qwen3_5|mamba2|nemotron_h|lfm2)"
  "ContextStates.*/(qwen3_next|qwen3_5|lfm2|olmo_hybrid|nemotron_h)$" "ContextSight.*TP4" "DualBatchTrained" "DualBatch\\..*/DeepseekV3_DP2EP$" "DrafterEdges.*/(ngram|eagle|mtp|dflash|dspark|domino|pard|p_eagle|mlp_speculator|gemma4_assistant)$"
  "GraphModes.*/(domino|pard|p_eagle|mlp_speculator|gemma4_assistant|suffix)$" "DrafterIdentity.*/(eagle|mtp|ngram|dflash|domino|pard|p_eagle|mlp_speculator|gemma4_assistant)Greedy$"
  "GrammarIdentity\\.Under.*/(9|1[0-9])$" "SuffixEngine\\.(MemoryIsFlat|CountsFollow|OtherSalts)"
  "KvOffload\\.(ScalesMove|LittleHost|PreemptedSequencesGoOnAsTheyWere$)" "FlexIdentity\\."
  "DrafterLists.*_(draft_model|eagle|mtp|dflash|dspark|domino|pard|p_eagle|medusa|mlp_speculator|gemma4_assistant)$" "DrafterLists.*/suffix_"
  "CountsOf.*/(Gemma2|Gemma3ForConditional|Glm4Moe|Mistral|Mixtral|Phi3|Qwen2|Qwen3ForCausal|SmolLM3)"
  "MixtureIdentity.*_(suffix|medusa|mlp_speculator|p_eagle|pard)_Greedy"
  "RecurrentIdentity.*/(lfm2_moe|lfm3|granite4_h|bamba|nemotron_h|nemotron_h_moe|nemotron_h_latent|falcon_h1|bailing_hybrid|falcon_mamba|mamba|kimi_linear|minimax|olmo_hybrid|qwen3_5_moe|qwen3_next)_default")
# Drafters, families, types, layouts and ways to run, each with each: tests with parameters, and long ones of
# a single feature with all the others.
set(in_turns "^conformance/[^.]*/[^.]*\\."
  "^conformance/(KvOffload|SuffixEngine|FlexIdentity|DrafterMix|Processors|ExpertsOfEngines|DualBatchTrained)\\.")
