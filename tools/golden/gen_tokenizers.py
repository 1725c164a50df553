"""Makes the tokenizers of tests/text/data/tokenizers and what the Python package says of them.

    python3 tools/golden/gen_tokenizers.py CORPUS.txt.gz

Needs tokenizers. CORPUS is text in the public domain (the fixtures were trained on the Python
Enhancement Proposals). Each NAME/tokenizer.json is tiny, in the form of a family of models;
NAME/golden.json holds, for the 10,000 texts of texts() (tests/text/random_texts.h makes the same),
a 64-bit FNV-1a per 100 texts over the ids (4 bytes each, little end first, and 4 bytes 0xff after
every text) and over the decoded texts (a byte 0xff after each), and the first texts' ids in full.
"""

import gzip
import json
import pathlib
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "data" / "tokenizers"
NUM_TEXTS, PER_DIGEST, NUM_IN_FULL = 10000, 100, 20

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

WORDS = ["the", " the", "hello", "World", "don't", "I'LL", "é", "naïve", "你好", "世界", "日本語", "こんにちは", "안녕",
         "Привет", "😀", "👩‍💻", "🇩🇪", "e\u0301", "\u00a0", "\u3000", "\n", "\n\n", "\r\n", "\t", "  ", " ", " ", ".",
         ",", "!?", "...", "1", "23", "4567", "x = [1, 2]", "<s>", "</s>", "<|end|>", "<0x41>", "##ing", "▁", "ﬁ",
         "Ⅳ", "ß", "İ", "\u0000", "\u200d", "\ufeff"]


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self, bound):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (z ^ (z >> 31)) % bound


def random_character(random):
    while True:
        limit = [0x7f, 0x7f, 0x250, 0x3000, 0x10000, 0x20000, 0x110000][random(7)]
        code = random(limit)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def texts():
    random = Random(20261121)
    for _ in range(NUM_TEXTS):
        parts = []
        for _ in range(random(13)):
            parts.append(WORDS[random(len(WORDS))] if random(4) else random_character(random))
        yield "".join(parts)


def byte_level(pre_tokenizer, normalizer=None, post_processor=None, special=("<s>", "</s>", "<|end|>")):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer, trainer, post_processor


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def sentencepiece(normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    special = ["<unk>", "<s>", "</s>", "<|end|>"]
    # Trained word by word; the family then runs over whole texts.
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, show_progress=False, max_token_length=8)
    return tokenizer, trainer, None


def families():
    bos = lambda id: processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", id)])
    yield "gpt2", byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), post_processor=processors.ByteLevel(
        trim_offsets=False))
    yield "llama3", byte_level(pre_tokenizers.Sequence([split(LLAMA3), BYTES]), post_processor=processors.Sequence(
        [processors.ByteLevel(trim_offsets=True), bos(0)]))
    yield "qwen2", byte_level(pre_tokenizers.Sequence([split(QWEN2), BYTES]), normalizers.NFC(),
                              processors.ByteLevel(trim_offsets=False))
    yield "deepseek", byte_level(pre_tokenizers.Sequence(
        [split(r"\p{N}{1,3}"), split(r"[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), BYTES]), post_processor=bos(0))
    to_space = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    prepend = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "llama2", sentencepiece(prepend, None, decoders.Sequence(to_space + [decoders.Strip(" ", 1, 0)]))
    yield "gemma", sentencepiece(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"),
                                 decoders.Sequence(to_space))
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    yield "unigram", (unigram, trainers.UnigramTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"],
                                                       unk_token="<unk>", show_progress=False), None)
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer, wordpiece.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    yield "wordpiece", (wordpiece, trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False),
        processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)))


def with_bytes(tokenizer):
    """The 256 byte tokens, which the trainer does not know, in front of the learnt ones."""
    data = json.loads(tokenizer.to_str())
    vocab = sorted(data["model"]["vocab"], key=data["model"]["vocab"].get)
    vocab = vocab[:4] + [f"<0x{byte:02X}>" for byte in range(256)] + vocab[4:]
    data["model"]["vocab"] = {token: id for id, token in enumerate(vocab)}
    return Tokenizer.from_str(json.dumps(data))


def train(tokenizer, trainer, corpus):
    if isinstance(trainer, trainers.BpeTrainer) and tokenizer.model.byte_fallback:
        family = tokenizer.pre_tokenizer
        tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        tokenizer.train_from_iterator(corpus, trainer)
        data = json.loads(with_bytes(tokenizer).to_str())
        data["pre_tokenizer"] = json.loads(family.__getstate__()) if family else None
        return Tokenizer.from_str(json.dumps(data))
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def fnv(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def golden(tokenizer):
    everything = list(texts())
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in everything]
    decoded = [tokenizer.decode(row, skip_special_tokens=True) for row in ids]
    chunks = range(0, NUM_TEXTS, PER_DIGEST)
    pack = lambda row: b"".join(id.to_bytes(4, "little") for id in row) + b"\xff\xff\xff\xff"
    return {
        "texts": fnv(b"".join(text.encode() + b"\xff" for text in everything)),
        "special": tokenizer.encode("Hi", add_special_tokens=True).ids,
        "ids": [fnv(b"".join(map(pack, ids[at:at + PER_DIGEST]))) for at in chunks],
        "decoded": [fnv(b"".join(text.encode() + b"\xff" for text in decoded[at:at + PER_DIGEST]))
                    for at in chunks],
        "first": [[everything[i], ids[i], decoded[i]] for i in range(NUM_IN_FULL)]}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    corpus = gzip.open(sys.argv[1], "rt").read()[:400000].split("\n")
    for name, (tokenizer, trainer, post_processor) in families():
        tokenizer = train(tokenizer, trainer, corpus)
        if post_processor:
            tokenizer.post_processor = post_processor
        if name == "llama3":
            data = json.loads(tokenizer.to_str())
            data["model"]["ignore_merges"] = True
            tokenizer = Tokenizer.from_str(json.dumps(data))
        tokenizer.add_tokens([AddedToken("<think>", normalized=False, special=False)])
        folder = FOLDER / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False,
                                                          separators=(",", ":")) + "\n")
        (folder / "golden.json").write_text(json.dumps(golden(tokenizer), ensure_ascii=False) + "\n")
        print(name, tokenizer.get_vocab_size())


if __name__ == "__main__":
    main()
