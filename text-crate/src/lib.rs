//! Tokenizers, chat templates and grammars behind a C ABI.
//! `foretoken_text.h` is the contract; every function here is declared and described there.

mod chat;
mod ffi;
mod grammar;
mod token_bytes;
mod tokenizer;
