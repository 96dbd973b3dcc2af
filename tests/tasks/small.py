"""Settings of small trainings, a task each."""

from tasks.lm.cases import SGD, SIZES

SETTINGS = {
    "lm": f"{SIZES} {SGD} --epochs 6 --nonmono 1 --lr 20".split(),
    "ner": "--word_width 16 --char_width 4 --char_hidden 4 --hidden 16 --dense 16 --dropout 0.1 --threads 1 "
    "--sentences 120 --batch_size 8 --epochs 4 --lr 0.02 --ema 0.8".split(),
    "doc": "--word_width 8 --char_width 4 --hidden 8 --longest 60 --longest_test 80 --threads 1 "
    "--documents 100 --batch_size 16 --epochs 2 --lr 0.05 --ema 0.8".split(),
    "nli": "--word_width 8 --char_width 4 --hidden 8 --heads 2 --threads 1 "
    "--pairs 100 --batch_size 16 --epochs 2 --lr 0.05 --ema 0.8".split(),
    "rc": "--word_width 8 --char_width 4 --char_hidden 4 --hidden 8 --threads 1 "
    "--paragraphs 50 --batch_size 32 --epochs 2 --lr 0.05 --ema 0.8".split(),
    "mt": "--hidden 16 --heads 2 --merges 60 --threads 1 "
    "--pairs 100 --batch_tokens 300 --epochs 3 --lr 0.01 --warmup 1 --ema 0.8".split(),
}
"""Trainings that learn something, and end with averaged weights that are not the raw ones."""
