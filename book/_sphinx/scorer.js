// How the search ranks what it finds (Sphinx puts this in front of its own script): a term's own chapter comes first.
// window.gemmChapters, {"bank conflict": page}, is written into the search page by book/_sphinx/lean.py.
const stem = (words) =>
  words
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.replace(/(ing|ed|es|e|s)$/, ""))
    .join(" ");
var Scorer = {
  score: ([page, title, , , score]) => {
    const asked = stem(new URLSearchParams(location.search).get("q") ?? "");
    const own = (window.gemmChapters ?? {})[asked];
    const aside = /(exercises\/|glossary|takeaways|references|appendix)/.test(page) ? 0.5 : 1;
    return aside * score + (page === own ? 1000 : 0) + (stem(title).includes(asked) ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
