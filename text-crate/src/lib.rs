//! Tokenizers and chat templates of the Hugging Face world behind a C ABI.
//! `foretoken_text.h` is the contract; every function here is declared and described there.

mod chat;
mod ffi;
mod token_bytes;
mod tokenizer;
