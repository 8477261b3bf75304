// The list of queries and, for the chosen one, the rankings of all runs side by side.
const valuePlace = new Map(values.ids.map((id, place) => [id, place]));
const valueOf = (measure, run, id) => {
  const place = valuePlace.get(id);
  return place === undefined ? null : (values.values[measure]?.[run]?.[place] ?? null);
};
const judged = browser.queries.some((query) => query.rankings.some((ranking) => ranking.some(([, , , grade]) => grade !== null)));
let current = null;

// --- list ----------------------------------------------------------------------------------------------------------

const ORDERS = {
  size: "largest absolute difference",
  rising: "difference, smallest first",
  falling: "difference, largest first",
  low: "value of the run, smallest first",
  high: "value of the run, largest first",
  id: "query id",
};

function orderSettings() {
  const [measure, first, second] = ["measure", "first", "second"].map((name) => Number(byId(`order-${name}`).value));
  return { order: byId("order").value, measure, first, second };
}

function sortKey({ order, measure, first, second }, id) {
  const [value, other] = [valueOf(measure, first, id), valueOf(measure, second, id)];
  if (order === "low" || order === "high") return value === null ? null : order === "low" ? value : -value;
  if (value === null || other === null) return null;
  const difference = value - other;
  return order === "size" ? -Math.abs(difference) : order === "rising" ? difference : -difference;
}

function sortedQueries(settings) {
  const byQueryId = (a, b) => a.id.localeCompare(b.id, "en", { numeric: true });
  const queries = [...browser.queries].sort(byQueryId);
  if (settings.order === "id") return queries;
  const keys = new Map(queries.map((query) => [query.id, sortKey(settings, query.id)]));
  return queries.sort((a, b) => {
    const [first, second] = [keys.get(a.id), keys.get(b.id)];
    if (first === null || second === null) return (first === null) - (second === null);
    return first - second;
  });
}

function showList() {
  const settings = orderSettings();
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (query) => {
    const text = `${query.id} ${query.text ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = sortedQueries(settings).filter(matches);
  byId("list-count").textContent = `${count(found.length)} of ${plural(browser.queries.length, "query", "queries")}`;
  byId("list").replaceChildren(...found.map((query) => listItem(query, settings)));
}

function listItem(query, { measure, first, second }) {
  const [value, other] = [valueOf(measure, first, query.id), valueOf(measure, second, query.id)];
  const parts = [query.text ? query.id : null];
  if (perQuery.length) {
    parts.push(`${runNames[first]} ${number(value)}`);
    if (first !== second) parts.push(`${runNames[second]} ${number(other)}`);
  }
  const button = el("button", { type: "button", "data-query": query.id, "aria-current": String(query.id === current) });
  button.append(query.text ?? query.id, el("small", {}, parts.filter(Boolean).join(" · ")));
  button.addEventListener("click", () => showQuery(query.id));
  return el("li", {}, button);
}

// --- one query -----------------------------------------------------------------------------------------------------

function showQuery(id, scroll = false) {
  const query = browser.queries.find((candidate) => candidate.id === id);
  current = id;
  for (const button of byId("list").querySelectorAll("button")) button.setAttribute("aria-current", String(button.dataset.query === id));
  const detail = byId("detail");
  if (query) {
    const title = el("h3", {}, query.text ?? `Query ${query.id}`);
    const rankings = el("div", { class: "rankings", role: "group", "aria-label": "Rankings of all runs" });
    rankings.append(...query.rankings.map((ranking, place) => rankingColumn(browser.runs[place], ranking)));
    detail.replaceChildren(title, el("p", { class: "hint" }, ...explanation(query)), valueTable(query), rankings);
    detail.querySelectorAll(".scroll").forEach(fitColumns);
  } else {
    detail.replaceChildren(el("p", {}, `The rankings of query ${id} are not on this page.`));
  }
  if (scroll) reveal("queries");
}

/** Opens a part of the page and goes there. */
function reveal(id) {
  byId(id).open = true;
  byId(id).scrollIntoView();
}

function explanation(query) {
  const parts = [`Query ${query.id}. The first ranks of every run`];
  const means = runNames.filter((name) => !browser.runs.includes(name));
  means.forEach((name, place) => parts.push(place ? " and " : "; ", el("b", {}, name)));
  parts.push(means.length > 1 ? " are means over orders and have no ranking. " : means.length ? " is a mean over orders and has no ranking. " : ". ");
  if (browser.labelled) parts.push("Each document's groups and their weights are those of its label; one without a label is unknown.");
  if (!browser.texts) parts.push(browser.labelled ? " Texts are not available: the audit was given no collection." : "Texts are not available: the audit was given scores instead of a collection.");
  else if (browser.marked) {
    parts.push("Words of the lexicon: ");
    browser.groups.forEach((group, place) => parts.push(place ? ", " : "", marked(place, group.label)));
    parts.push(".");
  }
  if (judged) parts.push(" Relevant documents have a green edge.");
  return parts;
}

function valueTable(query) {
  if (!perQuery.length) return "";
  const head = el("tr", {}, el("th", { class: "left", scope: "col" }, "measure"), ...runNames.map((name) => el("th", { scope: "col", "data-long": /\S{13}/.test(name) }, name)));
  const rows = perQuery.map(([measure, name]) =>
    el("tr", {}, el("th", { class: "left", scope: "row" }, name), ...runNames.map((_, run) => el("td", {}, number(valueOf(measure, run, query.id))))),
  );
  const table = el("table", { class: "plain" }, el("caption", {}, "Values of this query"), el("thead", {}, head), el("tbody", {}, ...rows));
  return el("div", { class: "scroll" }, table);
}

function rankingColumn(name, ranking) {
  const place = runNames.indexOf(name);
  const heading = el("h4", {}, runSign(place), runLabel(audit.runs[place]));
  const list = el("ol", {}, ...ranking.map((entry, position) => card(entry, position + 1)));
  return el("div", {}, heading, ranking.length ? list : el("p", { class: "hint" }, "No ranking for this query."));
}

function card([number_, score, tied, grade], rank, wanted = null) {
  const doc = browser.documents[number_];
  const meta = el("div", { class: "meta" }, el("b", {}, `${rank}.`), el("b", {}, doc.id));
  if (judged) meta.append(el("span", {}, grade === null ? "not judged" : grade > 0 ? `relevant (${grade})` : `not relevant (${grade})`));
  if (score !== null) meta.append(el("span", {}, `score ${number(score)}`));
  if (tied) meta.append(el("span", { title: "Another document has the same score." }, "≈ tied"));
  if (browser.labelled && doc.neutrality === null) meta.append(el("span", { class: "unknown-label" }, "unknown"));
  else meta.append(el("span", {}, `neutrality ${doc.neutrality === null ? "unknown" : number(doc.neutrality, 2)}`));
  if (browser.labelled && doc.neutrality !== null && !doc.counts.some(Boolean)) meta.append(el("span", {}, "no group"));
  browser.groups.forEach((group, place) => {
    if (doc.counts[place]) meta.append(el("span", {}, marked(place, `${group.label} ${doc.counts[place]}`, false)));
  });
  return el("li", { class: grade > 0 ? "relevant" : "other" }, meta, passage(doc, wanted));
}

function marked(group, text, letter = true) {
  const sign = letter ? el("sup", {}, browser.groups[group].short) : null;
  return el("mark", { class: `g${group % 4}`, title: browser.groups[group].label }, text, sign);
}

const spelled = (text) => text.toLowerCase().replaceAll(/[\s_-]+/g, " ");

/**
 * The text around the marked words (around the word `wanted` if one is named), and a button for the whole text if it is
 * longer.
 */
function passage(doc, wanted) {
  if (!doc.text) return browser.texts ? el("p", { class: "hint" }, "The collection has no text of this document.") : null;
  const whole = [doc.start ? "… " : "", ...doc.text, doc.length ? ` … (truncated; ${count(doc.length)} characters in total)` : ""];
  const hit = (piece) => wanted !== null && spelled(piece[1]) === wanted;
  const short = excerpt(whole, wanted === null ? () => true : hit);
  const text = el("p", { class: "passage" });
  const drawn = (piece) => {
    if (typeof piece === "string") return piece;
    const mark = marked(...piece);
    mark.classList.toggle("hit", hit(piece));
    return mark;
  };
  const show = (pieces) => text.replaceChildren(...pieces.filter(Boolean).map(drawn));
  show(short ?? whole);
  if (!short) return text;
  text.classList.add("short");
  const more = el("button", { type: "button", class: "more", "aria-expanded": "false" }, "more");
  more.addEventListener("click", () => {
    const open = !text.classList.toggle("short");
    show(open ? whole : short);
    more.textContent = open ? "less" : "more";
    more.setAttribute("aria-expanded", String(open));
  });
  return el("div", {}, text, more);
}

const EXCERPT = 320;
const AROUND = 60;

/**
 * About `EXCERPT` characters of a marked text around the first marked words that `counts` accepts, with "…" for omissions;
 * null for a short text.
 */
function excerpt(pieces, counts) {
  const textOf = (piece) => (typeof piece === "string" ? piece : piece[1]);
  const text = pieces.map(textOf).join("");
  if (text.length <= EXCERPT * 1.25) return null;
  // Parts of the text [from, to): some context on both sides of each marked word, as many as fit.
  const parts = [];
  let room = EXCERPT;
  let place = 0;
  for (const piece of pieces) {
    const [from, to] = [place - AROUND, place + textOf(piece).length + AROUND];
    place += textOf(piece).length;
    if (typeof piece === "string" || !counts(piece)) continue;
    const last = parts.at(-1);
    const joined = last && from <= last[1] + AROUND / 3;
    const cost = joined ? to - last[1] : to - from;
    if (parts.length && cost > room) break;
    room -= cost;
    if (joined) last[1] = to;
    else parts.push([from < AROUND ? 0 : from, to]);
  }
  if (!parts.length) parts.push([0, 0]);
  parts.at(-1)[1] += Math.max(0, room);
  return parts.flatMap(([from, to], part) => {
    const [first, last] = [wordEdge(text, from, 1), wordEdge(text, to, -1)];
    return [first > 0 && part === 0 ? "… " : "", ...slice(pieces, first, last), last < text.length ? " … " : ""];
  });

  function slice(all, from, to) {
    let start = 0;
    return all.flatMap((piece) => {
      const here = start;
      start += textOf(piece).length;
      if (start <= from || here >= to) return [];
      return [typeof piece === "string" ? piece.slice(Math.max(0, from - here), to - here) : piece];
    });
  }
}

/** The nearest word boundary in one direction, or the place itself if the text has no spaces there. */
function wordEdge(text, place, step) {
  if (place <= 0) return 0;
  if (place >= text.length) return text.length;
  for (let edge = place; Math.abs(edge - place) < AROUND / 3; edge += step) {
    if (/\s/.test(text[step > 0 ? edge - 1 : edge] ?? " ")) return edge;
  }
  // Never between the halves of a surrogate pair.
  return /[\udc00-\udfff]/.test(text[place]) ? place + step : place;
}

// --- start ---------------------------------------------------------------------------------------------------------

function startBrowser() {
  const shown = browser.queries.length;
  const scope = shown < browser.total
    ? `Showing ${count(shown)} of ${count(browser.total)} queries: ${charts.chosenBy ? `those with the largest ${charts.chosenBy}` : "the first ones"}.`
    : `All ${plural(browser.total, "query", "queries")}.`;
  byId("browser-scope").textContent = browser.queryTexts ? scope : `${scope} The audit was given no query texts, so only ids are shown.`;
  const several = audit.runs.length > 1 && perQuery.length > 0;
  const orders = Object.entries(ORDERS).filter(([name]) => name === "id" || (perQuery.length && (several || name === "low" || name === "high")));
  fillSelect(byId("order"), orders, orders[0][0]);
  fillSelect(byId("order-measure"), perQuery, charts.focus);
  fillSelect(byId("order-first"), runOptions(), comparedPlace);
  fillSelect(byId("order-second"), runOptions(), againstPlace);
  byId("order-by").hidden = !perQuery.length;
  for (const id of ["order", "order-measure", "order-first", "order-second"]) byId(id).addEventListener("change", showList);
  byId("search").addEventListener("input", showList);
  showList();
  const first = byId("list").querySelector("button");
  if (first) showQuery(first.dataset.query);
}

// Of sums, no rankings are known.
if (byId("list")) startBrowser();
