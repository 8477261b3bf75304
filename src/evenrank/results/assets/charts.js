// Draws charts with the packed libraries, each when its part of the page is opened.
const LETTER = 8;
const PAPER = 880;

let loaded = null;

/** Runs the chart libraries, which the policy names as it does the page's own script. */
function libraries() {
  loaded ??= unpacked("libraries").then((code) => document.head.append(Object.assign(el("script"), { textContent: code })));
  return loaded;
}

// What is printed before anything is opened has charts too: nothing waits for the libraries then.
(window.requestIdleCallback ?? setTimeout)(libraries);

/** A colour of the style sheet, which follows the theme and the print style. */
const colour = (name) => `var(--${name})`;

/** A title broken into lines of at most `most` letters, as far as its words allow. */
function lines(text, most) {
  const found = [];
  for (const word of text.split(" ")) {
    const longer = found.length ? `${found.at(-1)} ${word}` : word;
    if (found.length && longer.length <= most) found[found.length - 1] = longer;
    else found.push(word);
  }
  return found.length > 1 ? found : text;
}

let printing = false;
/** The width that a chart has: of its holder or, in print, of its share of the paper. */
function room(holder) {
  if (!printing) return holder.clientWidth;
  const width = PAPER / Math.min(3, holder.closest(".multiples")?.children.length ?? 1);
  return Math.min(width, parseFloat(getComputedStyle(holder).maxWidth) || width);
}

const redraws = new Map();

/** Draws a chart when its holder has got a width, as it does when the part that it stands in is opened, or another. */
function whenSeen(holder, draw) {
  redraws.set(holder, draw);
  onWidth(holder, draw);
}

addEventListener("beforeprint", () => {
  printing = true;
  redraws.forEach((draw) => draw());
});
addEventListener("afterprint", () => {
  printing = false;
  redraws.forEach((draw, holder) => holder.checkVisibility() && draw());
});

function configuration(narrow) {
  const [ink, muted, rule] = ["ink", "muted", "rule"].map(colour);
  const axis = { labelColor: muted, titleColor: ink, gridColor: rule, domainColor: muted, tickColor: muted };
  return {
    background: null,
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    axis: { ...axis, labelFontSize: 12, titleFontSize: 13, titleFontWeight: 600, titlePadding: 10, labelOverlap: true },
    axisX: { tickCount: narrow ? 5 : 10 },
    axisQuantitative: { grid: true },
    legend: { orient: "top", direction: narrow ? "vertical" : "horizontal", labelFontSize: 12, labelLimit: 0, labelColor: ink, titleColor: ink },
    header: { labelColor: ink, titleColor: ink },
    text: { color: ink },
    rule: { color: muted },
  };
}

const drawn = new Map();

/** Draws a specification in an element, replacing its content; `click` gets what is clicked on. */
async function embed(holder, specification, click = null) {
  const turn = clear(holder);
  await libraries();
  const width = room(holder);
  const fitting = { ...specification, width, autosize: { type: "fit-x", contains: "padding" } };
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: configuration(width < 500) };
  if (drawn.get(holder).turn !== turn) return;
  const result = await vegaEmbed(holder, fitting, options);
  if (drawn.get(holder).turn !== turn) {
    result.finalize();
    return;
  }
  drawn.set(holder, { turn, result });
  if (click) result.view.addEventListener("click", (_, item) => item?.datum && click(item.datum));
}

/** Ends the chart of an element; what it is to hold next has the number that is returned. */
function clear(holder) {
  const { turn = 0, result } = drawn.get(holder) ?? {};
  result?.finalize();
  drawn.set(holder, { turn: turn + 1 });
  return turn + 1;
}

const plot = byId("plot");
if (plot) {
  const specification = JSON.parse(await unpacked("plot-data"));
  // Between the verdicts and the table of a phone's first screen there is not as much height.
  const height = () => (innerWidth > 860 ? specification.height : 0.33 * room(plot));
  whenSeen(plot, () => embed(plot, { ...specification, height: height() }));
}
