"""The experiments that papers and overviews of Chinese NER describe, each with one command.

    python -m experiments NAME --output FOLDER [--corpus CORPUS] [--sentences N] [--epochs N] [--seeds 1,2]

How an experiment becomes a table, in reading order:

1. `corpora` reads a corpus by name, and makes changed ones: samples, missing labels, a share of nested entities.
2. `arms` has what all experiments share: an `Arm` is one cell of a table, with its settings.
3. A module for each question makes the arms, such as `missing_labels`; `catalogue` lists them.
4. `running` estimates the hours, trains what is not finished, and reads the results.
5. `tables` writes means, deviations and tests of differences as Markdown; `figure` draws scores as SVG.

docs/experiments.md has the recorded tables.
"""
