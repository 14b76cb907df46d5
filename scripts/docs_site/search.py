"""Search in text that mixes English and Chinese.

Sphinx splits at white space, so a Chinese sentence would be one term. Here a run of Chinese characters is indexed
by its pairs of neighbouring characters, and by single characters, for queries of one character. A query is split
into pairs only. So no dictionary is needed, and a query finds every page that holds all its pairs.
"""

import re

from sphinx.search.en import SearchEnglish

_PART = re.compile(r"([\u3400-\u9fff]+)|([^\W\u3400-\u9fff]+)")


class MixedSearch(SearchEnglish):
    """Stems English words and cuts Chinese text into pairs of characters."""

    language_name = "English"  # also part of the name of its stemmer in JavaScript
    js_splitter_code = r"""
var splitQuery = (query) => {
  const terms = [];
  for (const [part] of query.matchAll(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{Letter}\p{Number}_])+/gu)) {
    if (!/^[\u3400-\u9fff]/.test(part) || part.length === 1) terms.push(part);
    else for (let i = 0; i + 1 < part.length; i++) terms.push(part.slice(i, i + 2));
  }
  return terms;
};
"""

    def split(self, input: str) -> list[str]:  # noqa: A002  the name that Sphinx uses
        """The terms under which a text is indexed."""
        terms: list[str] = []
        for chinese, other in _PART.findall(input):
            terms += [other] if other else [*chinese, *(chinese[i : i + 2] for i in range(len(chinese) - 1))]
        return terms
