// Shows the passages of the first ranks that contain a word.
const MOST_PASSAGES = 50;

function passagesWith(word, run) {
  const holds = browser.documents.map((doc) => doc.words.includes(word));
  return browser.queries.flatMap((query) =>
    query.rankings[run].map((entry, place) => ({ query, entry, rank: place + 1 })).filter(({ entry }) => holds[entry[0]]),
  );
}

function showWord(word, run) {
  const found = passagesWith(word, run);
  current = null;
  for (const button of byId("list").querySelectorAll("button")) button.setAttribute("aria-current", "false");
  const name = browser.words[word];
  const title = el("h3", {}, `“${name}” in the first ranks of ${browser.runs[run]}`);
  const shown = found.slice(0, MOST_PASSAGES);
  const some = shown.length < found.length ? `; the first ${shown.length}` : "";
  const hint = el("p", { class: "hint" }, `${plural(found.length, "passage", "passages")} of the queries on this page${some}.`);
  const list = el("ol", { class: "passages" }, ...shown.map(({ query, entry, rank }) => {
    const item = card(entry, rank, name);
    const button = el("button", { type: "button", class: "more" }, query.text ?? `Query ${query.id}`);
    button.addEventListener("click", () => showQuery(query.id, true));
    item.prepend(button);
    return item;
  }));
  byId("detail").replaceChildren(title, hint, el("div", { class: "rankings" }, list));
  reveal("queries");
}

for (const place of document.querySelectorAll("[data-word]")) {
  const button = el("button", { type: "button", class: "more" }, place.textContent);
  button.addEventListener("click", () => showWord(Number(place.dataset.word), Number(place.dataset.run)));
  place.replaceChildren(button);
}
