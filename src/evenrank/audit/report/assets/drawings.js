// Draws the page's charts; texts only ever become text nodes.
const charts = JSON.parse(document.getElementById("data-charts").textContent);
const config = { font: getComputedStyle(document.body).fontFamily, axis: { labelFontSize: 12, titleFontSize: 13 } };
for (const [place, specification] of charts.entries()) {
  const holder = document.getElementById(`chart-${place}`);
  vegaEmbed(holder, specification, { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config });
}
