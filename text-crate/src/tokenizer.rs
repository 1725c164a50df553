//! `tokenizer.json` files.

use crate::ffi::{bytes, guard, slice, utf8, Failure, FtIds, FtText, Outcome, FAILED};
use crate::token_bytes::TokenBytes;
use std::collections::HashSet;
use tokenizers::{ModelWrapper, Tokenizer};

pub struct FtTokenizer {
    inner: Tokenizer,
    vocab_size: usize,
    added: HashSet<u32>,
    token_bytes: TokenBytes,
    only_joins: bool,
}

impl FtTokenizer {
    /// What a token adds to a text, as llguidance wants it: special tokens behind a byte that no
    /// text has, nothing where there is no such token.
    pub fn grammar_word(&self, id: u32) -> Vec<u8> {
        let Some(token) = self.inner.id_to_token(id) else {
            return Vec::new();
        };
        if self.inner.get_added_vocabulary().is_special_token(&token) {
            return [&[0xffu8][..], token.as_bytes()].concat();
        }
        match self.added.contains(&id) {
            true => token.into_bytes(),
            false => self.token_bytes.of(token),
        }
    }
}

/// Merges that are left out at random are for training: a text has one list of ids here.
fn without_dropout(mut tokenizer: Tokenizer) -> Tokenizer {
    let ModelWrapper::BPE(model) = tokenizer.get_model() else {
        return tokenizer;
    };
    if model.dropout.is_some() {
        let mut model = model.clone();
        model.dropout = None;
        tokenizer.with_model(model);
    }
    tokenizer
}

fn load(json: &[u8]) -> Outcome<FtTokenizer> {
    let mut inner = Tokenizer::from_bytes(json).map_err(Failure::new)?;
    // The file may carry the truncation and padding of its training run.
    inner.with_truncation(None).map_err(Failure::new)?;
    inner.with_padding(None);
    inner = without_dropout(inner);
    let largest = inner.get_vocab(true).into_values().max();
    let added = inner.get_added_tokens_decoder().into_keys().collect();
    let decoder = serde_json::to_value(inner.get_decoder()).map_err(Failure::new)?;
    Ok(FtTokenizer {
        inner,
        vocab_size: largest.map_or(0, |id| id as usize + 1),
        added,
        token_bytes: TokenBytes::new(&decoder),
        only_joins: TokenBytes::only_joins(&decoder),
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_new(
    json: *const u8,
    size: usize,
    out: *mut *mut FtTokenizer,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let tokenizer = load(bytes(json, size))?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_free(tokenizer: *mut FtTokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_split_special_tokens(tokenizer: *mut FtTokenizer) {
    (*tokenizer).inner.set_encode_special_tokens(true);
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_vocab_size(tokenizer: *const FtTokenizer) -> usize {
    (*tokenizer).vocab_size
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_encode(
    tokenizer: *const FtTokenizer,
    text: *const u8,
    size: usize,
    add_special_tokens: bool,
    out: *mut FtIds,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let text = utf8(text, size, "the text")?;
        let encoding = (*tokenizer)
            .inner
            .encode_fast(text, add_special_tokens)
            .map_err(Failure::new)?;
        out.write(encoding.get_ids().to_vec().into());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_decode(
    tokenizer: *const FtTokenizer,
    ids: *const u32,
    size: usize,
    skip_special_tokens: bool,
    out: *mut FtText,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let text = (*tokenizer)
            .inner
            .decode(slice(ids, size), skip_special_tokens)
            .map_err(Failure::new)?;
        out.write(text.into());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_token_to_id(
    tokenizer: *const FtTokenizer,
    token: *const u8,
    size: usize,
) -> i64 {
    let mut id = i64::from(FAILED);
    guard(std::ptr::null_mut(), || {
        let token = utf8(token, size, "the token")?;
        id = (*tokenizer).inner.token_to_id(token).map_or(id, i64::from);
        Ok(())
    });
    id
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_id_to_token(
    tokenizer: *const FtTokenizer,
    id: u32,
    out: *mut FtText,
) -> bool {
    let mut found = false;
    guard(std::ptr::null_mut(), || {
        if let Some(token) = (*tokenizer).inner.id_to_token(id) {
            out.write(token.into());
            found = true;
        }
        Ok(())
    });
    found
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_is_special(tokenizer: *const FtTokenizer, id: u32) -> bool {
    let mut special = false;
    guard(std::ptr::null_mut(), || {
        let inner = &(*tokenizer).inner;
        special = inner
            .id_to_token(id)
            .is_some_and(|token| inner.get_added_vocabulary().is_special_token(&token));
        Ok(())
    });
    special
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_is_added(tokenizer: *const FtTokenizer, id: u32) -> bool {
    (*tokenizer).added.contains(&id)
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_token_bytes(
    tokenizer: *const FtTokenizer,
    id: u32,
    out: *mut FtText,
) -> bool {
    let mut found = false;
    guard(std::ptr::null_mut(), || {
        let tokenizer = &*tokenizer;
        if let Some(token) = tokenizer.inner.id_to_token(id) {
            let bytes = match tokenizer.added.contains(&id) {
                true => token.into_bytes(),
                false => tokenizer.token_bytes.of(token),
            };
            out.write(bytes.into());
            found = true;
        }
        Ok(())
    });
    found
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_only_joins(tokenizer: *const FtTokenizer) -> bool {
    (*tokenizer).only_joins
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_joined_bytes(
    tokenizer: *const FtTokenizer,
    id: u32,
    out: *mut FtText,
) -> bool {
    let mut found = false;
    guard(std::ptr::null_mut(), || {
        let tokenizer = &*tokenizer;
        if let Some(token) = tokenizer.inner.id_to_token(id).filter(|_| tokenizer.only_joins) {
            out.write(tokenizer.token_bytes.of(token).into());
            found = true;
        }
        Ok(())
    });
    found
}

#[no_mangle]
pub unsafe extern "C" fn ft_tokenizer_fallback_byte(tokenizer: *const FtTokenizer, id: u32) -> i32 {
    let mut byte = FAILED;
    guard(std::ptr::null_mut(), || {
        let tokenizer = &*tokenizer;
        if let Some(token) = tokenizer.inner.id_to_token(id) {
            byte = tokenizer
                .token_bytes
                .fallback_byte(&token)
                .map_or(FAILED, i32::from);
        }
        Ok(())
    });
    byte
}
