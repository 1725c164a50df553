# See tests/entries.cmake.
set(sanitizers asan)
# The same launches over again, and statistics of many: other tests touch the same memory in every
# shape, and the smaller matrices are multiplied with every count of rows.
set(slow_asan "Attention.*\\.RepeatsHaveTheSameBits" "LayerTailTest\\.RunsAgain" "LongRunRates"
  "GemmTest\\.Rows.*_n(576|768|1000|1536|2048|3072)_")
# Shapes and types.
set(in_turns "^kernels/(Fp8|Int8|Shapes|Sizes|Types|Forms)[A-Za-z0-9]*/.*(Attention|Gemm|LayerTail|DeepTail|Latent|Absorbed|ManyRows|Verify|Sample)"
  "^kernels/[^.]*/[^.]*(ExpertGemm|Lora|SelectiveScan|CausalConv|ChosenAttention|SharedContext|CompressRows)")
