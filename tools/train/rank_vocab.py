"""Ranks a vocabulary by how often a corpus uses each token: one id a line, most frequent first, then unseen ids in order.

    python3 rank_vocab.py --data build/tokens --out draft_vocab.txt
    python3 rank_vocab.py --text FILES... --tokenizer tokenizer.json --out draft_vocab.txt

The list is for the engine's option `draft_vocab_file`: drafters then choose among its first `draft_vocab_size` tokens. With
--data the sources of prepare.py count by their shares of training; with --text every token counts the same.
"""

import argparse
import gzip
import pathlib

import numpy as np


def ranked(counts):
    """Ids by falling count; equal counts by id."""
    return np.argsort(-np.asarray(counts, dtype=np.float64), kind="stable")


def corpus_frequencies(corpus, vocab_size=0):
    """Share of each token in the rows that a Corpus draws; of `vocab_size` ids where a model has more than its tokenizer."""
    total = np.zeros(max(corpus.summary["vocab_size"], vocab_size))
    for (tokens, _), weight in zip(corpus.sources, corpus.weights):
        counts = np.bincount(tokens.astype(np.int64), minlength=len(total))
        total += weight * counts / counts.sum()
    return total / total.sum()


def text_frequencies(paths, tokenizer_file):
    from tokenizers import Tokenizer  # needed for texts only
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    total = np.zeros(tokenizer.get_vocab_size())
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            for encoding in tokenizer.encode_batch_fast(file.read().split("\n"), add_special_tokens=False):
                np.add.at(total, encoding.ids, 1)
    return total / max(1, total.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=pathlib.Path, help="what prepare.py wrote")
    source.add_argument("--text", type=pathlib.Path, nargs="+", help="text or JSON lines, .gz too")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="the target's tokenizer.json, for --text")
    parser.add_argument("--vocab-size", type=int, default=0, help="of the model, where it has more ids than the tokenizer")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    if args.text and not args.tokenizer:
        parser.error("--text needs --tokenizer")
    if args.data:
        from data import Corpus
        shares = corpus_frequencies(Corpus(args.data, 0), args.vocab_size)
    else:
        shares = text_frequencies(args.text, args.tokenizer)
    shares = np.pad(shares, (0, max(0, args.vocab_size - len(shares))))
    order = ranked(shares)
    args.out.write_text("".join(f"{token}\n" for token in order))
    for size in (len(order) // 8, len(order) // 4, len(order) // 2):
        print(f"the first {size} of {len(order)} ids make up {shares[order[:size]].sum():.1%} of the corpus")


if __name__ == "__main__":
    main()
