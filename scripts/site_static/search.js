// Questions in other words: a comment "search: pick a threshold" of a page also answers "how do I pick the right
// threshold?". An entry answers a question that has all of its words, in any order and form, if these are most words of
// the question; the best one becomes the first hit, before what Sphinx finds.
if (typeof Search !== "undefined") {
  const asking = new Set(
    ("a about again am an and any are as at be by can could do does for from get has have how i if in into is it its many "
      + "me much my of on or our should so that the their them there these they this to use want was way we what when "
      + "where which who why will would you your").split(" "),
  );
  const stemmer = new Stemmer();
  const wordsOf = (text) =>
    new Set(splitQuery(text.toLowerCase()).filter((word) => !asking.has(word)).map((word) => stemmer.stemWord(word)));

  const find = Search._performSearch;
  Search._performSearch = (query, ...parsed) => {
    const found = find(query, ...parsed);
    const asked = wordsOf(query);
    const answers = [];
    for (const [entry, places] of Object.entries(Search._index.indexentries)) {
      const words = wordsOf(entry);
      if (!words.size || 2 * words.size <= asked.size || ![...words].every((word) => asked.has(word))) continue;
      for (const [file, id] of places) answers.push({ file, id, score: words.size });
    }
    answers.sort((a, b) => a.score - b.score); // the last result is shown first
    const { docnames, filenames, titles } = Search._index;
    const shown = answers.map(({ file, id, score }) => [
      docnames[file], titles[file], `#${id}`, null, 1000 + score, filenames[file], SearchResultKind.index,
    ]);
    const first = new Set(shown.map((one) => one[0] + one[2]));
    return [...found.filter((one) => !first.has(one[0] + one[2])), ...shown];
  };
}
