"""Options that contradict each other, or would be ignored, are wrong usage."""

import pytest

from hanlattice.cli import main

OUTPUT = ("--output", "nowhere/run")
SAME = "are the same setting; give one of them"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "t.toml", "--data.train", "a", "--train", "b"), f"--train and --data.train {SAME}"),
        (("train", "t.toml", "--training.seed=5", "--seed", "6"), f"--seed and --training.seed {SAME}"),
        (("train", "t.toml", "--training.start=m", "--start", "n"), f"--start and --training.start {SAME}"),
        (("train", "--lexicon.files=a", "--lexicon", "b"), f"--lexicon and --lexicon.files {SAME}"),
        (("train", "--vectors.path=a", "--vectors", "b"), f"--vectors and --vectors.path {SAME}"),
        (("train", "--data.labels.NR=PER", "--map", "NR=人"), f"--map and --data.labels.NR {SAME}"),
        (("train", "t.toml", "--training.epochs", "5", "--training.epochs=6"), "--training.epochs is given twice"),
        (("compare", "flat/weibo", "--data.dev=a", "--dev", "b"), f"--dev and --data.dev {SAME}"),
        (("distill", "raw.txt", "--data.dev=a", "--dev", "b"), f"--dev and --data.dev {SAME}"),
        (("tune", "flat/weibo", "--data.test=a", "--test", "b"), f"--test and --data.test {SAME}"),
        (("tune", "flat/weibo", "--training.start=m", "--start", "n"), f"--start and --training.start {SAME}"),
        (("tune", "flat/weibo", "--no-pruning", "--prune-from", "9"), "with --no-pruning, leave out --prune-from"),
        (
            ("distill", "raw.txt", "--paper", "flat/weibo", "--config", "t.toml"),
            "give --config or --paper, not both",
        ),
    ],
)
def test_a_setting_is_given_once(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*arguments, *OUTPUT])
    assert left.value.code == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", "").split())


def test_a_teacher_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["distill", "raw.txt", "--teacher", "models/a", "--teacher", "models/../models/a", *OUTPUT])
    assert left.value.code == 1
    assert capsys.readouterr().err == "error: --teacher names models/../models/a twice; name it once\n"
