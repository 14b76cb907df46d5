"""What the documentation site adds to Sphinx.

- `navigation`: the order of the pages in both languages.
- `links`: links between the languages and to files of the repository.
- `reference`: the pages of the commands and of the API, written from the code.
- `formulas`: formulas without scripts.
- `search`: a search index that finds Chinese text.
- `extension`: what Sphinx calls.

Pages stay plain Markdown that a Git host shows well: everything here is added when Sphinx reads a page.
"""
