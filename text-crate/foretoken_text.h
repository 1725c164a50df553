#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// C interface of the text crate: tokenizers, chat templates and grammars.
//
// Rules for every function
// - Text goes in as pointer and size in bytes (not NUL-terminated) and is only borrowed for the
//   call; the pointer may be null when the size is 0.
// - Functions that return int32_t give one of the FT_TEXT_* codes. On any other code than
//   FT_TEXT_OK, `error` (may be null) receives a message and `out` is left untouched.
// - What arrives through `out` and `error` belongs to the caller, who frees it once.
// - No panic of the crate crosses this interface: it becomes FT_TEXT_FAILED with a message.
// - An object may be used by any number of threads at once, except while it is being freed; an
//   FtMatcher by one at a time.

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FT_TEXT_OK = 0,
  FT_TEXT_FAILED = -1,
  FT_TEXT_REFUSED = -2,  // the chat template called raise_exception; `error` holds its words
};

// UTF-8 bytes, perhaps with NUL inside; data is null when size is 0.
typedef struct FtText {
  char* data;
  size_t size;
} FtText;

// Token ids; data is null when size is 0.
typedef struct FtIds {
  uint32_t* data;
  size_t size;
} FtIds;

void ft_text_free(FtText text);
void ft_ids_free(FtIds ids);

// ---- Tokenizers ----------------------------------------------------------------------------

typedef struct FtTokenizer FtTokenizer;

// From the content of a tokenizer.json. Truncation and padding settings in it are ignored.
int32_t ft_tokenizer_new(const char* json, size_t size, FtTokenizer** out, FtText* error);
void ft_tokenizer_free(FtTokenizer* tokenizer);

// From now on special tokens written out in a text are text like any other. Before the first use.
void ft_tokenizer_split_special_tokens(FtTokenizer* tokenizer);

// One more than the largest token id, added tokens included.
size_t ft_tokenizer_vocab_size(const FtTokenizer* tokenizer);

// `add_special_tokens` runs the file's post-processor (for example a leading BOS). Special tokens
// written out in the text become their ids either way, unless they are to be split.
int32_t ft_tokenizer_encode(const FtTokenizer* tokenizer, const char* text, size_t size,
                            bool add_special_tokens, FtIds* out, FtText* error);

// Ids outside the vocabulary are skipped; bytes that are not UTF-8 become U+FFFD.
int32_t ft_tokenizer_decode(const FtTokenizer* tokenizer, const uint32_t* ids, size_t size,
                            bool skip_special_tokens, FtText* out, FtText* error);

// The id of a token by its name in the vocabulary, or -1.
int64_t ft_tokenizer_token_to_id(const FtTokenizer* tokenizer, const char* token, size_t size);

// The name of a token in the vocabulary; false where there is none.
bool ft_tokenizer_id_to_token(const FtTokenizer* tokenizer, uint32_t id, FtText* out);

// The bytes that a token stands for, which may be a part of a character; false where there is none.
bool ft_tokenizer_token_bytes(const FtTokenizer* tokenizer, uint32_t id, FtText* out);

// Whether decoding only joins the bytes of tokens (a byte-level decoder and nothing else).
bool ft_tokenizer_only_joins(const FtTokenizer* tokenizer);

// What a token adds to a text of such a tokenizer. Unlike above, an added token's name is read
// through the byte-level table too, as decoding does. False where there is no such token.
bool ft_tokenizer_joined_bytes(const FtTokenizer* tokenizer, uint32_t id, FtText* out);

// The byte (0 to 255) of a token such as "<0x0A>" of a tokenizer with byte fallback, or -1.
int32_t ft_tokenizer_fallback_byte(const FtTokenizer* tokenizer, uint32_t id);

// Whether the token was added to the model's vocabulary (special tokens are).
bool ft_tokenizer_is_added(const FtTokenizer* tokenizer, uint32_t id);

// Whether decoding with skip_special_tokens leaves this token out.
bool ft_tokenizer_is_special(const FtTokenizer* tokenizer, uint32_t id);

// ---- Chat templates ------------------------------------------------------------------------

typedef struct FtTemplate FtTemplate;

// Compiles a Jinja template in the dialect of Hugging Face transformers. `globals` is a JSON object
// (or empty) with variables of every rendering, such as bos_token.
int32_t ft_template_new(const char* source, size_t source_size, const char* globals,
                        size_t globals_size, FtTemplate** out, FtText* error);
void ft_template_free(FtTemplate* chat_template);

typedef struct FtRenderOptions {
  bool add_generation_prompt;
  bool continue_final_message;  // ends the text with the last message's own words
  int64_t now;  // what strftime_now takes for the present, in seconds since 1970; -1 is the clock
} FtRenderOptions;

// `messages` is a JSON array; `arguments` is a JSON object (or empty) with further variables, such
// as tools; they win over globals. Work, memory and recursion are bounded.
int32_t ft_template_render(const FtTemplate* chat_template, const char* messages,
                           size_t messages_size, const char* arguments, size_t arguments_size,
                           FtRenderOptions options, FtText* out, FtText* error);

// ---- Grammars ------------------------------------------------------------------------------

typedef struct FtGrammarEnv FtGrammarEnv;  // compiles grammars over one vocabulary
typedef struct FtGrammar FtGrammar;
typedef struct FtMatcher FtMatcher;  // where one output stands in its grammar

// `vocab_size`: that of the model, whose masks may be wider than the tokenizer. The EOS ids are
// allowed where an output may end, and nowhere else. Takes some milliseconds for each 10,000 ids.
// The tokenizer is not needed afterwards.
int32_t ft_grammar_env_new(const FtTokenizer* tokenizer, size_t vocab_size, const uint32_t* eos_ids,
                           size_t num_eos_ids, FtGrammarEnv** out, FtText* error);
void ft_grammar_env_free(FtGrammarEnv* env);

enum {
  FT_GRAMMAR_JSON_SCHEMA = 0,
  FT_GRAMMAR_REGEX = 1,    // of the whole output
  FT_GRAMMAR_CHOICE = 2,   // a JSON array of texts
  FT_GRAMMAR_GRAMMAR = 3,  // Lark, or GBNF where it has a rule with "::="
  FT_GRAMMAR_STRUCTURAL_TAG = 4,
};

typedef struct FtGrammarText {
  uint32_t kind;
  const char* text;
  size_t text_size;
  // Of JSON. A regex in place of the usual white space; size 0: a blank, or a line break with
  // indentation as deep as the schema.
  const char* whitespace_pattern;
  size_t whitespace_pattern_size;
  bool no_whitespace;
  bool no_additional_properties;  // in object schemas that say nothing about them
  bool lenient_schemas;           // what cannot be enforced is left out, and no error
  // A JSON array of texts: the form begins behind the first of them, and before it the text is
  // free; size 0: the form is the whole output. With `space_after_reasoning`, up to 8 blanks or
  // line breaks may stand between the two.
  const char* reasoning_ends;
  size_t reasoning_ends_size;
  bool space_after_reasoning;
} FtGrammarText;

// What of a JSON schema can be enforced, as a schema; `notes` receives a JSON array of sentences
// about the rest. Fails where nothing of it can be enforced, where no value fits, or where the text
// is no JSON schema. Takes milliseconds, for hostile texts seconds.
int32_t ft_schema_relax(const char* text, size_t size, FtText* out, FtText* notes, FtText* error);

// Compiles. Bounded by the size of the grammar and of its lexer, not by time: seconds for texts
// that mean harm. A JSON schema that says what cannot be enforced is an error unless it says
// `lenient_schemas`.
int32_t ft_grammar_new(const FtGrammarEnv* env, FtGrammarText grammar, FtGrammar** out,
                       FtText* error);
void ft_grammar_free(FtGrammar* grammar);

// At the beginning of an output. Shares nothing that changes with other matchers.
int32_t ft_matcher_new(const FtGrammar* grammar, FtMatcher** out, FtText* error);
void ft_matcher_free(FtMatcher* matcher);

// Sets bit id % 32 of word id / 32 of every id that may come next, and clears all others.
// `num_words` must be ceil(vocab_size / 32). Fails for good where the grammar exceeds its limits.
int32_t ft_matcher_mask(FtMatcher* matcher, uint32_t* words, size_t num_words, FtText* error);
// The id with the longest text among those that a mask allows, where the texts of all others are
// its beginnings; -1: there is none, or more than 64 ids are allowed.
int64_t ft_matcher_forced(const FtMatcher* matcher, const uint32_t* words, size_t num_words);
// Goes on by one id that the mask allows; not by an EOS id.
int32_t ft_matcher_consume(FtMatcher* matcher, uint32_t id, FtText* error);
// Takes back the last `count` ids.
int32_t ft_matcher_rollback(FtMatcher* matcher, size_t count, FtText* error);
// Whether the output may end here.
bool ft_matcher_is_accepting(FtMatcher* matcher);
// Whether nothing can follow.
bool ft_matcher_is_complete(FtMatcher* matcher);

#ifdef __cplusplus
}
#endif
